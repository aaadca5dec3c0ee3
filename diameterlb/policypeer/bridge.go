package policypeer

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/wyegate/wyegate/diameterlb/peer"
	"github.com/wyegate/wyegate/diameterlb/policycluster"
	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/diam/base"
)

// Config is what the connections of one cluster have in common.
type Config struct {
	Settings peer.Settings
	Local    *base.Node // who we are toward the cluster (register_as); nil: the node
	// Dialer gives the way to an address.
	Dialer func(to netip.AddrPort) peer.Dialer
	// Release moves what is pending at a peer elsewhere. Nil: nothing is ever pending.
	Release func(p *peer.Peer)
}

// Bridge is the policycluster.Peers of one cluster.
type Bridge struct {
	node    *peer.Node
	cfg     Config
	waiting sync.WaitGroup

	mu    sync.Mutex
	links map[*policycluster.Member]*link
}

// link is one connection or attempt of a member.
type link struct {
	b      *Bridge
	m      *policycluster.Member
	peer   *peer.Peer
	closed bool // by the cluster: its reasons are known there; under Bridge.mu
	ended  bool // why is set; under Bridge.mu
	why    policycluster.Loss
}

// New makes a bridge to a node that runs.
func New(node *peer.Node, cfg Config) *Bridge {
	// The cluster says when it is dialled again; a peer that waits for Tc is removed long before.
	cfg.Settings.Tc = 24 * time.Hour
	cfg.Settings.RedialAtOnce = false
	return &Bridge{node: node, cfg: cfg, links: map[*policycluster.Member]*link{}}
}

// Wait waits until every connection has ended.
func (b *Bridge) Wait() { b.waiting.Wait() }

// Open adds a peer for one connection.
func (b *Bridge) Open(m *policycluster.Member, to netip.AddrPort) {
	l := &link{b: b, m: m}
	b.mu.Lock()
	b.links[m] = l
	l.peer = b.node.Add(peer.Config{
		Name: to.String(), Dialer: b.cfg.Dialer(to), Local: b.cfg.Local, Settings: b.cfg.Settings, Notify: l.notice,
		Results: results{m}, Server: true,
	})
	p := l.peer
	b.mu.Unlock()
	b.waiting.Go(func() {
		<-p.Gone()
		b.gone(l)
	})
}

// gone tells the cluster; after that it may open again.
func (b *Bridge) gone(l *link) {
	b.mu.Lock()
	delete(b.links, l.m)
	why := l.why
	if !l.ended {
		why = policycluster.Loss{Cause: policycluster.Closed, Detail: "stopped"}
	}
	b.mu.Unlock()
	l.m.SetLink(nil)
	l.m.Down(why)
}

// Close ends a connection: with DPR after the drain, or at once.
func (b *Bridge) Close(m *policycluster.Member, how policycluster.Closing) {
	b.mu.Lock()
	l := b.links[m]
	if l == nil || l.closed {
		b.mu.Unlock()
		return
	}
	l.closed = true
	p := l.peer
	b.mu.Unlock()
	if how.Abrupt() {
		p.Abort()
		b.node.Remove(p, diam.CauseDoNotWant, 0)
		return
	}
	b.node.Remove(p, diam.Cause(how.DPR), how.Drain)
}

// Release has the relay move what is pending.
func (b *Bridge) Release(m *policycluster.Member) {
	b.mu.Lock()
	l := b.links[m]
	b.mu.Unlock()
	if l != nil && b.cfg.Release != nil {
		b.cfg.Release(l.peer)
	}
}

// notice is told by the machine of the peer.
func (l *link) notice(n peer.Notice) {
	switch n.Kind {
	case peer.Up:
		l.m.SetLink(n.Peer)
		l.m.Up(policycluster.Identity{Host: n.Caps.Host, Realm: n.Caps.Realm})
	case peer.Suspected:
		l.m.TimedOut(policycluster.DWR)
		l.m.Suspected()
	case peer.Recovered:
		l.m.Recovered()
	case peer.Queued:
		l.m.Full(true)
	case peer.Emptied:
		l.m.Full(false)
	case peer.Refused:
		l.over(n.Peer, policycluster.Loss{Cause: policycluster.CERFailed, Detail: refusal(n)})
	case peer.Leaving:
		l.leaving(n)
	case peer.Down:
		l.over(n.Peer, l.b.loss(n))
	}
}

// leaving is a DPR. Theirs is a loss for the cluster at once; the connection ends when its late answers had their time.
func (l *link) leaving(n peer.Notice) {
	if n.Cause != peer.CauseDPR {
		return
	}
	l.b.mu.Lock()
	first := !l.closed && !l.ended
	l.b.mu.Unlock()
	if first {
		l.m.Leaving(fmt.Sprintf("DPR cause %d", n.DPR))
	}
}

// over notes why, and forgets the peer: the connection is not made again by itself.
func (l *link) over(p *peer.Peer, why policycluster.Loss) {
	l.b.mu.Lock()
	first := !l.ended
	if first {
		l.ended, l.why = true, why
	}
	l.b.mu.Unlock()
	if first {
		l.b.node.Remove(p, diam.CauseDoNotWant, 0)
	}
}

// loss is why an open connection has ended, in the words of the cluster.
func (b *Bridge) loss(n peer.Notice) policycluster.Loss {
	l := policycluster.Loss{Cause: policycluster.Closed, Detail: strings.ToUpper(n.Cause)}
	switch n.Cause {
	case peer.CauseWatchdog:
		l.Cause, l.Detail = policycluster.DWRTimeouts, ""
	case peer.CauseDPR:
		l.Detail = fmt.Sprintf("DPR cause %d", n.DPR)
		if after := b.cfg.Settings.AfterDPR; int(n.DPR) < len(after) {
			l.Wait = after[n.DPR]
			l.Never = l.Wait == 0
		}
	case peer.CauseFraming, peer.CauseSlow, peer.CauseStopped, peer.CauseReplaced:
		l.Detail = n.Cause
	}
	return l
}

// refusal is why there was no connection, short enough for LAST CHANGE.
func refusal(n peer.Notice) string {
	text := n.Detail
	for _, end := range []string{"connection refused", "no route to host", "network is unreachable", "i/o timeout"} {
		if strings.HasSuffix(text, end) {
			return end
		}
	}
	if strings.Contains(text, "deadline exceeded") {
		return "timeout"
	}
	if text == "" {
		return n.Cause
	}
	return text
}

// results counts how requests end (diameter.md 5.4).
type results struct{ m *policycluster.Member }

// Answered resets the counts of the kind, and looks for 3004.
func (r results) Answered(_ *peer.Peer, command, result uint32) {
	r.m.Answered(kind(command))
	r.m.Result(result == diam.ResultTooBusy)
}

// TimedOut counts.
func (r results) TimedOut(_ *peer.Peer, command uint32) { r.m.TimedOut(kind(command)) }

func kind(command uint32) policycluster.Kind {
	if command == diam.CommandSessionTermination {
		return policycluster.STR
	}
	return policycluster.Request
}

// Peer is the connection of a member, for the relay; nil while there is none.
func Peer(m *policycluster.Member) *peer.Peer {
	p, _ := m.Link().(*peer.Peer)
	return p
}
