package h2

import (
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Bounds of one header block as it is sent. What is within them is decoded and refused as too long where it is (431);
// what is not ends the connection (H2-2: CONTINUATION flood).
const (
	maxBlock         = 64 << 10 // octets
	maxContinuations = 32
	tableSize        = 4096 // the dynamic table of the client's encoder: what the server has announced
)

// block is the header block at hand: HEADERS, and the CONTINUATION frames that belong to it.
type block struct {
	open     bool
	id       uint32
	end      bool // END_STREAM
	size     int  // octets of fragments
	frames   int
	fields   fields
	selfdeps bool // its priority names itself
}

// headers takes a HEADERS frame.
func (c *conn) headers(f []byte, id uint32, flags http2.Flags, p []byte) {
	if id == 0 {
		c.fail(http2.ErrCodeProtocol)
		return
	}
	pad := 0
	if flags.Has(http2.FlagHeadersPadded) {
		if len(p) == 0 {
			c.fail(http2.ErrCodeFrameSize)
			return
		}
		pad, p = int(p[0]), p[1:]
	}
	b := &c.block
	*b = block{open: true, id: id, end: flags.Has(http2.FlagHeadersEndStream), fields: fields{scratch: b.fields.scratch}}
	if flags.Has(http2.FlagHeadersPriority) {
		if len(p) < 5 {
			c.fail(http2.ErrCodeFrameSize)
			return
		}
		b.selfdeps = uint32(p[0]&0x7f)<<24|uint32(p[1])<<16|uint32(p[2])<<8|uint32(p[3]) == id
		p = p[5:]
	}
	if pad > len(p) {
		c.fail(http2.ErrCodeProtocol)
		return
	}
	b.fields.begin(c.limits.MaxHeader)
	c.decode(flags.Has(http2.FlagHeadersEndHeaders), p[:len(p)-pad])
}

func (c *conn) continuation(flags http2.Flags, p []byte) {
	if c.block.frames++; c.block.frames > maxContinuations {
		c.fail(http2.ErrCodeEnhanceYourCalm)
		return
	}
	c.decode(flags.Has(http2.FlagContinuationEndHeaders), p)
}

// decode takes a fragment. Whatever becomes of the request, the block must be decoded: the table of the decoder is that
// of the connection.
func (c *conn) decode(whole bool, p []byte) {
	b := &c.block
	if b.size += len(p); b.size > maxBlock {
		c.fail(http2.ErrCodeEnhanceYourCalm)
		return
	}
	if c.dec == nil {
		c.dec = hpack.NewDecoder(tableSize, nil)
		c.dec.SetMaxStringLength(2 * maxBlock)
	}
	c.dec.SetEmitFunc(b.fields.add)
	_, err := c.dec.Write(p)
	if err == nil && whole {
		err = c.dec.Close()
	}
	if err != nil {
		c.fail(http2.ErrCodeCompression)
		return
	}
	if whole {
		b.open = false
		c.decoded()
	}
}

// decoded has a whole block: a request, or the trailers of one.
func (c *conn) decoded() {
	b := &c.block
	id := b.id
	if s := c.find(id); s != nil {
		c.trailers(s)
		return
	}
	if id <= c.seen || id%2 == 0 {
		if !c.unknown(id) {
			c.tell(id, nil) // no stream can begin with it: the server says so
		}
		return
	}
	c.seen = id
	s := &stream{id: id, whole: b.end}
	if b.selfdeps || !b.fields.request(s) {
		c.refuse(id, http2.ErrCodeProtocol)
		return
	}
	c.sent.Store(id)
	c.mu.Lock()
	c.streams[id] = s
	c.mu.Unlock()
	c.tell(id, s)
}

// trailers has the fields behind the body of a request (HB-7).
func (c *conn) trailers(s *stream) {
	b := &c.block
	short := s.declared >= 0 && s.got < s.declared
	if s.whole || !b.end {
		c.tell(s.id, nil) // against the order of a stream: the server says so
		return
	}
	if b.selfdeps || short || !b.fields.trailer() {
		c.kill(s.id, http2.ErrCodeProtocol)
		return
	}
	c.mu.Lock()
	s.trailers = append([]byte(nil), b.fields.text...)
	c.mu.Unlock()
	c.tell(s.id, nil)
}

// tell sends the server a HEADERS frame with as much as it needs: of a request s the method, since the answer to a HEAD
// ends with its head, the length, and a path that is the number of the stream; of trailers nothing.
func (c *conn) tell(id uint32, s *stream) {
	if c.enc == nil {
		c.enc = hpack.NewEncoder(&c.encoded)
		c.enc.SetMaxDynamicTableSizeLimit(0)
	}
	c.encoded.Reset()
	if s != nil {
		method := "POST"
		if s.method == "HEAD" {
			method = "HEAD"
		}
		c.field(":method", method)
		c.field(":scheme", "http")
		c.field(":path", "/"+strconv.FormatUint(uint64(id), 10))
		c.field(":authority", "a")
		if s.declared >= 0 {
			c.field("content-length", strconv.FormatInt(s.declared, 10))
		}
	}
	flags := http2.FlagHeadersEndHeaders
	if c.block.end {
		flags |= http2.FlagHeadersEndStream
	}
	n := c.encoded.Len()
	b := c.b
	b.out = append(b.out, byte(n>>16), byte(n>>8), byte(n), byte(http2.FrameHeaders), byte(flags),
		byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
	b.out = append(b.out, c.encoded.Bytes()...)
}

func (c *conn) field(name, value string) {
	_ = c.enc.WriteField(hpack.HeaderField{Name: name, Value: value}) // into memory: it can't fail
}
