package transport

import (
	"crypto/tls"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxAliases bounds the table of aliases of a node.
const maxAliases = 4096

// alias is a client's connection over mutual TLS that may carry requests to an address of that client, as it said in a
// Via (RFC 5923 section 5).
type alias struct {
	flow *flow
	at   netip.AddrPort
	who  []string // what its certificate stands for
}

// aliases is copied for a change, so that whoever sends reads it without a lock.
type aliases struct {
	mu    sync.Mutex
	table atomic.Pointer[map[netip.AddrPort]*alias]
}

// get finds who has an address; nil: nobody.
func (a *aliases) get(at netip.AddrPort) *alias {
	if t := a.table.Load(); t != nil {
		return (*t)[at]
	}
	return nil
}

// put makes a connection the one for its address. One that another party has stays that party's while it lives: whoever
// shares its address, behind a NAT, does not take its requests away.
func (a *aliases) put(n *alias) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := map[netip.AddrPort]*alias{}
	if old := a.table.Load(); old != nil {
		t = maps.Clone(*old)
	}
	if was := t[n.at]; was != nil && was.flow.state.Load() <= living && !slices.Equal(was.who, n.who) {
		return
	}
	if was := n.flow.alias.Load(); was != nil && t[was.at] == was {
		delete(t, was.at)
	}
	n.flow.alias.Store(n) // before the look at the state: either this sees that the flow is closed, or close sees the alias
	if len(t) < maxAliases && n.flow.state.Load() <= living {
		t[n.at] = n
	}
	a.table.Store(&t)
}

// drop forgets the alias of a connection that is closed.
func (a *aliases) drop(f *flow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, old := f.alias.Load(), a.table.Load()
	if n == nil || (*old)[n.at] != n {
		return
	}
	t := maps.Clone(*old)
	delete(t, n.at)
	a.table.Store(&t)
}

// Alias notes that a client asks for requests to an address of its own on its connection: the parameter alias of the Via
// it wrote. It is heard only where the client has shown a certificate that was checked (SX-8; RFC 5923 section 9).
func (o *Out) Alias(id uint64, at netip.AddrPort) {
	f := o.hub.flows.get(id)
	if f == nil || f.outgoing || f.kind != TLS || o.hub.cfg.Identities == nil {
		return
	}
	if is := f.alias.Load(); is != nil && is.at == at {
		return // said with every request
	}
	c, ok := f.conn.(*tls.Conn)
	if !ok {
		return
	}
	s := c.ConnectionState()
	if len(s.VerifiedChains) == 0 {
		return
	}
	if who := o.hub.cfg.Identities(s.PeerCertificates[0]); len(who) > 0 {
		o.hub.aliases.put(&alias{f, at, who})
	}
}

// OnAlias queues b on the connection that a client has opened, where it has an alias for dst and its certificate is that
// of host. ErrFlowGone: there is none, and a connection is to be opened.
func (o *Out) OnAlias(dst netip.AddrPort, host, b []byte) (flow uint64, err error) {
	a := o.hub.aliases.get(dst)
	if a == nil || !a.is(host) {
		return 0, ErrFlowGone
	}
	return a.flow.id, o.OnFlow(a.flow.id, b)
}

// is compares without wildcards (RFC 5922 section 7.2).
func (a *alias) is(host []byte) bool {
	for _, w := range a.who {
		if len(w) == len(host) && strings.EqualFold(w, string(host)) {
			return true
		}
	}
	return false
}
