package resolver

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Transport is how a next hop is spoken to.
type Transport uint8

// Transports of next hops.
const (
	AnyTransport Transport = iota // the URI says none
	UDP
	TCP
	TLS
)

// Hop is where a request that goes outwards is to be sent (RFC 3263 section 4).
type Hop struct {
	Host      string // a name, or an address
	Port      uint16 // 0: the URI has none
	Transport Transport
	Secure    bool // the URI is sips: TLS and nothing else
}

// HopTarget is one place that a hop stands for.
type HopTarget struct {
	Transport Transport
	Addr      netip.AddrPort
}

// Rules of the cache of next hops.
const (
	hopMax     = 10 * time.Minute
	hopMin     = time.Second // what was asked for must live until the request that waits for it has read it
	hopFailure = 5 * time.Second
	hopQueries = 256
	naptrWait  = 1500 * time.Millisecond
	hopWait    = 3800 * time.Millisecond // less than a request waits: the last good answer must still be of use to it
	hopRecords = 16                      // of one hop; more are left out
	hopTargets = 32
)

// Next resolves next hops. Lookup never waits; Ask makes one query for all who ask for the same hop.
type Next struct {
	cfg   HostsConfig
	cache cache[Hop, []record]

	mu      sync.Mutex      // guards what follows, and is held by whoever writes the cache
	run     context.Context // nil before Run begins
	ended   bool
	group   *sync.WaitGroup
	flights map[Hop]*flight
}

// NewNext makes a resolver of next hops; Changed of its configuration is not used. What is asked for before Run begins
// is asked with it: a node's first request must not depend on whose goroutine came first.
func NewNext(c HostsConfig) *Next {
	n := &Next{cfg: c, flights: map[Hop]*flight{}}
	n.cache.within = 4 // 16,384 hops
	n.cache.hash = func(h Hop) uint64 {
		return xxhash.Sum64String(h.Host) ^ spread(uint64(h.Port)<<8|uint64(h.Transport))
	}
	return n
}

// Run lets queries be made until the context ends, and waits for them.
func (n *Next) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	n.mu.Lock()
	n.run, n.group = ctx, &wg
	for h, f := range n.flights {
		wg.Go(func() { n.fly(ctx, h, f) })
	}
	n.mu.Unlock()
	<-ctx.Done()
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	wg.Wait()
	return ctx.Err()
}

// Lookup appends the targets of a hop in the order in which they are to be tried; among records of equal priority seed
// and weights pick, so that one seed gives one order (RFC 3263 section 4.2, RFC 2782). known without a target says that
// there is none. late asks for what is there though its time has ended, for a request that was begun by it.
func (n *Next) Lookup(dst []HopTarget, h Hop, seed uint64, late bool) (list []HopTarget, known bool) {
	now := time.Now()
	a, old := n.cache.find(h, now)
	switch {
	case a != nil:
		return inOrder(dst, a.value, seed), true
	case old == nil:
		return dst, false
	case old.kind == stale && now.Sub(time.Unix(0, old.learnt)) < staleTime:
		n.again(h) // nobody answered the last time, and nobody waits for the next while this answer may stand
	case !late:
		return dst, false
	}
	return inOrder(dst, old.value, seed), true
}

// Ask finds out about a hop and calls done once, on another goroutine, when Lookup knows. False: too many queries, or
// Run has ended; done is not called.
func (n *Next) Ask(h Hop, done func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.flights[h]
	if f == nil {
		if f = n.start(h); f == nil {
			return false
		}
	}
	f.waiters = append(f.waiters, done)
	return true
}

// again begins a query that nobody waits for, unless one is under way.
func (n *Next) again(h Hop) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.flights[h] == nil {
		n.start(h)
	}
}

// start begins a query; nil: there may be none. n.mu is held.
func (n *Next) start(h Hop) *flight {
	ctx := n.run
	if n.ended || len(n.flights) >= hopQueries {
		return nil
	}
	f := &flight{}
	n.flights[h] = f
	if ctx != nil {
		n.group.Go(func() { n.fly(ctx, h, f) })
	}
	return f
}

func (n *Next) fly(ctx context.Context, h Hop, f *flight) {
	ctx, cancel := context.WithTimeout(ctx, hopWait)
	defer cancel()
	q := hopQuery{cfg: n.cfg.patient(), ttl: hopMax}
	list := q.find(ctx, h)
	now := time.Now()
	a := &answer[Hop, []record]{key: h, value: list, learnt: now.UnixNano(), ends: now.Add(max(q.ttl, hopMin)).UnixNano()}
	n.mu.Lock()
	if len(list) == 0 && q.err != nil {
		n.keep(a, now)
	}
	n.cache.put(a, now)
	delete(n.flights, h)
	waiters := f.waiters
	n.mu.Unlock()
	for _, done := range waiters {
		done()
	}
}

// keep puts the last good answer into one that nobody gave: it stands while nobody answers, for an hour. n.mu is held.
func (n *Next) keep(a *answer[Hop, []record], now time.Time) {
	a.kind, a.ends = failure, now.Add(hopFailure).UnixNano()
	if _, old := n.cache.find(a.key, now); old != nil && len(old.value) > 0 && now.Sub(time.Unix(0, old.learnt)) < staleTime {
		a.kind, a.value, a.learnt = stale, old.value, old.learnt
	}
}

// patient asks until somebody answers or the context ends: a datagram may be lost, and a resolver that has to ask others
// first needs longer than one that knows.
func (c *HostsConfig) patient() *HostsConfig {
	p := *c
	p.Client.patient = true
	return &p
}

// nobody says that a lookup failed for want of an answer, and not because the answer is "none".
func nobody(err error) bool { return err != nil && !errors.Is(err, ErrNoName) }
