package engine

import (
	"runtime"
	"sync"
	"time"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/routing"
)

// scrape is what a scrape of the metrics shows beside counters: the levels of the moment.
func (e *Engine) scrape() obs.State {
	g := e.current.Load()
	v := e.opts.Version
	s := obs.State{
		Version: v.Version, Revision: v.Revision, GoVersion: runtime.Version(), Generation: g.Number, Unconfirmed: !g.confirmed,
		Certificates:  e.certificates(),
		SIPShed:       e.sip.Shed(),
		SIPLeft:       e.sip.Left(),
		OverloadDelay: map[string]time.Duration{"sip": e.hub.Wait()},
	}
	e.reloads.mu.Lock()
	s.LastReloadOK, s.LastReloadAt = e.reloads.lastOK, e.reloads.at
	e.reloads.mu.Unlock()
	tunnels := e.front.Tunnels()
	for _, a := range e.Servers() {
		st := serverState(g, a)
		for k, n := range tunnels {
			if k.Pool == a.Pool && k.Server == a.Server {
				st.Websockets[k.Listener] += n
			}
		}
		s.Servers = append(s.Servers, st)
	}
	e.moved.count(g, e.metrics)
	for _, p := range e.Pools() {
		s.Pools = append(s.Pools, obs.PoolState{Pool: p.Pool, Panic: p.Panic, Usable: p.UsableRatio})
	}
	for _, site := range e.sites(g) {
		s.Sites = append(s.Sites, obs.SiteState{Site: site.Site, Serving: site.Serving})
	}
	for _, l := range g.listeners {
		s.Listeners = append(s.Listeners, l.state())
	}
	e.enum.state(&s)
	return s
}

// Indices of obs.OverloadCauses.
const (
	shedSourceRate  = 1
	shedConnections = 2
	shedQueue       = 3
)

// state sums the sockets of a listener: parse errors are counted by the workers and framing by the transport; what is
// shed is dropped before anything deep.
func (l *boundListener) state() obs.ListenerState {
	s := obs.ListenerState{Listener: l.def.Name, Protocol: l.def.Protocol, Transport: l.def.Transport}
	for _, sock := range l.sockets {
		s.Connections += sock.Connections()
		s.Accepted += sock.Stats.Accepted.Load()
		for i := range s.Handshakes {
			s.Handshakes[i] += sock.Stats.Handshakes[i].Load()
		}
		s.Shed[shedConnections] += sock.Stats.Refused.Load()
	}
	for _, tr := range l.sip {
		c := tr.Counters()
		s.Websockets += tr.WebSockets()
		s.ParseErrors[obs.ParseFraming] += c.Unframed.Load()
		s.Shed[shedSourceRate] += c.Limited.Load()
		s.Shed[shedQueue] += c.Dropped.Load()
	}
	return s
}

func serverState(g *Generation, a admin.Server) obs.ServerState {
	p := g.pools[a.Pool]
	s := obs.ServerState{
		Pool: a.Pool, Server: a.Server, Usable: a.Usable, Weight: p.Table().WeightRatio(a.Server), SlowStart: a.SlowStart,
		Partitions: a.Partitions, Admin: a.AdminState.Effective, Health: map[string]string{}, Websockets: map[string]int{}, Dialogs: a.Dialogs,
	}
	for proto, h := range a.Health {
		s.Health[proto] = h.State
	}
	if d := a.Drain; d != nil {
		s.Drain = &obs.DrainState{Dialogs: d.Dialogs.Left, Sessions: d.Sessions.Left, Websockets: d.Websockets.Left}
		if d.Deadline != nil {
			s.Drain.Deadline = *d.Deadline
		}
	}
	return s
}

// movedKeys remembers which live keys that changed servers are in the metrics already: routing counts by itself.
type movedKeys struct {
	mu    sync.Mutex
	taken map[string]int64 // by pool
}

func (k *movedKeys) count(g *Generation, m *obs.Metrics) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.taken == nil {
		k.taken = map[string]int64{}
	}
	for name, p := range g.pools {
		is := p.KeysMoved()
		m.KeysMoved(name).Add(float64(is - k.taken[name]))
		k.taken[name] = is
	}
}

// traffic fills in the rates of status.
func (e *Engine) traffic(s *admin.Status) {
	s.SIPPerSecond, s.HTTPPerSecond = e.rate.total[routing.SIP].Load(), e.rate.total[routing.HTTP].Load()
	byRule, byDefault := e.rate.keys()
	s.KeysByRule, s.KeysByDefault = byRule, byDefault
	for _, srv := range e.Servers() {
		s.Websockets += srv.Websockets
	}
	for _, l := range e.current.Load().listeners {
		for _, tr := range l.sip {
			s.Websockets += tr.WebSockets()
		}
	}
}
