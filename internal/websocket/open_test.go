package websocket_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/websocket"
)

// server is the other end of a handshake: it answers the request with a text in which KEY stands for the right accept value.
type server struct {
	answer  string
	request bytes.Buffer
	out     *strings.Reader
	one     bool // octet by octet
}

func (s *server) Write(b []byte) (int, error) {
	s.request.Write(b)
	if s.out == nil && bytes.HasSuffix(s.request.Bytes(), []byte("\r\n\r\n")) {
		_, rest, _ := strings.Cut(s.request.String(), "Sec-WebSocket-Key: ")
		key, _, _ := strings.Cut(rest, "\r\n")
		s.out = strings.NewReader(strings.ReplaceAll(s.answer, "KEY", string(websocket.AppendAccept(nil, []byte(key)))))
	}
	return len(b), nil
}

func (s *server) Read(b []byte) (int, error) {
	if s.one && len(b) > 1 {
		b = b[:1]
	}
	return s.out.Read(b)
}

const opened = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: KEY\r\n" +
	"Sec-WebSocket-Protocol: sip\r\n\r\n"

// RFC 6455 section 4.1: the request is one that our own listener accepts, with a new key each time, and what comes behind the
// answer is kept.
func TestOpen(t *testing.T) {
	o := websocket.Opening{Host: "as1.example.net:8080", Path: "/sip", Protocol: "sip"}
	var requests []string
	for _, one := range []bool{false, true} {
		s := &server{answer: opened + "\x81\x02", one: one}
		early, err := websocket.Open(s, &o)
		if err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(s.out)
		if string(early)+string(rest) != "\x81\x02" {
			t.Errorf("early %q, then %q", early, rest)
		}
		requests = append(requests, s.request.String())
	}
	if requests[0] == requests[1] {
		t.Error("the same key twice")
	}
	var h http1.Head
	if _, err := h.ParseRequest([]byte(requests[0]), &http1.Limits{Target: 100, Block: 1000, Fields: 20}); err != nil {
		t.Fatal(err)
	}
	rules := websocket.Rules{Path: "/sip", Protocol: "sip"}
	if answer, status := rules.Accept(nil, &h); status != 101 {
		t.Errorf("%d: %s", status, answer)
	}
}

// What does not open exactly what was asked for opens nothing.
func TestOpenRefuses(t *testing.T) {
	for what, answer := range map[string]string{
		"status":        "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
		"ok":            strings.Replace(opened, "101 Switching Protocols", "200 OK", 1),
		"no upgrade":    strings.Replace(opened, "Upgrade: WebSocket\r\n", "", 1),
		"another":       strings.Replace(opened, "WebSocket\r\n", "h2c\r\n", 1),
		"no connection": strings.Replace(opened, "keep-alive, Upgrade", "keep-alive", 1),
		"wrong key":     strings.Replace(opened, "KEY", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", 1),
		"no key":        strings.Replace(opened, "Sec-WebSocket-Accept: KEY\r\n", "", 1),
		"two keys":      strings.Replace(opened, "Sec-WebSocket-Accept: KEY\r\n", "Sec-WebSocket-Accept: KEY\r\nSec-WebSocket-Accept: KEY\r\n", 1),
		"no protocol":   strings.Replace(opened, "Sec-WebSocket-Protocol: sip\r\n", "", 1),
		"other":         strings.Replace(opened, "Protocol: sip", "Protocol: xmpp", 1),
		"extension":     strings.Replace(opened, "Upgrade: W", "Sec-WebSocket-Extensions: permessage-deflate\r\nUpgrade: W", 1),
		"no http":       "SIP/2.0 200 OK\r\n\r\n",
		"endless":       "HTTP/1.1 101 X\r\nX: " + strings.Repeat("x", 20<<10),
	} {
		if _, err := websocket.Open(&server{answer: answer}, &websocket.Opening{Host: "a", Path: "/", Protocol: "sip"}); !errors.Is(err, websocket.ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := websocket.Open(&server{answer: opened[:50]}, &websocket.Opening{Host: "a", Path: "/", Protocol: "sip"}); !errors.Is(err, io.EOF) {
		t.Errorf("cut off: %v", err)
	}
}

// pipe is a connection of a test: what is read, and what was written.
type pipe struct {
	in  io.Reader
	out bytes.Buffer
}

func (p *pipe) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p *pipe) Write(b []byte) (int, error) { return p.out.Write(b) }

// A Stream reads what messages hold, whatever frames carry it, answers pings, and ends with a close.
func TestStream(t *testing.T) {
	in := join(raw(0x01, nil, "SIP"), raw(0x89, nil, "there?"), raw(0x80, nil, "/2.0"), raw(0x82, nil, " 200"), raw(0x8a, nil, ""), raw(0x88, nil, "\x03\xe8"))
	for cut := range in {
		p := &pipe{in: bytes.NewReader(in[cut:])}
		s := websocket.NewStream(p, in[:cut], 1000)
		if b, err := io.ReadAll(s); err != nil || string(b) != "SIP/2.0 200" {
			t.Fatalf("cut at %d: %q, %v", cut, b, err)
		}
		if _, err := s.Write([]byte("OPTIONS")); err != nil {
			t.Fatal(err)
		}
		var r websocket.Reader
		r.Max = 100
		if got := play(&r, p.out.Bytes()); len(got) != 2 || got[0] != "control 10:there?" || got[1] != "1:OPTIONS" {
			t.Fatalf("cut at %d: wrote %q", cut, got)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(opened)
	f.Add(strings.Replace(opened, "KEY", "x", 1))
	f.Fuzz(func(t *testing.T, answer string) {
		early, err := websocket.Open(&server{answer: answer}, &websocket.Opening{Host: "a", Path: "/", Protocol: "sip"})
		if err == nil && (!strings.HasPrefix(answer, "HTTP/1.1 101") || !strings.Contains(answer, "KEY") || !strings.HasSuffix(answer, string(early)) && !strings.Contains(string(early), "=")) {
			t.Fatalf("accepted %q", answer)
		}
	})
}
