package peer

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/diam/base"
)

// Peer is a Diameter node one hop away: up to Connections connections, one machine each.
type Peer struct {
	cfg      Config
	node     *Node
	machines []*machine
	dynamic  bool // made for a CER, gone with its last connection
	refs     int  // dynamic: connections that are served; under node.mu

	links    atomic.Pointer[[]*Link] // open ones; immutable
	identity atomic.Pointer[identity]
	stop     context.CancelFunc
	gone     chan struct{} // run has returned
	status   []atomic.Pointer[Status]
	failure  atomic.Pointer[Failure]
}

type identity struct{ host, realm string }

// Failure is why the last connection was not opened, or has ended.
type Failure struct {
	Cause  string
	Detail string
	At     time.Time
}

func newPeer(n *Node, cfg Config) *Peer {
	p := &Peer{cfg: cfg, node: n, gone: make(chan struct{})}
	if p.cfg.Dialer != nil {
		p.cfg.Server = true
	}
	if cfg.Host != "" {
		p.identity.Store(&identity{cfg.Host, cfg.Realm})
	}
	count := max(1, cfg.Connections)
	p.status = make([]atomic.Pointer[Status], count)
	for range count {
		p.machines = append(p.machines, newMachine(p))
	}
	for _, m := range p.machines {
		m.publish()
	}
	return p
}

func (p *Peer) run(ctx context.Context) {
	defer close(p.gone)
	var running sync.WaitGroup
	for _, m := range p.machines {
		running.Go(func() { m.run(ctx) })
		m.post(event{kind: evStart})
	}
	running.Wait()
}

// Name is the name it was configured with, or its Origin-Host.
func (p *Peer) Name() string { return p.cfg.Name }

// Host is its Origin-Host: what is expected, or what it last showed; empty where neither is known.
func (p *Peer) Host() string {
	if id := p.identity.Load(); id != nil {
		return id.host
	}
	return ""
}

// Realm is its Origin-Realm, known as Host is.
func (p *Peer) Realm() string {
	if id := p.identity.Load(); id != nil {
		return id.realm
	}
	return ""
}

// Settings are what it runs with.
func (p *Peer) Settings() *Settings { return &p.cfg.Settings }

// Results is who learns how its requests end; nil: nobody.
func (p *Peer) Results() Results { return p.cfg.Results }

// Links are its open connections. The slice is not changed any more.
func (p *Peer) Links() []*Link {
	if l := p.links.Load(); l != nil {
		return *l
	}
	return nil
}

// Stop leaves the peer for good: no new requests, drain, DPR with cause, close (diameter.md 2.6). It does not wait; Gone
// is closed when it is done.
func (p *Peer) Stop(cause diam.Cause, drain time.Duration) {
	for _, m := range p.machines {
		m.post(event{kind: evStop, dpr: cause, drain: drain})
	}
}

// Gone is closed when the peer has left.
func (p *Peer) Gone() <-chan struct{} { return p.gone }

// Abort ends its open connections at once; it dials again as after a loss.
func (p *Peer) Abort() {
	for _, l := range p.Links() {
		l.end(CauseStopped, true)
	}
}

func (p *Peer) local() *base.Node {
	if p.cfg.Local != nil {
		return p.cfg.Local
	}
	return &p.node.cfg.Local
}

// lonely says that no other server could do its work, so that it need not prove itself first.
func (p *Peer) lonely() bool { return p.cfg.Lonely != nil && p.cfg.Lonely() }

func (p *Peer) notify(n Notice) {
	n.Peer = p
	if p.cfg.Notify != nil {
		p.cfg.Notify(n)
	}
	if p.node.cfg.Notify != nil {
		p.node.cfg.Notify(n)
	}
}

// publishLinks makes what machines hold open what routing sees.
func (p *Peer) publishLinks() {
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	var open []*Link
	for _, m := range p.machines {
		if l := m.visible.Load(); l != nil {
			open = append(open, l)
		}
	}
	p.links.Store(&open)
}

func (p *Peer) opened(l *Link) {
	p.failure.Store(nil)
	p.identity.Store(&identity{l.caps.Host, l.caps.Realm})
	p.node.index(p)
	p.notify(Notice{Kind: Up, Link: l, Caps: &l.caps})
}

func (p *Peer) ended(l *Link, cause string, dpr diam.Cause) {
	direction := 0
	if cause == CauseStopped || cause == CauseReplaced || cause == CauseWatchdog {
		direction = 1
	}
	if cause == CauseFIN || cause == CauseRST || cause == CauseWatchdog {
		p.node.Stats.Hangups[direction].Add(cause)
	}
	l.Traffic.AddTo(&p.node.Stats.Ended[l.side])
	p.failure.Store(&Failure{Cause: cause, At: time.Now()})
	p.notify(Notice{Kind: Down, Link: l, Cause: cause, DPR: dpr})
}

// failed is a connection that was never opened.
func (p *Peer) failed(cause, detail string) {
	p.node.Stats.Handshakes[Server].Add(cause)
	p.failure.Store(&Failure{Cause: cause, Detail: detail, At: time.Now()})
	p.notify(Notice{Kind: Refused, Cause: cause, Detail: detail})
}

// LastFailure is why its last connection ended or was not opened; nil while it is open or was never tried.
func (p *Peer) LastFailure() *Failure { return p.failure.Load() }

// place finds the machine for a connection that the peer has opened to us: one that waits, else one that is open and
// will judge the second CER.
func (p *Peer) place() *machine {
	var oldest *machine
	for i, m := range p.machines {
		st := p.status[i].Load()
		if st.State != IOpen && st.State != ROpen && m.waiting.CompareAndSwap(false, true) {
			return m
		}
		if oldest == nil || st.Heard.Before(p.status[0].Load().Heard) {
			oldest = m
		}
	}
	return oldest
}

// Status is one machine of a peer as outputs show it.
type Status struct {
	State    State
	Watchdog WatchState
	Since    time.Time // of the state
	Remote   netip.AddrPort
	Link     *Link // nil while there is no open one
	Heard    time.Time
}

// Status is that of every machine.
func (p *Peer) Status() []Status {
	out := make([]Status, len(p.status))
	for i := range p.status {
		out[i] = *p.status[i].Load()
	}
	return out
}

// publish shows the machine's state to others.
func (m *machine) publish() {
	s := Status{State: m.state, Watchdog: m.watch.state, Since: m.since, Link: m.open}
	if m.open != nil {
		s.Remote, s.Heard = m.open.Remote(), m.open.Heard()
	}
	for i, other := range m.p.machines {
		if other == m {
			m.p.status[i].Store(&s)
		}
	}
}

// ErrNoPeer says that no peer of that identity is known.
var ErrNoPeer = errors.New("peer: no such peer")
