package h2

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/wyegate/wyegate/proxy/httpproxy"
)

const (
	frameHead   = 9
	keptBuffers = 256
)

// buffer is what a connection reads into while frames are on the way. An idle one has none.
type buffer struct {
	in  [frameHead + maxFrame]byte // received, from the first frame that was not taken
	out []byte                     // what the server is to read
}

// conn is one connection: the gate between the client and the HTTP/2 server, which takes it for the client's.
type conn struct {
	net.Conn
	f        *Front
	listener string
	limits   httpproxy.Limits
	old      time.Time // from when on an answer ends it; zero: never

	// Owned by the one who reads.
	reading   sync.Mutex
	b         *buffer
	have, pos int // octets of in; first one of out that the server has not got
	preface   int // octets of the client's preface that are to come
	blind     bool
	err       error
	timed     bool // a time is set within which the block must end
	block     block
	dec       *hpack.Decoder
	enc       *hpack.Encoder
	encoded   bytes.Buffer
	seen      uint32 // highest stream of the client
	control   spell
	settings  spell

	mu       sync.Mutex // guards what follows
	streams  map[uint32]*stream
	handlers int
	closed   bool
	quiet    chan struct{} // closed when closed is set and handlers is 0
	resets   recent
	writer

	sent  atomic.Uint32 // highest stream that the server knows
	ended atomic.Bool   // hung up or failed: the reader gives up
}

// stream is one request that the server was told of. The gate writes it until the request has ended, with conn.mu where
// the handler looks.
type stream struct {
	id       uint32
	head     []byte // as HTTP/1.1
	method   string
	whole    bool  // there is no body
	declared int64 // Content-Length; -1: none, the body goes on in chunks
	got      int64
	trailers []byte // as field lines; guarded by conn.mu
}

func newConn(f *Front, nc net.Conn, listener string, g *httpproxy.Generation) *conn {
	c := &conn{
		Conn: nc, f: f, listener: listener, limits: g.Limits, preface: len(http2.ClientPreface),
		streams: map[uint32]*stream{}, quiet: make(chan struct{}),
	}
	if l := g.Listeners[listener]; l != nil {
		c.old = until(l, time.Now())
	}
	c.turn.L = &c.mu
	return c
}

// Read gives the server what the gate lets through.
func (c *conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for {
		if b := c.b; b != nil && c.pos < len(b.out) {
			n := copy(p, b.out[c.pos:])
			c.pos += n
			if c.pos == len(b.out) {
				b.out, c.pos = b.out[:0], 0
			}
			return n, nil
		}
		if c.err == nil && c.ended.Load() {
			c.err = io.EOF
		}
		if c.err != nil {
			c.release()
			return 0, c.err
		}
		c.fill()
	}
}

// fill waits for octets and takes what is whole. While nothing has come the connection has no buffer.
func (c *conn) fill() {
	var n int
	var err error
	if c.have == 0 && !c.block.open {
		c.release()
		var first [frameHead]byte
		if n, err = c.Conn.Read(first[:]); n > 0 {
			c.b = c.f.buffer()
			copy(c.b.in[:], first[:n])
		}
	} else {
		n, err = c.Conn.Read(c.b.in[c.have:])
	}
	c.have += n
	if n > 0 {
		c.take()
	}
	if err != nil && c.err == nil {
		if c.timed && isTimeout(err) {
			c.fail(http2.ErrCodeEnhanceYourCalm)
		}
		c.err = io.EOF
	}
}

// take goes through what has come, frame by frame.
func (c *conn) take() {
	b := c.b
	at := 0
	if c.preface > 0 {
		at = min(c.preface, c.have)
		c.preface -= at
		b.out = append(b.out, b.in[:at]...)
	}
	for c.err == nil && (at < c.have) {
		if c.blind {
			b.out = append(b.out, b.in[at:c.have]...)
			at = c.have
			break
		}
		if c.have-at < frameHead {
			break
		}
		size := int(b.in[at])<<16 | int(b.in[at+1])<<8 | int(b.in[at+2])
		if size > maxFrame {
			c.blind = true // the server refuses it, and the connection with it
			continue
		}
		if c.have-at < frameHead+size {
			break
		}
		c.frame(b.in[at : at+frameHead+size])
		at += frameHead + size
	}
	c.have = copy(b.in[:], b.in[at:c.have])
	c.time()
}

// time bounds how long a header block may take from its first octet (HB-8): an absolute time, or a client that sends one
// octet now and then would live for ever.
func (c *conn) time() {
	open := c.block.open || c.have >= 4 && http2.FrameType(c.b.in[3]) == http2.FrameHeaders
	switch {
	case open && !c.timed:
		c.timed = true
		_ = c.Conn.SetReadDeadline(time.Now().Add(c.limits.HeaderTimeout))
	case !open && c.timed:
		c.timed = false
		_ = c.Conn.SetReadDeadline(time.Time{})
	}
	if c.ended.Load() {
		_ = c.Conn.SetReadDeadline(past)
	}
}

var past = time.Unix(1, 0)

// frame takes one whole frame.
func (c *conn) frame(f []byte) {
	kind, flags := http2.FrameType(f[3]), http2.Flags(f[4])
	id, payload := binary.BigEndian.Uint32(f[5:])&(1<<31-1), f[frameHead:]
	if c.block.open && (kind != http2.FrameContinuation || id != c.block.id) {
		c.fail(http2.ErrCodeProtocol)
		return
	}
	switch kind {
	case http2.FrameHeaders:
		c.headers(f, id, flags, payload)
		return
	case http2.FrameContinuation:
		if c.block.open {
			c.continuation(flags, payload)
			return
		}
	case http2.FrameData:
		if !c.data(id, flags, payload) {
			return
		}
	case http2.FrameRSTStream:
		if c.unknown(id) {
			return
		}
		if len(payload) == 4 {
			c.clientReset(id)
		}
	case http2.FrameSettings:
		if !flags.Has(http2.FlagSettingsAck) {
			c.count(&c.settings, maxSettings)
			f = lastOfEach(f)
		}
	case http2.FrameWindowUpdate:
		if c.unknown(id) {
			return
		}
	case http2.FramePing:
		if !flags.Has(http2.FlagPingAck) {
			c.count(&c.control, maxControl)
		}
	default:
		c.count(&c.control, maxControl)
	}
	c.pass(f)
}

func (c *conn) pass(f []byte) { c.b.out = append(c.b.out, f...) }

// unknown says of a stream that the client has opened that the server was never told of it: it was refused.
func (c *conn) unknown(id uint32) bool { return id > c.sent.Load() && id <= c.seen }

// data accounts a DATA frame against the length that the head has named. It says whether the frame goes on.
func (c *conn) data(id uint32, flags http2.Flags, payload []byte) bool {
	end := flags.Has(http2.FlagDataEndStream)
	if len(payload) == 0 && !end {
		c.count(&c.control, maxControl)
	}
	if c.unknown(id) {
		c.refund(len(payload))
		return false
	}
	s := c.find(id)
	if s == nil {
		return true
	}
	n := len(payload)
	if flags.Has(http2.FlagDataPadded) {
		if n == 0 || int(payload[0]) >= n {
			return true // the server ends the connection over it
		}
		n -= 1 + int(payload[0])
	}
	if s.got += int64(n); s.declared >= 0 && (s.got > s.declared || end && s.got < s.declared) {
		c.refund(len(payload))
		c.kill(id, http2.ErrCodeProtocol)
		return false
	}
	return true
}

// refund gives back what a frame that nobody reads has taken of the connection's window.
func (c *conn) refund(n int) {
	if n > 0 {
		c.inject(http2.FrameWindowUpdate, 0, uint32(n))
	}
}

// refuse resets a stream that the server was not told of (H2-1).
func (c *conn) refuse(id uint32, code http2.ErrCode) {
	c.inject(http2.FrameRSTStream, id, uint32(code))
	c.countReset()
}

// kill resets a stream that the server knows: towards the client with code, towards the server as if by the client.
func (c *conn) kill(id uint32, code http2.ErrCode) {
	c.forget(id)
	c.refuse(id, code)
	c.b.out = appendFrame(c.b.out, http2.FrameRSTStream, id, uint32(http2.ErrCodeCancel))
}

// clientReset counts a stream that the client gives up before its answer has ended.
func (c *conn) clientReset(id uint32) {
	if c.forget(id) {
		c.countReset()
	}
}

func (c *conn) find(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

func (c *conn) forget(id uint32) (known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known = c.streams[id]
	delete(c.streams, id)
	return known
}

// fail ends the connection with GOAWAY.
func (c *conn) fail(code http2.ErrCode) {
	if c.ended.Swap(true) {
		return
	}
	c.goAway(code)
	_ = c.Conn.SetReadDeadline(past)
}

// hangUp ends the connection at once.
func (c *conn) hangUp() {
	c.ended.Store(true)
	_ = c.Conn.SetDeadline(past)
}

// Close is the server's word that it has done with the connection. The socket itself is closed by who has accepted it.
func (c *conn) Close() error {
	c.ended.Store(true)
	return c.Conn.SetReadDeadline(past)
}

func (f *Front) buffer() *buffer {
	select {
	case b := <-f.buffers:
		return b
	default:
		return &buffer{}
	}
}

func (c *conn) release() {
	if b := c.b; b != nil {
		c.b = nil
		b.out = b.out[:0]
		select {
		case c.f.buffers <- b:
		default:
		}
	}
}

// wait waits for the handlers, for who still writes, and for the reader. The server ends without waiting for the frame that
// it has just begun, and our last word may stand behind that.
func (c *conn) wait() {
	c.mu.Lock()
	c.closed = true
	if c.handlers == 0 {
		close(c.quiet)
	}
	c.mu.Unlock()
	<-c.quiet
	c.mu.Lock()
	for c.writing {
		c.turn.Wait()
	}
	c.writing = true
	c.mu.Unlock()
	_ = c.yield()
	c.ended.Store(true)
	_ = c.Conn.SetReadDeadline(past)
	c.reading.Lock()
	c.err = io.EOF
	c.release()
	c.reading.Unlock()
}

// linger closes our half and reads on for a while: a close with octets unread would be a reset, which destroys the
// GOAWAY that says why.
func (c *conn) linger(d time.Duration) {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(d))
	b := c.f.buffer()
	for left := 256 << 10; left > 0; {
		n, err := c.Conn.Read(b.in[:])
		if err != nil {
			break
		}
		left -= n
	}
	c.b = b
	c.release()
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}
