package demo

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"

	"github.com/emiago/sipgo/sip"
)

// sipgo opens a socket of its own when the one that an answer belongs on has gone, on all addresses of the host, and
// keeps it. A server of the demo that is stopped must not do that: it would leave something behind, and a message out of
// another socket is not known as a server's. So the closed UDP socket is kept in its place (incarnation.seal), and
// dialling is refused.

// recording is a listener that knows its open connections and closes them with itself, hijacked ones too.
type recording struct {
	net.Listener

	mu     sync.Mutex // guards what follows; leaf
	conns  map[*recorded]struct{}
	closed bool
}

// recorded is a connection that its listener knows while it is open.
type recorded struct {
	net.Conn
	by *recording
}

func record(l net.Listener) *recording {
	return &recording{Listener: l, conns: map[*recorded]struct{}{}}
}

// Accept takes a connection and notes it.
func (r *recording) Accept() (net.Conn, error) {
	c, err := r.Listener.Accept()
	if err != nil {
		return nil, err
	}
	known := &recorded{c, r}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	r.conns[known] = struct{}{}
	return known, nil
}

// Close closes the connection; its listener forgets it.
func (c *recorded) Close() error {
	c.by.mu.Lock()
	delete(c.by.conns, c)
	c.by.mu.Unlock()
	return c.Conn.Close()
}

// Close closes the listener and all its connections.
func (r *recording) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for c := range r.conns {
		c.Conn.Close()
	}
	clear(r.conns)
	return r.Listener.Close()
}

var errDial = errors.New("a server answers on the connection that the edge opened, and calls on it")

// refuse makes a dialler that dials nothing.
func refuse(net.Addr) net.Dialer {
	return net.Dialer{Control: func(string, string, syscall.RawConn) error { return errDial }}
}

// quiet takes the voice of sipgo's own default logger, once for the process: connections that end with a stopped server
// are no news, and standard error is not the demo's.
var quiet = sync.OnceFunc(func() { sip.SetDefaultLogger(slog.New(slog.DiscardHandler)) })
