package resolver

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// State is what the cache knows about a number.
type State uint8

// Missing asks the caller to Ask; Null is a failed or empty look-up; Known comes with a URI.
const (
	Missing State = iota
	Null
	Known
)

// Result is what a look-up came to, in the order of the words of wyegate_enum_lookups_total.
type Result uint8

// The results.
const (
	Hit Result = iota
	Stale
	Answered
	Negative
	TimedOut
	Failed
	Shed
	numResults
)

// Rules of the cache (dcr.md section 14).
const (
	minPositive = 30 * time.Second
	maxNegative = 60 * time.Second
	failureTime = 5 * time.Second
	staleTime   = time.Hour
)

// ENUMConfig are the keys of affinity.enum of one service. Zero values stand for the defaults.
type ENUMConfig struct {
	Client   Client
	Suffix   string        // e164.arpa
	Budget   time.Duration // for one number, all resolvers together: 200 ms
	CacheMax time.Duration // longest life of a positive answer: 10 min
	Queries  int           // at once: 256
	Rate     int           // new ones per second: 1000

	// Query is told each query that was sent: its result and its time. It must not wait.
	Query func(r Result, took time.Duration)
}

func (c ENUMConfig) filled() ENUMConfig {
	if c.Suffix == "" {
		c.Suffix = "e164.arpa"
	}
	if c.Budget <= 0 {
		c.Budget = 200 * time.Millisecond
	}
	if c.CacheMax <= 0 {
		c.CacheMax = 10 * time.Minute
	}
	if c.Queries <= 0 {
		c.Queries = 256
	}
	if c.Rate <= 0 {
		c.Rate = 1000
	}
	return c
}

// ENUM resolves the numbers of one service. It outlives generations as long as its settings stay.
type ENUM struct {
	cfg     ENUMConfig
	cache   cache[number, []byte]
	counts  [numResults]atomic.Int64
	renew   chan number // numbers whose answers are worth a refresh
	waiting atomic.Int64

	mu      sync.Mutex      // guards what follows, and is held by whoever writes the cache
	run     context.Context // nil before Run begins
	ended   bool
	group   *sync.WaitGroup
	flights map[number]*flight
	second  int64 // of the rate
	begun   int
	breaker breaker
}

// flight is one query under way, with those who wait for it.
type flight struct{ waiters []func() }

// NewENUM makes a resolver. What is asked for before Run begins is asked with it: a reload that brings another resolver
// costs no number.
func NewENUM(c ENUMConfig) *ENUM {
	e := &ENUM{cfg: c.filled(), flights: map[number]*flight{}, renew: make(chan number, 256)}
	e.cache.hash = func(n number) uint64 { return spread(uint64(n)) }
	return e
}

// Run lets queries be made until the context ends, and waits for them.
func (e *ENUM) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	e.mu.Lock()
	e.run, e.group = ctx, &wg
	for n, f := range e.flights {
		wg.Go(func() { e.fly(ctx, n, f) })
	}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.ended = true
		e.mu.Unlock()
		wg.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case n := <-e.renew:
			e.ask(n, nil)
		}
	}
}

// Lookup answers from the cache and never waits. digits have no plus. uri is lent for ever: it never changes. What is
// no number of 1 to 15 digits is Null, and nobody is asked.
func (e *ENUM) Lookup(digits []byte) (uri []byte, s State) {
	n, ok := parseNumber(digits)
	if !ok {
		return nil, Null
	}
	now := time.Now()
	a, _ := e.cache.find(n, now)
	if a == nil {
		return nil, Missing
	}
	switch a.kind {
	case stale:
		e.counts[Stale].Add(1)
		return a.value, Known
	case positive:
		e.counts[Hit].Add(1)
		if now.UnixNano() >= a.refresh {
			select {
			case e.renew <- n:
			default:
			}
		}
		return a.value, Known
	default:
		e.counts[Hit].Add(1)
		return nil, Null
	}
}

// Ask starts a query, or joins one under way, and calls done once, on another goroutine, when Lookup has the answer:
// within the budget. False: it was shed, done is not called; Lookup says so as well, so that retransmissions agree.
func (e *ENUM) Ask(digits []byte, done func()) bool {
	n, ok := parseNumber(digits)
	if !ok {
		return false
	}
	return e.ask(n, done)
}

func (e *ENUM) ask(n number, done func()) bool {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.flights[n]; f != nil {
		if done != nil {
			f.waiters = append(f.waiters, done)
			e.waiting.Add(1)
		}
		return true
	}
	ctx := e.run
	if e.ended || ctx != nil && ctx.Err() != nil {
		return false
	}
	if !e.admit(now) {
		e.counts[Shed].Add(1)
		if done != nil {
			e.failed(n, now)
		}
		return false
	}
	f := &flight{}
	if done != nil {
		f.waiters = append(f.waiters, done)
		e.waiting.Add(1)
	}
	e.flights[n] = f
	if ctx != nil {
		e.group.Go(func() { e.fly(ctx, n, f) })
	}
	return true
}

// admit keeps to the number of queries at once, their rate, and the breaker. e.mu is held.
func (e *ENUM) admit(now time.Time) bool {
	if len(e.flights) >= e.cfg.Queries {
		return false
	}
	if sec := now.Unix(); sec != e.second {
		e.second, e.begun = sec, 0
	}
	if e.begun >= e.cfg.Rate || !e.breaker.allow(now) {
		return false
	}
	e.begun++
	return true
}

// fly makes one query and tells those who wait.
func (e *ENUM) fly(ctx context.Context, n number, f *flight) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Budget)
	defer cancel()
	m, err := e.cfg.Client.exchange(ctx, n.domain(e.cfg.Suffix), dns.TypeNAPTR)
	now := time.Now()
	e.mu.Lock()
	r := e.settle(n, m, err, now)
	e.counts[r].Add(1)
	delete(e.flights, n)
	waiters := f.waiters
	e.mu.Unlock()
	if e.cfg.Query != nil {
		e.cfg.Query(r, now.Sub(start))
	}
	for _, done := range waiters {
		e.waiting.Add(-1)
		done()
	}
}

// settle writes what was learnt. e.mu is held.
func (e *ENUM) settle(n number, m *dns.Msg, err error, now time.Time) Result {
	if err != nil {
		e.breaker.failed(now)
		e.failed(n, now)
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() || errors.Is(err, context.DeadlineExceeded) {
			return TimedOut
		}
		return Failed
	}
	e.breaker.worked()
	if uri := enumURI(n.digits(), m.Answer); uri != "" {
		ttl := min(max(minTTL(m.Answer), minPositive), e.cfg.CacheMax)
		e.put(n, []byte(uri), positive, ttl, now)
		return Answered
	}
	ttl := soaMinimum(m, maxNegative)
	if len(m.Answer) > 0 {
		ttl = min(ttl, minTTL(m.Answer))
	}
	e.put(n, nil, negative, max(ttl, time.Second), now)
	return Negative
}

// failed keeps the last good answer for up to an hour past its end, marked; else notes that there is none for now. An
// answer that is still in force is left alone: only its refresh failed.
func (e *ENUM) failed(n number, now time.Time) {
	a, old := e.cache.find(n, now)
	if a != nil && a.kind == positive {
		return
	}
	if old != nil && (old.kind == positive || old.kind == stale) {
		end := time.Unix(0, old.ends)
		if old.kind == stale {
			end = time.Unix(0, old.refresh)
		}
		if now.Before(end.Add(staleTime)) {
			s := &answer[number, []byte]{key: n, value: old.value, kind: stale, learnt: old.learnt,
				ends: now.Add(failureTime).UnixNano(), refresh: end.UnixNano()}
			e.cache.put(s, now)
			return
		}
	}
	e.put(n, nil, failure, failureTime, now)
}

func (e *ENUM) put(n number, uri []byte, k kind, ttl time.Duration, now time.Time) {
	e.cache.put(&answer[number, []byte]{
		key: n, value: uri, kind: k, learnt: now.UnixNano(),
		ends: now.Add(ttl).UnixNano(), refresh: now.Add(ttl - ttl/10).UnixNano(),
	}, now)
}

// Count is how often look-ups came to a result.
func (e *ENUM) Count(r Result) int64 { return e.counts[r].Load() }

// Waiting is the number of requests that wait for an answer (wyegate_enum_waiting).
func (e *ENUM) Waiting() int64 { return e.waiting.Load() }

// Size is the number of answers in the cache.
func (e *ENUM) Size() int64 { return e.cache.size.Load() }

// Entry is what is known about a number, for explain.
type Entry struct {
	URI   string
	State State
	Stale bool
	Age   time.Duration // since it was learnt
}

// Peek tells what is known about a number and counts nothing.
func (e *ENUM) Peek(digits []byte) Entry {
	n, ok := parseNumber(digits)
	if !ok {
		return Entry{State: Null}
	}
	now := time.Now()
	a, _ := e.cache.find(n, now)
	if a == nil {
		return Entry{State: Missing}
	}
	out := Entry{State: Null, Stale: a.kind == stale, Age: now.Sub(time.Unix(0, a.learnt))}
	if a.kind == positive || a.kind == stale {
		out.State, out.URI = Known, string(a.value)
	}
	return out
}
