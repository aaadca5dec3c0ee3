package http1

// BodyKind says how a body ends.
type BodyKind uint8

// The kinds of RFC 9112 6.3.
const (
	NoBody     BodyKind = iota
	Sized               // after Framing.Length octets
	Chunked             // with the last chunk and the trailers
	UntilClose          // with the connection; responses only
)

// Framing is the one answer to where a body ends.
type Framing struct {
	Kind   BodyKind
	Length int64 // octets; meaningful when Sized
}

// RequestFraming decides where the body of a request ends: HF-1, HF-2, HF-3. A message with both lengths is
// ErrBothLengths; who must live with such a client calls ChunkedWins and asks again.
func (h *Head) RequestFraming() (Framing, error) { return h.framing() }

// ChunkedWins takes Content-Length off a message with both lengths (lenient_framing). The connection must be closed
// after the answer.
func (h *Head) ChunkedWins() {
	h.CutAll(ContentLength, CutHop)
	h.count[ContentLength], h.first[ContentLength] = 0, 0
}

func (h *Head) framing() (Framing, error) {
	nte, ncl := h.count[TransferEncoding], h.count[ContentLength]
	switch {
	case nte > 0 && ncl > 0:
		return Framing{}, ErrBothLengths
	case nte > 0:
		if h.Minor == 0 {
			return Framing{}, ErrCodingVersion
		}
		return Framing{Kind: Chunked}, h.coding()
	case ncl > 1:
		return Framing{}, ErrLengthTwice
	case ncl == 1:
		n, ok := ParseLength(h.Value(ContentLength))
		if !ok {
			return Framing{}, ErrLength
		}
		if n == 0 {
			return Framing{}, nil
		}
		return Framing{Kind: Sized, Length: n}, nil
	}
	return Framing{}, nil
}

// coding takes exactly "chunked", once, alone (HF-2). A well-formed list with another coding is 501, all else 400.
func (h *Head) coding() error {
	if h.count[TransferEncoding] > 1 {
		return ErrCoding
	}
	v := h.Value(TransferEncoding)
	if EqualFold(v, "chunked") {
		return nil
	}
	other, bad := false, len(v) == 0
	for rest := v; len(rest) > 0; {
		var item []byte
		item, rest = NextItem(rest)
		switch {
		case !IsToken(item):
			bad = true
		case !EqualFold(item, "chunked"):
			other = true
		}
	}
	if other && !bad {
		return ErrCodingUnknown
	}
	return ErrCoding
}

// ParseLength reads a Content-Length: digits only, no overflow of 63 bits.
func ParseLength(v []byte) (int64, bool) {
	if len(v) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range v {
		d := int64(c - '0')
		if !isDigit(c) || n > (1<<63-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// ResponseFraming decides where the body of a response ends (HF-7, HB-5). head says that the request was a HEAD. stray
// says that the fields announce a body where there can be none: it is dropped and the connection not used again.
func (h *Head) ResponseFraming(head bool) (f Framing, stray bool, err error) {
	f, err = h.framing()
	if err != nil {
		return f, false, err
	}
	announced := f.Kind != NoBody
	switch {
	case h.Status < 200 || h.Status == 204:
		return Framing{}, announced, nil
	case head || h.Status == 304:
		return Framing{}, false, nil
	case !announced && h.count[ContentLength] == 0:
		return Framing{Kind: UntilClose}, false, nil
	}
	return f, false, nil
}
