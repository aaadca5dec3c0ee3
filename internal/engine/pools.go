package engine

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/routing"
)

// pool is a pool of a generation with its definition.
type pool struct {
	*routing.Pool
	def   *config.Pool
	stale []string // names of servers whose address is not known yet
}

// buildPools makes every pool of the configuration over the registry. Nothing that runs is changed.
func (b *builder) buildPools() {
	for i := range b.cfg.Pools {
		def := &b.cfg.Pools[i]
		p := &pool{def: def}
		t, err := b.env.Tables[def.Name].Rebuild(b.members(p), hashSettings(def))
		if over := b.env.Weights[def.Name]; err == nil && len(over) > 0 {
			t, err = t.WithWeights(b.env.Weights[def.Name])
		}
		if err != nil {
			b.problem(fmt.Sprintf("pools.%s.hash", def.Name), config.Error, "WG120", err.Error())
			continue
		}
		p.Pool = routing.NewPool(b.env.Registry, def.Name, b.poolConfig(def), t)
		b.draft.pools[def.Name] = p
	}
}

func hashSettings(p *config.Pool) routing.HashSettings {
	return routing.HashSettings{Partitions: p.Hash.Partitions, Replicas: p.Hash.Replicas, Load: p.Hash.Load}
}

// members turns what the file says into what a table holds.
func (b *builder) members(p *pool) []routing.Member {
	out := make([]routing.Member, 0, len(p.def.Servers))
	for _, s := range p.def.Servers {
		m := routing.Member{
			Server: b.env.Registry.Server(p.def.Name, s.Name), Weight: s.Weight, Site: s.Site,
			SiteRank: b.rank(s.Site), MaxConcurrent: s.MaxConcurrent,
		}
		if !s.SIP.IsZero() {
			m.Addresses = append(m.Addresses, b.address(p, s.Name, routing.SIP, s.SIPTransport, s.SIP))
		}
		if !s.HTTP.IsZero() {
			m.Addresses = append(m.Addresses, b.address(p, s.Name, routing.HTTP, httpTransport(&s), s.HTTP))
		}
		out = append(out, m)
	}
	return out
}

func httpTransport(s *config.Server) string {
	if s.HTTPSecure() {
		return "tls"
	}
	return "tcp"
}

// address resolves a name where a lookup is allowed. What is not known yet stays invalid: the server is not usable until
// the name is known.
func (b *builder) address(p *pool, server string, proto routing.Proto, transport string, at config.HostPort) routing.Address {
	a := routing.Address{Proto: proto, Transport: transport, Host: at.String()}
	addr := at.Addr
	if !addr.IsValid() && b.env.Lookup != nil {
		addr = b.env.Lookup(at.Host)
	}
	if !addr.IsValid() {
		p.stale = append(p.stale, server)
		return a
	}
	a.Addr = netip.AddrPortFrom(addr.Unmap(), at.Port)
	return a
}

func (b *builder) rank(site string) int {
	if b.cfg.SitePolicy.Mode == "all-active" {
		return 0
	}
	for _, s := range b.cfg.Sites {
		if s.Name == site {
			return s.Rank
		}
	}
	return 0
}

func (b *builder) poolConfig(p *config.Pool) routing.Config {
	c := routing.Config{
		MaxWait: p.Failback.MaxWait, SlowStart: p.SlowStart, MinUsable: percent(p.Panic.MinUsable),
		PanicRefuse: p.Panic.Action == "refuse", DrainMoves: p.Drain.LiveKeys == "move",
		BoundedLoad: int(float64(p.Hash.BoundedLoad)*100 + 0.5),
		Passive: routing.Passive{
			ConsecutiveFailures: p.Health.Passive.ConsecutiveFailures, EjectFor: p.Health.Passive.EjectFor,
			MaxEjected: percent(p.Health.Passive.MaxEjected), IgnoreRetryAfter: !p.Health.Passive.HonourRetryAfter,
		},
		RevertHold: b.cfg.SitePolicy.RevertHold, RevertManual: b.cfg.SitePolicy.Revert == "manual",
		OnChange: b.env.OnChange, OnSuspect: b.env.OnSuspect, OnSite: b.env.OnSite,
	}
	if p.Health.Scope == "address" {
		c.Scope = routing.ScopeAddress
	}
	switch p.Failback.Mode {
	case "immediate":
		c.Failback = routing.Immediate
	case "never":
		c.Failback = routing.Never
	}
	for _, l := range b.cfg.Listeners {
		for i := range b.cfg.Services {
			s := &b.cfg.Services[i]
			if !l.Offers(s.Name) {
				continue
			}
			for j := range s.Applications {
				a := &s.Applications[j]
				if s.PoolOf(a) == p.Name && takes(a, l.Protocol) {
					c.InUse[protoOf(l.Protocol)] = true
				}
			}
		}
	}
	return c
}

func percent(p config.Percent) int { return int(float64(p)*100 + 0.5) }

func protoOf(protocol string) routing.Proto {
	if strings.EqualFold(protocol, "sip") {
		return routing.SIP
	}
	return routing.HTTP
}

// takes says whether an application takes requests of a protocol (operations.md 3.3).
func takes(a *config.Application, protocol string) bool {
	switch a.ServiceKind() {
	case routing.Web:
		return protocol == "http"
	case routing.SIPOnly:
		return protocol == "sip"
	default:
		return protocol == "sip" || protocol == "http"
	}
}

// adminState reads a word of admin_state.
func adminState(word string) (routing.Admin, bool) {
	switch word {
	case "ready":
		return routing.Ready, true
	case "drain":
		return routing.Drain, true
	case "maint":
		return routing.Maint, true
	}
	return routing.Ready, false
}
