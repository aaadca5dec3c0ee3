package obs

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Ring carries finished records to the access log. Any number of goroutines put, one takes; nobody locks and nobody
// waits. A SIP worker has one of its own, the connections of an HTTP front share one: a compare-and-swap on a word that
// nobody else writes costs a worker about as much as a store, so one kind of ring serves both.
//
// A nil Ring takes nothing: the access log is off.
type Ring struct {
	slots   []slot
	mask    uint64
	dropped prometheus.Counter
	wake    chan struct{} // capacity 1; shared with the log's other rings
	asleep  *atomic.Bool  // the log waits for wake

	_    [64]byte // writers and reader each have a cache line
	tail atomic.Uint64
	_    [64]byte
	head uint64 // owned by the reader
}

// slot holds one record. Its turn is the position that may write it next; written, position+1; taken, position plus
// the size of the ring.
type slot struct {
	turn atomic.Uint64
	rec  Record
}

// NewRing makes a ring of its own for size records, rounded up to a power of two, for a log that is not an AccessLog
// (tests, a ladder). dropped may be nil.
func NewRing(size int, dropped prometheus.Counter) *Ring {
	return newRing(size, dropped, make(chan struct{}, 1), &atomic.Bool{})
}

func newRing(size int, dropped prometheus.Counter, wake chan struct{}, asleep *atomic.Bool) *Ring {
	n := 2
	for n < size {
		n *= 2
	}
	r := &Ring{slots: make([]slot, n), mask: uint64(n - 1), dropped: dropped, wake: wake, asleep: asleep}
	for i := range r.slots {
		r.slots[i].turn.Store(uint64(i))
	}
	return r
}

// Put copies a finished record into the ring. A full ring drops it and counts.
func (r *Ring) Put(rec *Record) {
	if r == nil {
		return
	}
	pos := r.tail.Load()
	for {
		s := &r.slots[pos&r.mask]
		switch turn := s.turn.Load(); {
		case turn == pos:
			if !r.tail.CompareAndSwap(pos, pos+1) {
				pos = r.tail.Load()
				continue
			}
			s.rec = *rec
			s.turn.Store(pos + 1)
			r.call(pos)
			return
		case turn < pos: // not taken yet since the last time round
			if r.dropped != nil {
				r.dropped.Inc()
			}
			return
		default: // another writer was first
			pos = r.tail.Load()
		}
	}
}

// call wakes the log: when it sleeps, and each time half of the ring has been filled. In between it looks by itself.
func (r *Ring) call(pos uint64) {
	if pos&(r.mask>>1) != 0 && !r.asleep.Load() {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Take hands the oldest record to use and frees its slot; false when there is none. Only one goroutine may take. The
// record is lent: use must not keep it.
func (r *Ring) Take(use func(*Record)) bool {
	s := &r.slots[r.head&r.mask]
	if s.turn.Load() != r.head+1 {
		return false
	}
	use(&s.rec)
	s.turn.Store(r.head + r.mask + 1)
	r.head++
	return true
}

// Enabled says whether records are wanted; false on nil.
func (r *Ring) Enabled() bool { return r != nil }
