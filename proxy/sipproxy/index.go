package sipproxy

const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits
)

// index is a hash index over numbered slots by linear hashing: it grows by one bucket per insertion, so that no
// message ever pays for a rehash of the whole, and an idle node holds next to nothing. The chains run through links of
// the index's own, eight octets for a slot, which carry the hash besides: neither a search that finds nothing nor the
// split of a bucket touches the slots themselves, of which most have long left the caches. 0 is no slot.
type index struct {
	buckets [][]uint32 // chunks
	links   [][]link   // chunks, by slot; nil where none of them is in the index
	level   uint       // buckets of this round: 1 << level
	split   uint32     // next bucket to be split
	n       uint32     // slots in it
}

// link is what the index knows of a slot: its hash, and the next slot of its bucket.
type link struct{ hash, next uint32 }

func newIndex() index {
	return index{buckets: [][]uint32{make([]uint32, chunkLen)}, level: chunkBits}
}

func (x *index) size() uint32 { return 1<<x.level + x.split }

func (x *index) link(slot uint32) *link { return &x.links[slot>>chunkBits][slot&(chunkLen-1)] }

func (x *index) bucket(hash uint32) *uint32 {
	b := hash & (1<<x.level - 1)
	if b < x.split {
		b = hash & (1<<(x.level+1) - 1)
	}
	return &x.buckets[b>>chunkBits][b&(chunkLen-1)]
}

// mix spreads the bits: hashes of ours are good already, keys that were XORed are not.
func mix(h uint64) uint32 {
	h ^= h >> 32
	return uint32(h * 0x9e3779b97f4a7c15 >> 24)
}

// put adds a slot under a key that it is not in under.
func (x *index) put(key uint64, slot uint32) {
	hash := mix(key)
	p := x.bucket(hash)
	*x.room(slot) = link{hash, *p}
	*p = slot
	x.n++
	if x.n > x.size()/2 { // most buckets are empty: asking for what is not there costs one line of memory
		x.grow()
	}
}

// room is the link of a slot; its chunk is made when it is first needed.
func (x *index) room(slot uint32) *link {
	for int(slot>>chunkBits) >= len(x.links) {
		x.links = append(x.links, nil)
	}
	if c := &x.links[slot>>chunkBits]; *c == nil {
		*c = make([]link, chunkLen)
	}
	return x.link(slot)
}

// grow splits one bucket in two.
func (x *index) grow() {
	fresh := x.size()
	if int(fresh>>chunkBits) == len(x.buckets) {
		x.buckets = append(x.buckets, make([]uint32, chunkLen))
	}
	from := &x.buckets[x.split>>chunkBits][x.split&(chunkLen-1)]
	slot := *from
	*from = 0
	if x.split++; x.split == 1<<x.level {
		x.split = 0
		x.level++
	}
	for slot != 0 {
		l := x.link(slot)
		after := l.next
		p := x.bucket(l.hash)
		l.next = *p
		*p = slot
		slot = after
	}
}

// first is the first slot that may be the one of a key: whoever asks compares the key, and goes on with next.
func (x *index) first(key uint64) uint32 {
	hash := mix(key)
	return x.same(*x.bucket(hash), hash)
}

// next is the next slot with the hash of the one at hand; 0: there is none.
func (x *index) next(slot uint32) uint32 {
	l := x.link(slot)
	return x.same(l.next, l.hash)
}

func (x *index) same(slot, hash uint32) uint32 {
	for slot != 0 {
		l := x.link(slot)
		if l.hash == hash {
			break
		}
		slot = l.next
	}
	return slot
}

// drop takes a slot out that was put under key.
func (x *index) drop(key uint64, slot uint32) {
	for p := x.bucket(mix(key)); *p != 0; p = &x.link(*p).next {
		if *p == slot {
			*p = x.link(slot).next
			x.n--
			return
		}
	}
}
