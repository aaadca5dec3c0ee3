package resolver

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/miekg/dns"
)

// Hop is where a request that goes outwards is to be sent (RFC 3263).
type Hop struct {
	Host      string // a name
	Port      uint16 // 0: the URI has none, so SRV is asked first
	Transport string // "udp", "tcp", "tls"
}

// Rules of the cache of next hops.
const (
	hopMax     = 10 * time.Minute
	hopMin     = 5 * time.Second
	hopFailure = 5 * time.Second
	hopQueries = 256
)

// Next resolves next hops. Lookup never waits; Ask makes one query for all who ask for the same hop.
type Next struct {
	cfg   HostsConfig
	cache cache[Hop, netip.AddrPort]

	mu      sync.Mutex // guards what follows, and is held by whoever writes the cache
	run     context.Context
	group   *sync.WaitGroup
	flights map[Hop]*flight
}

// NewNext makes a resolver of next hops; Changed of its configuration is not used. It asks nobody before Run.
func NewNext(c HostsConfig) *Next {
	n := &Next{cfg: c, flights: map[Hop]*flight{}}
	n.cache.within = 4 // 16,384 hops
	n.cache.hash = func(h Hop) uint64 {
		return xxhash.Sum64String(h.Host) ^ spread(uint64(h.Port)<<8|uint64(len(h.Transport)))
	}
	return n
}

// Run lets queries be made until the context ends, and waits for them.
func (n *Next) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	n.mu.Lock()
	n.run, n.group = ctx, &wg
	n.mu.Unlock()
	<-ctx.Done()
	n.mu.Lock()
	n.run = nil
	n.mu.Unlock()
	wg.Wait()
	return ctx.Err()
}

// Lookup gives what is known of a hop. known with an address that is not valid says that there is none.
func (n *Next) Lookup(h Hop) (addr netip.AddrPort, known bool) {
	a, _ := n.cache.find(h, time.Now())
	if a == nil {
		return netip.AddrPort{}, false
	}
	return a.value, true
}

// Ask finds out about a hop and calls done once, on another goroutine, when Lookup knows. False: too many queries, or
// not running; done is not called.
func (n *Next) Ask(h Hop, done func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f := n.flights[h]; f != nil {
		f.waiters = append(f.waiters, done)
		return true
	}
	if n.run == nil || n.run.Err() != nil || len(n.flights) >= hopQueries {
		return false
	}
	f := &flight{waiters: []func(){done}}
	n.flights[h] = f
	ctx := n.run
	n.group.Go(func() { n.fly(ctx, h, f) })
	return true
}

func (n *Next) fly(ctx context.Context, h Hop, f *flight) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	addr, ttl, err := n.find(ctx, h)
	now := time.Now()
	n.mu.Lock()
	if err != nil {
		addr, ttl = n.old(h, now), hopFailure
	}
	n.cache.put(&answer[Hop, netip.AddrPort]{key: h, value: addr, learnt: now.UnixNano(), ends: now.Add(ttl).UnixNano()}, now)
	delete(n.flights, h)
	waiters := f.waiters
	n.mu.Unlock()
	for _, done := range waiters {
		done()
	}
}

// old is the last good answer, which stands while nobody answers, for an hour; else no address. n.mu is held.
func (n *Next) old(h Hop, now time.Time) netip.AddrPort {
	if _, old := n.cache.find(h, now); old != nil && now.Sub(time.Unix(0, old.learnt)) < staleTime {
		return old.value
	}
	return netip.AddrPort{}
}

// find asks SRV when the hop has no port, then for addresses.
func (n *Next) find(ctx context.Context, h Hop) (netip.AddrPort, time.Duration, error) {
	host, port, ttl := h.Host, h.Port, hopMax
	if port == 0 {
		port = 5060
		if h.Transport == "tls" {
			port = 5061
		}
		if srv, life := n.srv(ctx, h); srv != nil {
			host, port, ttl = srv.Target, srv.Port, life
		}
	}
	a, err := n.cfg.lookup(ctx, host)
	if err != nil {
		return netip.AddrPort{}, 0, err
	}
	return netip.AddrPortFrom(a.Addrs[0], port), max(min(ttl, a.TTL, hopMax), hopMin), nil
}

// srv gives the best target: lowest priority, then highest weight, then by name, so that all nodes take the same.
func (n *Next) srv(ctx context.Context, h Hop) (*dns.SRV, time.Duration) {
	prefix := map[string]string{"udp": "_sip._udp.", "tcp": "_sip._tcp.", "tls": "_sips._tcp."}[h.Transport]
	if prefix == "" {
		return nil, 0
	}
	m, err := n.cfg.Client.exchange(ctx, prefix+h.Host, dns.TypeSRV)
	if err != nil {
		return nil, 0
	}
	var list []*dns.SRV
	for _, rr := range m.Answer {
		if s, ok := rr.(*dns.SRV); ok && s.Target != "." {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, 0
	}
	best := slices.MinFunc(list, func(a, b *dns.SRV) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(b.Weight, a.Weight), cmp.Compare(plain(a.Target), plain(b.Target)))
	})
	return best, minTTL(m.Answer)
}
