package resolver

import (
	"sync/atomic"
	"time"
)

// The cache has 2^18 sets of four places: 1,048,576 answers at most. Sets are laid out in chunks as they are needed.
const (
	ways      = 4
	chunkSets = 1 << 10
	chunks    = 1 << 8
)

// cache maps keys to answers. Readers take no lock; writers must be one at a time.
type cache[K comparable, V any] struct {
	hash   func(K) uint64
	within uint64 // chunks it may use, a power of two; 0: all
	chunks [chunks]atomic.Pointer[chunk[K, V]]
	size   atomic.Int64
}

type chunk[K comparable, V any] [chunkSets][ways]atomic.Pointer[answer[K, V]]

// answer is immutable but for used.
type answer[K comparable, V any] struct {
	key     K
	value   V
	kind    kind
	ends    int64 // Unix nanoseconds
	refresh int64 // from here on a use begins a refresh: the last tenth of its time
	learnt  int64

	used atomic.Int64 // seconds; whoever was not used for the longest time goes first
}

// kind says what an answer is worth.
type kind uint8

const (
	positive kind = iota
	negative      // there is nothing
	failure       // nobody could say
	stale         // there was something, and nobody answers now
)

// chunk gives the place of the chunk that a hash belongs to.
func (c *cache[K, V]) chunk(h uint64) *atomic.Pointer[chunk[K, V]] {
	n := c.within
	if n == 0 {
		n = chunks
	}
	return &c.chunks[h>>10&(n-1)]
}

// find gives the answer for a key while it is in force; else nil. old is what is there, in force or not.
func (c *cache[K, V]) find(k K, now time.Time) (a, old *answer[K, V]) {
	h := c.hash(k)
	ch := c.chunk(h).Load()
	if ch == nil {
		return nil, nil
	}
	set := &ch[h&(chunkSets-1)]
	for i := range set {
		a := set[i].Load()
		if a == nil || a.key != k {
			continue
		}
		if sec := now.Unix(); a.used.Load() != sec {
			a.used.Store(sec)
		}
		if now.UnixNano() < a.ends {
			return a, a
		}
		return nil, a
	}
	return nil, nil
}

// put writes an answer in the place of the key's older one, an empty one, or the one least used.
func (c *cache[K, V]) put(a *answer[K, V], now time.Time) {
	a.used.Store(now.Unix())
	h := c.hash(a.key)
	at := c.chunk(h)
	ch := at.Load()
	if ch == nil {
		ch = new(chunk[K, V])
		at.Store(ch)
	}
	set := &ch[h&(chunkSets-1)]
	place := -1
	var oldest int64
	for i := range set {
		old := set[i].Load()
		if old == nil {
			if place < 0 || oldest != 0 {
				place, oldest = i, 0
			}
			continue
		}
		if old.key == a.key {
			place = i
			break
		}
		if u := old.used.Load(); place < 0 || u < oldest {
			place, oldest = i, u
		}
	}
	if set[place].Swap(a) == nil {
		c.size.Add(1)
	}
}

// spread mixes the bits of a number.
func spread(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
