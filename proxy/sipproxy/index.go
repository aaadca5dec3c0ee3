package sipproxy

const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits
)

// index is a hash index over numbered slots by linear hashing: it grows by one bucket per insertion, so that no
// message ever pays for a rehash of the whole, and an idle node holds next to nothing. The chains run through the slots
// themselves; 0 is no slot.
type index struct {
	buckets [][]uint32 // chunks
	level   uint       // buckets of this round: 1 << level
	split   uint32     // next bucket to be split
	n       uint32     // slots in it
}

func newIndex() index {
	return index{buckets: [][]uint32{make([]uint32, chunkLen)}, level: chunkBits}
}

// links is where an index finds hash and chain of a slot.
type links interface {
	hash(slot uint32) uint64
	next(slot uint32) *uint32
}

func (x *index) size() uint32 { return 1<<x.level + x.split }

func (x *index) bucket(b uint32) *uint32 { return &x.buckets[b>>chunkBits][b&(chunkLen-1)] }

func (x *index) at(h uint64) *uint32 {
	m := uint32(mix(h))
	b := m & (1<<x.level - 1)
	if b < x.split {
		b = m & (1<<(x.level+1) - 1)
	}
	return x.bucket(b)
}

// mix spreads the bits: hashes of ours are good already, keys that were XORed are not.
func mix(h uint64) uint64 {
	h ^= h >> 32
	return h * 0x9e3779b97f4a7c15 >> 24
}

func put[L links](x *index, l L, slot uint32) {
	p := x.at(l.hash(slot))
	*l.next(slot) = *p
	*p = slot
	x.n++
	if x.n > x.size()/2 { // most buckets are empty: asking for what is not there costs one line of memory
		grow(x, l)
	}
}

// grow splits one bucket in two.
func grow[L links](x *index, l L) {
	old := x.split
	fresh := x.size()
	if int(fresh>>chunkBits) == len(x.buckets) {
		x.buckets = append(x.buckets, make([]uint32, chunkLen))
	}
	from := x.bucket(old)
	slot := *from
	*from = 0
	if x.split++; x.split == 1<<x.level {
		x.split = 0
		x.level++
	}
	for slot != 0 {
		next := l.next(slot)
		after := *next
		p := x.at(l.hash(slot))
		*next = *p
		*p = slot
		slot = after
	}
}

func find[L links](x *index, l L, h uint64) uint32 {
	slot := *x.at(h)
	for slot != 0 && l.hash(slot) != h {
		slot = *l.next(slot)
	}
	return slot
}

func drop[L links](x *index, l L, slot uint32) {
	p := x.at(l.hash(slot))
	for *p != 0 {
		if *p == slot {
			*p = *l.next(slot)
			x.n--
			return
		}
		p = l.next(*p)
	}
}
