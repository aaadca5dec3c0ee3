//go:build linux

package h1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// byLoop says how many pooled connections a loop was the last to use.
func (r *rig) byLoop() int {
	n := 0
	for _, p := range *r.front.servers.pools.Load() {
		for i := range p.conns {
			if s := p.conns[i].Load(); s != nil && s.state.Load() == resting && !s.wary && s.used > 1 {
				n++
			}
		}
	}
	return n
}

// warm has the loop of a connection served through the goroutine once, so that it has a server to send to.
func (w *wire) warm() *wire {
	w.t.Helper()
	w.send(get("/"))
	w.answer("GET")
	return w
}

// patient has no timer help out where a wake-up was lost.
func patient(r *rig, _ *Config) {
	l := &r.gen.Limits
	l.HeaderTimeout, l.BodyIdle, l.IdleTimeout, l.ResponseTimeout = time.Hour, time.Hour, time.Hour, time.Hour
}

// Architecture 4.3: the first request opens the way to the server in the goroutine, those that follow stay in the loop;
// so do chunked responses that come whole, HEAD, 204 and a POST with its body.
func TestLoopServesWhatIsPlain(t *testing.T) {
	for name, text := range map[string]string{
		"sized":   ok,
		"empty":   "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"204":     "HTTP/1.1 204 No Content\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, []string{newOrigin(t, answers(text)).addr})
			w := r.dial()
			want := ""
			for i := range 6 {
				request, method := get("/"), "GET"
				if i&1 == 1 && name != "204" {
					request, method = post, "POST"
				}
				w.send(request)
				resp, body := w.answer(method)
				if i == 0 {
					want = body
				}
				if resp.StatusCode >= 300 || body != want || resp.Close {
					t.Fatalf("%d: %d %q, close %v", i, resp.StatusCode, body, resp.Close)
				}
				if rec := r.record(); rec.Server != "as1" || rec.BytesIn < int64(len(request)) {
					t.Errorf("logged %q, %d octets in", rec.Server, rec.BytesIn)
				}
			}
			r.until("the loop at work", func() bool { return r.byLoop() == 1 })
		})
	}
}

// A thousand requests in one go are answered one after the other, in order, the last among them.
func TestLoopPipelined(t *testing.T) {
	o := newOrigin(t, func(c *originConn) {
		for {
			req, _, err := c.request()
			if err != nil {
				return
			}
			body := req.URL.Path
			if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
				return
			}
		}
	})
	r := newRig(t, []string{o.addr}, patient)
	w := r.dial().warm()
	const n = 1000
	var all strings.Builder
	for i := range n {
		all.WriteString(get("/" + strconv.Itoa(i)))
	}
	go func() { _, _ = io.WriteString(w, all.String()) }()
	for i := range n {
		if _, body := w.answer("GET"); body != "/"+strconv.Itoa(i) {
			t.Fatalf("answer %d is %q", i, body)
		}
	}
}

// HB-1: a client that reads late gets every octet, of a body that must wait in the kernel and of many small ones; the
// loop serves others meanwhile.
func TestLoopSlowReader(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB: more than both sockets take
	small := bytes.Repeat([]byte("s"), 12<<10)
	o := newOrigin(t, func(c *originConn) {
		for {
			req, _, err := c.request()
			if err != nil {
				return
			}
			body := small
			if req.URL.Path == "/big" {
				body = big
			}
			_, err = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body))
			if err == nil {
				_, err = c.Conn.Write(body)
			}
			if err != nil {
				return
			}
		}
	})
	r := newRig(t, []string{o.addr}, patient)
	slow, other := r.dial().warm(), r.dial().warm()
	const many = 400
	go func() {
		_, _ = io.WriteString(slow, get("/big")+strings.Repeat(get("/small"), many))
	}()
	for range 20 {
		other.warm()
	}
	if _, body := slow.answer("GET"); body != string(big) {
		t.Fatalf("%d octets of the large body, or others", len(body))
	}
	for i := range many {
		if _, body := slow.answer("GET"); body != string(small) {
			t.Fatalf("body %d is not what was sent", i)
		}
	}
}

// HF-7: what a server says while its connection is idle ends that connection at once, before anybody is sent over it.
func TestLoopIdleServerSpeaks(t *testing.T) {
	say := make(chan bool)
	o := newOrigin(t, func(c *originConn) {
		if _, err := c.head(); err != nil {
			return
		}
		_, _ = io.WriteString(c, ok)
		if _, err := c.head(); err != nil {
			return
		}
		_, _ = io.WriteString(c, ok)
		if <-say {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
		}
		_, _ = io.Copy(io.Discard, c.r)
	})
	r := newRig(t, []string{o.addr})
	w := r.dial().warm().warm()
	say <- true
	r.until("the pooled connection closed", func() bool {
		for _, p := range *r.front.servers.pools.Load() {
			for i := range p.conns {
				if s := p.conns[i].Load(); s != nil && s.state.Load() == resting {
					return false
				}
			}
		}
		return true
	})
	w.send(get("/"))
	if _, body := w.answer("GET"); body != "ok" {
		t.Errorf("got %q", body)
	}
	go func() { say <- false }()
	w.warm()
	if n := o.connections(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// HB-3: a server that closes while the request is under way costs an idempotent request nothing, and a POST is not sent
// twice.
func TestLoopServerLeaves(t *testing.T) {
	var mu sync.Mutex
	posts := 0
	o := newOrigin(t, func(c *originConn) {
		for range 2 {
			if _, _, err := c.request(); err != nil {
				return
			}
			_, _ = io.WriteString(c, ok)
		}
		if req, _, err := c.request(); err == nil && req.Method == "POST" {
			mu.Lock()
			posts++
			mu.Unlock()
		}
	})
	r := newRig(t, []string{o.addr})
	w := r.dial().warm().warm()
	w.send(get("/"))
	if resp, body := w.answer("GET"); resp.StatusCode != 200 || body != "ok" {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	w.warm()
	w.send(post)
	if resp, _ := w.answer("POST"); resp.StatusCode != 502 {
		t.Errorf("a POST got %d", resp.StatusCode)
	}
	mu.Lock()
	defer mu.Unlock()
	if posts != 1 {
		t.Errorf("a POST was sent %d times", posts)
	}
}

// HF-7: a body that breaks off is a visible abort, however close its last octets and the end come together; a client that
// sends half a head and closes ends quietly.
func TestLoopBreaksOff(t *testing.T) {
	o := newOrigin(t, func(c *originConn) {
		for {
			req, _, err := c.request()
			if err != nil {
				return
			}
			if req.URL.Path == "/broken" {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("x", 50000))
				return
			}
			_, _ = io.WriteString(c, ok)
		}
	})
	r := newRig(t, []string{o.addr}, patient)
	for range 20 {
		w := r.dial().warm().warm()
		w.send(get("/broken"))
		resp, err := http.ReadResponse(w.r, nil)
		if err != nil {
			continue // the reset has overtaken the head
		}
		if n, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Fatalf("%d octets of a broken body look whole", n)
		}
	}
	half := r.dial().warm()
	half.send("GET / HT")
	_ = half.Conn.(*net.TCPConn).CloseWrite()
	if text, err := half.rest(); text != "" || err != nil {
		t.Errorf("half a head got %q, %v", text, err)
	}
}

// HB-8, 19: on sockets too the time of the head counts from its first octet, and an idle connection ends.
func TestLoopTimes(t *testing.T) {
	r := newRig(t, []string{newOrigin(t, answers(ok)).addr}, limits(func(l *httpproxy.Limits) {
		l.HeaderTimeout, l.IdleTimeout = 300*time.Millisecond, 400*time.Millisecond
	}))
	slow := r.dial().warm()
	r.record()
	stop := make(chan struct{})
	defer close(stop)
	slow.send("GET / HTTP/1.1\r\n")
	go func() {
		t := time.NewTicker(30 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				if _, err := io.WriteString(slow, "X"); err != nil {
					return
				}
			}
		}
	}()
	if resp, _ := slow.answer("GET"); resp.StatusCode != 408 {
		t.Errorf("a slow head got %d", resp.StatusCode)
	}
	if rec := r.record(); rec.Code != 408 || rec.Disp[0] != 'T' {
		t.Errorf("logged %d %s", rec.Code, rec.Disp)
	}
	idle := r.dial().warm()
	if text, err := idle.rest(); text != "" || err != nil {
		t.Errorf("an idle client got %q, %v", text, err)
	}
	silent := r.dial()
	if text, err := silent.rest(); text != "" || err != nil {
		t.Errorf("a silent client got %q, %v", text, err)
	}
}

// HB-9, 11.3: a client that leaves while its response is waited for, and a drain.
func TestLoopClientLeavesAndDrain(t *testing.T) {
	wait := make(chan struct{})
	o := newOrigin(t, func(c *originConn) {
		for n := 0; ; n++ {
			req, _, err := c.request()
			if err != nil {
				return
			}
			if req.URL.Path == "/wait" {
				close(wait)
				_, _ = c.Conn.Read(make([]byte, 1))
				return
			}
			_, _ = io.WriteString(c, ok)
		}
	})
	r := newRig(t, []string{o.addr})
	w := r.dial().warm().warm()
	r.record()
	r.record()
	w.send(get("/wait"))
	<-wait
	_ = w.Close()
	if rec := r.record(); rec.Code != 499 || string(rec.Disp[:3]) != "CWN" {
		t.Errorf("logged %d %s", rec.Code, rec.Disp)
	}
	idle := r.dial().warm()
	r.front.Drain(true)
	if text, err := idle.rest(); text != "" || err != nil {
		t.Errorf("an idle client of a draining node got %q, %v", text, err)
	}
}

// The end of Run ends connections whose context goes on, and the loops with them.
func TestLoopsEndWithRun(t *testing.T) {
	r := newRig(t, []string{newOrigin(t, answers(ok)).addr})
	front := New(Config{})
	front.Swap(r.gen)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _ = front.Run(ctx); close(done) }()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var running sync.WaitGroup
	running.Go(func() {
		for range 4 {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() { front.Serve(t.Context(), c, "http") })
		}
	})
	var clients []*wire
	for range 4 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		w := &wire{t, c, bufio.NewReader(c)}
		clients = append(clients, w.warm())
	}
	cancel()
	<-done
	running.Wait()
	for _, w := range clients {
		if _, err := w.rest(); err != nil && !errors.Is(err, io.EOF) {
			t.Logf("ended with %v", err)
		}
	}
	if front.Open() != 0 {
		t.Errorf("%d connections are left", front.Open())
	}
}

// A fault of ours in a loop is a 500 on one connection; the others go on.
func TestLoopPanic(t *testing.T) {
	r := newRig(t, []string{newOrigin(t, answers(ok)).addr})
	w, other := r.dial().warm(), r.dial().warm()
	broken := *r.gen
	broken.Number = 2
	bad := *r.app
	bad.Service = nil // what no engine builds
	m := r.gen.Listeners["http"].Matcher
	broken.Listeners = map[string]*httpproxy.Listener{"http": {Name: "http", Matcher: m, Apps: []*httpproxy.App{&bad}}}
	r.front.Swap(&broken)
	w.send(get("/"))
	if resp, _ := w.answer("GET"); resp.StatusCode != 500 {
		t.Errorf("%d", resp.StatusCode)
	}
	r.front.Swap(r.gen)
	other.warm()
	if r.front.Panics() != 1 {
		t.Errorf("%d panics", r.front.Panics())
	}
	r.until("no lease is lost", func() bool { return r.pool.Table().ByName("as1").Active() == 0 })
}

// Connections go between loop and goroutine for every kind of request, and each gets its own answer.
func TestLoopMixture(t *testing.T) {
	o := newOrigin(t, func(c *originConn) {
		for {
			req, body, err := c.request()
			if err != nil {
				return
			}
			tag := req.URL.Path + "|" + body
			switch req.URL.Query().Get("as") {
			case "chunks":
				_, err = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", len(tag))
				if err == nil {
					_, err = io.WriteString(c, tag+"\r\n0\r\n\r\n")
				}
			case "late":
				if _, err = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(tag)); err == nil {
					_, err = io.WriteString(c, tag)
				}
			case "large":
				tag += strings.Repeat("L", 90<<10)
				fallthrough
			default:
				_, err = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(len(tag))+"\r\n\r\n"+tag)
			case "end":
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"+tag)
				return
			}
			if err != nil {
				return
			}
		}
	})
	r := newRig(t, []string{o.addr}, patient)
	var running sync.WaitGroup
	for k := range 12 {
		running.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(k), 7))
			c, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(60 * time.Second))
			in := bufio.NewReader(c)
			for i := range 150 {
				path := fmt.Sprintf("/%d/%d", k, i)
				as := []string{"", "", "", "chunks", "late", "large", "end"}[rnd.IntN(7)]
				body := strings.Repeat("b", rnd.IntN(3)*rnd.IntN(9000))
				text := "POST " + path + "?as=" + as + " HTTP/1.1\r\nHost: a\r\n"
				switch rnd.IntN(4) {
				case 0:
					text = get(path + "?as=" + as)
					body = ""
				case 1:
					text += "Transfer-Encoding: chunked\r\n\r\n"
					if len(body) > 0 {
						text += fmt.Sprintf("%x\r\n%s\r\n", len(body), body)
					}
					text += "0\r\n\r\n"
				default:
					text += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
				}
				for len(text) > 0 { // in pieces, often
					n := len(text)
					if rnd.IntN(3) == 0 {
						n = 1 + rnd.IntN(n)
					}
					if _, err := io.WriteString(c, text[:n]); err != nil {
						t.Errorf("%s: %v", path, err)
						return
					}
					text = text[n:]
				}
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Errorf("%s as %q: %v", path, as, err)
					return
				}
				got, err := io.ReadAll(resp.Body)
				if want := path + "|" + body; err != nil || resp.StatusCode != 200 || strings.TrimRight(string(got), "L") != want {
					t.Errorf("%s as %q: %d, %d octets for %d, %v", path, as, resp.StatusCode, len(got), len(want), err)
					return
				}
			}
		})
	}
	running.Wait()
}
