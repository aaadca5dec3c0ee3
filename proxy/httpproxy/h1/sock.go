package h1

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// sock is a connection, with the raw way to its descriptor where it is a TCP socket. The arguments of a raw step are
// fields and its functions are made once, so that a step allocates nothing.
type sock struct {
	net.Conn
	tcp   *net.TCPConn    // the socket itself; nil when there is none, or TLS is on it
	raw   syscall.RawConn // of tcp
	below syscall.RawConn // of the socket that TLS is on: only looked at

	owner *conn // whose time counts while this socket waits

	buf, out []byte
	n        int
	err      error
	looked   bool // of a round trip: the connection was silent

	writeStep, tripStep func(fd uintptr) bool
	waitRead, waitWrite func(func(fd uintptr) bool) error
}

// init wraps c. Wrappers that only carry other addresses (listen.Conn) are looked through, TLS is not.
func (s *sock) init(c net.Conn) {
	s.Conn = c
	if s.tcp = tcpOf(c); s.tcp == nil || !haveRaw {
		s.lookBelow(c)
		return
	}
	raw, err := s.tcp.SyscallConn()
	if err != nil {
		s.tcp = nil
		return
	}
	s.raw = raw
	s.writeStep, s.tripStep = s.writeOnce, s.tripOnce
	s.waitRead, s.waitWrite = raw.Read, raw.Write
}

// lookBelow finds the socket under TLS, where a peer that has left shows.
func (s *sock) lookBelow(c net.Conn) {
	t, ok := c.(*tls.Conn)
	if !ok || !haveRaw {
		return
	}
	if tcp := tcpOf(t.NetConn()); tcp != nil {
		s.below, _ = tcp.SyscallConn() // nil with an error: nothing is looked at
	}
}

func tcpOf(c net.Conn) *net.TCPConn {
	for {
		switch t := c.(type) {
		case *net.TCPConn:
			return t
		case interface{ Handshake() error }:
			return nil
		case interface{ NetConn() net.Conn }:
			c = t.NetConn()
		default:
			return nil
		}
	}
}

// Read reads what there is. A wake-up that was not meant for this wait is taken back and the wait goes on.
func (s *sock) Read(b []byte) (int, error) {
	for {
		n, err := s.Conn.Read(b)
		if n > 0 || err == nil || !s.owner.spurious(s, err) {
			return n, err
		}
	}
}

// step runs a raw step, over wake-ups that were not meant for it.
func (s *sock) step(f func(fd uintptr) bool, wait func(func(fd uintptr) bool) error) error {
	for {
		if err := wait(f); err == nil || !s.owner.spurious(s, err) {
			return err
		}
	}
}

// Write writes all of b.
func (s *sock) Write(b []byte) (int, error) {
	if s.raw == nil {
		return s.writePlain(b)
	}
	s.out, s.err = b, nil
	if err := s.step(s.writeStep, s.waitWrite); err != nil {
		s.err = err
	}
	n := len(b) - len(s.out)
	s.out = nil
	return n, s.err
}

func (s *sock) writePlain(b []byte) (int, error) {
	done := 0
	for {
		n, err := s.Conn.Write(b[done:])
		done += n
		if err == nil || !s.owner.spurious(s, err) {
			return done, err
		}
	}
}

func (s *sock) writeOnce(fd uintptr) bool {
	for len(s.out) > 0 {
		n, err := rawWrite(fd, s.out)
		if err == syscall.EAGAIN {
			return false
		}
		if err != 0 {
			s.err = os.NewSyscallError("write", err)
			return true
		}
		s.out = s.out[n:]
	}
	return true
}

// roundTrip writes a request and reads the first octets of its response. On a raw socket it first looks whether a used
// connection is still silent and open: what came before the request is no answer to it (HF-7, HB-3). The wait for the
// answer is armed before the request goes out, so no read is spent on an empty socket. sent is false when nothing of
// out can have reached the server.
func (s *sock) roundTrip(out, in []byte, used bool) (n int, sent bool, err error) {
	if s.raw == nil {
		if n, err = s.writePlain(out); err != nil {
			return 0, n > 0, err
		}
		n, err = s.Read(in)
		return n, true, err
	}
	s.buf, s.out, s.n, s.err, s.looked = in, out, 0, nil, !used
	if err := s.step(s.tripStep, s.waitRead); err != nil {
		s.err = err
	}
	rest := s.out
	s.buf, s.out = nil, nil
	switch {
	case s.err != nil:
		return 0, len(rest) < len(out), s.err
	case len(rest) > 0: // the socket's buffer is full: the slow way
		if _, err := s.Write(rest); err != nil {
			return 0, true, err
		}
		n, err := s.Read(in)
		return n, true, err
	case s.n == 0:
		return 0, true, io.EOF
	}
	return s.n, true, nil
}

// errStale says that a pooled connection was closed, or had something to say that nobody asked for.
var errStale = errors.New("h1: pooled connection is stale")

func (s *sock) tripOnce(fd uintptr) bool {
	if len(s.out) > 0 {
		if !s.looked {
			if s.err = rawQuiet(fd); s.err != nil {
				return true
			}
			s.looked = true
		}
		n, err := rawWrite(fd, s.out)
		if err != 0 && err != syscall.EAGAIN {
			s.err = os.NewSyscallError("write", err)
			return true
		}
		if err == 0 {
			s.out = s.out[n:]
		}
		return len(s.out) > 0
	}
	n, err := rawRead(fd, s.buf)
	if err == syscall.EAGAIN {
		return false
	}
	if err != 0 {
		s.err = os.NewSyscallError("read", err)
		return true
	}
	s.n = n
	return true
}

// long ago: a deadline that wakes whoever waits.
var past = time.Unix(1, 0)

// wake ends a wait on the socket, in either direction. The one who waits finds out why, and clears the deadline.
func (s *sock) wake() { _ = s.SetDeadline(past) }

func (s *sock) calm() { _ = s.SetDeadline(time.Time{}) }

func isDeadline(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
