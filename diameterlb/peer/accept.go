package peer

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/diam/base"
)

// Serve has a connection that somebody opened to us until it ends. The first message must be a CER, in time; what is
// not admitted is answered and closed.
func (n *Node) Serve(ctx context.Context, c Conn) {
	source := first(c.Remote()).Addr()
	if !n.caps.Acquire(source) {
		n.Stats.BadInput.Add("limit")
		_ = c.Abort()
		return
	}
	defer n.caps.Release(source)
	if n.handshaking.Add(1) > int32(n.cfg.Limits.Handshaking) {
		n.handshaking.Add(-1)
		n.Stats.BadInput.Add("limit")
		_ = c.Abort()
		return
	}
	l := newLink(n, c, Client, &n.cfg.Defaults)
	stop := context.AfterFunc(ctx, func() { l.end(CauseStopped, false) })
	defer stop()
	l.shaking = l.handshakeTimer(n.cfg.Defaults.Handshake)
	n.running.Go(l.write)
	l.read()
	l.shaken() // where it ended before it was
	if l.peer != nil {
		n.release(l.peer)
	}
}

// shaken ends the time in which a connection counts as one without capabilities.
func (l *Link) shaken() {
	if l.shaking != nil {
		l.shaking()
		l.shaking = nil
		l.node.handshaking.Add(-1)
	}
}

// release lets go of a peer that was made for a CER, with its last connection.
func (n *Node) release(p *Peer) {
	n.mu.Lock()
	p.refs--
	gone := p.dynamic && p.refs == 0
	if gone {
		n.peers = slices.DeleteFunc(n.peers, func(o *Peer) bool { return o == p })
	}
	n.mu.Unlock()
	if gone {
		p.stop()
		<-p.gone // its end is reported before a new one of that identity begins
		n.index(nil)
	}
}

// opening takes the first message of a connection: a CER where we accepted, a CEA where we dialled. Anything else is
// closed and never answered (RFC 6733 5.6.1). It returns when messages may follow.
func (l *Link) opening(h diam.Header, msg []byte) (cause string) {
	ours := l.side == Server
	if h.Command != diam.CommandCapabilitiesExchange || h.IsRequest() == ours {
		l.node.Stats.BadInput.Add("no_cer")
		if ours {
			l.tell(event{kind: evNotCEA, link: l})
		}
		return CauseCER
	}
	caps, err := base.ReadCapabilities(msg)
	l.caps = caps
	l.routeRR = routeRecord(caps.Host)
	if ours {
		cause = l.answered(err)
	} else {
		cause = l.asked(h, err)
	}
	if cause != "" {
		return cause
	}
	select {
	case <-l.opened:
		return ""
	case <-l.dead:
		return l.Cause()
	}
}

func routeRecord(host string) []byte {
	b := diam.Build(nil, diam.Header{})
	b.String(diam.AVPRouteRecord, host)
	avp, err := b.Bytes()
	if err != nil {
		return nil // an identity of 16 MiB does not fit a message
	}
	return avp[diam.HeaderLen:]
}

// answered is the CEA to our CER.
func (l *Link) answered(err error) (cause string) {
	detail := ""
	switch {
	case err != nil:
		detail = "malformed CEA"
	case l.caps.Result/1000 != 2:
		detail = "CEA " + base.Refusal{Result: l.caps.Result, Text: l.caps.ErrorMessage}.String()
	case l.caps.Host == "" || l.caps.Realm == "":
		detail = "CEA without origin"
	case !l.peer.expects(&l.caps):
		detail = "identity " + l.caps.Host + " realm " + l.caps.Realm + " is not the one expected"
	case len(diam.CommonApps(l.local.Apps, l.caps.Apps)) == 0:
		detail = "no application in common"
	default:
		if err := l.verified(&l.peer.cfg.Settings); err != nil {
			detail = err.Error()
		}
	}
	if detail != "" {
		l.peer.failed(CauseCER, detail)
		l.tell(event{kind: evNotCEA, link: l})
		return CauseCER
	}
	l.tell(event{kind: evCEA, link: l})
	return ""
}

func (p *Peer) expects(c *base.Capabilities) bool {
	return (p.cfg.Host == "" || strings.EqualFold(p.cfg.Host, c.Host)) &&
		(p.cfg.Realm == "" || strings.EqualFold(p.cfg.Realm, c.Realm))
}

func (l *Link) verified(s *Settings) error {
	if c, ok := l.conn.(secured); ok && s.VerifyHost {
		return c.VerifyHost(l.caps.Host)
	}
	return nil
}

// asked is the CER of a connection we accepted.
func (l *Link) asked(h diam.Header, err error) (cause string) {
	l.shaken()
	n := l.node
	p, refusal := n.admit(l, err)
	if p == nil {
		if refusal.Result != 0 {
			n.Stats.BadInput.Add("cer_" + resultWord(refusal.Result))
			n.Stats.Handshakes[Client].Add("cer_" + resultWord(refusal.Result))
			cea := n.cfg.Local.CEA(base.IDsOf(h), n.addrs(l.conn), refusal)
			l.Traffic.count(1, 0, diam.CommandCapabilitiesExchange, len(cea))
			_, _ = l.conn.Writev([][]byte{cea}, 0) // it is closed next, whether this was heard or not
		} else {
			n.Stats.Handshakes[Client].Add("unknown")
		}
		if n.cfg.Notify != nil {
			n.cfg.Notify(Notice{Kind: Refused, Link: l, Cause: CauseCER, Detail: refusal.String(), Caps: &l.caps})
		}
		return CauseCER
	}
	l.peer, l.local = p, p.local()
	l.q.maxMessages, l.q.maxBytes = p.cfg.QueueMessages, p.cfg.QueueBytes
	l.m.Store(p.place())
	l.tell(event{kind: evCER, link: l, ids: base.IDsOf(h)})
	select {
	case <-l.dead: // perhaps before the machine could hear of it
		l.tell(event{kind: evClosed, link: l})
	default:
	}
	return ""
}

func resultWord(code uint32) string { return base.Refusal{Result: code}.String() }

// admit finds the peer that a CER is of, or makes one where a rule allows it (diameter.md 2.3). A Refusal with result 0
// and no peer: closed without an answer.
func (n *Node) admit(l *Link, malformed error) (*Peer, base.Refusal) {
	c := &l.caps
	if malformed != nil && c.Host == "" {
		return nil, base.Refusal{Result: diam.ResultInvalidAVPLength, Text: "malformed CER"}
	}
	refusal := c.Check(n.cfg.Local.Apps)
	if refusal.FailedCode != 0 {
		return nil, refusal
	}
	if strings.EqualFold(c.Host, n.cfg.Local.Host) {
		return nil, base.Refusal{Result: diam.ResultUnknownPeer, Text: "identity is our own"}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.known(c.Host)
	settings := &n.cfg.Defaults
	switch {
	case p != nil:
		if !p.expects(c) {
			return nil, base.Refusal{Result: diam.ResultUnknownPeer, Text: "realm is not the one expected"}
		}
		settings = &p.cfg.Settings
		refusal = c.Check(p.local().Apps)
	case !n.allowed(c, first(l.conn.Remote()).Addr()):
		if n.cfg.Unknown == UnknownDrop {
			return nil, base.Refusal{}
		}
		return nil, base.Refusal{Result: diam.ResultUnknownPeer, Text: "unknown peer"}
	}
	if refusal.Result != 0 {
		return nil, refusal
	}
	if err := l.verified(settings); err != nil {
		return nil, base.Refusal{Result: diam.ResultUnknownPeer, Text: "certificate does not name the Origin-Host"}
	}
	if p == nil {
		if p = n.newDynamic(c); p == nil {
			return nil, base.Refusal{}
		}
	}
	p.refs++
	return p, base.Refusal{}
}

// known finds a peer by identity; n.mu is held.
func (n *Node) known(host string) *Peer {
	for _, p := range n.peers {
		if strings.EqualFold(p.Host(), host) {
			return p
		}
	}
	return nil
}

// newDynamic makes a peer for a CER that a rule has admitted; n.mu is held.
func (n *Node) newDynamic(c *base.Capabilities) *Peer {
	if n.ctx == nil || n.ctx.Err() != nil {
		return nil // before Run and after its end nobody is let in
	}
	cfg := Config{Name: c.Host, Host: c.Host, Realm: c.Realm, Settings: n.cfg.Defaults}
	p := newPeer(n, cfg)
	p.dynamic = true
	n.peers = append(n.peers, p)
	n.startPeer(p)
	return p
}

func (n *Node) allowed(c *base.Capabilities, source netip.Addr) bool {
	if n.cfg.Unknown == UnknownAccept {
		return true
	}
	return slices.ContainsFunc(n.cfg.Accept, func(r Rule) bool {
		return matchName(r.Host, c.Host) && matchName(r.Realm, c.Realm) && (len(r.From) == 0 ||
			slices.ContainsFunc(r.From, func(p netip.Prefix) bool { return p.Contains(source.Unmap()) }))
	})
}

// matchName compares a name with a pattern: empty for any, "*." and the end of it, or itself; ASCII without case.
func matchName(pattern, name string) bool {
	if pattern == "" || pattern == "*" {
		return true
	}
	if end, ok := strings.CutPrefix(pattern, "*"); ok && strings.HasPrefix(end, ".") {
		return len(name) > len(end) && strings.EqualFold(name[len(name)-len(end):], end)
	}
	return strings.EqualFold(pattern, name)
}

// handshakeTimer closes a connection that shows no CER in time.
func (l *Link) handshakeTimer(d time.Duration) (stop func() bool) {
	return time.AfterFunc(d, func() {
		l.node.Stats.BadInput.Add("no_cer")
		l.end(CauseCER, false)
	}).Stop
}
