package engine

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/routing"
)

// rateEvery is the time between two looks at the counters: what status calls "per second" is the mean over it.
const rateEvery = 2 * time.Second

// rate works out what status shows per second, from two looks at counters that messages add to.
type rate struct {
	total [2]gauge // by protocol

	mu      sync.Mutex
	at      time.Time
	counts  map[[2]string][2]float64 // requests, by pool and server, then protocol
	servers map[[2]string]float64    // per second
	sources [len(obs.KeySources)]float64
	shares  [len(obs.KeySources)]float64
}

// gauge is a float that one goroutine writes and others read.
type gauge struct{ bits atomic.Uint64 }

func (g *gauge) Load() float64   { return math.Float64frombits(g.bits.Load()) }
func (g *gauge) Store(v float64) { g.bits.Store(math.Float64bits(v)) }

// sample looks at the counters of a generation.
func (r *rate) sample(g *Generation, m *obs.Metrics, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seconds := now.Sub(r.at).Seconds()
	first := r.at.IsZero()
	r.at = now
	counts := map[[2]string][2]float64{}
	per := map[[2]string]float64{}
	var total [2]float64
	for name, p := range g.pools {
		for _, s := range p.def.Servers {
			id := [2]string{name, s.Name}
			c := m.Server(name, s.Name)
			is := [2]float64{obs.Value(c.Requests[routing.SIP]), obs.Value(c.Requests[routing.HTTP])}
			was := r.counts[id]
			counts[id] = is
			for proto := range is {
				total[proto] += max(0, is[proto]-was[proto])
			}
			per[id] = max(0, is[0]+is[1]-was[0]-was[1]) / seconds
		}
	}
	r.counts = counts
	r.keySources(g)
	if first || seconds <= 0 {
		return
	}
	r.servers = per
	for proto := range total {
		r.total[proto].Store(total[proto] / seconds)
	}
}

// keySources keeps which part of the keys since the last look came from where; without traffic the last answer stays.
func (r *rate) keySources(g *Generation) {
	var is [len(obs.KeySources)]float64
	for _, t := range g.targets {
		if t.counters == nil {
			continue
		}
		for i := range is {
			is[i] += obs.Value(t.counters.SIPKeys[i]) + obs.Value(t.counters.HTTPKeys[i])
		}
	}
	sum := 0.0
	for i := range is {
		sum += max(0, is[i]-r.sources[i])
	}
	if sum > 0 {
		for i := range is {
			r.shares[i] = max(0, is[i]-r.sources[i]) / sum
		}
	}
	r.sources = is
}

// of gives the requests per second of a server.
func (r *rate) of(pool, server string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servers[[2]string{pool, server}]
}

// keys gives the shares of keys by rule and by default.
func (r *rate) keys() (byRule, byDefault float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shares[0], r.shares[1]
}
