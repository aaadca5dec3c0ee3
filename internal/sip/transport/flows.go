package transport

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

const (
	slotBits   = 18 // flows of one node at once
	numberBits = 48 // of an id: slot below, what was drawn at accept above; the node's tag stands on top
)

// flows is an array, not a map: the low bits of an id number the slot, the rest was drawn at accept.
type flows struct {
	node  uint64
	slots []atomic.Pointer[flow]

	mu   sync.Mutex // open and close of connections
	next uint64     // slots from here on were never used
	free []uint32
}

func newFlows(node uint16) *flows {
	return &flows{node: uint64(node) << numberBits, slots: make([]atomic.Pointer[flow], 1<<slotBits)}
}

// get takes an id out of our own Via, after its MAC was checked. An id from before meets another in its slot, and
// finds nobody.
func (t *flows) get(id uint64) *flow {
	f := t.slots[id&(1<<slotBits-1)].Load()
	if f == nil || f.id != id {
		return nil
	}
	return f
}

// add gives a flow its number; false when there are as many flows as may be.
func (t *flows) add(f *flow) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var slot uint64
	switch n := len(t.free); {
	case n > 0:
		slot, t.free = uint64(t.free[n-1]), t.free[:n-1]
	case t.next < uint64(len(t.slots)):
		slot = t.next
		t.next++
	default:
		return false
	}
	drawn := rand.Uint64N(1<<(numberBits-slotBits)-1) + 1 // never 0: an id of 0 means no flow
	f.id = t.node | drawn<<slotBits | slot
	t.slots[slot].Store(f)
	return true
}

// remove frees the slot of a flow that add has numbered. It is called once per flow.
func (t *flows) remove(f *flow) {
	slot := f.id & (1<<slotBits - 1)
	t.slots[slot].Store(nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, uint32(slot))
}

// each calls f for every flow there is.
func (t *flows) each(do func(*flow)) {
	t.mu.Lock()
	used := t.next
	t.mu.Unlock()
	for i := range used {
		if f := t.slots[i].Load(); f != nil {
			do(f)
		}
	}
}

// bufferOctets is the size of the buffers that flows borrow while they have something to read or to write.
const bufferOctets = 16 << 10

// buffers is the free list of such buffers. An idle flow holds none.
type buffers struct{ list chan []byte }

// buffersKept bounds the free list: 16 MiB.
const buffersKept = 1024

func newBuffers() buffers { return buffers{make(chan []byte, buffersKept)} }

func (b buffers) get() []byte {
	select {
	case x := <-b.list:
		return x[:0]
	default:
		return make([]byte, 0, bufferOctets)
	}
}

// put takes a buffer back; one that has grown, or that the list has no room for, is left to the collector.
func (b buffers) put(x []byte) {
	if cap(x) != bufferOctets {
		return
	}
	select {
	case b.list <- x:
	default:
	}
}
