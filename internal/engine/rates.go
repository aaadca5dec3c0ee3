package engine

import (
	"net/netip"
	"slices"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/limit"
	"github.com/wyegate/wyegate/internal/sip/transport"
)

// rates keeps the buckets of limits.sip over reloads that do not change them.
type rates struct {
	cfg limit.Config
	now *limit.Rates
}

func newRates() *rates { return &rates{} }

// settings are what a configuration says to the SIP transports. Servers have no rate.
func (r *rates) settings(cfg *config.Config) transport.Settings {
	l := cfg.Limits.SIP
	s := transport.Settings{MaxHead: int(l.MaxHeader), MaxBody: int(l.MaxBody)}
	for _, p := range cfg.Pools {
		s.ConnectTime = max(s.ConnectTime, p.Connect.Timeout)
	}
	s.Source = sources(cfg)
	if l.PerSourceRPS == 0 {
		r.cfg, r.now = limit.Config{}, nil
		return s
	}
	burst := l.Burst
	if burst == 0 {
		burst = 2 * l.PerSourceRPS
	}
	c := limit.Config{
		PerSource: limit.Rate{PerSecond: float64(l.PerSourceRPS), Burst: burst},
		Exempt:    append(slices.Clone(l.Exempt), serverPrefixes(cfg)...),
	}
	if r.now == nil || c.PerSource != r.cfg.PerSource || !slices.Equal(c.Exempt, r.cfg.Exempt) {
		r.cfg, r.now = c, limit.NewRates(c)
	}
	s.Rates = r.now
	return s
}

// sources gives the own address to connect from, by the pool of the server.
func sources(cfg *config.Config) func(transport.Kind, netip.AddrPort) netip.Addr {
	from := map[netip.AddrPort][]netip.Addr{}
	for _, p := range cfg.Pools {
		for _, s := range p.Servers {
			if len(p.Connect.Source) > 0 && s.SIP.Addr.IsValid() {
				from[netip.AddrPortFrom(s.SIP.Addr.Unmap(), s.SIP.Port)] = p.Connect.Source
			}
		}
	}
	if len(from) == 0 {
		return nil
	}
	return func(_ transport.Kind, dst netip.AddrPort) netip.Addr {
		for _, a := range from[dst] {
			if a.Is4() == dst.Addr().Is4() {
				return a
			}
		}
		return netip.Addr{}
	}
}
