package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/resolver"
	"github.com/wyegate/wyegate/proxy"
)

// enum fits the resolver of numbers to those who ask: rules (dcr.Resolver), SIP workers (sipproxy.Numbers), HTTP
// requests (httpproxy.Numbers). A service's resolver, and with it the cache, lives on over reloads that keep its settings.
type enum struct {
	log     *slog.Logger
	metrics *obs.Metrics

	mu    sync.Mutex
	known map[string]*numbers // by service and settings
	start chan *numbers

	byService atomic.Pointer[map[string]*numbers]
	awaiting  atomic.Int64 // HTTP requests that wait
}

// numbers is the resolver of one service.
type numbers struct {
	*resolver.ENUM
	service string
	key     string
	begun   bool               // guarded by enum.mu
	dropped bool               // no generation wants it any more; guarded by enum.mu
	stop    context.CancelFunc // set while it runs; guarded by enum.mu
	parked  prometheus.Counter
	taken   [len(obs.EnumResults)]int64
}

func newEnum(m *obs.Metrics, log *slog.Logger) *enum {
	e := &enum{log: log, metrics: m, known: map[string]*numbers{}, start: make(chan *numbers, 4096)}
	e.byService.Store(&map[string]*numbers{})
	return e
}

// resolver is Env.Resolver: it makes the service's resolver if there is none with these settings, and starts nothing.
func (e *enum) resolver(service string, c *config.Enum) dcr.Resolver {
	key := fmt.Sprintf("%s %+v", service, *c)
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.known[key]
	if n == nil {
		counters := e.metrics.Enum(service)
		n = &numbers{service: service, key: key, parked: counters.Parked, ENUM: resolver.NewENUM(resolver.ENUMConfig{
			Client: resolver.Client{Resolvers: e.resolvers(c)}, Suffix: c.Suffix, Budget: c.Budget, CacheMax: c.CacheMax,
			Query: func(_ resolver.Result, took time.Duration) { counters.Duration.Observe(took.Seconds()) },
		})}
		e.known[key] = n
	}
	return n
}

func (e *enum) resolvers(c *config.Enum) []string {
	var list []string
	for _, r := range c.Resolvers {
		list = append(list, r.String())
	}
	if len(list) > 0 {
		return list
	}
	return hostResolvers(e.log)
}

// Resolve implements dcr.Resolver.
func (n *numbers) Resolve(number []byte) ([]byte, dcr.Answer) {
	uri, s := n.Lookup(number)
	switch s {
	case resolver.Known:
		return uri, dcr.AnswerKnown
	case resolver.Null:
		return nil, dcr.AnswerNull
	}
	return nil, dcr.AnswerMissing
}

// want makes the resolvers of a generation those that run.
func (e *enum) want(g *Generation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := map[string]*numbers{}
	keep := map[string]bool{}
	for _, t := range g.targets {
		if t.rules == nil || t.affinity.Enum == nil {
			continue
		}
		n := e.known[fmt.Sprintf("%s %+v", t.Service, *t.affinity.Enum)]
		if n == nil || keep[n.key] {
			continue
		}
		keep[n.key] = true
		next[t.Service] = n
		if !n.begun {
			n.begun = true
			e.start <- n
		}
	}
	for key, n := range e.known {
		if !keep[key] {
			n.dropped = true
			if n.stop != nil {
				n.stop()
			}
			delete(e.known, key)
		}
	}
	e.byService.Store(&next)
}

// Run runs the resolvers that are wanted until the context ends.
func (e *enum) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-e.start:
			own, stop := context.WithCancel(ctx)
			e.mu.Lock()
			n.stop = stop
			dropped := n.dropped
			e.mu.Unlock()
			if dropped {
				stop() // replaced before it began
				continue
			}
			running.Go(func() {
				defer stop()
				_ = n.ENUM.Run(own) // it ends with its context
			})
		}
	}
}

// Ask implements sipproxy.Numbers.
func (e *enum) Ask(service string, number []byte, done func()) bool {
	n := (*e.byService.Load())[service]
	return n != nil && n.ENUM.Ask(number, done)
}

// maxAwaiting is how many HTTP requests wait for numbers at once (dcr.md section 14).
const maxAwaiting = 10_000

// Await implements httpproxy.Numbers: the goroutine of the request waits, within its budget.
func (e *enum) Await(t *proxy.Target, number []byte, until time.Time) bool {
	n := (*e.byService.Load())[t.Service]
	if n == nil {
		return false
	}
	defer e.awaiting.Add(-1)
	if e.awaiting.Add(1) > maxAwaiting {
		n.parked.Inc()
		return false
	}
	done := make(chan struct{})
	if !n.ENUM.Ask(number, func() { close(done) }) {
		return false
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// state brings the counters up to date: the resolver counts by itself, so that a look-up adds to one word.
func (e *enum) state(s *obs.State) {
	s.EnumWaiting = map[string]int{}
	e.mu.Lock()
	defer e.mu.Unlock()
	for service, n := range *e.byService.Load() {
		s.EnumWaiting[service] = int(n.Waiting())
		c := e.metrics.Enum(service)
		for i := range c.Results {
			is := n.Count(resolver.Result(i))
			c.Results[i].Add(float64(is - n.taken[i]))
			n.taken[i] = is
		}
	}
}
