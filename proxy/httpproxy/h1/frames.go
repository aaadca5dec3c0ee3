package h1

// frames follows the frames of one direction of a WebSocket (RFC 6455 5.2) as their bytes go by, to know where one more
// can be put in between.
type frames struct {
	head [14]byte
	have int    // octets of the head
	left uint64 // octets of the payload
}

// between says whether the last frame has ended and no other has begun.
func (f *frames) between() bool { return f.have == 0 && f.left == 0 }

func (f *frames) pass(b []byte) {
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, uint64(len(b)))
			f.left -= n
			b = b[n:]
			continue
		}
		f.head[f.have] = b[0]
		f.have++
		b = b[1:]
		if f.have == f.need() {
			f.left = f.length()
			f.have = 0
		}
	}
}

func (f *frames) need() int {
	if f.have < 2 {
		return 2
	}
	n := 2
	switch f.head[1] & 0x7f {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if f.head[1]&0x80 != 0 {
		n += 4
	}
	return n
}

func (f *frames) length() uint64 {
	l := uint64(f.head[1] & 0x7f)
	n := 0
	switch l {
	case 126:
		n = 2
	case 127:
		n = 8
	}
	if n > 0 {
		l = 0
		for _, c := range f.head[2 : 2+n] {
			l = l<<8 | uint64(c)
		}
	}
	return l
}
