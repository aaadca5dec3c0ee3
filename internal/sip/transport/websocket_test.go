package transport

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wyegate/wyegate/internal/websocket"
)

// socket serves one end of a pipe as a WebSocket whose handshake is done, and gives the client's end.
func (r *rig) socket(t testing.TB, l *Listener, early string) (c net.Conn, served chan struct{}) {
	c, s := net.Pipe()
	served = make(chan struct{})
	go func() { r.hub.ServeWebSocket(r.ctx, l, s, addrOf(s.RemoteAddr()).Addr(), []byte(early)); close(served) }()
	t.Cleanup(func() { _ = c.Close(); <-served })
	return c, served
}

var maskingKey = [4]byte{1, 2, 3, 4}

func clientFrame(kind byte, payload string) string {
	return string(websocket.AppendFrame(nil, kind, []byte(payload), &maskingKey))
}

func serverFrame(kind byte, payload string) string {
	return string(websocket.AppendFrame(nil, kind, []byte(payload), nil))
}

// SX-12: one message per WebSocket message; keep-alives, pings and the close are answered, in the kind of frame that the
// client used last; octets right behind the handshake belong to the first frame; any cut gives the same.
func TestSX12Messages(t *testing.T) {
	one, two := request("OPTIONS", "w1", 0), strings.Replace(request("MESSAGE", "w2", 3), "Content-Length: 3\r\n", "", 1)
	in := clientFrame(websocket.Text, one) + clientFrame(websocket.Text, "\r\n\r\n") + clientFrame(websocket.Ping, "hello") +
		clientFrame(websocket.Binary, two) + clientFrame(websocket.Binary, "\r\n\r\n") + clientFrame(websocket.Text, "\r\n") +
		clientFrame(websocket.Close, "\x03\xe8")
	want := serverFrame(websocket.Text, "\r\n") + serverFrame(websocket.Pong, "hello") + serverFrame(websocket.Binary, "\r\n") +
		serverFrame(websocket.Close, "\x03\xe8")
	synctest.Test(t, func(t *testing.T) {
		r, l := bare(t, Config{Node: 7, Workers: 1}, ListenerConfig{Name: "ws", Kind: WS})
		inbox := r.collect(t)
		for cut := range len(in) {
			c, served := r.socket(t, l, in[:cut])
			answers := make(chan string)
			go func() { b, _ := io.ReadAll(c); answers <- string(b) }()
			if _, err := io.WriteString(c, in[cut:]); err != nil {
				t.Fatal(err)
			}
			for _, message := range []string{one, two} {
				if g := next(t, inbox); g.bytes != message || g.msg.Kind != WS || g.msg.Listener != l {
					t.Fatalf("cut at %d: got %q", cut, g.bytes)
				}
			}
			_ = c.SetWriteDeadline(time.Now())
			synctest.Wait()
			<-served
			if got := <-answers; got != want {
				t.Fatalf("cut at %d: answered %q, want %q", cut, got, want)
			}
			if g := next(t, inbox); g.event == nil || g.event.Kind != FlowClosed {
				t.Fatalf("after the end came %+v", g)
			}
		}
	})
}

// A peer that breaks the protocol is told so, and nothing of it reaches a worker.
func TestSX12Faults(t *testing.T) {
	for in, code := range map[string]string{
		serverFrame(websocket.Text, request("OPTIONS", "x", 0)): "\x03\xea", // not masked
		clientFrame(websocket.Text, "a\xff"):                    "\x03\xef",
		"\x82\xff\x00\x00\x00\x7f\x00\x00\x00\x00":              "\x03\xf1",
	} {
		synctest.Test(t, func(t *testing.T) {
			r, l := bare(t, Config{Node: 7, Workers: 1}, ListenerConfig{Name: "ws", Kind: WS})
			inbox := r.collect(t)
			c, _ := r.socket(t, l, in)
			b, _ := io.ReadAll(c)
			if string(b) != serverFrame(websocket.Close, code) {
				t.Errorf("%q: answered %q", in, b)
			}
			if g := next(t, inbox); g.event == nil || g.event.Kind != FlowClosed {
				t.Errorf("%q: a worker got %+v", in, g)
			}
		})
	}
}

// Section 15.2: a ping each 30 s; two without an answer end the connection.
func TestSX12Pings(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r, l := bare(t, Config{Node: 7, Workers: 1}, ListenerConfig{Name: "ws", Kind: WS})
			inbox := r.collect(t)
			c, served := r.socket(t, l, clientFrame(websocket.Text, request("OPTIONS", "p", 0)))
			start := time.Now()
			next(t, inbox)
			var pings atomic.Int32
			go func() {
				b := make([]byte, 2)
				for {
					if _, err := io.ReadFull(c, b); err != nil || string(b) != serverFrame(websocket.Ping, "") {
						return
					}
					if pings.Add(1); answers {
						if _, err := io.WriteString(c, clientFrame(websocket.Pong, "")); err != nil {
							return
						}
					}
				}
			}()
			if answers {
				time.Sleep(10*time.Minute + time.Second)
				synctest.Wait()
				if n := pings.Load(); n != 20 {
					t.Errorf("%d pings in ten minutes", n)
				}
				return
			}
			<-served
			if took := time.Since(start); took != 90*time.Second || pings.Load() != 2 {
				t.Errorf("closed after %v and %d pings", took, pings.Load())
			}
			if g := next(t, inbox); g.event == nil || g.event.Err != errNoPong {
				t.Errorf("closed for %+v", g.event)
			}
		})
	}
}

// What a client does not read, a flood of its own pings included, ends its connection and is bounded.
func TestSX12PingFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := bare(t, Config{Node: 7, Workers: 1, Timers: Timers{QueueLimit: 10000}}, ListenerConfig{Name: "ws", Kind: WS})
		r.collect(t)
		c, served := r.socket(t, l, "")
		_, err := io.WriteString(c, strings.Repeat(clientFrame(websocket.Ping, strings.Repeat("p", 125)), 1000))
		if err == nil {
			t.Error("everything was taken")
		}
		<-served
	})
}

// Messages over WebSocket cost no memory either, on the way in or out.
func TestSX12AllocatesNothing(t *testing.T) {
	f := &flow{hub: New(Config{Node: 1, Workers: 1}), ws: &wsState{}}
	f.wake = make(chan struct{}, 1)
	f.state.Store(living)
	w := &wsFramer{f: f}
	w.Max = 1 << 20
	w.Lend(make([]byte, 0, 8192))
	in := []byte(clientFrame(websocket.Text, request("OPTIONS", "x", 0)))
	f.queue = make([]byte, 0, 8192)
	if n := testing.AllocsPerRun(1000, func() {
		w.Feed(in)
		_, b, _ := w.Next()
		f.queue = f.queue[:0]
		if err := f.enqueue(b, 0); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a message", n)
	}
}
