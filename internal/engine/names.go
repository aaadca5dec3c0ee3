package engine

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/resolver"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy/sipproxy"
	"github.com/wyegate/wyegate/routing"
)

// hostNames fits the resolver to those who have names: the servers of pools, and next hops outwards of servers' requests
// (sipproxy.Names).
type hostNames struct {
	hosts *resolver.Hosts
	next  *resolver.Next
	moved func() // a server's name has other addresses
	log   *slog.Logger
}

// newHostNames makes the names of a node; resolvers nil stands for the host's.
func newHostNames(log *slog.Logger, resolvers []string, moved func()) *hostNames {
	n := &hostNames{log: log, moved: moved}
	if resolvers == nil {
		resolvers = hostResolvers(log)
	}
	client := resolver.Client{Resolvers: resolvers}
	n.hosts = resolver.NewHosts(resolver.HostsConfig{Client: client, Changed: func(name string, a resolver.Addresses) {
		n.log.Info("addresses of a name", slog.String("name", name), slog.Any("addresses", a.Addrs), slog.Bool("stale", a.Stale))
		n.moved()
	}})
	n.next = resolver.NewNext(resolver.HostsConfig{Client: client})
	return n
}

func hostResolvers(log *slog.Logger) []string {
	list, err := resolver.HostResolvers("")
	if err != nil {
		log.Warn("the host names no resolver", slog.Any(obs.KeyErr, err))
	}
	return list
}

// LookupOnce is Env.Lookup for a check: one look, nothing kept.
func LookupOnce(host string) netip.Addr {
	return newHostNames(slog.New(slog.DiscardHandler), nil, func() {}).lookup(host)
}

// lookup is Env.Lookup: the last good answer, else one look.
func (n *hostNames) lookup(host string) netip.Addr {
	a, known := n.hosts.Addresses(host)
	if !known {
		var err error
		if a, err = n.hosts.Resolve(context.Background(), host); err != nil {
			n.log.Warn("name not resolved", slog.String("name", host), slog.Any(obs.KeyErr, err))
		}
	}
	if len(a.Addrs) == 0 {
		return netip.Addr{}
	}
	return a.Addrs[0]
}

// want makes the names of a generation's servers those that are kept fresh.
func (n *hostNames) want(g *Generation) {
	var names []string
	for _, p := range g.Config.Pools {
		for _, s := range p.Servers {
			if !s.SIP.IsZero() && !s.SIP.Addr.IsValid() {
				names = append(names, s.SIP.Host)
			}
			if !s.HTTP.IsZero() && !s.HTTP.Addr.IsValid() {
				names = append(names, s.HTTP.Host)
			}
		}
	}
	n.hosts.Watch(names)
}

// Run keeps names fresh until the context ends.
func (n *hostNames) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { _ = n.next.Run(ctx) }) // it ends with its context
	err := n.hosts.Run(ctx)
	running.Wait()
	return err
}

// hop says in the resolver's words what a URI says of its next hop. False: of that transport nothing is asked, as nothing
// but the client's own connection leads there.
func hop(h sipproxy.NextHop) (resolver.Hop, bool) {
	q := resolver.Hop{Host: strings.TrimSuffix(strings.ToLower(string(h.Host)), "."), Port: h.Port, Secure: h.Secure}
	switch h.Kind {
	case 0:
	case transport.UDP:
		q.Transport = resolver.UDP
	case transport.TCP:
		q.Transport = resolver.TCP
	case transport.TLS:
		q.Transport = resolver.TLS
	default:
		return q, false
	}
	return q, true
}

// Lookup implements sipproxy.Names.
func (n *hostNames) Lookup(dst []sipproxy.Endpoint, h sipproxy.NextHop, seed uint64, late bool) ([]sipproxy.Endpoint, bool) {
	q, ok := hop(h)
	if !ok {
		return dst, true
	}
	var room [8]resolver.HopTarget
	list, known := n.next.Lookup(room[:0], q, seed, late)
	for _, p := range list {
		k := [...]transport.Kind{resolver.UDP: transport.UDP, resolver.TCP: transport.TCP, resolver.TLS: transport.TLS}[p.Transport]
		dst = append(dst, sipproxy.Endpoint{Kind: k, Addr: p.Addr})
	}
	return dst, known
}

// Ask implements sipproxy.Names.
func (n *hostNames) Ask(h sipproxy.NextHop, done func()) bool {
	q, ok := hop(h)
	return ok && n.next.Ask(q, done)
}

// readdress gives the pools of the running generation the addresses that names have now, in the same tables: no key
// moves. The SIP side learns the new addresses with its generation made anew.
func (e *Engine) readdress() {
	e.apply.Lock()
	defer e.apply.Unlock()
	g := e.current.Load()
	if g == nil {
		return
	}
	for _, p := range g.pools {
		p.SetTable(p.Table().WithAddresses(func(m *routing.Member) []routing.Address { return e.addresses(p, m) }))
	}
	var listeners []sipListener
	for _, l := range g.listeners {
		for _, tr := range l.sip {
			listeners = append(listeners, sipListener{l.def, tr})
		}
	}
	sip, err := g.sipGeneration(e.wiring(g), listeners)
	if err != nil {
		e.log.Error("new addresses are not taken", slog.Any(obs.KeyErr, err))
		return
	}
	next := *g
	next.SIP = sip
	e.sip.Swap(sip, time.Now(), false)
	e.current.Store(&next)
	e.hub.KeepWebSockets(next.webSockets())
	e.probes.want(&next)
}

func (e *Engine) addresses(p *pool, m *routing.Member) []routing.Address {
	for _, s := range p.def.Servers {
		if s.Name != m.Name {
			continue
		}
		b := builder{cfg: e.current.Load().Config, env: Env{Lookup: e.names.lookup}}
		var out []routing.Address
		if !s.SIP.IsZero() {
			out = append(out, b.address(&pool{}, s.Name, routing.SIP, s.SIPTransport, s.SIP))
		}
		if !s.HTTP.IsZero() {
			out = append(out, b.address(&pool{}, s.Name, routing.HTTP, "tcp", s.HTTP))
		}
		return out
	}
	return m.Addresses
}
