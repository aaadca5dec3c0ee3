package sip

// Held says that the framer has a buffer.
func (f *Framer) Held() bool { return f.buf != nil }

// Lend gives a framer without a buffer one to begin with, so that many idle streams can share a few.
func (f *Framer) Lend(b []byte) { f.buf, f.pos = b[:0], 0 }

// Reclaim takes the buffer away when nothing of a message is in it; else nil. What Next gave before is no longer valid.
func (f *Framer) Reclaim() []byte {
	if f.pos != len(f.buf) {
		return nil
	}
	b := f.buf
	f.buf, f.pos = nil, 0
	return b
}
