package sipproxy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/routing"
)

// ErrBusy says that a worker's queue of events is full.
var ErrBusy = errors.New("sipproxy: worker is busy")

// Port is what one worker listens to, sends with and logs to.
type Port struct {
	In  Inbox
	Out Sender
	Log *obs.Ring // nil: no access log
}

// Config is what a Proxy lives with over all generations. The bounds are per node and shared out among the workers;
// zero takes the default of sip-http.md section 19.
type Config struct {
	Ports   []Port
	Owner   func(callID []byte) int // which worker has the Call-ID; nil: there is one worker
	Numbers Numbers                 // nil: ENUM answers are never missing
	Names   Names                   // nil: requests of servers go to addresses only
	Panic   func(v any, stack []byte)
	// Probe is told responses whose only Via is ours: answers to health probes, which leave by the sockets of traffic. It
	// is lent the message and must not wait. Nil: nobody probes.
	Probe func(in *transport.Inbound)
	// Unreachable is told ICMP errors, for probes that wait for an answer. It must not wait. Nil: nobody probes.
	Unreachable func(to netip.AddrPort, err error)

	Entries int // transactions
	Waiting int // transactions that wait for their final response with all that 9 and the log need
	Hints   int // dialog hints
	Arena   int // octets for kept messages
	Records int // open lines of the access log
	Parked  int // requests that wait for DNS
}

// Proxy forwards SIP. It outlives generations: transaction memory, hints, kept and parked requests are its workers'.
type Proxy struct {
	cfg      Config
	current  atomic.Pointer[state]
	draining atomic.Bool
	workers  []*worker
	proven   *proven
	swap     sync.Mutex // one Swap after the other

	throttles map[*routing.Server]*throttle // of the servers in force; written by Swap alone
}

// state is a generation with what still belongs to the one before.
type state struct {
	*Generation
	gone map[goneKey]*server // servers that left, for their live transactions
}

type goneKey struct{ target, server uint32 }

// New makes a proxy. It starts nothing; before the first Swap every message is dropped.
func New(c Config) (*Proxy, error) {
	if len(c.Ports) == 0 {
		return nil, errors.New("sipproxy: no port")
	}
	for _, d := range []struct {
		have *int
		def  int
	}{
		{&c.Entries, defaultEntries}, {&c.Hints, defaultHints}, {&c.Arena, defaultArena},
		{&c.Waiting, defaultWaiting}, {&c.Records, defaultRecords}, {&c.Parked, defaultParked},
	} {
		if *d.have < 0 {
			return nil, fmt.Errorf("sipproxy: negative bound %d", *d.have)
		}
		if *d.have == 0 {
			*d.have = d.def
		}
	}
	p := &Proxy{cfg: c, proven: newProven()}
	for i := range c.Ports {
		p.workers = append(p.workers, newWorker(p, i))
	}
	return p, nil
}

// Swap makes a generation the one that new messages meet. Servers that it no longer has stay reachable for their live
// transactions for 64*T1; force cuts them off at once.
func (p *Proxy) Swap(g *Generation, now time.Time, force bool) {
	p.swap.Lock()
	defer p.swap.Unlock()
	next := &state{Generation: g, gone: map[goneKey]*server{}}
	if old := p.current.Load(); old != nil && !force {
		for k, s := range old.gone {
			if now.Before(s.until) && !g.has(k) {
				next.gone[k] = s
			}
		}
		for _, t := range old.targets {
			for tag, s := range t.pool.servers {
				k := goneKey{t.Target.Tag, tag}
				if g.has(k) {
					continue
				}
				left := *s
				left.until = now.Add(life)
				next.gone[k] = &left
			}
		}
	}
	p.throttle(g)
	p.current.Store(next)
}

// throttle gives the servers of a generation what they asked for under the one before.
func (p *Proxy) throttle(g *Generation) {
	in := map[*routing.Server]*throttle{}
	for _, pool := range g.pools {
		for _, s := range pool.servers {
			if s.throttle == nil {
				if s.throttle = p.throttles[s.state]; s.throttle == nil {
					s.throttle = &throttle{}
				}
			}
			in[s.state] = s.throttle
		}
	}
	p.throttles = in
}

func (g *Generation) has(k goneKey) bool {
	t := g.targetTag[k.target]
	return t != nil && t.pool.servers[k.server] != nil
}

// server finds a server by the tags that memory and tokens carry, one that has just left included.
func (g *state) server(target, tag uint32) *server {
	if t := g.targetTag[target]; t != nil {
		if s := t.pool.servers[tag]; s != nil {
			return s
		}
	}
	return g.gone[goneKey{target, tag}]
}

// Drain says whether this node answers OPTIONS to itself with 503 (sip-http.md section 11, item 3).
func (p *Proxy) Drain(on bool) { p.draining.Store(on) }

// Run runs one worker per port until the context ends.
func (p *Proxy) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, w := range p.workers {
		wg.Go(func() { w.run(ctx) })
	}
	wg.Wait()
	return ctx.Err()
}

// ServerDown tells the workers that a server has just gone down, so that requests which are kept for it move at once and
// not with the next copy (sip-http.md 9.3).
func (p *Proxy) ServerDown(s *routing.Server) {
	for _, w := range p.workers {
		w.port.In.Post(transport.Event{Kind: transport.Call, Do: func() { w.serverDown(s) }})
	}
}

// Open is the number of transactions that wait for their final response. For the drain of a node.
func (p *Proxy) Open() int {
	n := int64(0)
	for _, w := range p.workers {
		n += w.openNow.Load()
	}
	return int(n)
}
