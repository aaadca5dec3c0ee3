package engine

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/listen"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/internal/websocket"
	"github.com/wyegate/wyegate/proxy/httpproxy"
	"github.com/wyegate/wyegate/routing"
)

// reloads is what came of the configurations that were offered.
type reloads struct {
	mu      sync.Mutex
	taken   uint64
	refused uint64
	lastOK  bool
	at      time.Time // of the last one that was taken
	last    []config.Problem
}

func (r *reloads) note(ok bool, problems []config.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastOK, r.last = ok, problems
	if ok {
		r.taken++
		r.at = time.Now()
		return
	}
	r.refused++
}

// began notes the first generation. That the file was wrong and another one runs in its place stays the last word.
func (r *reloads) began() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken++
	r.at = time.Now()
	r.lastOK = r.refused == 0
}

// env is what a Draft of the next generation is built in. rules are candidates by service. A Draft that is only looked at
// is built without Metrics: its names would leave series that nothing takes away.
func (e *Engine) env(cfg *config.Config, rules map[string][]byte) Env {
	return Env{
		Registry: e.registry, Number: e.number(cfg), Metrics: e.metrics, Lookup: e.names.lookup, Resolver: e.enum.resolver,
		Rules: rules, Weights: e.state.weights(), OnChange: e.serverChanged, OnSuspect: e.serverSuspect,
		OnSite: e.siteMoved, Tables: e.tables(),
	}
}

// tables are those of the generation that runs, by pool; none before the first.
func (e *Engine) tables() map[string]*routing.Table {
	g := e.current.Load()
	if g == nil {
		return nil
	}
	out := make(map[string]*routing.Table, len(g.pools))
	for name, p := range g.pools {
		out[name] = p.Table()
	}
	return out
}

// number is that of the next generation; a start with what ran last, confirmed, goes on with its number.
func (e *Engine) number(cfg *config.Config) uint64 {
	if g := e.current.Load(); g != nil {
		return g.Number + 1
	}
	newest, _ := e.state.newest()
	if cfg != nil && newest.Confirmed && newest.Digest == cfg.Digest {
		return newest.Number
	}
	return e.state.lastGeneration() + 1
}

// first puts the first generation in force.
func (e *Engine) first(d *Draft) error {
	g, change, err := e.bind(d)
	if err != nil {
		return err
	}
	g.confirmed = true
	g.by, g.note = "file", ""
	e.swap(g, change, false)
	e.reloads.began()
	return e.state.took(g, e.fileDigest())
}

// bind opens what the draft needs and is not open yet, and makes the generation. It is the last step that can fail;
// nothing is closed and no message sees anything before swap.
func (e *Engine) bind(d *Draft) (*Generation, *listen.Change, error) {
	secrets, err := e.loadSecrets(d.Config)
	if err != nil {
		return nil, nil, err
	}
	shields, err := e.shield(d.Config)
	if err != nil {
		return nil, nil, err
	}
	wants, owner := e.wants(d.Config)
	change, err := e.sockets.Adopt(wants)
	if err != nil {
		return nil, nil, err
	}
	g := &Generation{Draft: d, secrets: secrets, digest: d.Config.Digest, at: time.Now(), shields: shields}
	for i := range d.Config.Listeners {
		g.listeners = append(g.listeners, boundListener{def: &d.Config.Listeners[i]})
	}
	var sip []sipListener
	for i, sock := range change.Sockets {
		l := &g.listeners[owner[i]]
		if l.def.Protocol == "sip" || l.def.SIPWebsocket != nil {
			c := e.transportConfig(d.Config, l.def, len(l.sockets))
			if l.def.SIPWebsocket != nil {
				c = e.sharedConfig(d.Config, l.def, len(l.sockets))
			}
			c.TLS = shields.listeners[l.def.Name].config
			tr, err := e.hub.Open(c, sock)
			if err != nil {
				change.Undo()
				return nil, nil, fmt.Errorf("listener %q: %w", l.def.Name, err)
			}
			l.sip = append(l.sip, tr)
			sip = append(sip, sipListener{l.def, tr})
		}
		l.sockets = append(l.sockets, sock)
	}
	if g.SIP, err = d.sipGeneration(e.wiring(g), sip); err != nil {
		change.Undo()
		return nil, nil, err
	}
	w := e.wiring(g)
	w.websockets = e.handOver(g.listeners)
	g.HTTP = d.httpGeneration(w)
	return g, change, nil
}

// handOver gives HTTP listeners the way by which a WebSocket of SIP leaves them.
func (e *Engine) handOver(listeners []boundListener) map[string]*httpproxy.WebSocket {
	out := map[string]*httpproxy.WebSocket{}
	for _, l := range listeners {
		if l.def.Protocol != "http" || len(l.sip) == 0 {
			continue
		}
		out[l.def.Name] = &httpproxy.WebSocket{
			Rules: l.sip[0].WebSocket(),
			Serve: func(ctx context.Context, c net.Conn, source netip.Addr, early []byte) {
				e.hub.ServeWebSocket(ctx, l.sip[familyOf(c, len(l.sip))], c, source, early)
			},
		}
	}
	return out
}

// familyOf says to which of a listener's sockets a connection came: one that is bound to every address has two, the
// second for IPv6.
func familyOf(c net.Conn, sockets int) int {
	a, ok := c.LocalAddr().(*net.TCPAddr)
	if sockets > 1 && ok && a.IP.To4() == nil {
		return 1
	}
	return 0
}

func (e *Engine) wiring(g *Generation) wiring {
	return wiring{secrets: g.secrets, peers: g.shields.peers, web: g.shields.web, metrics: e.metrics, local: localAddrs(), numbers: e.enum, covers: e.certs.Covers}
}

// wants lists the sockets of a configuration and the listener each is for.
func (e *Engine) wants(cfg *config.Config) (wants []listen.Want, owner []int) {
	v6 := hasIPv6()
	for i := range cfg.Listeners {
		l := &cfg.Listeners[i]
		if !onNode(l, e.name) {
			continue
		}
		for n, addr := range families(l.Bind, v6) {
			w := listen.Want{Name: familyName(l.Name, n), Network: listen.TCP, Addr: addr}
			if l.Transport == "udp" {
				w.Network, w.Sockets, w.Buffer = listen.UDP, l.Sockets, int(l.SocketBuffer)
			}
			wants, owner = append(wants, w), append(owner, i)
		}
	}
	return wants, owner
}

func onNode(l *config.Listener, node string) bool {
	return len(l.Nodes) == 0 || slices.Contains(l.Nodes, node)
}

func (e *Engine) transportConfig(cfg *config.Config, l *config.Listener, family int) transport.ListenerConfig {
	c := cfg.Limits.Connections
	var servers []netip.AddrPort
	if l.Transport == "udp" && len(l.ProxyProtocolFrom) > 0 {
		servers = sipServers(cfg)
	}
	return transport.ListenerConfig{
		Name: familyName(l.Name, family), Kind: sipKind(l.Transport), ProxyFrom: l.ProxyProtocolFrom,
		Total: c.PerListener, PerSource: c.PerSource, Exempt: serverPrefixes(cfg), Servers: servers, MaxAge: l.MaxConnectionAge,
		AgeJitter: float64(l.AgeJitter), WebSocket: websocket.Rules{Path: l.Path, Protocol: "sip", Origins: l.Origins, Trust: trustOf(cfg, l)},
	}
}

// trustOf are the networks that may tell every service of SIP at a listener who the client is: what one service believes
// must not count for another.
func trustOf(cfg *config.Config, l *config.Listener) (out http1.Trust) {
	first := true
	for i := range cfg.Services {
		s := &cfg.Services[i]
		switch {
		case !l.Offers(s.Name) || !slices.ContainsFunc(s.Applications, func(a config.Application) bool { return takes(&a, "sip") }):
		case first:
			out, first = slices.Clone(s.TrustHeadersFrom), false
		default:
			out = slices.DeleteFunc(out, func(p netip.Prefix) bool {
				return !slices.ContainsFunc(s.TrustHeadersFrom, func(q netip.Prefix) bool {
					return q.Bits() <= p.Bits() && q.Contains(p.Addr())
				})
			})
		}
	}
	return out
}

// sharedConfig is the SIP side of an HTTP listener that takes SIP over WebSocket as well (sip-http.md section 15).
func (e *Engine) sharedConfig(cfg *config.Config, l *config.Listener, family int) transport.ListenerConfig {
	c := e.transportConfig(cfg, l, family)
	c.Kind, c.Shared = transport.WS, true
	if l.Secure() {
		c.Kind = transport.WSS
	}
	c.WebSocket.Path, c.WebSocket.Origins = l.SIPWebsocket.Path, l.SIPWebsocket.Origins
	return c
}

// sipServers are the SIP addresses of all servers.
func sipServers(cfg *config.Config) (out []netip.AddrPort) {
	for _, p := range cfg.Pools {
		for _, s := range p.Servers {
			if s.SIP.Addr.IsValid() {
				out = append(out, netip.AddrPortFrom(s.SIP.Addr.Unmap(), s.SIP.Port))
			}
		}
	}
	return out
}

// serverPrefixes are the addresses of all servers: caps and rates are for clients.
func serverPrefixes(cfg *config.Config) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range cfg.Pools {
		for _, s := range p.Servers {
			for _, a := range []netip.Addr{s.SIP.Addr, s.HTTP.Addr} {
				if a.IsValid() && !a.IsLoopback() {
					out = append(out, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
				}
			}
		}
	}
	return out
}

// swap puts a generation in force: from the one store on, messages see it. Nothing here can fail. cut ends the live
// transactions of servers that leave (sip-http.md 4.7).
func (e *Engine) swap(g *Generation, change *listen.Change, cut bool) {
	old := e.current.Load()
	now := time.Now()
	e.certs.Use(g.shields.table, g.secrets.Tickets())
	e.hub.Set(e.rates.settings(g.Config))
	var listeners []*transport.Listener
	for _, l := range g.listeners {
		listeners = append(listeners, l.sip...)
	}
	e.adminStates(old, g, now)
	for _, p := range g.pools {
		p.Activate()
	}
	e.sip.Swap(g.SIP, now, cut)
	e.front.Swap(g.HTTP)
	e.http2.Swap(g.HTTP)
	e.current.Store(g)
	e.hub.Use(listeners)
	e.hub.KeepWebSockets(g.webSockets())
	e.serve(g)
	change.Commit()
	e.metrics.Sweep(g.live())
	e.probes.want(g)
	e.names.want(g)
	e.enum.want(g)
	if e.opts.Level != nil {
		_ = e.opts.Level.UnmarshalText([]byte(g.Config.Logging.Level)) // the configuration allows only its words
	}
	if e.access != nil && !g.Config.Logging.Access.IsZero() {
		if err := e.access.Configure(e.accessConfig(g.Config)); err != nil {
			e.log.Warn("access log stays as it is", slog.Any(obs.KeyErr, err))
		}
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// serve tells each stream socket what to do with its connections.
func (e *Engine) serve(g *Generation) {
	c := g.Config.Limits.Connections
	for _, l := range g.listeners {
		if l.def.Protocol != "http" {
			continue // the hub serves SIP sockets by itself
		}
		for _, s := range l.sockets {
			s.Serve(&listen.Service{
				Handle:    func(ctx context.Context, c net.Conn) { e.serveHTTP(ctx, c, l.def.Name) },
				ProxyFrom: l.def.ProxyProtocolFrom, Total: c.PerListener,
				PerSource: c.PerSource, Exempt: serverPrefixes(g.Config), TLS: g.shields.listeners[l.def.Name].config,
			})
		}
	}
}

// live names what the generation has, for the series of metrics.
func (g *Generation) live() obs.Live {
	var l obs.Live
	for i := range g.Config.Listeners {
		l.Listeners = append(l.Listeners, g.Config.Listeners[i].Name)
	}
	for i := range g.Config.Services {
		l.Services = append(l.Services, g.Config.Services[i].Name)
	}
	for _, t := range g.targets {
		l.Applications = append(l.Applications, [2]string{t.Service, t.Application})
		for _, r := range rulePaths(t.rules) {
			l.Rules = append(l.Rules, [2]string{t.Service, r})
		}
	}
	for _, p := range g.pools {
		l.Pools = append(l.Pools, p.Name)
		for _, s := range p.def.Servers {
			l.Servers = append(l.Servers, [2]string{p.Name, s.Name})
		}
	}
	for _, s := range g.Config.Sites {
		l.Sites = append(l.Sites, s.Name)
	}
	return l
}

// adminStates applies what the operator wants of each server: an override, else the file.
func (e *Engine) adminStates(old, g *Generation, now time.Time) {
	for _, p := range g.pools {
		for _, s := range p.def.Servers {
			want, _ := adminState(s.AdminState)
			cause := "file"
			if o, ok := e.state.override(p.Name, s.Name, "state"); ok {
				if a, valid := adminState(o.Value); valid {
					want, cause = a, o.By
				}
			}
			if m := p.Table().ByName(s.Name); m != nil && m.Admin() != want {
				p.SetAdmin(m.Server, want, cause, now)
			}
		}
	}
	if old == nil {
		return
	}
	for name, p := range old.pools {
		for _, s := range p.def.Servers {
			if next := g.pools[name]; next == nil || next.Table().ByName(s.Name) == nil {
				e.registry.Forget(name, s.Name)
			}
		}
	}
}

// guard compares what runs with what would (operations.md 4.2).
func (g *Generation) guard(next *Draft) error {
	for name, p := range g.pools {
		if err := (routing.Guard{}).Check(p.Pool, next.Pool(name)); err != nil {
			return err
		}
	}
	return nil
}
