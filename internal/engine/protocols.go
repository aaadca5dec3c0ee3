package engine

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/proxy/httpproxy"
	"github.com/wyegate/wyegate/proxy/sipproxy"
)

// wiring is what turns a Draft into what the proxies run on.
type wiring struct {
	secrets *proxy.Secrets
	metrics *obs.Metrics                 // nil: nothing is counted
	local   []netip.Addr                 // addresses of this host
	peers   map[string]map[string]string // by pool and server: what secure knows it by, for SIP
	web     map[string]map[string]string // the same for HTTP
	numbers httpproxy.Numbers
	covers  func(certificate, asked, host string) bool // nil: every host belongs everywhere

	websockets map[string]*httpproxy.WebSocket // by HTTP listener that takes SIP as well
}

// sipKind reads the transport of a listener or server.
func sipKind(word string) transport.Kind {
	switch strings.ToLower(word) {
	case "tcp":
		return transport.TCP
	case "tls":
		return transport.TLS
	case "ws":
		return transport.WS
	case "wss":
		return transport.WSS
	}
	return transport.UDP
}

// sipListener is a listener of the configuration with the transport's own view of it; a listener that is bound to every
// address has one for each family.
type sipListener struct {
	def *config.Listener
	tr  *transport.Listener
}

// sipGeneration makes what the SIP workers decide on.
func (d *Draft) sipGeneration(w wiring, listeners []sipListener) (*sipproxy.Generation, error) {
	o := d.Config.Limits.SIP.Overload
	g := sipproxy.GenerationConfig{Number: d.Number, Secrets: w.secrets, LocalAddrs: w.local, Overload: sipproxy.Overload{
		Target: o.TargetDelay, Status: o.Answer, RetryAfter: o.RetryAfter, Jitter: o.RetryAfterJitter,
	}}
	for _, l := range listeners {
		g.Listeners = append(g.Listeners, d.sipListener(w, l))
	}
	for _, p := range d.pools {
		g.Pools = append(g.Pools, sipproxy.PoolConfig{
			Pool: p.Pool, Tries: p.def.Connect.Tries, NoRetryAfter: !p.def.Health.Passive.HonourRetryAfter,
			Obs: w.serverCounters(p), Peers: w.peers[p.def.Name],
		})
	}
	for _, t := range d.targets {
		if !takes(t.app, "sip") {
			continue
		}
		g.Domains = append(g.Domains, t.app.Host...)
		g.Targets = append(g.Targets, sipproxy.TargetConfig{
			Target: t.Target, NoRecordRoute: !t.service.SIP.RecordRoute, Schemes: t.service.SIP.Schemes,
			ForeignRefuse: t.service.SIP.Foreign == "refuse", RouteOnly: t.service.SIP.FromServers == "route-only",
			FlowTokens: t.service.SIP.FlowTokens == "all", KeepAll: t.service.SIP.KeepRequests == "all",
			TrustFrom: t.service.TrustHeadersFrom, Obs: t.counters,
		})
	}
	return sipproxy.NewGeneration(g)
}

func (d *Draft) sipListener(w wiring, l sipListener) sipproxy.ListenerConfig {
	def := l.def
	c := sipproxy.ListenerConfig{
		Listener: l.tr, Advertise: def.Advertise.String(), Aliases: def.Aliases, Matcher: d.matcher(def),
		PathHeader: def.PathHeader, Outbound: def.Outbound, ForceRport: def.ForceRport, Protected: def.ProtectedNetwork,
		DropBad: def.BadRequests == "drop", NoServers: !def.Servers, TLSURI: def.TLSURI == "transport",
		Overload: slices.ContainsFunc(d.targets, func(t *target) bool {
			return t.service.SIP.OverloadControl && def.Offers(t.Service) && takes(t.app, "sip")
		}),
	}
	if w.metrics != nil {
		c.Obs = w.metrics.SIPListener(def.Name)
		c.Targets = make([]*obs.SIPTarget, len(d.targets))
		for i, t := range d.targets {
			if def.Offers(t.Service) && takes(t.app, "sip") {
				c.Targets[i] = w.metrics.SIPTarget(def.Name, t.Service, t.Application)
			}
		}
	}
	return c
}

func (w wiring) serverCounters(p *pool) map[string]*obs.Server {
	if w.metrics == nil {
		return nil
	}
	out := map[string]*obs.Server{}
	for _, s := range p.def.Servers {
		out[s.Name] = w.metrics.Server(p.def.Name, s.Name)
	}
	return out
}

// httpGeneration makes what the HTTP front decides on.
func (d *Draft) httpGeneration(w wiring) *httpproxy.Generation {
	limits := d.Config.Limits.HTTP
	g := &httpproxy.Generation{
		Number: d.Number, Secrets: w.secrets, Listeners: map[string]*httpproxy.Listener{}, Numbers: w.numbers,
		Limits: httpproxy.Limits{
			HeaderTimeout: limits.HeaderTimeout, BodyIdle: limits.BodyIdle, IdleTimeout: limits.IdleTimeout,
			MaxTarget: int(limits.MaxTarget), MaxHeader: int(limits.MaxHeader),
		}.WithDefaults(),
	}
	for i := range d.Config.Listeners {
		if l := &d.Config.Listeners[i]; l.Protocol == "http" {
			g.Listeners[l.Name] = d.httpListener(w, l)
		}
	}
	return g
}

func (d *Draft) httpListener(w wiring, def *config.Listener) *httpproxy.Listener {
	l := &httpproxy.Listener{
		Name: def.Name, TLS: def.Transport == "tls", Matcher: d.matcher(def), Apps: make([]*httpproxy.App, len(d.targets)),
		WebSocket: w.websockets[def.Name],
		MaxAge:    def.MaxConnectionAge, AgeJitter: float64(def.AgeJitter),
	}
	if w.metrics != nil {
		l.Obs = w.metrics.HTTPListener(def.Name)
		l.None = w.metrics.HTTPTarget(def.Name, "", "")
	}
	if w.covers != nil && l.TLS {
		l.Covers = func(asked, host string) bool { return w.covers(def.Certificate, asked, host) }
	}
	for i, t := range d.targets {
		if !def.Offers(t.Service) || !takes(t.app, "http") {
			continue
		}
		if l.DefaultHost == "" {
			l.DefaultHost = t.service.HTTP.DefaultHost
		}
		l.Apps[i] = d.httpApp(w, def, t)
	}
	return l
}

func (d *Draft) httpApp(w wiring, def *config.Listener, t *target) *httpproxy.App {
	p := d.pools[t.service.PoolOf(t.app)]
	c := p.def.Connect
	connect := httpproxy.Connect{Timeout: c.Timeout, Tries: c.Tries, Idle: c.Idle, Source: c.Source, Announce: announcement(c.ProxyProtocol)}.WithDefaults()
	a := &httpproxy.App{
		Target: t.Target, Connect: &connect, Keys: t.counters,
		Service: &httpproxy.Service{
			Name: t.Service, Via: t.service.HTTP.Via, Upgrade: lower(t.service.HTTP.Upgrade),
			LenientFraming: t.service.HTTP.LenientFraming, TrustFrom: t.service.TrustHeadersFrom,
		},
	}
	a.Peers = map[uint32]string{}
	for i := range p.Table().Members {
		if m := &p.Table().Members[i]; w.web[p.def.Name][m.Name] != "" {
			a.Peers[m.Tag] = w.web[p.def.Name][m.Name]
		}
	}
	if w.metrics != nil {
		a.Obs = w.metrics.HTTPTarget(def.Name, t.Service, t.Application)
		a.Servers = map[uint32]*obs.Server{}
		for i := range p.Table().Members {
			m := &p.Table().Members[i]
			a.Servers[m.Tag] = w.metrics.Server(p.def.Name, m.Name)
		}
	}
	return a
}

func lower(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ToLower(w)
	}
	return out
}

// families gives the addresses a listener is bound to: one, or one per family when the file names none and the host has
// both.
func families(b config.Bind, v6 bool) []netip.AddrPort {
	if b.Addr.IsValid() {
		return []netip.AddrPort{netip.AddrPortFrom(b.Addr, b.Port)}
	}
	out := []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), b.Port)}
	if v6 && b.Port != 0 {
		out = append(out, netip.AddrPortFrom(netip.IPv6Unspecified(), b.Port))
	}
	return out
}

// familyName tells the sockets of one listener apart: the first has the listener's own name.
func familyName(name string, i int) string {
	if i == 0 {
		return name
	}
	return fmt.Sprintf("%s/6", name)
}
