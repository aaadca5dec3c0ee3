package http1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func seeds(f *testing.F) {
	files, _ := filepath.Glob("../../testdata/http/*/*.raw")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(b, uint8(3))
		}
	}
	f.Add([]byte(sample), uint8(7))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\n\r\n"), uint8(1))
}

// Index, no cut, write: the same bytes. Any cutting of the input gives the same index or the same kind of refusal.
func FuzzRequestHead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		whole := new(Head)
		n, err := whole.ParseRequest(b, &testLimits)
		if n > 0 {
			got := append([]byte(nil), b[:whole.Line.End+2]...)
			for i := range whole.Fields {
				whole.Fields[i].Cut = Keep
			}
			got = append(whole.AppendFields(got), "\r\n"...)
			if !bytes.Equal(got, b[:n]) {
				t.Fatalf("wrote %q for %q", got, b[:n])
			}
		}
		if step == 0 {
			step = 1
		}
		cut := new(Head)
		var m int
		var err2 error
		for at := 0; at < len(b) && m == 0 && err2 == nil; {
			at = min(at+int(step), len(b))
			m, err2 = cut.ParseRequest(b[:at:at], &testLimits)
		}
		if m != n || (err == nil) != (err2 == nil) || len(cut.Fields) != len(whole.Fields) && err == nil {
			t.Fatalf("whole: %d, %v; in steps of %d: %d, %v", n, err, step, m, err2)
		}
	})
}

// What passes is read alike by net/http and fasthttp: method, target, host, framing, body and what follows.
func FuzzDifferential(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte, _ uint8) {
		h := new(Head)
		n, err := h.ParseRequest(b, &testLimits)
		if n == 0 || err != nil || h.Count(Host) != 1 || !plainHost(h.Value(Host)) {
			return
		}
		fr, err := h.RequestFraming()
		if err != nil {
			return
		}
		target := string(h.Target.Of(h.Buf))
		if _, err := url.ParseRequestURI(target); err != nil || !strings.HasPrefix(target, "/") {
			return // net/http refuses targets that we hand on as they are (HF-6)
		}
		for i := range h.Fields {
			if h.Fields[i].Twin { // we cut twins; other readers keep them under their own name
				return
			}
		}
		h.CutHopByHop()
		body, rest, ok := readBody(b[n:], fr)
		if !ok {
			return
		}
		// What a server of ours is sent, and what it makes of it.
		out := append([]byte(nil), h.Buf[h.Line.Start:h.Line.End+2]...)
		out = h.AppendFields(out)
		if fr.Kind == Chunked {
			out = append(out, "Transfer-Encoding: chunked\r\n"...)
		}
		out = append(append(out, "\r\n"...), b[n:len(b)-len(rest)]...)
		out = append(out, "GET /next HTTP/1.1\r\nHost: next\r\n\r\n"...)

		r := bufio.NewReader(bytes.NewReader(out))
		req, err := http.ReadRequest(r)
		if err != nil {
			if strings.Contains(err.Error(), "Host") || req == nil && h.Count(Expect) > 0 {
				return
			}
			t.Fatalf("net/http refuses %q: %v", out, err)
		}
		got, err := io.ReadAll(req.Body)
		if err != nil || !bytes.Equal(got, body) {
			t.Fatalf("net/http reads body %q, %v; we read %q of %q", got, err, body, out)
		}
		if req.Method != string(h.Method.Of(h.Buf)) || req.RequestURI != target || req.Host != string(h.Value(Host)) {
			t.Fatalf("net/http reads %s %s %s of %q", req.Method, req.RequestURI, req.Host, out)
		}
		if next, err := http.ReadRequest(r); err != nil || next.URL.Path != "/next" {
			t.Fatalf("net/http is not at the next request after %q: %v", out, err)
		}
		differFasthttp(t, h, out, body)
	})
}

func differFasthttp(t *testing.T, h *Head, out, body []byte) {
	var freq fasthttp.Request
	fr := bufio.NewReaderSize(bytes.NewReader(out), 64<<10)
	freq.Header.DisableNormalizing()
	if err := freq.Read(fr); err != nil {
		if bytes.HasPrefix(bytes.ToLower(h.Value(ContentType)), []byte("multipart/")) || h.Count(Expect) > 0 {
			return // it looks into forms and expectations before the handler does
		}
		t.Fatalf("fasthttp refuses %q: %v", out, err)
	}
	if string(freq.Header.Method()) != string(h.Method.Of(h.Buf)) || string(freq.Header.RequestURI()) != string(h.Target.Of(h.Buf)) {
		t.Fatalf("fasthttp reads %s %s of %q", freq.Header.Method(), freq.Header.RequestURI(), out)
	}
	ignores := freq.Header.IsGet() || freq.Header.IsHead()
	if !ignores && h.Count(Expect) == 0 && !bytes.Equal(freq.Body(), body) {
		t.Fatalf("fasthttp reads body %q, we read %q of %q", freq.Body(), body, out)
	}
}

func plainHost(v []byte) bool {
	for _, c := range v {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return false
		}
	}
	return len(v) > 0
}

// readBody takes the body off b; ok is false when it is broken, unfinished or has trailers.
func readBody(b []byte, fr Framing) (body, rest []byte, ok bool) {
	switch fr.Kind {
	case Sized:
		if int64(len(b)) < fr.Length {
			return nil, nil, false
		}
		return b[:fr.Length], b[fr.Length:], true
	case Chunked:
		c := Chunks{Bare: true}
		for len(b) > 0 && !c.AtTrailers() {
			pass, skip, err := c.Step(b)
			if err != nil {
				return nil, nil, false
			}
			body = append(body, b[:pass]...)
			b = b[pass+skip:]
		}
		if !c.AtTrailers() || !bytes.HasPrefix(b, []byte("\r\n")) {
			return nil, nil, false
		}
		return body, b[2:], true
	}
	return nil, b, true
}

// Any cutting of a chunked body passes the same bytes and refuses the same bodies; what passed is a body again, with
// the same data.
func FuzzChunks(f *testing.F) {
	f.Add("5;a\r\nhello\r\n0\r\n\r\n", uint8(1))
	f.Add("00A ;x\r\n0123456789\r\n0;last\r\nT: v\r\n\r\n", uint8(4))
	f.Fuzz(func(t *testing.T, body string, step uint8) {
		out, rest, err := runChunks(body, len(body)+1, false)
		out2, rest2, err2 := runChunks(body, int(step)+1, false)
		if (err == nil) != (err2 == nil) || err == nil && (out != out2 || rest != rest2) {
			t.Fatalf("whole %q, %v; in pieces of %d %q, %v", out, err, step+1, out2, err2)
		}
		if err != nil {
			return
		}
		bare, _, _ := runChunks(body, len(body)+1, true)
		again, tail, err := runChunks(out, len(out)+1, true)
		if err != nil || tail != "" || again != bare {
			t.Fatalf("%q passed as %q, which reads %q, %v", body, out, again, err)
		}
	})
}

// A response head is read or refused without a panic, and written back as it came.
func FuzzResponseHead(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), false)
	f.Fuzz(func(t *testing.T, b []byte, head bool) {
		h := new(Head)
		n, err := h.ParseResponse(b, &testLimits)
		if n == 0 || err != nil {
			return
		}
		if h.Status < 100 || h.Status > 999 {
			t.Fatalf("status %d", h.Status)
		}
		f, _, err := h.ResponseFraming(head)
		if err == nil && head && f.Kind != NoBody {
			t.Fatal("a body after HEAD")
		}
		h.CutHopByHop()
		if out := h.AppendFields(nil); len(out) > n {
			t.Fatal("more than was received")
		}
	})
}
