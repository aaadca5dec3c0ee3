package limit

import (
	"sync/atomic"
	"time"
)

// Rate is how many messages a second may pass in the long run, and how many at once.
type Rate struct {
	PerSecond float64 // 0: no limit
	Burst     int     // messages; below 1: what one second brings, at least 1
}

// On says whether there is a limit at all.
func (r Rate) On() bool { return r.PerSecond > 0 }

// shape is a rate as the buckets use it, in nanoseconds: one message costs step, and a bucket may be ahead of the clock
// by no more than depth.
type shape struct{ step, depth int64 }

func (r Rate) shape() shape {
	step := max(int64(float64(time.Second)/r.PerSecond), 1)
	burst := int64(r.Burst)
	if burst < 1 {
		burst = max(int64(r.PerSecond), 1)
	}
	return shape{step: step, depth: burst * step}
}

// bucket is a token bucket in one word (the generic cell rate algorithm): the instant, in nanoseconds, at which it will
// be full again. A value in the past is a full bucket, so an idle one needs no upkeep and 0 is a new one.
type bucket struct{ full atomic.Int64 }

// take takes one token. Any number of goroutines may call it; each token is given once.
func (b *bucket) take(s shape, now int64) bool {
	for {
		old := b.full.Load()
		next := max(old, now) + s.step
		if next-now > s.depth {
			return false
		}
		if b.full.CompareAndSwap(old, next) {
			return true
		}
	}
}
