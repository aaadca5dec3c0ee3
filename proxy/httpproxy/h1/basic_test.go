package h1

import (
	"io"
	"strings"
	"testing"
)

// HH-2, HH-3, HF-6: what a server gets of a plain request, octet for octet.
func TestForwardedRequest(t *testing.T) {
	o := newOrigin(t, rawAnswers(ok))
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send("GET /a/..;x/%zz?q=%20+ HTTP/1.1\r\nhost: WWW.Example.net\r\nX-Odd:   v  \r\nx-odd: w\r\nConnection: x-gone\r\nX-Gone: 1\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n")
	resp, body := w.answer("GET")
	if resp.StatusCode != 200 || body != "ok" || resp.Header.Get("Via") != "1.1 wyegate" {
		t.Errorf("%v %q %v", resp.Status, body, resp.Header)
	}
	port := r.addr[strings.LastIndexByte(r.addr, ':')+1:]
	want := "GET /a/..;x/%zz?q=%20+ HTTP/1.1\r\nhost: WWW.Example.net\r\nX-Odd:   v  \r\nx-odd: w\r\nVia: 1.1 wyegate\r\n" +
		"X-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1;host=WWW.Example.net;proto=http\r\nX-Forwarded-Proto: http\r\n" +
		"X-Forwarded-Host: WWW.Example.net\r\nX-Forwarded-Port: " + port + "\r\nX-Real-IP: 127.0.0.1\r\n\r\n"
	if got := o.received(); got != want {
		t.Errorf("server got\n%s\nwant\n%s", got, want)
	}
	rec := r.record()
	if rec.Code != 200 || string(rec.Disp[:]) != "--N-" || rec.Server != "as1" || rec.App != "portal/portal" || rec.KeySource != "round_robin" ||
		string(rec.Bytes(rec.Method)) != "GET" || string(rec.Bytes(rec.URI)) != "/a/..;x/%zz?q=%20+" {
		t.Errorf("logged %+v %s", rec, rec.Disp)
	}
}

// Requests in one write are answered in order, over one connection to the server.
func TestPipelined(t *testing.T) {
	o := newOrigin(t, func(c *originConn) {
		for {
			req, body, err := c.request()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: "+itoa(len(req.RequestURI)+len(body))+"\r\n\r\n"+req.RequestURI+body)
		}
	})
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send(get("/1") + "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" +
		"POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\ndef\r\n0\r\nT: 1\r\n\r\n" + "\r\n" + get("/4"))
	for _, want := range []string{"/1", "/2abc", "/3def", "/4"} {
		if _, body := w.answer("GET"); body != want {
			t.Fatalf("got %q, want %q", body, want)
		}
	}
	if n := o.connections(); n != 1 {
		t.Errorf("%d connections to the server", n)
	}
}

func itoa(n int) string {
	var b [20]byte
	i := len(b)
	for {
		i--
		b[i] = '0' + byte(n%10)
		if n /= 10; n == 0 {
			return string(b[i:])
		}
	}
}
