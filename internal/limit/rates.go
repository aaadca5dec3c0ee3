package limit

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
)

// Config of a Rates.
type Config struct {
	PerSource Rate
	Total     Rate
	Exempt    []netip.Prefix // sources that are never limited: trusted peers, servers
	Sources   int            // how many sources are told apart; 0: 65,536. Rounded up to a power of two
}

// Rates holds the buckets of all sources. It is immutable but for the buckets: a reload makes another one.
type Rates struct {
	exempt    Exempt
	perSource shape
	total     shape
	sources   []set // empty: no limit per source
	all       *bucket
	seed      [2]uint64
}

// ways is how many sources share one place of the table before one of them has to go.
const ways = 4

// set is one cache line: four sources and their buckets.
type set struct {
	key  [ways]atomic.Uint64
	full [ways]bucket
}

// NewRates lays out the table. A nil result means that nothing is limited; its methods may be called all the same.
func NewRates(c Config) *Rates {
	if !c.PerSource.On() && !c.Total.On() {
		return nil
	}
	r := &Rates{exempt: NewExempt(c.Exempt), seed: [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}}
	if c.PerSource.On() {
		n := c.Sources
		if n <= 0 {
			n = 65536
		}
		sets := 1
		for sets*ways < n {
			sets *= 2
		}
		r.perSource, r.sources = c.PerSource.shape(), make([]set, sets)
	}
	if c.Total.On() {
		r.total, r.all = c.Total.shape(), new(bucket)
	}
	return r
}

// Allow takes a token for one message of a source. The port plays no part, and an IPv6 source is its /64, because a
// subscriber has all of it. now is in nanoseconds of any clock that does not go back.
func (r *Rates) Allow(source netip.Addr, now int64) bool {
	if r == nil || r.exempt.Has(source) {
		return true
	}
	if r.sources != nil && !r.bucketOf(source, now).take(r.perSource, now) {
		return false // first, so that a flood from one source does not use up what all share
	}
	return r.all == nil || r.all.take(r.total, now)
}

// bucketOf finds the bucket of a source or gives it the place of the one that is full, or will be soonest. Two
// goroutines that meet a new source at once may both claim a place; the source then has one more burst, once.
func (r *Rates) bucketOf(source netip.Addr, now int64) *bucket {
	h := r.hash(source)
	s := &r.sources[h&uint64(len(r.sources)-1)]
	victim := 0
	for i := range ways {
		if s.key[i].Load() == h {
			return &s.full[i]
		}
		if s.full[i].full.Load() < s.full[victim].full.Load() {
			victim = i
		}
	}
	s.full[victim].full.Store(now)
	s.key[victim].Store(h)
	return &s.full[victim]
}

// hash is keyed, so that nobody can choose sources that share a place with a victim. It is never 0, the empty key.
func (r *Rates) hash(a netip.Addr) uint64 {
	b := a.As16()
	hi, lo := binary.BigEndian.Uint64(b[:8]), uint64(0)
	if a.Is4() || a.Is4In6() {
		lo = binary.BigEndian.Uint64(b[8:])
	}
	h, l := bits.Mul64(hi^r.seed[0], lo^r.seed[1])
	h, l = bits.Mul64(h^l^r.seed[1], r.seed[0]^0x9e3779b97f4a7c15)
	return (h ^ l) | 1<<63
}
