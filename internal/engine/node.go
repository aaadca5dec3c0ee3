package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/routing"
)

var _ admin.Node = (*Engine)(nil)

// Status is one screen's data.
func (e *Engine) Status() admin.Status {
	g := e.current.Load()
	s := admin.Status{
		Node: e.name, Version: e.opts.Version.Version, StartedAt: e.started, UptimeSeconds: time.Since(e.started).Seconds(),
		Draining: e.draining.Load(), Generation: g.Number, GenerationState: "confirmed", Digest: g.digest,
		Sites: e.sites(g), Pools: e.Pools(), Warnings: e.warnings(g), HiddenByFile: []admin.Override{},
		FileDiffers: e.fileDiffers(g),
	}
	if err := e.Ready(); err != nil {
		s.NotReady = err.Error()
	} else {
		s.Ready = true
	}
	if !g.confirmed {
		s.GenerationState, s.UndoneAt = "unconfirmed", &g.undoneAt
	}
	e.reloads.mu.Lock()
	s.Reloads = admin.Reloads{Taken: e.reloads.taken, Refused: e.reloads.refused, LastOK: e.reloads.lastOK}
	e.reloads.mu.Unlock()
	e.traffic(&s)
	return s
}

// Ready says why the node is not ready: it leaves, or a pool has not heard of all its servers yet.
func (e *Engine) Ready() error {
	if e.draining.Load() {
		return fmt.Errorf("draining")
	}
	return e.probes.ready()
}

// Events is the live feed.
func (e *Engine) Events() *obs.Events { return e.events }

func (e *Engine) sites(g *Generation) []admin.Site {
	out := []admin.Site{}
	for _, s := range g.Config.Sites {
		site := admin.Site{Site: s.Name, Rank: s.Rank}
		for _, p := range g.pools {
			rank, _ := p.Serving(routing.SIP)
			web, _ := p.Serving(routing.HTTP)
			site.Serving = site.Serving || rank == s.Rank || web == s.Rank || g.Config.SitePolicy.Mode == "all-active"
		}
		out = append(out, site)
	}
	return out
}

// Pools lists the pools by name.
func (e *Engine) Pools() []admin.Pool {
	g := e.current.Load()
	out := []admin.Pool{}
	for _, name := range g.poolNames() {
		p := g.pools[name]
		a := admin.Pool{Pool: name, Servers: len(p.def.Servers), UsableRatio: p.UsableRatio()}
		for i := range p.Table().Members {
			if p.Usable(&p.Table().Members[i]) {
				a.Usable++
			}
		}
		for _, proto := range []routing.Proto{routing.SIP, routing.HTTP} {
			_, panicking := p.Serving(proto)
			a.Panic = a.Panic || panicking
		}
		out = append(out, a)
	}
	return out
}

func (g *Generation) poolNames() []string {
	names := make([]string, 0, len(g.pools))
	for i := range g.Config.Pools {
		names = append(names, g.Config.Pools[i].Name)
	}
	return names
}

// Servers lists the servers of all pools, in the order of the file.
func (e *Engine) Servers() []admin.Server {
	g := e.current.Load()
	out := []admin.Server{}
	for _, name := range g.poolNames() {
		p := g.pools[name]
		for i := range p.def.Servers {
			if m := p.Table().ByName(p.def.Servers[i].Name); m != nil {
				out = append(out, e.server(p, i, m))
			}
		}
	}
	return out
}

func (e *Engine) server(p *pool, i int, m *routing.Member) admin.Server {
	def := &p.def.Servers[i]
	s := admin.Server{
		Pool: p.Name, Server: m.Name, Site: m.Site, Usable: p.Usable(m), Note: def.Note,
		AdminState: admin.Setting[string]{File: def.AdminState, Effective: m.Admin().String()},
		Weight:     admin.Setting[int]{File: def.Weight, Effective: m.Weight},
		Health:     map[string]admin.Health{}, Addresses: map[string]admin.Address{},
		Partitions: p.Table().Partitions(m.Name), SlowStart: 1,
		Dialogs: int(m.Live(routing.Dialogs)), Sessions: int(m.Live(routing.Sessions)), Websockets: int(m.Live(routing.WebSockets)),
	}
	if o, ok := e.state.override(p.Name, m.Name, "state"); ok {
		s.AdminState.Override = &o.Value
	}
	if m.Weight != m.FileWeight() {
		s.Weight.Override = &m.Weight
	}
	_, since, _ := m.Intent()
	for _, a := range m.Addresses {
		proto := obs.Protocols[a.Proto]
		d := m.Detail(a.Proto)
		state := d.Health.String()
		if d.Ejected {
			state = "ejected"
		}
		if d.Since.After(since) {
			since = d.Since
		}
		s.Health[proto] = admin.Health{State: state, Cause: d.Cause, Since: d.Since, Last: e.probes.last(p.Name, m.Name, a.Proto)}
		s.Addresses[proto] = admin.Address{Transport: a.Transport, Address: a.Host}
		s.SlowStart = min(s.SlowStart, m.SlowStart(a.Proto))
		if rank, _ := p.Serving(a.Proto); m.SiteRank > rank && rank > 0 {
			s.Standby = true
		}
	}
	if since.IsZero() {
		since = e.started
	}
	s.Since = since
	s.KeysPerSecond = e.rate.of(p.Name, m.Name)
	if d, err := e.Drain(p.Name, m.Name); err == nil {
		s.Drain = &d
	}
	s.Describe()
	return s
}

// Listeners lists the listeners of the configuration with what is open.
func (e *Engine) Listeners() []admin.Listener {
	g := e.current.Load()
	out := []admin.Listener{}
	for _, l := range g.listeners {
		a := admin.Listener{
			Listener: l.def.Name, Protocol: l.def.Protocol, Transport: l.def.Transport, Bind: l.def.Bind.String(),
			Services: l.def.Services, Paused: l.def.Paused,
		}
		if a.Services == nil {
			for i := range g.Config.Services {
				a.Services = append(a.Services, g.Config.Services[i].Name)
			}
		}
		var bound []string
		for _, s := range l.sockets {
			bound = append(bound, s.Addr.String())
			a.Connections += s.Connections()
			a.Accepted += s.Stats.Accepted.Load()
		}
		a.Address = strings.Join(bound, " ")
		out = append(out, a)
	}
	return out
}

// Where says which server has a key.
func (e *Engine) Where(key, pool, service string) (admin.KeyPlace, error) {
	g := e.current.Load()
	p, err := g.keyPool(pool, service)
	if err != nil {
		return admin.KeyPlace{}, err
	}
	hash := xxhash.Sum64String(key)
	choices := p.Choices(hash)
	place := admin.KeyPlace{
		Key: key, Pool: p.Name, Hash: fmt.Sprintf("0x%016x", hash), Partition: p.Table().Partition(hash), Then: []string{},
	}
	if len(choices) > 0 {
		place.Owner, place.Then = choices[0], choices[1:]
		for _, s := range e.Servers() {
			if s.Pool == p.Name && s.Server == place.Owner {
				place.State = s.State
			}
		}
	}
	d := p.Explain(routing.Request{Policy: routing.HashPolicy, Hash: hash, HasKey: true}, nil)
	place.Server = d.Server
	if k, ok := p.Live(hash); ok {
		live := liveKey(p.Name, hash, k)
		place.Live = &live
	}
	return place, nil
}

func liveKey(pool string, hash uint64, k routing.LiveKey) admin.LiveKey {
	out := admin.LiveKey{Hash: fmt.Sprintf("0x%016x", hash), Pool: pool, Since: k.Since}
	if len(k.Servers) > 0 {
		out.Server = k.Servers[0]
	}
	for _, n := range k.Counts {
		out.Dialogs += n
	}
	return out
}

// keyPool finds the pool that a key is asked about: by name, by service, else the first with servers for calls or keyed
// pages.
func (g *Generation) keyPool(pool, service string) (*pool, error) {
	if pool != "" {
		if p := g.pools[pool]; p != nil {
			return p, nil
		}
		return nil, fmt.Errorf("%w: pool %q", admin.ErrNotFound, pool)
	}
	for _, t := range g.targets {
		if service != "" && t.Service != service || t.Kind == routing.Web {
			continue
		}
		return g.pools[t.service.PoolOf(t.app)], nil
	}
	if service != "" {
		return nil, fmt.Errorf("%w: service %q with keys", admin.ErrNotFound, service)
	}
	for _, name := range g.poolNames() {
		return g.pools[name], nil
	}
	return nil, fmt.Errorf("%w: no pool", admin.ErrNotFound)
}

// Spread gives each server's part of the tables, and of invented keys.
func (e *Engine) Spread(sample int) ([]admin.Share, error) {
	if sample < 0 || sample > 1_000_000 {
		return nil, fmt.Errorf("%w: sample of %d", admin.ErrInvalid, sample)
	}
	g := e.current.Load()
	out := []admin.Share{}
	for _, name := range g.poolNames() {
		p := g.pools[name]
		list := shares(name, p.Table())
		for i := range sample {
			d := p.Explain(routing.Request{Policy: routing.HashPolicy, Hash: xxhash.Sum64String(fmt.Sprintf("sample-%d", i)), HasKey: true}, nil)
			if at := slices.IndexFunc(list, func(s admin.Share) bool { return s.Server == d.Server }); at >= 0 {
				list[at].Sampled++
			}
		}
		out = append(out, list...)
	}
	return out, nil
}

// Live lists keys with live dialogs.
func (e *Engine) Live(server string, limit int) ([]admin.LiveKey, error) {
	out := []admin.LiveKey{}
	g := e.current.Load()
	for _, name := range g.poolNames() {
		p := g.pools[name]
		p.EachLive(func(hash uint64, k routing.LiveKey) bool {
			if server == "" || slices.Contains(k.Servers, server) {
				out = append(out, liveKey(name, hash, k))
			}
			return len(out) < limit
		})
		if len(out) >= limit {
			break
		}
	}
	return out, nil
}

// warnings are what somebody should look at: findings of the running configuration, servers that are down, panic.
func (e *Engine) warnings(g *Generation) []admin.Warning {
	out := []admin.Warning{}
	for _, p := range e.Pools() {
		if p.Panic {
			out = append(out, admin.Warning{Code: "pool_panic", Text: fmt.Sprintf("%s: too few usable servers, health is being ignored", p.Pool)})
		}
	}
	for _, s := range e.Servers() {
		for proto, h := range s.Health {
			if h.State == "down" || h.State == "ejected" {
				since := h.Since
				out = append(out, admin.Warning{
					Code: "server_state", Since: &since,
					Text: strings.TrimSpace(fmt.Sprintf("%s %s health %s %s", s.Server, strings.ToUpper(proto), h.State, h.Cause)),
				})
			}
		}
	}
	for _, d := range e.state.damaged {
		out = append(out, admin.Warning{Code: "state_damaged", Text: d})
	}
	e.reloads.mu.Lock()
	defer e.reloads.mu.Unlock()
	if !e.reloads.lastOK && len(e.reloads.last) > 0 {
		out = append(out, admin.Warning{Code: "config_refused", Text: fmt.Sprintf("the newest configuration was refused: %s", e.reloads.last[0])})
	}
	return out
}
