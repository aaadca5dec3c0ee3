package h2

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// The fixed bounds of a connection (sip-http.md section 17).
const (
	maxStreams   = 100
	maxWindow    = 1 << 20 // octets of request bodies that a connection may have on the way
	streamWindow = 256 << 10
	maxFrame     = 16 << 10
	writeStalls  = 30 * time.Second // a client that takes nothing for so long has left
)

// Config is what a Front is made with.
type Config struct {
	// Serve answers the one request that c carries, a *Stream, as HTTP/1.1; it returns when the answer is out or can't be
	// made. ctx ends with the stream.
	Serve func(ctx context.Context, c net.Conn, listener string)
	Log   *slog.Logger // nil: nothing is logged
}

// Front serves HTTP/2 connections of all listeners. It outlives generations.
type Front struct {
	cfg     Config
	log     *slog.Logger
	gen     atomic.Pointer[httpproxy.Generation]
	engine  atomic.Pointer[engine]
	drain   atomic.Bool
	open    atomic.Int64
	buffers chan *buffer
	panics  atomic.Uint64
}

// engine is the HTTP/2 server under settings that can change with a reload; connections keep what they began with.
type engine struct {
	settings
	base *http.Server
	h2   *http2.Server
}

type settings struct {
	idle      time.Duration
	maxHeader int
}

// New makes a Front. It serves nothing before Swap has given it a generation.
func New(c Config) *Front {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Front{cfg: c, log: c.Log, buffers: make(chan *buffer, keptBuffers)}
}

// Swap makes g the generation whose limits new connections and requests have.
func (f *Front) Swap(g *httpproxy.Generation) {
	f.gen.Store(g)
	want := settings{g.Limits.IdleTimeout, g.Limits.MaxHeader}
	if e := f.engine.Load(); e == nil || e.settings != want {
		f.engine.Store(newEngine(want))
	}
}

func newEngine(s settings) *engine {
	const overhead = 320 // what the server adds to MaxHeaderBytes before it announces the sum
	e := &engine{
		settings: s,
		base: &http.Server{
			IdleTimeout: s.idle, MaxHeaderBytes: s.maxHeader - overhead,
			ErrorLog: log.New(io.Discard, "", 0), // what clients do wrong is counted, and no line of a log each time
		},
		h2: &http2.Server{
			MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame, WriteByteTimeout: writeStalls,
			MaxUploadBufferPerConnection: maxWindow, MaxUploadBufferPerStream: streamWindow, IdleTimeout: s.idle,
		},
	}
	_ = http2.ConfigureServer(e.base, e.h2) // it fails for TLS settings alone, and there are none
	return e
}

// retire tells every connection of e by GOAWAY that it takes no more requests; those under way are answered.
func (e *engine) retire() {
	at, cancel := context.WithCancel(context.Background())
	cancel() // it is not waited for: Serve does that
	_ = e.base.Shutdown(at)
}

// Drain says whether the node is being drained: all connections get GOAWAY, and each ends behind its last answer.
func (f *Front) Drain(on bool) {
	if f.drain.Swap(on) == on {
		return
	}
	e := f.engine.Load()
	if e == nil {
		return
	}
	if on {
		e.retire()
	} else {
		f.engine.Store(newEngine(e.settings))
	}
}

// Open is how many connections there are.
func (f *Front) Open() int { return int(f.open.Load()) }

// Serve serves one connection, on which TLS has agreed on h2, until it ends. RemoteAddr and LocalAddr of nc are the
// addresses that count. When ctx ends the connection is closed at once.
func (f *Front) Serve(ctx context.Context, nc net.Conn, listener string) {
	e, g := f.engine.Load(), f.gen.Load()
	if e == nil || g == nil {
		return
	}
	f.open.Add(1)
	defer f.open.Add(-1)
	c := newConn(f, nc, listener, g)
	stop := context.AfterFunc(ctx, c.hangUp)
	e.h2.ServeConn(c, &http2.ServeConnOpts{Context: ctx, BaseConfig: e.base, Handler: http.HandlerFunc(c.handle)})
	c.wait()
	if stop() {
		c.linger(g.Limits.Linger)
	}
}
