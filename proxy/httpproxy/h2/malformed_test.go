package h2

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// Each field rule of RFC 9113 8.1.1 to 8.3.1 is a stream error, no server sees the request, and the connection goes on
// (H2-1).
func TestMalformedRequests(t *testing.T) {
	o := newServer(t, rawAnswers(ok))
	r := newRig(t, []string{o.addr})
	c := r.dial()
	cases := []struct {
		name   string
		fields []string
	}{
		{"connection", request("GET", "/smuggled", "connection", "keep-alive")},
		{"keep-alive", request("GET", "/smuggled", "keep-alive", "timeout=5")},
		{"proxy-connection", request("GET", "/smuggled", "proxy-connection", "close")},
		{"transfer-encoding", request("POST", "/smuggled", "transfer-encoding", "chunked")},
		{"upgrade", request("GET", "/smuggled", "upgrade", "h2c")},
		{"te", request("GET", "/smuggled", "te", "gzip")},
		{"te, list", request("GET", "/smuggled", "te", "trailers, gzip")},
		{"capitals", request("GET", "/smuggled", "X-Odd", "1")},
		{"name with CR", request("GET", "/smuggled", "x\rodd", "1")},
		{"name with LF", request("GET", "/smuggled", "x\nodd", "1")},
		{"name with NUL", request("GET", "/smuggled", "x\x00odd", "1")},
		{"name with colon", request("GET", "/smuggled", "x:odd", "1")},
		{"name with space", request("GET", "/smuggled", "x odd", "1")},
		{"name with space at its end", request("GET", "/smuggled", "x-odd ", "1")},
		{"empty name", request("GET", "/smuggled", "", "1")},
		{"value with CR", request("GET", "/smuggled", "x-odd", "1\r2")},
		{"value with CRLF", request("GET", "/smuggled", "x-odd", "1\r\nhost: evil")},
		{"value with LF", request("GET", "/smuggled", "x-odd", "1\n2")},
		{"value with NUL", request("GET", "/smuggled", "x-odd", "1\x002")},
		{"value with leading space", request("GET", "/smuggled", "x-odd", " 1")},
		{"value with trailing tab", request("GET", "/smuggled", "x-odd", "1\t")},
		{"crumb with trailing space", request("GET", "/smuggled", "cookie", "a=1 ")},
		{"path with space", request("GET", "/smuggled HTTP/1.1")},
		{"path with CRLF", request("GET", "/smuggled\r\nhost: evil")},
		{"path with control", request("GET", "/smuggled\x01")},
		{"path that is no path", request("GET", "smuggled")},
		{"absolute path", request("GET", "http://a.example.net/smuggled")},
		{"star with GET", request("GET", "*")},
		{"empty path", request("GET", "")},
		{"method with space", request("GET /smuggled", "/")},
		{"authority with space", []string{":method", "GET", ":scheme", "https", ":authority", "a b", ":path", "/smuggled"}},
		{"authority with LF", []string{":method", "GET", ":scheme", "https", ":authority", "a\nb", ":path", "/smuggled"}},
		{"no method", []string{":scheme", "https", ":authority", "a", ":path", "/smuggled"}},
		{"no scheme", []string{":method", "GET", ":authority", "a", ":path", "/smuggled"}},
		{"no path", []string{":method", "GET", ":scheme", "https", ":authority", "a"}},
		{"other scheme", []string{":method", "GET", ":scheme", "ftp", ":authority", "a", ":path", "/smuggled"}},
		{"two methods", request("GET", "/smuggled", ":method", "POST")},
		{"two paths", []string{":method", "GET", ":path", "/", ":scheme", "https", ":authority", "a", ":path", "/smuggled"}},
		{"pseudo-field behind a field", []string{":method", "GET", ":scheme", "https", "x-odd", "1", ":path", "/smuggled", ":authority", "a"}},
		{"unknown pseudo-field", append([]string{":odd", "1"}, request("GET", "/smuggled")...)},
		{"pseudo-field of responses", append([]string{":status", "200"}, request("GET", "/smuggled")...)},
		{"extended CONNECT", append([]string{":protocol", "websocket"}, request("CONNECT", "/smuggled")...)},
		{"CONNECT with a path", request("CONNECT", "/smuggled")},
		{"length without a body", request("POST", "/smuggled", "content-length", "5")},
	}
	for _, tc := range cases {
		if got := c.ask(tc.fields...); !got.isReset || got.reset != http2.ErrCodeProtocol {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
	if got := c.ask(request("GET", "/last")...); got.status != "200" {
		t.Errorf("behind them: %+v", got)
	}
	if all := o.received(); strings.Contains(all, "smuggled") || strings.Count(all, "HTTP/1.1\r\n") != 1 {
		t.Errorf("the server got\n%s", all)
	}
}

// A length that the DATA frames do not keep is a stream error, be it too long, too short, or short by trailers; the
// server never takes what came for a whole request (H2-1).
func TestLengthMismatch(t *testing.T) {
	o := newServer(t, answers(ok))
	r := newRig(t, []string{o.addr})
	c := r.dial()
	for name, send := range map[string]func(id uint32) error{
		"longer": func(id uint32) error { return c.WriteData(id, true, []byte("123456")) },
		"longer, in two": func(id uint32) error {
			_ = c.WriteData(id, false, []byte("12345"))
			return c.WriteData(id, true, []byte("6"))
		},
		"shorter":          func(id uint32) error { return c.WriteData(id, true, []byte("1234")) },
		"empty":            func(id uint32) error { return c.WriteData(id, true, nil) },
		"shorter, padding": func(id uint32) error { return c.WriteDataPadded(id, true, []byte("1234"), []byte{0}) },
		"shorter, by trailers": func(id uint32) error {
			_ = c.WriteData(id, false, []byte("12"))
			return c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block("x-sum", "1"), EndStream: true, EndHeaders: true})
		},
	} {
		id := c.open(false, request("POST", "/", "content-length", "5")...)
		c.must(send(id))
		if got := c.await(id); !got.isReset || got.reset != http2.ErrCodeProtocol {
			t.Errorf("%s: %+v", name, got)
		}
	}
	id := c.open(false, request("POST", "/", "content-length", "5")...)
	c.must(c.WriteDataPadded(id, true, []byte("12345"), make([]byte, 7)))
	if got := c.await(id); got.status != "200" {
		t.Errorf("a padded body: %+v", got)
	}
	m := &r.pool.Table().Members[0]
	r.until("all leases back", func() bool { return m.Active() == 0 })
	for r.ring.Take(func(rec *obs.Record) {
		if rec.Code != 499 && rec.Code != 200 {
			t.Errorf("logged as %d", rec.Code)
		}
	}) {
	}
}

// What HTTP/1.1 has an answer for gets that answer: nothing is decided twice.
func TestWhatHTTP1Refuses(t *testing.T) {
	o := newServer(t, rawAnswers(ok))
	r := newRig(t, []string{o.addr}, limits(func(l *httpproxy.Limits) { l.MaxBody = 10 }))
	many := request("GET", "/")
	for range 200 {
		many = append(many, "x", "1")
	}
	for _, tc := range []struct {
		name   string
		fields []string
		want   string
	}{
		{"host beside another authority", request("GET", "/", "host", "b.example.net"), "400"},
		{"two hosts", request("GET", "/", "host", "a.example.net", "host", "a.example.net"), "400"},
		{"no authority at all", []string{":method", "GET", ":scheme", "https", ":path", "/"}, "400"},
		{"authority with a user", []string{":method", "GET", ":scheme", "https", ":authority", "u@a", ":path", "/"}, "400"},
		{"lengths", request("POST", "/", "content-length", "5", "content-length", "5"), "400"},
		{"signed length", request("POST", "/", "content-length", "+5"), "400"},
		{"fragment in the path", request("GET", "/a#b"), "400"},
		{"CONNECT", []string{":method", "CONNECT", ":authority", "a:443"}, "405"},
		{"TRACE", request("TRACE", "/"), "405"},
		{"OPTIONS of the server", request("OPTIONS", "*"), "200"},
		{"expectation", request("POST", "/", "expect", "more"), "417"},
		{"long path", request("GET", "/"+strings.Repeat("a", 9000)), "414"},
		{"long head", request("GET", "/", "x-odd", strings.Repeat("a", 17<<10)), "431"},
		{"long head in many fields", append(request("GET", "/"), strings.Split(strings.TrimSuffix(strings.Repeat("x|"+strings.Repeat("b", 500)+"|", 40), "|"), "|")...), "431"},
		{"long cookies", append(request("GET", "/"), strings.Split(strings.TrimSuffix(strings.Repeat("cookie|"+strings.Repeat("b", 500)+"|", 40), "|"), "|")...), "431"},
		{"many fields", many, "431"},
		{"body longer than allowed", request("POST", "/", "content-length", "11"), "413"},
	} {
		c := r.dial()
		blk := c.block(tc.fields...)
		end := !strings.Contains(tc.want, "413") && !bytes.Contains([]byte(strings.Join(tc.fields, "|")), []byte("content-length"))
		id := c.next
		for first := true; first || len(blk) > 0; first = false {
			n := min(len(blk), 16<<10)
			if first {
				c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: blk[:n], EndStream: end, EndHeaders: n == len(blk)}))
			} else {
				c.must(c.WriteContinuation(id, n == len(blk), blk[:n]))
			}
			blk = blk[n:]
		}
		if got := c.await(id); got.status != tc.want {
			t.Errorf("%s: %+v", tc.name, got)
		}
		_ = c.Close()
	}
	if o.received() != "" {
		t.Errorf("the server got %q", o.received())
	}
	// Eight thousand octets of target must pass (HB-8).
	if got := r.dial().ask(request("GET", "/"+strings.Repeat("a", 8000))...); got.status != "200" {
		t.Errorf("a path of 8,000: %+v", got)
	}
}
