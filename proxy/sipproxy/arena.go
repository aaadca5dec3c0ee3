package sipproxy

// arena is one worker's share of the memory for kept messages (sip-http.md 9.4): blocks of fixed sizes out of chunks
// that are made when they are first needed and never given back. What does not fit is forwarded without being kept,
// and counted.
type arena struct {
	free    [arenaClasses][][]byte
	left    int // octets that may still be made
	refused uint64
}

const (
	arenaMin     = 512
	arenaClasses = 9 // 512 octets to 128 KiB
	arenaChunk   = 1 << 17
)

func newArena(max int) *arena { return &arena{left: max} }

func arenaClass(n int) int {
	c := 0
	for size := arenaMin; size < n; size <<= 1 {
		c++
	}
	return c
}

// keep copies b into a block; nil when it does not fit.
func (a *arena) keep(b []byte) []byte {
	c := arenaClass(len(b))
	if c >= arenaClasses {
		a.refused++
		return nil
	}
	if len(a.free[c]) == 0 && !a.carve(c) {
		a.refused++
		return nil
	}
	last := len(a.free[c]) - 1
	block := a.free[c][last]
	a.free[c] = a.free[c][:last]
	return append(block[:0], b...)
}

// carve cuts a new chunk into blocks of a class.
func (a *arena) carve(c int) bool {
	size := arenaMin << c
	if a.left < size {
		return false
	}
	n := min(arenaChunk, a.left/size*size)
	chunk := make([]byte, n)
	a.left -= n
	for at := 0; at < n; at += size {
		a.free[c] = append(a.free[c], chunk[at:at:at+size])
	}
	return true
}

// give takes a block back; nil is fine.
func (a *arena) give(b []byte) {
	if b == nil {
		return
	}
	c := arenaClass(cap(b))
	a.free[c] = append(a.free[c], b[:0])
}
