package h2

import (
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// Stream is one request as a connection of HTTP/1.1 that ends behind it: Read gives head, body and trailers, Write takes
// the response. Deadlines in the past end what waits, as they do on a socket; others have no effect.
type Stream struct {
	c    *conn
	s    *stream
	w    http.ResponseWriter
	body io.ReadCloser
	answer

	mu      sync.Mutex
	changed sync.Cond // on mu
	pending []byte    // to be read next
	data    []byte    // of the body, behind pending
	fault   error     // how the body ended; io.EOF: as it must
	pumped  chan struct{}
	over    bool // all was read
	closed  bool
	late    [2]bool // the time to read, to write has passed
	writing bool
}

const (
	reads  = 0
	writes = 1
)

// handle is the handler of the HTTP/2 server: it answers one request.
func (c *conn) handle(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.ParseUint(r.URL.Path[1:], 10, 32) // it is the path that tell wrote
	s := c.begin(uint32(id))
	if s == nil {
		panic(http.ErrAbortHandler) // the client has reset it: nothing was spent on it
	}
	defer c.end()
	st := &Stream{c: c, s: s, w: w, body: r.Body, pending: s.head}
	st.changed.L = &st.mu
	st.answer.init(st, s.method == "HEAD")
	defer st.finish()
	c.f.cfg.Serve(r.Context(), st, c.listener)
	if !st.answer.whole() {
		panic(http.ErrAbortHandler) // RST_STREAM: what is missing can be seen (H2-3)
	}
}

// begin gives the request of a stream that has not been reset, and counts its handler.
func (c *conn) begin(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil || c.closed {
		return nil
	}
	c.handlers++
	return s
}

func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handlers--; c.closed && c.handlers == 0 {
		close(c.quiet)
	}
}

// leaves says whether the connection is to end behind the answers that are under way.
func (c *conn) leaves() bool {
	return c.f.drain.Load() || !c.old.IsZero() && time.Now().After(c.old)
}

// until is the time at which a connection has reached its age; zero: never.
func until(l *httpproxy.Listener, born time.Time) time.Time {
	if l.MaxAge <= 0 {
		return time.Time{}
	}
	return born.Add(time.Duration(float64(l.MaxAge) * (1 + (2*rand.Float64()-1)*l.AgeJitter)))
}

// TLS is what the handshake of the connection has agreed on; nil: there was none.
func (s *Stream) TLS() *tls.ConnectionState {
	if t, ok := s.c.Conn.(*tls.Conn); ok {
		cs := t.ConnectionState()
		return &cs
	}
	return nil
}

// HTTP2 tells the forwarder what the client speaks.
func (s *Stream) HTTP2() bool { return true }

// LocalAddr and RemoteAddr are those of the connection.
func (s *Stream) LocalAddr() net.Addr { return s.c.Conn.LocalAddr() }

// RemoteAddr is the peer of the connection.
func (s *Stream) RemoteAddr() net.Addr { return s.c.Conn.RemoteAddr() }

// Close does nothing: the handler ends the stream.
func (s *Stream) Close() error { return nil }

// Read gives the request as HTTP/1.1.
func (s *Stream) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.late[reads]:
			return 0, os.ErrDeadlineExceeded
		case len(s.pending) > 0:
			n := copy(b, s.pending)
			s.pending = s.pending[n:]
			return n, nil
		case s.over || s.s.whole || s.closed:
			return 0, io.EOF
		case len(s.data) > 0:
			return s.piece(b), nil
		case s.fault != nil:
			if err := s.ends(); err != nil {
				return 0, err
			}
			continue
		case s.pumped == nil:
			s.pumped = make(chan struct{})
			go s.pump()
		}
		s.changed.Wait()
	}
}

// piece gives as much of the body as fits, as a chunk where its length is not known.
func (s *Stream) piece(b []byte) int {
	const frame = len("3fff\r\n\r\n") // of a chunk of less than 16 KiB
	n := 0
	if s.s.declared >= 0 {
		n = copy(b, s.data)
		s.data = s.data[n:]
	} else {
		size := min(len(s.data), max(len(b)-frame, 1), 1<<14-1)
		out := b[:0]
		if len(b) <= frame {
			out = nil // it does not fit: the rest is pending
		}
		out = append(strconv.AppendUint(out, uint64(size), 16), "\r\n"...)
		out = append(append(out, s.data[:size]...), "\r\n"...)
		s.data = s.data[size:]
		if n = len(out); len(b) <= frame {
			n = copy(b, out)
			s.pending = out[n:]
		}
	}
	if len(s.data) == 0 {
		s.changed.Broadcast()
	}
	return n
}

// ends closes the body: with the last chunk and the trailers where it has ended as it must.
func (s *Stream) ends() error {
	if !errors.Is(s.fault, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	s.over = true
	if s.s.declared >= 0 {
		return nil
	}
	s.c.mu.Lock()
	trailers := s.s.trailers
	s.c.mu.Unlock()
	s.pending = append(append([]byte("0\r\n"), trailers...), "\r\n"...)
	return nil
}

// pump reads the body, one piece ahead: a wait for the body can be ended, the library's Read can't.
func (s *Stream) pump() {
	defer close(s.pumped)
	b := make([]byte, 16<<10)
	for {
		n, err := s.body.Read(b)
		s.mu.Lock()
		s.data, s.fault = b[:n], err
		s.changed.Broadcast()
		for len(s.data) > 0 && !s.closed {
			s.changed.Wait()
		}
		stop := s.closed || err != nil
		s.mu.Unlock()
		if stop {
			return
		}
	}
}

// Write takes the response, and sends what there is of it. Nothing is kept back (H2-3).
func (s *Stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	if s.late[writes] {
		s.mu.Unlock()
		return 0, os.ErrDeadlineExceeded
	}
	s.writing = true
	s.mu.Unlock()
	err := s.answer.take(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	switch {
	case err == nil:
		return len(b), nil
	case s.late[writes]:
		return 0, os.ErrDeadlineExceeded
	}
	return 0, err
}

// SetDeadline ends what waits, when t is in the past, or takes that back.
func (s *Stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline is SetDeadline for Read.
func (s *Stream) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late[reads] = isPast(t); s.late[reads] {
		s.changed.Broadcast()
	}
	return nil
}

// SetWriteDeadline is SetDeadline for Write. A write that waits for the client is ended by a reset of the stream: the
// library has no other way.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late[writes] = isPast(t); s.late[writes] && s.writing && !s.closed {
		return http.NewResponseController(s.w).SetWriteDeadline(t)
	}
	return nil
}

func isPast(t time.Time) bool { return !t.IsZero() && !t.After(time.Now()) }

// finish leaves nobody behind who uses what belongs to the handler.
func (s *Stream) finish() {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	pumped := s.pumped
	s.mu.Unlock()
	if pumped != nil {
		_ = s.body.Close()
		<-pumped
	}
}

// limitsOfAnswers bound a head that the forwarder writes: what it has taken from a server, and its own fields.
var limitsOfAnswers = http1.Limits{Block: 64 << 10, Fields: http1.MaxFields}
