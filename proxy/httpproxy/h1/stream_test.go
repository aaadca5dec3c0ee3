package h1

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// HB-1: the first octets of a body are at the server before the last were sent, chunked or not.
func TestUploadStreams(t *testing.T) {
	for _, framing := range []string{"Transfer-Encoding: chunked", "Content-Length: 10"} {
		first, second := "5\r\nhello\r\n", "5\r\nworld\r\n0\r\n\r\n"
		if strings.HasPrefix(framing, "Content") {
			first, second = "hello", "world"
		}
		got := make(chan string, 1)
		o := newOrigin(t, func(c *originConn) {
			req, err := http.ReadRequest(c.r)
			if err != nil {
				return
			}
			b := make([]byte, 5)
			_, _ = io.ReadFull(req.Body, b)
			got <- string(b)
			rest, _ := io.ReadAll(req.Body)
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(rest), rest)
			_, _, _ = c.request()
		})
		r := newRig(t, []string{o.addr})
		w := r.dial()
		w.send("POST / HTTP/1.1\r\nHost: a\r\n" + framing + "\r\n\r\n" + first)
		if s := <-got; s != "hello" {
			t.Fatalf("%s: server got %q", framing, s)
		}
		w.send(second)
		if resp, body := w.answer("POST"); body != "world" || resp.Close {
			t.Errorf("%s: %q, close %v", framing, body, resp.Close)
		}
		if rec := r.record(); rec.BytesIn < 10 || string(rec.Disp[:]) != "--N-" {
			t.Errorf("%s: logged %d in, %s", framing, rec.BytesIn, rec.Disp)
		}
		w.send(get("/again")) // the connection goes on, and the server's too
	}
}

// HB-1: headers without a body yet, and each piece of a body, go out at once.
func TestResponseStreams(t *testing.T) {
	for _, c := range []struct{ head, a, b, end string }{
		{"Transfer-Encoding: chunked", "3\r\none\r\n", "3\r\ntwo\r\n", "0\r\n\r\n"},
		{"Content-Length: 6", "one", "two", ""},
		{"Connection: close", "one", "two", ""},
	} {
		step := make(chan bool)
		o := newOrigin(t, func(oc *originConn) {
			if _, _, err := oc.request(); err != nil {
				return
			}
			_, _ = io.WriteString(oc, "HTTP/1.1 200 OK\r\n"+c.head+"\r\n\r\n")
			for _, part := range []string{c.a, c.b, c.end} {
				if <-step; part != "" {
					_, _ = io.WriteString(oc, part)
				}
			}
		})
		r := newRig(t, []string{o.addr})
		w := r.dial()
		w.send(get("/"))
		resp, err := http.ReadResponse(w.r, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 3)
		for _, want := range []string{"one", "two"} {
			step <- true
			if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != want {
				t.Fatalf("%s: %q, %v", c.head, b, err)
			}
		}
		step <- true
		if n, err := resp.Body.Read(b); n != 0 || err != io.EOF {
			t.Errorf("%s: end is %d, %v", c.head, n, err)
		}
	}
}

// HB-1: a body goes up while the response comes down.
func TestFullDuplex(t *testing.T) {
	o := newOrigin(t, func(c *originConn) {
		req, err := http.ReadRequest(c.r)
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		b := make([]byte, 1)
		for {
			if _, err := req.Body.Read(b); err != nil {
				break
			}
			fmt.Fprintf(c, "1\r\n%s\r\n", b)
		}
		_, _ = io.WriteString(c, "0\r\n\r\n")
		_, _, _ = c.request()
	})
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	resp, err := http.ReadResponse(w.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []string{"a", "b", "c"} {
		w.send("1\r\n" + x + "\r\n")
		b := make([]byte, 1)
		if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != x {
			t.Fatalf("%q, %v", b, err)
		}
	}
	w.send("0\r\n\r\n")
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		t.Errorf("rest %q, %v", rest, err)
	}
}

// pattern is n octets that differ from place to place.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + i>>16*31)
	}
	return b
}

// HB-1, HB-6: large bodies arrive as they were, through our memory and through the kernel's pipe, up and down.
func TestLargeBodies(t *testing.T) {
	for _, size := range []int{1 << 10, 23 << 10, 24 << 10, 40 << 10, 64 << 10, 300 << 10, 2 << 20} {
		for _, chunked := range []bool{false, true} {
			want := pattern(size)
			sum := sha256.Sum256(want)
			o := newOrigin(t, func(c *originConn) {
				for {
					req, body, err := c.request()
					if err != nil {
						return
					}
					if req.Method == "POST" && sha256.Sum256([]byte(body)) != sum {
						t.Errorf("%d octets, chunked %v: spoiled on the way up", size, chunked)
					}
					if chunked {
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
						for rest := want; len(rest) > 0; {
							n := min(len(rest), 7000)
							fmt.Fprintf(c, "%x;e=f\r\n%s\r\n", n, rest[:n])
							rest = rest[n:]
						}
						_, _ = io.WriteString(c, "0\r\n\r\n")
						continue
					}
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
					_, _ = c.Write(want)
				}
			})
			r := newRig(t, []string{o.addr})
			w := r.dial()
			var req bytes.Buffer
			if chunked {
				fmt.Fprintf(&req, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, want)
			} else {
				fmt.Fprintf(&req, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", size, want)
			}
			req.WriteString(get("/after"))
			go func() { _, _ = w.Write(req.Bytes()) }()
			for range 2 {
				if _, body := w.answer("POST"); sha256.Sum256([]byte(body)) != sum {
					t.Fatalf("%d octets, chunked %v: spoiled on the way down: %d", size, chunked, len(body))
				}
			}
		}
	}
}

// HB-2, section 16 row 8 and 24: a final answer wins over the body that is still being sent, can be read, and both
// connections close.
func TestEarlyAnswer(t *testing.T) {
	o := newOrigin(t, func(c *originConn) {
		if _, err := c.head(); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
		_, _ = io.Copy(io.Discard, c.r)
	})
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
	go func() {
		b := make([]byte, 16<<10)
		for {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}()
	if resp, body := w.answer("POST"); resp.StatusCode != 413 || body != "big" || !resp.Close {
		t.Errorf("%d %q, close %v", resp.StatusCode, body, resp.Close)
	}
	r.until("both ends closed", func() bool { return r.front.Open() == 0 })
}

// HB-2: the server's 100 is passed, once; its final answer passes without the body being asked for; when it is silent we
// send the 100, and its own is not passed any more.
func TestExpectContinue(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
	serve := func(script func(c *originConn)) (*origin, *wire, *rig) {
		o := newOrigin(t, func(c *originConn) {
			if _, err := c.head(); err == nil {
				script(c)
			}
		})
		r := newRig(t, []string{o.addr}, limits(func(l *httpproxy.Limits) { l.ExpectWait = 100 * time.Millisecond }))
		return o, r.dial(), r
	}
	body := func(c *originConn) string {
		b := make([]byte, 5)
		_, _ = io.ReadFull(c.r, b)
		return string(b)
	}
	t.Run("passed", func(t *testing.T) {
		_, w, _ := serve(func(c *originConn) {
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"+body(c))
		})
		w.send(head)
		if resp, _ := http.ReadResponse(w.r, nil); resp == nil || resp.StatusCode != 100 {
			t.Fatalf("no 100: %v", resp)
		}
		w.send("hello")
		if resp, b := w.answer("POST"); resp.StatusCode != 200 || b != "hello" {
			t.Errorf("%d %q", resp.StatusCode, b)
		}
	})
	t.Run("refused", func(t *testing.T) {
		o, w, _ := serve(func(c *originConn) {
			_, _ = io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
			_, _ = io.Copy(io.Discard, c.r)
		})
		w.send(head)
		if resp, b := w.answer("POST"); resp.StatusCode != 401 || b != "no" || !resp.Close {
			t.Errorf("%d %q %v", resp.StatusCode, b, resp.Close)
		}
		if rest, err := w.rest(); rest != "" || err != nil {
			t.Errorf("then %q, %v", rest, err)
		}
		if strings.Contains(o.received(), "hello") {
			t.Error("the body went to the server")
		}
	})
	t.Run("silent", func(t *testing.T) {
		_, w, _ := serve(func(c *originConn) {
			b := body(c)
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"+b)
		})
		w.send(head)
		if resp, _ := http.ReadResponse(w.r, nil); resp == nil || resp.StatusCode != 100 {
			t.Fatalf("no 100: %v", resp)
		}
		w.send("hello")
		if resp, b := w.answer("POST"); resp.StatusCode != 200 || b != "hello" {
			t.Errorf("%d %q", resp.StatusCode, b)
		}
	})
}

// HF-7: 103 passes with its fields, without hop-by-hop ones, and not to a client of HTTP/1.0.
func TestInterim(t *testing.T) {
	o := newOrigin(t, answers("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x-h\r\nX-H: 1\r\n\r\n"+ok))
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send(get("/"))
	resp, err := http.ReadResponse(w.r, nil)
	if err != nil || resp.StatusCode != 103 || resp.Header.Get("Link") == "" || resp.Header.Get("X-H") != "" {
		t.Fatalf("%v, %v", resp, err)
	}
	if resp, body := w.answer("GET"); resp.StatusCode != 200 || body != "ok" {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	old := r.dial()
	old.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
	if all, err := old.rest(); err != nil || !strings.HasPrefix(all, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("%q, %v", all, err)
	}
}

// HB-5: clients of HTTP/1.0 get no chunks; they keep the connection only where they ask and the length is known.
func TestOldClient(t *testing.T) {
	o := newOrigin(t, func(c *originConn) {
		for {
			req, _, err := c.request()
			if err != nil {
				return
			}
			if req.URL.Path == "/chunked" {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n1\r\n!\r\n0\r\nT: 1\r\n\r\n")
				continue
			}
			_, _ = io.WriteString(c, ok)
		}
	})
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send("GET /sized HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
	if resp, body := w.answer("GET"); body != "ok" || !strings.EqualFold(resp.Header.Get("Connection"), "keep-alive") {
		t.Errorf("%q %v", body, resp.Header)
	}
	w.send("GET /chunked HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
	all, err := w.rest()
	if err != nil || !strings.HasSuffix(all, "\r\n\r\nhello!") || strings.Contains(all, "hunked") || !strings.Contains(all, "Connection: close\r\n") {
		t.Errorf("%q, %v", all, err)
	}
	plain := r.dial()
	plain.send("GET /sized HTTP/1.0\r\nHost: a\r\n\r\n")
	if all, err := plain.rest(); err != nil || !strings.HasSuffix(all, "\r\n\r\nok") {
		t.Errorf("%q, %v", all, err)
	}
}

// HF-7: the end of a body that is missing can be seen: chunked without its end, all else by a reset.
func TestAbortIsVisible(t *testing.T) {
	o := newOrigin(t, func(c *originConn) {
		if _, _, err := c.request(); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\npart")
			_ = c.Conn.(*net.TCPConn).SetLinger(0)
		}
	})
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
	if all, err := w.rest(); err == nil && strings.Contains(all, "200 OK") {
		t.Errorf("a broken body came to a clean end: %q", all)
	}
}

// Section 16 row 23: the answer of a pipelined request does not wait for the next one.
func TestPipelinedAnswersAtOnce(t *testing.T) {
	release := make(chan bool)
	o := newOrigin(t, func(c *originConn) {
		for {
			req, _, err := c.request()
			if err != nil {
				return
			}
			if req.URL.Path == "/slow" {
				<-release
			}
			_, _ = io.WriteString(c, ok)
		}
	})
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send(get("/fast") + get("/slow"))
	if _, body := w.answer("GET"); body != "ok" {
		t.Error(body)
	}
	close(release)
	if _, body := w.answer("GET"); body != "ok" {
		t.Error(body)
	}
}
