package h1

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// Config is what a Front is made with. Everything that a reload can change is in the Generation.
type Config struct {
	Ring       *obs.Ring    // finished requests for the access log; nil: no log
	Log        *slog.Logger // nil: nothing is logged
	PerServer  int          // connections per server address: 512
	ServerWait time.Duration
	TLS        Dialer // how a server with transport "tls" is reached; nil: not at all
}

// Dialer makes a TLS connection of a plain one to a server that is known by peer.
type Dialer func(ctx context.Context, c net.Conn, peer string) (net.Conn, error)

// Front serves HTTP/1.1 connections of all listeners. It outlives generations, and with it connections, tunnels and the
// pools of connections to servers.
type Front struct {
	cfg  Config
	log  *slog.Logger
	base time.Time

	gen   atomic.Pointer[httpproxy.Generation]
	drain atomic.Bool

	exchanges freeList[exchange]
	pieces    freeList[piece]
	pipes     pipes
	servers   servers
	conns     registry
	numbers   atomic.Uint32 // of connections, to spread them over shards

	panics atomic.Uint64

	loops   loops
	homes   int                // how many loops there can be
	light   freeList[exchange] // with memory for a small head only
	backing freeList[backing]
	ended   atomic.Bool // Run has
}

// New makes a Front. It serves nothing before Swap has given it a generation, and watches no time before Run.
func New(c Config) *Front {
	if c.PerServer == 0 {
		c.PerServer = 512
	}
	if c.ServerWait == 0 {
		c.ServerWait = time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	f := &Front{cfg: c, log: c.Log, base: time.Now()}
	f.servers.front = f
	f.exchanges.init()
	f.pieces.init()
	f.pipes.init()
	f.homes = loopsWanted()
	f.light.init()
	f.backing.init()
	return f
}

// Swap makes g the generation that requests are decided on from now on. Requests and tunnels in flight are not touched.
func (f *Front) Swap(g *httpproxy.Generation) { f.gen.Store(g) }

// Drain says whether the node is being drained: responses close their connections, idle ones are closed, and new
// requests on them are still answered (sip-http.md 11.3).
func (f *Front) Drain(on bool) { f.drain.Store(on) }

// Open is how many client connections there are, tunnels among them.
func (f *Front) Open() int { return f.conns.open() }

// Panics is how many faults of ours became a 500 or an abort.
func (f *Front) Panics() uint64 { return f.panics.Load() }

// now is the time since the Front was made: one reading of the monotonic clock.
func (f *Front) now() int64 { return int64(time.Since(f.base)) }

func (f *Front) wall(t int64) time.Time { return f.base.Add(time.Duration(t)) }

// stream is a connection that carries one request of HTTP/2 in the words of HTTP/1.1 (package h2).
type stream interface {
	HTTP2() bool
	TLS() *tls.ConnectionState // of the connection that the stream is on; nil: none
}

// Serve serves one connection until it ends, and closes it. RemoteAddr and LocalAddr of c are the addresses that count:
// what a PROXY header carried, where there was one. When ctx ends the connection is closed at once.
func (f *Front) Serve(ctx context.Context, nc net.Conn, listener string) {
	c := &conn{f: f, listener: listener, number: f.numbers.Add(1), born: f.now(), spread: 2*rand.Float64() - 1}
	c.client.init(nc)
	if err := f.adopt(c); err != nil {
		f.log.Warn("http connection not served", slog.String("listener", listener), slog.Any("err", err))
		return
	}
	c.remote, c.local = addrPort(nc.RemoteAddr()), addrPort(nc.LocalAddr())
	if t, ok := nc.(*tls.Conn); ok {
		c.shaken(t.ConnectionState())
	} else if s, ok := nc.(stream); ok {
		c.http2 = s.HTTP2()
		if t := s.TLS(); t != nil {
			c.shaken(*t)
		}
	}
	if c.client.raw != nil {
		c.readStep = c.readOnce
	}
	defer func() { _ = c.client.Conn.Close() }()
	f.serve(ctx, c)
	if h := c.handed; h != nil && ctx.Err() == nil {
		c.client.calm()
		if c.client.ordinary() {
			h.serve(ctx, c.client.Conn, h.source, h.early)
		}
	}
}

// shaken notes what the handshake with the client has shown.
func (c *conn) shaken(s tls.ConnectionState) {
	c.sni = s.ServerName
	if len(s.VerifiedChains) > 0 {
		c.cert = append(base64.StdEncoding.AppendEncode([]byte{':'}, s.PeerCertificates[0].Raw), ':')
	}
}

// serve has the connection as long as it speaks HTTP, or is a tunnel.
func (f *Front) serve(ctx context.Context, c *conn) {
	f.conns.add(c)
	defer f.conns.remove(c)
	if f.ended.Load() {
		c.fire(woken)
	}
	stop := context.AfterFunc(ctx, func() {
		c.cancelled.Store(true)
		c.fire(woken)
	})
	defer stop()
	defer c.dropOwn()
	defer c.recover()
	c.serve()
	if t := c.upgraded; t != nil {
		t.run()
	}
}

// recover turns a fault of ours into a 500, or into an abort when the response has begun. The process goes on.
func (c *conn) recover() {
	p := recover()
	if p == nil {
		return
	}
	c.f.panics.Add(1)
	c.f.log.Error("http connection failed", slog.String("listener", c.listener), slog.Any("err", p), slog.String("stack", string(debug.Stack())))
	c.afterPanic()
}

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// registry is the set of client connections: added and removed once each, walked by Run. Sharded, so that neither waits
// long for the other.
type registry struct {
	shards [16]shard
}

type shard struct {
	mu   sync.Mutex
	list []*conn // guarded by mu
}

func (r *registry) add(c *conn) {
	s := &r.shards[c.number%uint32(len(r.shards))]
	s.mu.Lock()
	c.place = len(s.list)
	s.list = append(s.list, c)
	s.mu.Unlock()
}

func (r *registry) remove(c *conn) {
	s := &r.shards[c.number%uint32(len(r.shards))]
	s.mu.Lock()
	last := len(s.list) - 1
	s.list[c.place] = s.list[last]
	s.list[c.place].place = c.place
	s.list[last] = nil
	s.list = s.list[:last]
	s.mu.Unlock()
}

func (r *registry) open() int {
	n := 0
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		n += len(s.list)
		s.mu.Unlock()
	}
	return n
}

// each calls f for every connection; f must not wait.
func (r *registry) each(f func(*conn)) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for _, c := range s.list {
			f(c)
		}
		s.mu.Unlock()
	}
}
