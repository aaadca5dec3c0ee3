package h1

import "sync/atomic"

const freeSlots = 512

// freeList keeps what connections use for one request and then do without. It is an array of atomic pointers, not a
// stack: whoever takes or gives starts at a place of its own, so that two rarely touch one word. What finds no place is
// left to the collector.
type freeList[T any] struct {
	slots [freeSlots]atomic.Pointer[T]
}

const freeProbes = 16

func (l *freeList[T]) get(hint uint32) *T {
	for i := range uint32(freeProbes) {
		s := &l.slots[(hint+i)%freeSlots]
		if s.Load() == nil {
			continue
		}
		if t := s.Swap(nil); t != nil {
			return t
		}
	}
	return nil
}

// put says whether there was a place.
func (l *freeList[T]) put(hint uint32, t *T) bool {
	for i := range uint32(freeProbes) {
		if s := &l.slots[(hint+i)%freeSlots]; s.Load() == nil && s.CompareAndSwap(nil, t) {
			return true
		}
	}
	return false
}
