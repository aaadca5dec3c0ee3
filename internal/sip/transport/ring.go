package transport

import "sync/atomic"

// ring is a bounded queue: any number of goroutines put, one takes, nobody locks (docs/adr/0001). A put claims a place,
// fills it and publishes it, so what one goroutine puts keeps its order. What was taken is lent: its place is free again
// only after release.
type ring[T any] struct {
	places []place[T]
	mask   uint64
	_      [40]byte
	head   atomic.Uint64 // next place to claim
	_      [56]byte
	tail   uint64 // first place not released; the taker's own
	_      [56]byte
}

// place carries a turn: pos while free for the put at pos, pos+1 when filled.
type place[T any] struct {
	turn  atomic.Uint64
	value T
}

// layOut makes size places; size is a power of two.
func (r *ring[T]) layOut(size int) {
	r.places, r.mask = make([]place[T], size), uint64(size-1)
	for i := range r.places {
		r.places[i].turn.Store(uint64(i))
	}
}

// claim gives the next free place and its position, nil when the ring is full. It must be published soon: whoever put
// later is seen only then.
func (r *ring[T]) claim() (*place[T], uint64) {
	for {
		pos := r.head.Load()
		p := &r.places[pos&r.mask]
		switch turn := p.turn.Load(); {
		case turn == pos:
			if r.head.CompareAndSwap(pos, pos+1) {
				return p, pos
			}
		case turn < pos:
			return nil, 0
		}
	}
}

// publish hands a claimed place to the taker.
func (p *place[T]) publish(pos uint64) { p.turn.Store(pos + 1) }

// put is claim, copy and publish in one.
func (r *ring[T]) put(v T) bool {
	p, pos := r.claim()
	if p == nil {
		return false
	}
	p.value = v
	p.publish(pos)
	return true
}

// at gives the i-th value that was not released, nil when there is none yet. Taker only.
func (r *ring[T]) at(i int) *T {
	pos := r.tail + uint64(i)
	p := &r.places[pos&r.mask]
	if p.turn.Load() != pos+1 {
		return nil
	}
	return &p.value
}

// release frees the first n places for those who put. Taker only.
func (r *ring[T]) release(n int) {
	for range n {
		r.places[r.tail&r.mask].turn.Store(r.tail + r.mask + 1)
		r.tail++
	}
}

// crowded says that half of the places are taken. Anybody may ask; the answer is old at once.
func (r *ring[T]) crowded() bool {
	half := r.head.Load() - uint64(len(r.places)/2)
	return r.places[half&r.mask].turn.Load() == half+1
}
