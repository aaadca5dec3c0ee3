package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/websocket"
)

// wsServer is a server whose connections the test has, with the times at which they were opened.
type wsServer struct {
	mu    sync.Mutex
	down  bool
	times []time.Duration
	start time.Time
	conns chan net.Conn
}

var wsServerAt = netip.MustParseAddrPort("192.0.2.9:8080")

func newWSServer() *wsServer { return &wsServer{start: time.Now(), conns: make(chan net.Conn, 10)} }

func (s *wsServer) dial(context.Context, Kind, netip.Addr, netip.AddrPort, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, time.Since(s.start))
	if s.down {
		return nil, errors.New("refused")
	}
	near, far := net.Pipe()
	s.conns <- far
	return near, nil
}

// again begins to note times anew; down: connections are refused from now on.
func (s *wsServer) again(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.start, s.times = down, time.Now(), nil
}

func (s *wsServer) opened() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.times)
}

// accept takes the next connection and its handshake.
func (s *wsServer) accept(t *testing.T) net.Conn {
	t.Helper()
	c := <-s.conns
	var h http1.Head
	buf := make([]byte, 0, 1024)
	for {
		n, err := c.Read(buf[len(buf):cap(buf)])
		if err != nil {
			t.Fatal(err)
		}
		buf = buf[:len(buf)+n]
		if n, err := h.ParseRequest(buf, &handshakeLimits); err != nil {
			t.Fatal(err)
		} else if n > 0 {
			break
		}
	}
	rules := websocket.Rules{Path: "/sip", Protocol: "sip"}
	answer, status := rules.Accept(nil, &h)
	if _, err := c.Write(answer); err != nil || status != 101 {
		t.Fatalf("%d %v", status, err)
	}
	return c
}

func keepServer(l *Listener) []WebSocketServer {
	return []WebSocketServer{{Listener: l, Kind: WS, Dst: wsServerAt, Opening: websocket.Opening{Host: "as1", Path: "/sip", Protocol: "sip"}}}
}

// Section 15, servers: the connection is opened before anybody needs it, carries messages both ways in masked frames, and
// comes back after half a second, then after twice as long each time; what is sent meanwhile fails at once.
func TestWebSocketServerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWSServer()
		r, l := bare(t, Config{Node: 1, Workers: 1, Dial: s.dial}, ListenerConfig{Name: "sip", Kind: TCP})
		in := r.collect(t)
		send := func() (err error) {
			r.on(t, 0, func(o *Out) { _, err = o.ToServer(l, WS, wsServerAt, "", 7, []byte("hello")) })
			return err
		}
		if err := send(); !errors.Is(err, ErrKind) { // nobody said that such a server exists
			t.Fatal(err)
		}
		r.hub.KeepWebSockets(keepServer(l))
		c := s.accept(t)
		if err := send(); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 2+4+5)
		if _, err := io.ReadFull(c, b); err != nil || b[0] != 0x81 || b[1] != 0x85 {
			t.Fatalf("% x, %v", b, err)
		}
		for i := range 5 {
			b[6+i] ^= b[2+i%4]
		}
		if string(b[6:]) != "hello" {
			t.Fatalf("%q", b[6:])
		}
		text := request("OPTIONS", "from-server", 0)
		go func() { _, _ = io.WriteString(c, serverFrame(websocket.Text, text)) }()
		if g := next(t, in); g.bytes != text || !g.msg.Outgoing || g.msg.Kind != WS || g.msg.Remote != wsServerAt {
			t.Fatalf("%+v", g)
		}
		s.again(true)
		c.Close()
		if g := next(t, in); g.event == nil || g.event.Kind != FlowClosed {
			t.Fatalf("%+v", g)
		}
		if err := send(); !errors.Is(err, ErrFlowGone) {
			t.Errorf("sent while it is away: %v", err)
		}
		time.Sleep(45 * time.Second)
		times, want := s.opened(), []time.Duration{500, 1000, 2000, 4000, 8000, 10000, 10000}
		at := time.Duration(0)
		for i, w := range want {
			w *= time.Millisecond
			if i >= len(times) || times[i]-at < w || times[i]-at > w+w/10 {
				t.Fatalf("opened again at %v, want gaps of %v", times, want)
			}
			at = times[i]
		}
		s.again(false)
		c = s.accept(t)
		if err := send(); err != nil {
			t.Errorf("after it came back: %v", err)
		}
		go func() { _, _ = io.Copy(io.Discard, c) }()
		s.again(false)
		synctest.Wait()
		c.Close()
		next(t, in)
		c = s.accept(t)
		defer c.Close()
		if times := s.opened(); len(times) != 1 || times[0] > time.Second {
			t.Errorf("a connection that lived comes back after %v", times)
		}
	})
}

// A server that left the configuration is told within a ping, and nobody calls again.
func TestWebSocketServerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWSServer()
		r, l := bare(t, Config{Node: 1, Workers: 1, Dial: s.dial}, ListenerConfig{Name: "sip", Kind: TCP})
		in := r.collect(t)
		r.hub.KeepWebSockets(keepServer(l))
		c := s.accept(t)
		r.hub.KeepWebSockets(keepServer(l)) // nothing changes
		synctest.Wait()
		if times := s.opened(); len(times) != 1 {
			t.Errorf("opened at %v", times)
		}
		r.hub.KeepWebSockets(nil)
		end := websocket.AppendClose(nil, websocket.CodeGone, &[4]byte{})
		got := make([]byte, len(end))
		if _, err := io.ReadFull(c, got); err != nil || got[0] != end[0] || got[1] != end[1] {
			t.Errorf("% x, %v", got, err)
		}
		if waited := time.Since(s.start); waited > pingEvery+2*time.Second {
			t.Errorf("told after %v", waited)
		}
		c.Close()
		if g := next(t, in); g.event == nil || g.event.Kind != FlowClosed {
			t.Errorf("%+v", g)
		}
		time.Sleep(time.Minute)
		if times := s.opened(); len(times) != 1 {
			t.Errorf("opened again at %v", times)
		}
	})
}
