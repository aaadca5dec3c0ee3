package h1

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// bubble is a Front in virtual time with one client on a pipe. Requests in it never reach a server.
func bubble(t *testing.T, f func(t *testing.T, front *Front, client net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		front := New(Config{})
		m := &proxy.Matcher{}
		front.Swap(&httpproxy.Generation{Number: 1, Limits: httpproxy.Limits{}.WithDefaults(),
			Listeners: map[string]*httpproxy.Listener{"http": {Name: "http", Matcher: m}}})
		ctx, cancel := context.WithCancel(t.Context())
		client, server := net.Pipe()
		done := make(chan struct{}, 2)
		go func() { _ = front.Run(ctx); done <- struct{}{} }()
		go func() { front.Serve(ctx, server, "http"); done <- struct{}{} }()
		f(t, front, client)
		_ = client.Close()
		cancel()
		<-done
		<-done
	})
}

// within fails unless d is the wanted time, or up to two ticks of the watch later.
func within(t *testing.T, d, want time.Duration) {
	t.Helper()
	if d < want || d > want+2*tick {
		t.Errorf("after %v, want %v", d, want)
	}
}

// HB-8: the time of the head counts from its first octet, however busily the rest dribbles in.
func TestSlowHead(t *testing.T) {
	bubble(t, func(t *testing.T, _ *Front, client net.Conn) {
		start := time.Now()
		dribbled := make(chan bool)
		defer func() { <-dribbled }()
		go func() {
			defer close(dribbled)
			for _, b := range []byte("GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 200)) {
				if _, err := client.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		all, _ := io.ReadAll(client)
		within(t, time.Since(start), 10*time.Second)
		if !bytes.HasPrefix(all, []byte("HTTP/1.1 408 ")) || !bytes.Contains(all, []byte("Connection: close\r\n")) {
			t.Errorf("got %q", all)
		}
	})
}

// Section 19: 75 s between two requests, and no answer to nobody.
func TestIdleClient(t *testing.T) {
	bubble(t, func(t *testing.T, _ *Front, client net.Conn) {
		start := time.Now()
		all, _ := io.ReadAll(client)
		within(t, time.Since(start), 75*time.Second)
		if len(all) > 0 {
			t.Errorf("got %q", all)
		}
	})
}

// A request in between starts the idle time anew: 404 here, for there is no application.
func TestIdleAfterRequest(t *testing.T) {
	bubble(t, func(t *testing.T, _ *Front, client net.Conn) {
		time.Sleep(70 * time.Second)
		go func() { _, _ = io.WriteString(client, get("/")) }()
		b := make([]byte, 4096)
		n, err := client.Read(b)
		if err != nil || !bytes.HasPrefix(b[:n], []byte("HTTP/1.1 404 Not Found\r\n")) {
			t.Fatalf("%q, %v", b[:n], err)
		}
		start := time.Now()
		_, _ = io.ReadAll(client)
		within(t, time.Since(start), 75*time.Second)
	})
}

// Section 11.3: a drain closes idle connections.
func TestDrainClosesIdle(t *testing.T) {
	bubble(t, func(t *testing.T, front *Front, client net.Conn) {
		time.Sleep(time.Second)
		front.Drain(true)
		start := time.Now()
		_, _ = io.ReadAll(client)
		within(t, time.Since(start), 0)
	})
}

// Section 11.3: while the node drains, answers close their connections.
func TestDrainClosesAnswered(t *testing.T) {
	hold := make(chan bool)
	o := newOrigin(t, func(c *originConn) {
		if _, _, err := c.request(); err == nil {
			<-hold
			_, _ = io.WriteString(c, ok)
		}
	})
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send(get("/"))
	r.until("the request at the server", func() bool { return strings.Contains(o.received(), "\r\n\r\n") })
	r.front.Drain(true)
	close(hold)
	resp, body := w.answer("GET")
	if resp.StatusCode != 200 || body != "ok" || !resp.Close {
		t.Errorf("%d %q, close %v", resp.StatusCode, body, resp.Close)
	}
	if rest, err := w.rest(); rest != "" || err != nil {
		t.Errorf("then %q, %v", rest, err)
	}
}

// Section 16 row 20: a fault of ours is a 500, counted, and the process goes on.
func TestPanic(t *testing.T) {
	o := newOrigin(t, answers(ok))
	var log bytes.Buffer
	r := newRig(t, []string{o.addr}, func(_ *rig, c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	broken := *r.gen
	bad := *r.app
	bad.Connect = nil // what no engine builds
	broken.Listeners = map[string]*httpproxy.Listener{"http": {Name: "http", Matcher: r.gen.Listeners["http"].Matcher, Apps: []*httpproxy.App{&bad}}}
	r.front.Swap(&broken)
	w := r.dial()
	w.send(get("/"))
	if resp, _ := w.answer("GET"); resp.StatusCode != 500 || !resp.Close {
		t.Errorf("%d", resp.StatusCode)
	}
	if rec := r.record(); rec.Code != 500 || rec.Disp[0] != 'I' {
		t.Errorf("logged %d %s", rec.Code, rec.Disp)
	}
	r.until("the connection is gone", func() bool { return r.front.Open() == 0 })
	if r.front.Panics() != 1 || !strings.Contains(log.String(), "http connection failed") {
		t.Errorf("%d panics, log %q", r.front.Panics(), log.String())
	}
	r.front.Swap(r.gen)
	again := r.dial()
	again.send(get("/"))
	if resp, _ := again.answer("GET"); resp.StatusCode != 200 {
		t.Errorf("afterwards %d", resp.StatusCode)
	}
	r.until("no lease is lost", func() bool { return r.pool.Table().ByName("as1").Active() == 0 })
}

// Reload: requests before and after see their generation; 404 where no application takes them.
func TestSwap(t *testing.T) {
	o := newOrigin(t, answers(ok))
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send(get("/"))
	w.answer("GET")
	if rec := r.record(); rec.Generation != 1 {
		t.Errorf("generation %d", rec.Generation)
	}
	next := *r.gen
	next.Number = 2
	next.Listeners = map[string]*httpproxy.Listener{"http": {Name: "http", Matcher: &proxy.Matcher{}, Apps: []*httpproxy.App{r.app}}}
	r.front.Swap(&next)
	w.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, body := w.answer("HEAD"); resp.StatusCode != 404 || body != "" || resp.Close || resp.ContentLength == 0 {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	if rec := r.record(); rec.Generation != 2 || string(rec.Disp[:]) != "PK--" || rec.Code != 404 {
		t.Errorf("logged %d %s", rec.Generation, rec.Disp)
	}
	w.send(get("/"))
	if resp, _ := w.answer("GET"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("%d", resp.StatusCode)
	}
}
