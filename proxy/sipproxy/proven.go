package sipproxy

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
)

// proven remembers hosts that have sent us, over UDP, a token that only who has received an answer of ours can have: their
// addresses are not invented. All workers share it. Only the flood of requests from invented addresses is at stake, so that
// a host may be forgotten for another one.
type proven struct {
	seed  maphash.Seed
	slots [provenSlots]atomic.Uint32 // the upper half of a host's hash
}

const provenSlots = 1 << 14

func newProven() *proven { return &proven{seed: maphash.MakeSeed()} }

func (p *proven) find(a netip.Addr) (slot *atomic.Uint32, mark uint32) {
	h := maphash.Comparable(p.seed, a.Unmap())
	return &p.slots[h%provenSlots], uint32(h>>32) | 1
}

func (p *proven) add(a netip.Addr) {
	if slot, mark := p.find(a); slot.Load() != mark {
		slot.Store(mark)
	}
}

func (p *proven) has(a netip.Addr) bool {
	slot, mark := p.find(a)
	return slot.Load() == mark
}
