package websocket

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/gobwas/ws"
)

// Piece is what the octets received so far hold next.
type Piece uint8

// What Next finds.
const (
	More    Piece = iota // nothing whole: feed it
	Message              // a whole message, fragments joined
	Control              // a control frame: Kind says which
	Broken               // the peer broke the protocol: close with Code
)

// keepBuffer is the largest buffer that stays between messages.
const keepBuffer = 16 << 10

// Reader cuts what a peer sends into messages. Its result depends on the octets alone, never on how reads cut them. It
// belongs to whoever reads the connection.
type Reader struct {
	Max      int  // octets of one message
	Unmasked bool // the peer is a server, whose frames carry no mask

	Kind byte   // of the last Message (Text or Binary) or Control
	Code uint16 // of Broken

	buf   []byte
	start int // of the message that is being joined
	end   int // of what is joined of it
	next  int // of the frame at hand
	parts bool
	kind  byte // of the message that is being joined
}

// Room gives space for a read of at least n octets; what was read is told with Filled. What Next gave is no longer valid.
func (r *Reader) Room(n int) []byte {
	if r.next == len(r.buf) && !r.parts {
		r.buf, r.start, r.end, r.next = r.buf[:0], 0, 0, 0
		if cap(r.buf) > keepBuffer {
			r.buf = nil
		}
	}
	if !r.parts {
		r.start, r.end = r.next, r.next
	}
	if (r.start > 0 || r.next > r.end) && cap(r.buf)-len(r.buf) < n {
		r.shift()
	}
	if cap(r.buf)-len(r.buf) < n {
		grown := make([]byte, len(r.buf), max(2*len(r.buf), len(r.buf)+n))
		copy(grown, r.buf)
		r.buf = grown
	}
	return r.buf[len(r.buf):cap(r.buf)]
}

// shift moves what is needed to the front, and closes the gap that control frames have left in a message.
func (r *Reader) shift() {
	joined := copy(r.buf, r.buf[r.start:r.end])
	n := copy(r.buf[joined:], r.buf[r.next:])
	r.buf, r.start, r.end, r.next = r.buf[:joined+n], 0, joined, joined
}

// Filled takes the first n octets of what Room gave.
func (r *Reader) Filled(n int) { r.buf = r.buf[:len(r.buf)+n] }

// Feed takes a copy of b. What Next gave is no longer valid.
func (r *Reader) Feed(b []byte) {
	copy(r.Room(len(b)), b)
	r.Filled(len(b))
}

// Idle says that nothing of a message has come.
func (r *Reader) Idle() bool { return r.next == len(r.buf) && !r.parts }

// Held says whether there is a buffer.
func (r *Reader) Held() bool { return r.buf != nil }

// Lend gives a buffer to a Reader without one.
func (r *Reader) Lend(b []byte) { r.buf, r.start, r.end, r.next = b[:0], 0, 0, 0 }

// Reclaim takes the buffer back where nothing stands in it.
func (r *Reader) Reclaim() []byte {
	if !r.Idle() {
		return nil
	}
	b := r.buf
	r.buf, r.start, r.end, r.next = nil, 0, 0, 0
	return b
}

// Next gives the next piece. A message, and the payload of a control frame, are lent until Room or Feed.
func (r *Reader) Next() (Piece, []byte) {
	for r.Code == 0 {
		if !r.parts {
			r.start, r.end = r.next, r.next
		}
		f, payload, whole := r.frame()
		switch {
		case r.Code != 0 || !whole:
		case f.control():
			r.Kind = f.op
			return Control, payload
		default:
			if msg, done := r.join(f, payload); done {
				return Message, msg
			}
			continue
		}
		break
	}
	if r.Code != 0 {
		return Broken, nil
	}
	return More, nil
}

// header is the head of a frame.
type header struct {
	op   byte
	fin  bool
	size int // of the head
	n    int // of the payload
	mask [4]byte
}

func (f header) control() bool { return f.op >= Close }

// frame reads the frame at hand and undoes its mask; whole: all of it has come, and next stands behind it.
func (r *Reader) frame() (f header, payload []byte, whole bool) {
	b := r.buf[r.next:]
	if len(b) < 2 {
		return f, nil, false
	}
	f = header{op: b[0] & 0x0f, fin: b[0]&0x80 != 0, size: 2, n: int(b[1] & 0x7f)}
	masked := b[1]&0x80 != 0
	if b[0]&0x70 != 0 || masked == r.Unmasked || !r.expected(f) {
		r.Code = CodeProtocol
		return f, nil, false
	}
	if !r.length(&f, b) {
		return f, nil, false
	}
	if masked {
		if len(b) < f.size+4 {
			return f, nil, false
		}
		f.mask = [4]byte(b[f.size:])
		f.size += 4
	}
	if len(b)-f.size < f.n {
		return f, nil, false
	}
	payload = b[f.size : f.size+f.n]
	if masked {
		ws.Cipher(payload, f.mask, 0)
	}
	r.next += f.size + f.n
	return f, payload, true
}

// expected says whether a frame of that kind may come now (RFC 6455 sections 5.4, 5.5).
func (r *Reader) expected(f header) bool {
	switch f.op {
	case byte(ws.OpContinuation):
		return r.parts
	case Text, Binary:
		return !r.parts
	case Close, Ping, Pong:
		return f.fin && f.n < 126
	}
	return false
}

// length reads an extended length, and refuses what would be too large before anything of it is kept.
func (r *Reader) length(f *header, b []byte) bool {
	switch {
	case f.n == 126:
		if len(b) < 4 {
			return false
		}
		f.n, f.size = int(binary.BigEndian.Uint16(b[2:])), 4
		if f.n < 126 {
			r.Code = CodeProtocol
		}
	case f.n == 127:
		if len(b) < 10 {
			return false
		}
		n := binary.BigEndian.Uint64(b[2:])
		switch f.size = 10; {
		case n>>63 != 0 || n <= 0xffff:
			r.Code = CodeProtocol
		case n > uint64(r.Max):
			r.Code = CodeTooLarge
		}
		f.n = int(n & (1<<62 - 1))
	}
	if r.Code == 0 && !f.control() && r.end-r.start+f.n > r.Max {
		r.Code = CodeTooLarge
	}
	return r.Code == 0
}

// join puts a fragment behind those that have come, and gives the message when it was the last.
func (r *Reader) join(f header, payload []byte) ([]byte, bool) {
	if !r.parts {
		r.kind = f.op
		r.start = r.next - len(payload) // the first stays where it stands
		r.end = r.next
	} else {
		r.end += copy(r.buf[r.end:], payload)
	}
	r.parts = !f.fin
	if r.parts {
		return nil, false
	}
	msg := r.buf[r.start:r.end]
	if r.kind == Text && !utf8.Valid(msg) {
		r.Code = CodeNotText
		return nil, false
	}
	r.Kind = r.kind
	return msg, true
}
