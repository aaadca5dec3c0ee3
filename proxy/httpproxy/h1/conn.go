package h1

import (
	"net/netip"
	"sync/atomic"
	"syscall"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// conn is one client connection. While it is idle it has no buffer: exchange is nil.
type conn struct {
	// Set by Serve, never written again.
	f             *Front
	client        sock
	remote, local netip.AddrPort
	listener      string
	sni           string // name that the client asked for in its handshake; empty: none
	cert          []byte // what it has shown there, as httpproxy.View has it
	http2         bool   // it is one stream of a connection of HTTP/2
	number        uint32
	readStep      func(fd uintptr) bool

	// Owned by the goroutine in Serve.
	x        *exchange
	gen      *httpproxy.Generation // of l
	l        *httpproxy.Listener
	n        int
	err      error
	broken   bool    // the connection ends with a reset
	closing  bool    // it ends behind this response
	born     int64   // as time of the Front
	spread   float64 // from -1 to 1: how this connection's age differs from others'
	old      int64   // from when on an answer ends it; 0: never
	heading  bool    // the head in x was begun
	fast     fast    // what the loop knows of the request
	upgraded *tunnel // what it becomes when the exchange is given back
	handed   *handover
	own      []*server // connections to servers that were told who the client is

	// How it goes between its goroutine and the loop: whoever gives it away touches it no more.
	turn   chan stage  // what the goroutine is to go on with
	lent   atomic.Bool // the loop has it
	queued atomic.Bool // it is among those the loop will look at
	behind *conn       // there

	place int // in its shard, guarded by the shard's lock

	// Shared with the goroutine of Run.
	deadline  atomic.Int64 // when to give up, as time of the Front; or one of the words of watch.go
	watch     atomic.Int64 // from when on to look whether the client is there; 0: not
	idle      atomic.Bool
	cancelled atomic.Bool
	server    atomic.Pointer[server] // the connection to the server that is waited on
	tunnel    atomic.Pointer[tunnel]
}

// serve serves request after request, in order, until one side ends it.
func (c *conn) serve() {
	c.client.owner = c
	if c.client.desc != nil {
		c.takeTurns()
		return
	}
	for {
		if !c.listens() {
			return
		}
		if !c.receive() {
			break
		}
		if !c.request() {
			break
		}
		if !c.next() {
			break
		}
	}
	c.end()
}

// listens looks up what the listener is in the current generation. A connection of a listener that is gone keeps what
// it had.
func (c *conn) listens() bool {
	g := c.f.gen.Load()
	if g == c.gen {
		return g != nil
	}
	if g == nil {
		return false
	}
	if l := g.Listeners[c.listener]; l != nil {
		c.gen, c.l = g, l
		c.old = 0
		if l.MaxAge > 0 {
			c.old = c.born + int64(float64(l.MaxAge)*(1+c.spread*l.AgeJitter))
		}
	}
	return c.gen != nil
}

// stays says whether the connection may go on behind the answer to a request: not while the node drains, and not once it
// has reached its age when the request began.
func (c *conn) stays() bool {
	return !c.f.drain.Load() && (c.old == 0 || c.x.start < c.old)
}

// receive reads a head into the exchange, which it takes when octets come. It gives false when the connection is to
// end; what is owed the client has been sent then. HB-8: the time of the head counts from its first octet.
func (c *conn) receive() bool {
	if c.x == nil && !c.wait() {
		return false
	}
	x := c.x
	timed := c.heading // the loop has read some of it
	if c.heading = false; !timed {
		x.begin(c)
	}
	for {
		n, err := x.req.ParseRequest(x.in[:x.fill], &x.headLimits)
		if err != nil {
			c.refuse(err)
			return false
		}
		if n > 0 {
			x.head, x.pos = n, n
			return true
		}
		if x.fill == len(x.in) {
			c.refuse(http1.ErrHeadLong)
			return false
		}
		if !timed {
			timed = true
			c.arm(x.start, c.gen.Limits.HeaderTimeout)
		}
		got, err := c.client.Read(x.in[x.fill:])
		x.fill += got
		if err != nil {
			c.headLost(err)
			return false
		}
	}
}

// headLost ends a connection that broke off within a head. Who was too slow is told so.
func (c *conn) headLost(err error) {
	if isDeadline(err) && c.deadline.Load() == late {
		c.refuse(httpproxy.ErrClientSlow)
	}
}

// wait waits without a buffer for the first octets of a request.
func (c *conn) wait() bool {
	c.arm(c.f.now(), c.gen.Limits.IdleTimeout)
	c.idle.Store(true)
	defer c.idle.Store(false)
	if c.client.raw == nil {
		return c.waitPlain()
	}
	c.n = 0
	if c.client.step(c.readStep, c.client.waitRead) != nil {
		return false
	}
	if c.n == 0 {
		c.release()
		return false
	}
	c.x.fill = c.n
	return true
}

func (c *conn) readOnce(fd uintptr) bool {
	if c.x == nil {
		c.x = c.f.exchange(c)
	}
	n, err := rawRead(fd, c.x.in)
	if err == syscall.EAGAIN {
		c.release()
		return false
	}
	if err == 0 {
		c.n = n
	}
	return true
}

// waitPlain does the same on a connection without a socket of ours (TLS, a pipe): one octet tells that there is more.
func (c *conn) waitPlain() bool {
	var first [1]byte
	n, err := c.client.Read(first[:])
	if n == 0 || err != nil {
		return false
	}
	c.x = c.f.exchange(c)
	c.x.in[0] = first[0]
	c.x.fill = 1
	return true
}

// release gives the exchange back.
func (c *conn) release() {
	if x := c.x; x != nil {
		c.x = nil
		c.f.giveBack(x)
	}
}

// next makes ready for the request that follows: what came of it already moves to the front of the buffer.
func (c *conn) next() bool {
	if c.closing {
		return false
	}
	x := c.x
	if x.pos == x.fill {
		c.release()
		return true
	}
	x.fill = copy(x.in, x.in[x.pos:x.fill])
	return true
}

// end closes the connection: with a reset where the client must see that something is missing (HF-7), else so that it
// can read what was sent (HB-2).
func (c *conn) end() {
	if c.upgraded != nil || c.handed != nil {
		c.release()
		return
	}
	if c.broken {
		c.client.reset()
		c.release()
		return
	}
	x := c.x
	if x != nil && (x.unread || x.pos < x.fill) {
		c.linger()
	}
	c.release()
}

// linger closes our half and reads on for a while, so that the close does not become a reset that destroys the answer.
func (c *conn) linger() {
	half, ok := c.client.Conn.(interface{ CloseWrite() error })
	if !ok && c.client.tcp != nil {
		half, ok = c.client.tcp, true
	}
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.arm(c.f.now(), c.gen.Limits.Linger)
	for left := lingerOctets; left > 0; {
		n, err := c.client.Read(c.x.resp[:cap(c.x.resp)])
		if err != nil {
			return
		}
		left -= n
	}
}

const lingerOctets = 256 << 10
