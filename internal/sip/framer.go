package sip

import "bytes"

// Limits bounds what a stream may make the Framer keep, in octets (sip-http.md section 19). Zero means the default.
type Limits struct {
	Head int // start line to empty line; 64 KiB
	Body int // 1 MiB
}

const (
	defaultHead = 64 << 10
	defaultBody = 1 << 20
	keepBuffer  = 16 << 10 // an idle connection keeps no larger buffer
)

// Piece is what a stream holds next.
type Piece uint8

// What Next finds.
const (
	More    Piece = iota // nothing whole yet: feed it
	Message              // one message, cut by its Content-Length
	Ping                 // CRLF CRLF between messages: answer CRLF (RFC 5626 section 4.4.1)
	Pong                 // a single CRLF between messages, told when the next octet is known
	Broken               // the stream cannot be read any further: answer what is owed, if that can be done, and close
)

// Part says what a stream is waiting for; deadlines depend on it.
type Part uint8

// The parts.
const (
	Between Part = iota // messages: nothing of the next one has come
	InHead
	InBody
)

// Framer cuts a stream into messages (SX-5, SX-6). Its result depends on the octets alone, never on how reads cut them,
// and memory grows with what has come, never with what a Content-Length announces. It belongs to the reader of the
// stream.
type Framer struct {
	limits Limits
	buf    []byte
	pos    int // where the message at hand begins in buf

	// The message at hand, offsets from pos.
	line  int // start of the line that is not whole yet
	seen  int // no line feed between line and here
	lines int
	head  int // length of the head; 0: not whole yet
	total int // head and body

	crlfs int // CRLFs since the last message, a ping's not counted
	bad   *Error
	rest  []byte // what there was of the broken message
}

// NewFramer gives a framer for one stream.
func NewFramer(l Limits) *Framer {
	return &Framer{limits: l.WithDefaults()}
}

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	if l.Head <= 0 {
		l.Head = defaultHead
	}
	if l.Body <= 0 {
		l.Body = defaultBody
	}
	return l
}

// Room gives space for a read of at least n octets; what was read is told with Filled. What Next gave before is no
// longer valid.
func (f *Framer) Room(n int) []byte {
	switch {
	case f.pos == len(f.buf):
		f.buf, f.pos = f.buf[:0], 0
		if cap(f.buf) > keepBuffer {
			f.buf = nil
		}
	case f.pos > 0 && cap(f.buf)-len(f.buf) < n:
		f.buf = f.buf[:copy(f.buf, f.buf[f.pos:])]
		f.pos = 0
	}
	if cap(f.buf)-len(f.buf) < n {
		grown := make([]byte, len(f.buf), max(2*len(f.buf), len(f.buf)+n))
		copy(grown, f.buf)
		f.buf = grown
	}
	return f.buf[len(f.buf):cap(f.buf)]
}

// Filled takes the first n octets of what Room gave.
func (f *Framer) Filled(n int) { f.buf = f.buf[:len(f.buf)+n] }

// Feed takes a copy of b. What Next gave before is no longer valid.
func (f *Framer) Feed(b []byte) {
	copy(f.Room(len(b)), b)
	f.Filled(len(b))
}

// Part says what the stream is waiting for.
func (f *Framer) Part() Part {
	switch {
	case f.head > 0:
		return InBody
	case f.pos < len(f.buf) && f.buf[f.pos] != '\r':
		return InHead
	}
	return Between
}

// Next gives the next piece. The octets of a message are valid until Room or Feed. For Broken they are what there was of
// the head, and err is the same on every further call; for all others err is nil.
func (f *Framer) Next() (Piece, []byte, *Error) {
	if f.bad != nil {
		return Broken, f.rest, f.bad
	}
	if f.line == 0 && f.seen == 0 {
		if p, found := f.between(); found {
			return f.piece(p)
		}
	}
	if f.head == 0 && !f.scanHead() {
		return f.piece(More)
	}
	msg := f.buf[f.pos:]
	if len(msg) < f.total {
		return f.piece(More)
	}
	msg = msg[:f.total]
	f.pos += f.total
	f.line, f.seen, f.lines, f.head, f.total = 0, 0, 0, 0, 0
	return Message, msg, nil
}

func (f *Framer) piece(p Piece) (Piece, []byte, *Error) {
	if f.bad != nil {
		return Broken, f.rest, f.bad
	}
	return p, nil, nil
}

// between skips what may stand before a start line; found is false when a start line has begun.
func (f *Framer) between() (p Piece, found bool) {
	for f.pos < len(f.buf) {
		b := f.buf[f.pos:]
		switch {
		case b[0] == '\r' && len(b) == 1:
			return More, true
		case b[0] == '\r' && b[1] == '\n':
			f.pos += 2
			if f.crlfs++; f.crlfs == 2 {
				f.crlfs = 0
				return Ping, true
			}
		case class[b[0]]&isToken == 0:
			f.fail(errNotSIP, b[:1])
			return Broken, true
		case f.crlfs == 1:
			f.crlfs = 0
			return Pong, true
		default:
			return Message, false
		}
	}
	return More, true
}

// scanHead goes on with the lines of the head, and says whether it is whole. It ends at the empty line, so that a fold
// is decided with the octet behind it known.
func (f *Framer) scanHead() bool {
	msg := f.buf[f.pos:]
	for {
		n := bytes.IndexByte(msg[f.seen:], '\n')
		end := f.seen + n + 1
		switch {
		case n < 0 && len(msg) <= f.limits.Head:
			f.seen = len(msg)
			return false
		case n < 0 || end > f.limits.Head:
			f.fail(errHeadSize, msg[:f.limits.Head])
			return false
		case end < f.line+2 || msg[end-2] != '\r':
			f.fail(errBareLF, msg[:end])
			return false
		case f.lines == 0 && !startsSIP(msg[:end-2]):
			f.fail(errNotSIP, msg[:end])
			return false
		case f.lines > maxLines:
			f.fail(errLines, msg[:end])
			return false
		}
		empty := end == f.line+2
		f.lines++
		f.line, f.seen = end, end
		if empty {
			return f.measure(msg[:end])
		}
	}
}

// startsSIP says that a line is a start line of SIP, whatever else is wrong with it.
func startsSIP(line []byte) bool {
	line = trimEnd(line)
	return sipVersion(line) || sipVersion(line[bytes.LastIndexByte(line, ' ')+1:])
}

// measure finds the length of the message whose head is whole.
func (f *Framer) measure(head []byte) bool {
	if bytes.Count(head, crlf[:1]) != bytes.Count(head, crlf[1:]) {
		f.fail(errBareCR, head)
		return false
	}
	var field Field
	var value []byte
	lengths := 0
	for at := bytes.IndexByte(head, '\n') + 1; at < len(head)-2; {
		at, _ = scanField(head, at, &field)
		if field.ID == ContentLength {
			value = field.Value.Of(head)
			lengths++
		}
	}
	n, err := ParseContentLength(value)
	switch {
	case lengths == 0:
		f.fail(errNoLength, head)
	case lengths > 1:
		f.fail(errTwoLengths, head)
	case err != nil:
		f.fail(errLengthValue, head)
	case n > f.limits.Body:
		f.fail(errBodySize, head)
	default:
		f.head, f.total = len(head), len(head)+n
		return true
	}
	return false
}

func (f *Framer) fail(e *Error, rest []byte) { f.bad, f.rest = e, rest }
