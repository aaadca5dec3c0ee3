package sip

// Edit replaces the Cut octets of the received message at At by Put.
type Edit struct {
	At, Cut uint32
	Put     []byte
}

// Splice writes src with the edits applied, which are sorted by At and do not overlap. What no edit names leaves as it
// came.
func Splice(dst, src []byte, edits []Edit) []byte {
	from := uint32(0)
	for _, e := range edits {
		dst = append(dst, src[from:e.At]...)
		dst = append(dst, e.Put...)
		from = e.At + e.Cut
	}
	return append(dst, src[from:]...)
}
