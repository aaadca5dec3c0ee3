package diam

// framerLen is the buffer of a connection in bytes; a longer message gets a buffer of its own length.
const framerLen = 64 << 10

// Framer cuts a stream into messages. One goroutine, the connection's reader, uses it. The zero value is not usable;
// NewFramer makes one. It holds no buffer before the first Space and none after Release.
type Framer struct {
	buf   []byte
	from  int // first byte not yet taken
	to    int // first byte not yet filled
	limit int // longest message in bytes
	err   error
}

// NewFramer makes a framer for messages of up to limit bytes (limits.max_message).
func NewFramer(limit int) Framer { return Framer{limit: min(limit, maxLen-4)} }

// Space is where the next bytes of the stream are read to. It is called once Next has given nil, and then is never empty.
// What Next gave before is invalid after it.
func (f *Framer) Space() []byte {
	need := HeaderLen
	if h, err := ParseHeader(f.buf[f.from:f.to], f.limit); err == nil {
		need = h.Len // checked against the limit before a buffer is taken
	}
	if len(f.buf)-f.from >= need && f.to < len(f.buf) {
		return f.buf[f.to:]
	}
	kept := f.buf[f.from:f.to]
	if len(f.buf) < max(need, framerLen) {
		f.buf = make([]byte, max(need, framerLen))
	}
	f.to = copy(f.buf, kept)
	f.from = 0
	return f.buf[f.to:]
}

// Filled says that n bytes were read into Space.
func (f *Framer) Filled(n int) { f.to += n }

// Next is the next whole message, nil if more bytes are needed. The bytes live until the next Space. Errors: ErrVersion,
// ErrLength; after one the stream cannot be framed any more, and every further call gives the same.
func (f *Framer) Next() ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	rest := f.buf[f.from:f.to]
	if len(rest) > 0 && len(rest) < HeaderLen && rest[0] != 1 {
		f.err = ErrVersion // another protocol is not waited for
		return nil, f.err
	}
	if len(rest) < HeaderLen {
		return nil, nil
	}
	h, err := ParseHeader(rest, f.limit)
	if err != nil {
		f.err = err
		return nil, err
	}
	if len(rest) < h.Len {
		return nil, nil
	}
	f.from += h.Len
	return rest[:h.Len:h.Len], nil
}

// Rest is the number of bytes of a message that is not whole: at the end of a stream, more than 0 is ErrShort.
func (f *Framer) Rest() int { return f.to - f.from }

// Release lets the buffer of an idle connection go; a buffer that holds a part of a message stays.
func (f *Framer) Release() {
	if f.Rest() == 0 {
		f.buf, f.from, f.to = nil, 0, 0
	}
}
