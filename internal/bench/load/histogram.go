package load

import (
	"math/bits"
	"time"
)

const (
	fine   = 5 // bits of a value that are kept below its highest one: an error of 3 % at most
	places = (64 - fine + 1) << fine
)

// Histogram counts durations in places whose width grows with the value.
type Histogram struct {
	counts [places]uint64
	total  uint64
}

// Add counts a duration; negative ones count as zero.
func (h *Histogram) Add(d time.Duration) {
	h.counts[place(uint64(max(d, 0)))]++
	h.total++
}

// Count is how many durations were added.
func (h *Histogram) Count() uint64 { return h.total }

// Quantile is the value below which a share q of all durations lies (0.99: the slowest of a hundred is left out); 0
// where nothing was added.
func (h *Histogram) Quantile(q float64) time.Duration {
	want := uint64(q * float64(h.total))
	var sum uint64
	for i, n := range h.counts {
		if sum += n; n > 0 && sum > want {
			return time.Duration(lowest(i))
		}
	}
	for i := places - 1; i >= 0; i-- {
		if h.counts[i] > 0 {
			return time.Duration(lowest(i))
		}
	}
	return 0
}

// place is the number of a value's place: the position of its highest bit, and the bits below that one.
func place(v uint64) int {
	shift := max(bits.Len64(v)-fine-1, 0)
	return shift<<fine + int(v>>shift)
}

// lowest is the smallest value of a place.
func lowest(i int) uint64 {
	if i < 2<<fine {
		return uint64(i)
	}
	shift := i>>fine - 1
	return uint64(i-shift<<fine) << shift
}
