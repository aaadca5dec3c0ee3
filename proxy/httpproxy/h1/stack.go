package h1

import "sync/atomic"

// stack is a set of small numbers, last in, first out, without a lock. The head holds 1 + the top number in its low half
// and a count of changes in its high half, so that a number that left and came back is noticed.
type stack struct {
	head atomic.Uint64
	next []atomic.Uint32
}

func newStack(n int) stack { return stack{next: make([]atomic.Uint32, n)} }

func (s *stack) push(i int) {
	for {
		h := s.head.Load()
		s.next[i].Store(uint32(h))
		if s.head.CompareAndSwap(h, (h>>32+1)<<32|uint64(i+1)) {
			return
		}
	}
}

func (s *stack) pop() (int, bool) {
	for {
		h := s.head.Load()
		top := uint32(h)
		if top == 0 {
			return 0, false
		}
		if s.head.CompareAndSwap(h, (h>>32+1)<<32|uint64(s.next[top-1].Load())) {
			return int(top - 1), true
		}
	}
}
