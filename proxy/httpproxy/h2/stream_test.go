package h2

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/wyegate/wyegate/proxy/httpproxy"
	"github.com/wyegate/wyegate/routing"
)

// HEADERS leave before there is a body, and each read of the server's body at once: the server goes on only when the
// client has got what came before (H2-3, HB-1). Events of a server arrive one by one.
func TestEventsArrive(t *testing.T) {
	got := make(chan struct{})
	o := newServer(t, func(c *serverConn) {
		if _, err := c.head(); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		for i := range 5 {
			<-got
			event := fmt.Sprintf("data: %d\n\n", i)
			fmt.Fprintf(c, "%x\r\n%s\r\n", len(event), event)
		}
		<-got
		_, _ = io.WriteString(c, "0\r\n\r\n")
		_, _ = io.Copy(io.Discard, c.r)
	})
	r := newRig(t, []string{o.addr})
	c := r.dial()
	id := c.open(true, request("GET", "/events")...)
	var rep reply
	for rep.status == "" {
		if c.step(id, &rep) {
			t.Fatalf("ended early: %+v", rep)
		}
	}
	for i := range 5 {
		got <- struct{}{}
		want := rep.body + fmt.Sprintf("data: %d\n\n", i)
		for rep.body != want {
			if c.step(id, &rep) {
				t.Fatalf("ended early: %+v", rep)
			}
		}
	}
	got <- struct{}{}
	for !c.step(id, &rep) {
	}
	if rep.isReset || rep.closed {
		t.Errorf("%+v", rep)
	}
}

// A body that breaks off is a reset stream, however the server has framed it (H2-3, HF-7).
func TestAbortIsReset(t *testing.T) {
	for name, text := range map[string]string{
		"sized":           "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",
		"chunked":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
		"within a chunk":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123",
		"within trailers": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\nX-Sum: 1\r\n",
		"bad chunk":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\nzz\r\n",
	} {
		o := newServer(t, func(c *serverConn) {
			if _, err := c.head(); err == nil {
				_, _ = io.WriteString(c, text)
			}
		})
		r := newRig(t, []string{o.addr})
		if got := r.dial().ask(request("GET", "/")...); !got.isReset || got.status != "200" || got.reset == http2.ErrCodeNo {
			t.Errorf("%s: %+v", name, got)
		}
	}
	o := newServer(t, func(c *serverConn) {
		if _, err := c.head(); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nto the end")
		}
	})
	r := newRig(t, []string{o.addr})
	if got := r.dial().ask(request("GET", "/")...); got.isReset || got.body != "to the end" {
		t.Errorf("a body that ends with its connection: %+v", got)
	}
}

// Bodies, trailers, 1xx and answers without a body keep their shape (HB-2, HB-5, HB-7, HF-7).
func TestShapes(t *testing.T) {
	o := newServer(t, func(c *serverConn) {
		for {
			req, body, err := c.request()
			if err != nil {
				return
			}
			switch req.URL.Path {
			case "/echo":
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Trailer: %s\r\nX-Framing: %d %q\r\n\r\n%s", len(body), req.Trailer.Get("X-Sum"), req.ContentLength, req.TransferEncoding, body)
			case "/trailers":
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nGrpc-Status: 0\r\nSet-Cookie: a=1\r\nContent-Length: 7\r\n\r\n")
			case "/trailers-only":
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nGrpc-Status: 5\r\n\r\n0\r\n\r\n")
			case "/hints":
				_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: x-a\r\nX-A: 1\r\n\r\n"+ok)
			case "/none":
				_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
			case "/unchanged":
				_, _ = io.WriteString(c, "HTTP/1.1 304 Not Modified\r\nContent-Length: 55\r\nETag: \"a\"\r\n\r\n")
			case "/head":
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
			case "/hop":
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x-a\r\nX-A: 1\r\nKeep-Alive: timeout=5\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\nok")
			}
		}
	})
	r := newRig(t, []string{o.addr})
	c := r.dial()
	id := c.open(false, request("POST", "/echo")...)
	c.must(c.WriteData(id, false, []byte("hel")))
	c.must(c.WriteData(id, false, []byte("lo")))
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block("x-sum", "9", "cookie", "c=1", "content-length", "3"), EndStream: true, EndHeaders: true}))
	if got := c.await(id); got.body != "hello" || got.header["x-trailer"][0] != "9" || got.header["x-framing"][0] != `-1 ["chunked"]` {
		t.Errorf("chunked: %+v", got)
	}
	id = c.open(false, request("PUT", "/echo", "content-length", "5")...)
	c.must(c.WriteData(id, true, []byte("hello")))
	if got := c.await(id); got.body != "hello" || got.header["x-framing"][0] != `5 []` {
		t.Errorf("sized: %+v", got)
	}
	got := c.ask(request("GET", "/trailers", "te", "trailers")...)
	if got.body != "ok" || len(got.trailers) != 1 || got.trailers["grpc-status"][0] != "0" {
		t.Errorf("trailers: %+v", got)
	}
	if got := c.ask(request("GET", "/trailers-only")...); got.status != "200" || got.header["grpc-status"][0] != "5" || got.header["content-length"] != nil || got.trailers != nil {
		t.Errorf("trailers only: %+v", got)
	}
	if got := c.ask(request("GET", "/hints")...); len(got.interim) != 1 || got.interim[0] != "103" || got.body != "ok" || got.header["link"] != nil {
		t.Errorf("hints: %+v", got)
	}
	if got := c.ask(request("GET", "/none")...); got.status != "204" || got.body != "" || got.isReset {
		t.Errorf("204: %+v", got)
	}
	if got := c.ask(request("GET", "/unchanged")...); got.status != "304" || got.body != "" || got.isReset {
		t.Errorf("304: %+v", got)
	}
	if got := c.ask(request("HEAD", "/head")...); got.status != "200" || got.body != "" || got.header["content-length"][0] != "1000" {
		t.Errorf("HEAD: %+v", got)
	}
	if got := c.ask(request("GET", "/hop")...); got.header["x-a"] != nil || got.header["keep-alive"] != nil || len(got.header["set-cookie"]) != 2 {
		t.Errorf("hop-by-hop: %+v", got)
	}
}

// 100-continue is asked of the server, and passed once (HB-2).
func TestExpect(t *testing.T) {
	o := newServer(t, func(c *serverConn) {
		head, err := c.head()
		if err != nil || !strings.Contains(strings.ToLower(head), "expect: 100-continue") {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		body := make([]byte, 5)
		if _, err := io.ReadFull(c.r, body); err == nil {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n%s", body)
		}
	})
	r := newRig(t, []string{o.addr})
	c := r.dial()
	id := c.open(false, request("POST", "/", "content-length", "5", "expect", "100-continue")...)
	var rep reply
	for len(rep.interim) == 0 {
		if c.step(id, &rep) {
			t.Fatalf("%+v", rep)
		}
	}
	c.must(c.WriteData(id, true, []byte("hello")))
	for !c.step(id, &rep) {
	}
	if len(rep.interim) != 1 || rep.interim[0] != "100" || rep.body != "hello" {
		t.Errorf("%+v", rep)
	}
}

// Both bodies at once: each side says the next word only when it has the last one (HB-1).
func TestBothWays(t *testing.T) {
	o := newServer(t, func(c *serverConn) {
		req, err := http.ReadRequest(c.r)
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		b := make([]byte, 64)
		for {
			n, err := req.Body.Read(b)
			if n > 0 {
				fmt.Fprintf(c, "%x\r\n%s\r\n", n, bytes.ToUpper(b[:n]))
			}
			if err != nil {
				break
			}
		}
		_, _ = io.WriteString(c, "0\r\nGrpc-Status: 0\r\n\r\n")
	})
	r := newRig(t, []string{o.addr})
	c := r.dial()
	id := c.open(false, request("POST", "/chat", "te", "trailers")...)
	var rep reply
	want := ""
	for i := range 20 {
		word := fmt.Sprintf("word %d;", i)
		want += strings.ToUpper(word)
		c.must(c.WriteData(id, false, []byte(word)))
		for rep.body != want {
			if c.step(id, &rep) {
				t.Fatalf("ended early: %+v", rep)
			}
		}
	}
	c.must(c.WriteData(id, true, nil))
	for !c.step(id, &rep) {
	}
	if rep.trailers["grpc-status"] == nil || rep.isReset {
		t.Errorf("%+v", rep)
	}
	if got := c.ask(request("GET", "/")...); got.goAway != nil || got.closed {
		t.Errorf("the connection ended behind a request that was answered while it was sent: %+v", got)
	}
}

// A client that leaves, by a reset or with its connection, ends the request at the server, and is no fault of the
// server's (HB-9).
func TestClientLeaves(t *testing.T) {
	gone := make(chan struct{})
	o := newServer(t, func(c *serverConn) {
		if _, err := c.head(); err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, c.r)
		gone <- struct{}{}
	})
	r := newRig(t, []string{o.addr})
	for name, leave := range map[string]func(c *client, id uint32){
		"reset":      func(c *client, id uint32) { c.must(c.WriteRSTStream(id, http2.ErrCodeCancel)) },
		"connection": func(c *client, _ uint32) { _ = c.Close() },
	} {
		for _, end := range []bool{true, false} {
			c := r.dial()
			before := o.requests()
			id := c.open(end, request("POST", "/")...)
			r.until("the request at the server", func() bool { return o.requests() > before })
			leave(c, id)
			<-gone
			if rec := r.record(); rec.Code != 499 || rec.Disp[0] != 'C' {
				t.Errorf("%s: logged as %d %s", name, rec.Code, rec.Disp[:])
			}
		}
	}
	if !r.pool.Table().Members[0].AcceptsNew(routing.HTTP) {
		t.Error("the server was blamed")
	}
}

// A client that takes nothing has 30 s, here less; other streams of its connection go on, and the server is let go
// (section 17: a slow stream never blocks others).
func TestStalledStream(t *testing.T) {
	o := newServer(t, func(c *serverConn) {
		for {
			req, _, err := c.request()
			if err != nil {
				return
			}
			if req.URL.Path == "/large" {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n")
				_, _ = c.Write(make([]byte, 10_000_000))
				return
			}
			_, _ = io.WriteString(c, ok)
		}
	})
	r := newRig(t, []string{o.addr}, limits(func(l *httpproxy.Limits) { l.BodyIdle = 500 * time.Millisecond }))
	c := r.dial()
	large := c.open(true, request("GET", "/large")...)
	c.must(c.WriteWindowUpdate(0, 1<<20)) // the stream's own window ends at 64 KiB
	for i := range 3 {
		id := c.open(true, request("GET", fmt.Sprintf("/small%d", i))...)
		var small reply
		for small.body != "ok" {
			f := c.frame()
			switch f := f.(type) {
			case *http2.DataFrame:
				if f.StreamID == id {
					small.body += string(f.Data())
				}
			case *http2.RSTStreamFrame:
				t.Fatalf("%v", f)
			}
		}
	}
	for {
		if f, isReset := c.frame().(*http2.RSTStreamFrame); isReset {
			if f.StreamID != large {
				t.Errorf("stream %d was reset", f.StreamID)
			}
			break
		}
	}
}

// An upload that stops has its time too (408), and the server is not blamed.
func TestStalledUpload(t *testing.T) {
	o := newServer(t, func(c *serverConn) { _, _ = io.Copy(io.Discard, c.r) })
	r := newRig(t, []string{o.addr}, limits(func(l *httpproxy.Limits) { l.BodyIdle = 300 * time.Millisecond }))
	c := r.dial()
	id := c.open(false, request("POST", "/")...)
	c.must(c.WriteData(id, false, []byte("abc")))
	if got := c.await(id); got.status != "408" {
		t.Errorf("%+v", got)
	}
}

// A body of any length goes through what HTTP/2 allows to be on the way, in both directions: memory does not grow with
// it (HB-1, F-large). The test of the soak sends 1 GiB.
func TestLargeBodies(t *testing.T) {
	size := int64(64 << 20)
	if soak() {
		size = 1 << 30
	}
	o := newServer(t, func(c *serverConn) {
		for {
			req, err := http.ReadRequest(c.r)
			if err != nil {
				return
			}
			n, err := io.Copy(io.Discard, req.Body)
			if err != nil {
				return
			}
			if req.Method == "POST" {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Got: %d\r\n\r\n", n)
				continue
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
			if _, err := io.CopyN(c, zeros{}, size); err != nil {
				return
			}
		}
	})
	r := newRig(t, []string{o.addr})
	tr := &http2.Transport{AllowHTTP: true, DisableCompression: true, DialTLSContext: r.plainDial}
	defer tr.CloseIdleConnections()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	watch := func(p []byte) {
		if peak == 0 || time.Now().UnixNano()%64 == 0 {
			runtime.ReadMemStats(&after)
			peak = max(peak, after.HeapInuse)
		}
	}
	for _, sized := range []bool{true, false} {
		req, _ := http.NewRequest("POST", "http://"+r.addr+"/", io.LimitReader(zeros{watch}, size))
		if sized {
			req.ContentLength = size
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("X-Got"); got != fmt.Sprint(size) {
			t.Errorf("the server got %s octets", got)
		}
	}
	req, _ := http.NewRequest("GET", "http://"+r.addr+"/", nil)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(discard{watch}, resp.Body)
	if err != nil || n != size {
		t.Errorf("%d octets, %v", n, err)
	}
	if grown := int64(peak) - int64(before.HeapInuse); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

type zeros struct{ seen func([]byte) }

func (z zeros) Read(b []byte) (int, error) {
	clear(b)
	if z.seen != nil {
		z.seen(b)
	}
	return len(b), nil
}

type discard struct{ seen func([]byte) }

func (d discard) Write(b []byte) (int, error) { d.seen(b); return len(b), nil }
