package h1

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/proxy/httpproxy"
	"github.com/wyegate/wyegate/routing"
)

// deadAddr is an address of ours where nobody listens.
func deadAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

const post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"

// HB-3 (a), 9.7: a refused connect moves any request to another server, and the session with it.
func TestConnectRefusedMoves(t *testing.T) {
	o := newOrigin(t, answers("HTTP/1.1 200 OK\r\nSet-Cookie: JSESSIONID=1\r\nContent-Length: 2\r\n\r\nok"))
	r := newRig(t, []string{deadAddr(t), o.addr})
	w := r.dial()
	moved := false
	for range 4 {
		w.send(post)
		if resp, body := w.answer("POST"); resp.StatusCode != 200 || body != "ok" {
			t.Fatalf("%d %q", resp.StatusCode, body)
		}
		rec := r.record()
		if rec.Server != "as2" {
			t.Errorf("served by %s", rec.Server)
		}
		if rec.NumTried == 2 {
			moved = true
			if rec.Disp != [4]byte{'-', '-', 'N', '2'} || rec.Tried[0] != "as1" {
				t.Errorf("logged %s %v", rec.Disp, rec.Tried)
			}
		}
	}
	if !moved {
		t.Error("as1 was never tried")
	}
	if s := r.pool.Table().ByName("as1"); !s.Refused(routing.HTTP) {
		t.Error("a refused connect is not known")
	}
}

// 9.7: nobody left: 502, and 503 with Retry-After once all are known to be down.
func TestNoServerLeft(t *testing.T) {
	r := newRig(t, []string{deadAddr(t), deadAddr(t)})
	w := r.dial()
	w.send(post)
	if resp, _ := w.answer("POST"); resp.StatusCode != 502 || resp.Close {
		t.Errorf("%d, close %v", resp.StatusCode, resp.Close)
	}
	if rec := r.record(); string(rec.Disp[:]) != "SCNX" || rec.NumTried != 2 {
		t.Errorf("logged %s %d", rec.Disp, rec.NumTried)
	}
	w.send(get("/"))
	resp, _ := w.answer("GET")
	if n := resp.Header.Get("Retry-After"); resp.StatusCode != 503 || len(n) == 0 || n < "10" && n < "5" {
		t.Errorf("%d, retry after %q", resp.StatusCode, n)
	}
	if rec := r.record(); string(rec.Disp[:]) != "RQNX" || rec.Code != 503 {
		t.Errorf("logged %s", rec.Disp)
	}
}

// HB-3 (b): a pooled connection that the server closed is no failure: the same server, a new connection. A request that
// can't be repeated is not put on it either.
func TestStalePooledConnection(t *testing.T) {
	for _, req := range []string{get("/"), post} {
		closed := make(chan bool, 8)
		o := newOrigin(t, func(c *originConn) {
			if _, _, err := c.request(); err == nil {
				_, _ = io.WriteString(c, ok)
			}
			_ = c.Close()
			closed <- true
		})
		r := newRig(t, []string{o.addr})
		w := r.dial()
		for i := range 3 {
			w.send(req)
			if resp, body := w.answer("POST"); resp.StatusCode != 200 || body != "ok" {
				t.Fatalf("request %d: %d %q", i, resp.StatusCode, body)
			}
			<-closed
			if rec := r.record(); rec.NumTried != 1 || rec.Disp[3] != '-' {
				t.Errorf("logged %v %s", rec.NumTried, rec.Disp)
			}
		}
	}
}

// HF-7: what a server says on an idle connection is given to nobody.
func TestUnaskedBytesPoisonNobody(t *testing.T) {
	var first atomic.Bool
	spoke := make(chan bool, 1)
	speak := make(chan bool)
	o := newOrigin(t, func(c *originConn) {
		for {
			if _, _, err := c.request(); err != nil {
				return
			}
			_, _ = io.WriteString(c, ok)
			if first.CompareAndSwap(false, true) {
				<-speak
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
				spoke <- true
			}
		}
	})
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send(get("/1"))
	w.answer("GET")
	close(speak)
	<-spoke
	time.Sleep(20 * time.Millisecond) // the octets must be at our socket, which nobody can wait for
	w.send(get("/2"))
	if _, body := w.answer("GET"); body != "ok" {
		t.Errorf("the next request got %q", body)
	}
	if n := o.connections(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// HB-3: a server that took the request and left: idempotent requests go elsewhere, others are 502 and never sent twice.
func TestServerLeavesAfterRequest(t *testing.T) {
	var seen atomic.Int32
	gone := newOrigin(t, func(c *originConn) {
		if _, _, err := c.request(); err == nil {
			seen.Add(1)
		}
	})
	o := newOrigin(t, answers(ok))
	r := newRig(t, []string{gone.addr, o.addr})
	w := r.dial()
	results := map[int]int{}
	for range 8 {
		w.send(post)
		resp, _ := w.answer("POST")
		results[resp.StatusCode]++
	}
	if results[502] != int(seen.Load()) || results[502] == 0 || results[502]+results[200] != 8 {
		t.Errorf("%v, seen %d times", results, seen.Load())
	}
	before := seen.Load()
	for range 8 {
		w.send(get("/"))
		if resp, body := w.answer("GET"); resp.StatusCode != 200 || body != "ok" {
			t.Fatalf("%d %q", resp.StatusCode, body)
		}
	}
	if seen.Load() == before {
		t.Skip("the server that leaves got none: it was ejected")
	}
}

// HB-9: what a client breaks is 400, 408 or 499, counts against nobody and is not tried again.
func TestClientFaults(t *testing.T) {
	var requests atomic.Int32
	o := newOrigin(t, func(c *originConn) {
		for {
			if _, err := c.head(); err != nil {
				return
			}
			requests.Add(1)
			if _, err := io.Copy(io.Discard, c.r); err != nil {
				return
			}
		}
	})
	r := newRig(t, []string{o.addr}, limits(func(l *httpproxy.Limits) { l.BodyIdle = 300 * time.Millisecond }))
	bad := r.dial()
	bad.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
	r.until("its head at the server", func() bool { return requests.Load() == 1 })
	bad.send("zz\r\n")
	if resp, _ := bad.answer("POST"); resp.StatusCode != 400 || !resp.Close {
		t.Errorf("bad chunk: %d", resp.StatusCode)
	}
	if rec := r.record(); rec.Code != 400 || rec.Disp[0] != 'P' || rec.NumTried != 1 {
		t.Errorf("bad chunk: logged %d %s", rec.Code, rec.Disp)
	}
	slow := r.dial()
	slow.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
	if resp, _ := slow.answer("POST"); resp.StatusCode != 408 || !resp.Close {
		t.Errorf("slow body: %d", resp.StatusCode)
	}
	if rec := r.record(); rec.Code != 408 || rec.Disp[0] != 'T' {
		t.Errorf("slow body: logged %d %s", rec.Code, rec.Disp)
	}
	gone := r.dial()
	gone.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
	r.until("its head at the server", func() bool { return requests.Load() == 3 })
	_ = gone.Close()
	if rec := r.record(); rec.Code != 499 || rec.Disp[0] != 'C' {
		t.Errorf("gone: logged %d %s", rec.Code, rec.Disp)
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests at the server", n)
	}
	if s := r.pool.Table().ByName("as1"); !s.AcceptsNew(routing.HTTP) || s.Active() != 0 {
		t.Errorf("the server's health suffered: %s, %d active", s.Word(routing.HTTP), s.Active())
	}
}

// HB-9, section 16 row 12: a client that leaves while the server works is noticed, and the server's side ends.
func TestClientLeavesWhileWaiting(t *testing.T) {
	ended := make(chan bool)
	o := newOrigin(t, func(c *originConn) {
		if _, _, err := c.request(); err != nil {
			return
		}
		_, _ = c.Conn.Read(make([]byte, 1))
		close(ended)
	})
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send(get("/"))
	r.until("the request at the server", func() bool { return strings.Contains(o.received(), "\r\n\r\n") })
	_ = w.Close()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the server's connection stays")
	}
	if rec := r.record(); rec.Code != 499 || string(rec.Disp[:3]) != "CWN" {
		t.Errorf("logged %d %s", rec.Code, rec.Disp)
	}
}

// A server that never answers: 504 after its time, and it counts.
func TestServerSilent(t *testing.T) {
	o := newOrigin(t, func(c *originConn) { _, _ = io.Copy(io.Discard, c.r) })
	r := newRig(t, []string{o.addr}, limits(func(l *httpproxy.Limits) { l.ResponseTimeout = 300 * time.Millisecond }))
	w := r.dial()
	w.send(get("/"))
	if resp, _ := w.answer("GET"); resp.StatusCode != 504 {
		t.Errorf("%d", resp.StatusCode)
	}
	if rec := r.record(); string(rec.Disp[:]) != "TWN-" {
		t.Errorf("logged %s", rec.Disp)
	}
}

// Section 19: connections per server are bounded; who waits longer than a second gets 503.
func TestServerConnectionsBounded(t *testing.T) {
	hold := make(chan bool)
	o := newOrigin(t, func(c *originConn) {
		for {
			if _, _, err := c.request(); err != nil {
				return
			}
			<-hold
			_, _ = io.WriteString(c, ok)
		}
	})
	r := newRig(t, []string{o.addr}, func(_ *rig, c *Config) { c.PerServer, c.ServerWait = 2, 200*time.Millisecond })
	a, b, c, d := r.dial(), r.dial(), r.dial(), r.dial()
	a.send(get("/"))
	b.send(get("/"))
	r.until("two requests at the server", func() bool { return strings.Count(o.received(), "\r\n\r\n") == 2 })
	c.send(get("/"))
	if resp, _ := c.answer("GET"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d", resp.StatusCode)
	}
	if rec := r.record(); string(rec.Disp[:2]) != "RQ" {
		t.Errorf("logged %s", rec.Disp)
	}
	d.send(get("/"))
	close(hold)
	for _, w := range []*wire{a, b, d} {
		if resp, _ := w.answer("GET"); resp.StatusCode != 200 {
			t.Errorf("%d", resp.StatusCode)
		}
	}
	if n := o.connections(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// HS-1, HS-3, section 7: a session stays with its server, moves for good when that is down, and a forged cookie is none.
func TestStickySession(t *testing.T) {
	named := func(name string) func(*originConn) {
		return func(c *originConn) {
			for {
				req, _, err := c.request()
				if err != nil {
					return
				}
				set := ""
				if req.URL.Path == "/login" {
					set = "Set-Cookie: JSESSIONID=x\r\n"
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+set+"Content-Length: 3\r\n\r\n"+name)
			}
		}
	}
	one, two := newOrigin(t, named("as1")), newOrigin(t, named("as2"))
	r := newRig(t, []string{one.addr, two.addr})
	w := r.dial()
	ask := func(path string, fields ...string) (*http.Response, string) {
		w.send(get(path, fields...))
		return w.answer("GET")
	}
	resp, home := ask("/login")
	lines := resp.Header.Values("Set-Cookie")
	if len(lines) != 2 || !strings.HasPrefix(lines[1], "WGROUTE=") || !strings.HasSuffix(lines[1], "; Path=/; HttpOnly; SameSite=Lax") {
		t.Fatalf("cookies %q", lines)
	}
	token, _, _ := strings.Cut(strings.TrimPrefix(lines[1], "WGROUTE="), ";")
	for range 6 {
		if resp, body := ask("/", "Cookie: x=y; WGROUTE="+token); body != home || resp.Header.Get("Set-Cookie") != "" {
			t.Fatalf("strayed to %s, %v", body, resp.Header)
		}
	}
	if _, body := ask("/login", "Cookie: WGROUTE="+strings.ToUpper(token)); body != home {
		t.Error("upper case is another token")
	}
	if _, body := ask("/a;wgroute=" + token + "/b"); body != home {
		t.Error("the path parameter does not count")
	}
	for range 4 {
		if _, body := ask("/", "Cookie: JSESSIONID=\"abc.def."+home+"\""); body != home {
			t.Error("the route behind the session id does not count")
		}
		if _, body := ask("/x;jsessionid=abc." + home + "?q"); body != home {
			t.Error("the route in the path does not count")
		}
	}
	seen := map[string]int{}
	for range 4 {
		_, body := ask("/", "Cookie: WGROUTE="+token[:len(token)-2]+"aa")
		seen[body]++
	}
	if seen["as1"] != 2 || seen["as2"] != 2 {
		t.Errorf("forged cookies went to %v", seen)
	}
	m := r.pool.Table().ByName(home)
	r.pool.SetAdmin(m.Server, routing.Drain, "test", time.Now())
	if _, body := ask("/", "Cookie: WGROUTE="+token); body != home {
		t.Error("a drained server lost its session")
	}
	r.pool.SetAdmin(m.Server, routing.Maint, "test", time.Now())
	resp, other := ask("/", "Cookie: WGROUTE="+token)
	if other == home || !strings.HasPrefix(resp.Header.Get("Set-Cookie"), "WGROUTE=") {
		t.Fatalf("still at %s, cookie %q", other, resp.Header.Get("Set-Cookie"))
	}
	moved, _, _ := strings.Cut(strings.TrimPrefix(resp.Header.Get("Set-Cookie"), "WGROUTE="), ";")
	r.pool.SetAdmin(m.Server, routing.Ready, "test", time.Now())
	for range 3 {
		if _, body := ask("/", "Cookie: WGROUTE="+moved); body != other {
			t.Error("the session did not move for good")
		}
	}
}

// 9.7: the failover of a session sets the cookie for the server that answered, in the answer of that server only.
func TestCookieNamesWhoAnswered(t *testing.T) {
	o := newOrigin(t, answers(ok))
	dead := deadAddr(t)
	r := newRig(t, []string{dead, o.addr})
	var c proxy.Codec
	tok := proxy.Token{HasServer: true, Pinned: true, App: r.app.Target.Tag, Server: routing.Tag("as1")}
	text := string(c.AppendToken(nil, r.gen.Secrets, proxy.UseHTTP, &tok))
	w := r.dial()
	w.send(get("/", "Cookie: WGROUTE="+text))
	resp, _ := w.answer("GET")
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	cookie := resp.Header.Get("Set-Cookie")
	value, _, _ := strings.Cut(strings.TrimPrefix(cookie, "WGROUTE="), ";")
	var back proxy.Token
	if err := c.ReadToken([]byte(value), r.gen.Secrets, proxy.UseHTTP, &back); err != nil || back.Server != routing.Tag("as2") {
		t.Errorf("cookie %q names %d, %v", cookie, back.Server, err)
	}
}
