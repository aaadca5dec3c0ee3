package h2

import (
	"encoding/binary"
	"sync"

	"golang.org/x/net/http2"
)

// maxInjected bounds what the gate has to say to a client that takes nothing.
const maxInjected = 16 << 10

// writer is the way to the client, which the server and the gate share: what the gate has to say goes in between two
// frames of the server. Whoever writes has the turn and holds no lock meanwhile.
type writer struct {
	turn     sync.Cond // on conn.mu: writing has become false
	writing  bool
	injected []byte // frames of the gate that are to be written
	last     bool   // behind them nothing more: the connection ends

	// Of the frame that the server writes. Owned by whoever has the turn.
	head [frameHead + 4]byte // with the code of a RST_STREAM
	got  int                 // octets of head
	left int                 // octets of the payload that are to come
}

// Write writes what the server says, and what the gate has said meanwhile.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	for c.writing {
		c.turn.Wait()
	}
	c.writing = true
	c.mu.Unlock()
	err := c.flush()
	n := 0
	if err == nil {
		c.follow(p)
		n, err = c.Conn.Write(p)
	}
	if e := c.yield(); err == nil {
		err = e
	}
	return n, err
}

// yield writes what the gate has said up to now, and gives the turn away.
func (c *conn) yield() error {
	for {
		err := c.flush()
		c.mu.Lock()
		if err != nil || len(c.injected) == 0 || !c.between() {
			c.writing = false
			c.turn.Broadcast()
			c.mu.Unlock()
			return err
		}
		c.mu.Unlock() // it has said more between the last look and this one
	}
}

// between says whether no frame of the server is half written.
func (c *conn) between() bool { return c.got == 0 && c.left == 0 }

// flush writes the gate's frames where they may stand. It is called by who has the turn.
func (c *conn) flush() error {
	for c.between() {
		c.mu.Lock()
		b, last := c.injected, c.last
		c.injected = nil
		c.mu.Unlock()
		if len(b) == 0 {
			return nil
		}
		if _, err := c.Conn.Write(b); err != nil || last {
			return err
		}
	}
	return nil
}

// inject sends a frame of ours: one with a payload of four octets.
func (c *conn) inject(kind http2.FrameType, id, word uint32) {
	var f [frameHead + 4]byte
	c.say(appendFrame(f[:0], kind, id, word), false)
}

// goAway says why the connection ends. Nothing is written behind it but what the server has to say.
func (c *conn) goAway(code http2.ErrCode) {
	f := appendFrame(nil, http2.FrameGoAway, 0, c.sent.Load())
	f[2] += 4
	c.say(binary.BigEndian.AppendUint32(f, uint32(code)), true)
}

func (c *conn) say(f []byte, last bool) {
	c.mu.Lock()
	if c.last {
		c.mu.Unlock()
		return
	}
	c.injected = append(c.injected, f...)
	c.last = last
	full := len(c.injected) > maxInjected
	if c.writing || full {
		c.mu.Unlock()
		if full {
			c.hangUp() // it asks for answers and does not read them
		}
		return
	}
	c.writing = true
	c.mu.Unlock()
	_ = c.yield() // the next read or write of the server meets the same error
}

func appendFrame(dst []byte, kind http2.FrameType, id, word uint32) []byte {
	dst = append(dst, 0, 0, 4, byte(kind), 0)
	dst = binary.BigEndian.AppendUint32(dst, id)
	return binary.BigEndian.AppendUint32(dst, word)
}

// follow looks at the frames that the server writes, to know where one of ours may stand and which streams have ended.
func (c *conn) follow(p []byte) {
	for len(p) > 0 {
		if c.got < frameHead {
			n := copy(c.head[c.got:frameHead], p)
			p = p[n:]
			if c.got += n; c.got < frameHead {
				return
			}
			c.left = int(c.head[0])<<16 | int(c.head[1])<<8 | int(c.head[2])
		}
		n := min(c.left, len(p))
		if http2.FrameType(c.head[3]) == http2.FrameRSTStream && c.got < len(c.head) {
			c.got += copy(c.head[c.got:], p[:n])
		}
		p = p[n:]
		if c.left -= n; c.left == 0 {
			c.wrote()
			c.got = 0
		}
	}
}

// wrote looks at a frame of the server that is whole. A reset that the client has provoked counts like one of its own.
func (c *conn) wrote() {
	id := binary.BigEndian.Uint32(c.head[5:]) & (1<<31 - 1)
	switch http2.FrameType(c.head[3]) {
	case http2.FrameHeaders, http2.FrameData:
		if http2.Flags(c.head[4]).Has(http2.FlagDataEndStream) {
			c.forget(id)
		}
	case http2.FrameRSTStream:
		switch c.forget(id); http2.ErrCode(binary.BigEndian.Uint32(c.head[frameHead:])) {
		case http2.ErrCodeProtocol, http2.ErrCodeStreamClosed, http2.ErrCodeFlowControl, http2.ErrCodeFrameSize, http2.ErrCodeRefusedStream:
			c.countReset()
		}
	}
}
