package h2

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// server is a server of HTTP/1.1 that the test answers by hand. It keeps the first octets that it has received.
type server struct {
	addr string
	mu   sync.Mutex
	got  strings.Builder
	open int
}

type serverConn struct {
	net.Conn
	s *server
	r *bufio.Reader
}

func (c *serverConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.s.mu.Lock()
	if c.s.got.Len() < 1<<20 { // the bodies of some tests are large
		c.s.got.Write(b[:n])
	}
	c.s.mu.Unlock()
	return n, err
}

func newServer(t testing.TB, handle func(c *serverConn)) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{addr: ln.Addr().String()}
	var running sync.WaitGroup
	var open sync.Map
	running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			open.Store(c, true)
			s.mu.Lock()
			s.open++
			s.mu.Unlock()
			running.Go(func() {
				defer c.Close()
				sc := &serverConn{Conn: c, s: s}
				sc.r = bufio.NewReader(sc)
				handle(sc)
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		open.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		running.Wait()
	})
	return s
}

func (s *server) received() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

func (s *server) requests() int { return strings.Count(s.received(), " HTTP/1.1\r\n") }

// request reads one request with its body.
func (c *serverConn) request() (*http.Request, string, error) {
	req, err := http.ReadRequest(c.r)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(req.Body)
	return req, string(body), err
}

// answers answers every request with one text.
func answers(text string) func(*serverConn) {
	return func(c *serverConn) {
		for {
			if _, _, err := c.request(); err != nil {
				return
			}
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// head reads one head as it is.
func (c *serverConn) head() (string, error) {
	var head strings.Builder
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		b, err := c.r.ReadByte()
		if err != nil {
			return head.String(), err
		}
		head.WriteByte(b)
	}
	return head.String(), nil
}

// rawAnswers answers every head, whatever a library would make of it.
func rawAnswers(text string) func(*serverConn) {
	return func(c *serverConn) {
		for {
			if _, err := c.head(); err != nil {
				return
			}
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}
