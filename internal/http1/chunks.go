package http1

// Chunks walks a chunked body as its bytes come in, in pieces of any size, and says of each what may go on. Extensions
// are dropped, all else goes on as received; with Bare only the data does. The zero value is at the start of a body.
// HF-5.
type Chunks struct {
	Bare bool // framing is dropped, only data goes on

	state  chunkState
	digits uint8
	bws    bool // white space behind the size, and no semicolon yet
	ext    int
	left   uint64
}

type chunkState uint8

const (
	chunkSize     chunkState = iota // before or in the size
	chunkExt                        // behind the size, up to the CR
	chunkSizeLF                     // LF of the size line
	chunkData                       // data
	chunkDataCR                     // CR behind the data
	chunkDataLF                     // LF behind the data
	chunkTrailers                   // the trailer section
)

const maxExtension = 256 // octets of extensions in one line

// Reset puts c at the start of another body.
func (c *Chunks) Reset() { *c = Chunks{Bare: c.Bare} }

// AtTrailers says that the last chunk was read; what follows is the trailer section (Head.ParseTrailers).
func (c *Chunks) AtTrailers() bool { return c.state == chunkTrailers }

// Step looks at received bytes from the first that no step has taken. The first pass octets may go on, the skip octets
// behind them are dropped; then Step is called with the rest. At the trailers both are 0.
func (c *Chunks) Step(b []byte) (pass, skip int, err error) {
	for pass < len(b) {
		from := pass
		n, drop, err := c.piece(b[pass:])
		if err != nil {
			return pass, 0, err
		}
		switch {
		case n == 0:
			return pass, 0, nil
		case drop:
			return pass, n, nil
		}
		pass = from + n
	}
	return pass, 0, nil
}

// piece takes the longest run of octets that share one fate.
func (c *Chunks) piece(b []byte) (n int, drop bool, err error) {
	switch c.state {
	case chunkData:
		n = len(b)
		if uint64(n) > c.left {
			n = int(c.left)
		}
		if c.left -= uint64(n); c.left == 0 {
			c.state = chunkDataCR
		}
		return n, false, nil
	case chunkExt:
		if b[0] != '\r' {
			n, err = c.extension(b)
			return n, true, err
		}
		if c.bws {
			return 0, false, ErrChunkExt
		}
		c.state = chunkSizeLF
	case chunkTrailers:
		return 0, false, nil
	case chunkSize:
		if c.digits > 0 && (b[0] == ';' || b[0] == ' ' || b[0] == '\t') {
			c.state, c.bws, c.ext = chunkExt, true, 0
			n, err = c.extension(b)
			return n, true, err
		}
		return 1, c.Bare, c.sizeOctet(b[0])
	case chunkSizeLF:
		if b[0] != '\n' {
			return 0, false, ErrChunkSize
		}
		c.digits = 0
		if c.left == 0 {
			c.state = chunkTrailers
		} else {
			c.state = chunkData
		}
	case chunkDataCR:
		if b[0] != '\r' {
			return 0, false, ErrChunkEnd
		}
		c.state = chunkDataLF
	case chunkDataLF:
		if b[0] != '\n' {
			return 0, false, ErrChunkEnd
		}
		c.state = chunkSize
	}
	return 1, c.Bare, nil
}

// sizeOctet takes hex digits and the CR behind them. Sixteen digits hold any 64-bit number; more are refused even when
// they are zeros.
func (c *Chunks) sizeOctet(b byte) error {
	var v byte
	switch {
	case isDigit(b):
		v = b - '0'
	case 'a' <= b|0x20 && b|0x20 <= 'f':
		v = b | 0x20 - 'a' + 10
	case b == '\r' && c.digits > 0:
		c.state = chunkSizeLF
		return nil
	default:
		return ErrChunkSize
	}
	if c.digits == 0 {
		c.left = 0
	}
	if c.digits++; c.digits > 16 || c.left > 1<<58 {
		return ErrChunkSize
	}
	c.left = c.left<<4 | uint64(v)
	return nil
}

// extension takes octets up to the CR, which is not among them. White space must lead to a semicolon.
func (c *Chunks) extension(b []byte) (int, error) {
	for i, o := range b {
		switch {
		case o == '\r':
			return i, nil
		case o == ';':
			c.bws = false
		case o != '\t' && o < 0x20 || o == 0x7f, c.bws && o != ' ' && o != '\t':
			return 0, ErrChunkExt
		}
		if c.ext++; c.ext > maxExtension {
			return 0, ErrChunkExt
		}
	}
	return len(b), nil
}
