package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// acceptAll is a server that gives each of its connections to the test.
func acceptAll(t testing.TB) (netip.AddrPort, chan net.Conn) {
	t.Helper()
	s, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 100)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	})
	t.Cleanup(func() {
		_ = s.Close()
		wg.Wait()
		close(conns)
		for c := range conns {
			_ = c.Close()
		}
	})
	return s.Addr().(*net.TCPAddr).AddrPort(), conns
}

// on runs do on a worker and waits for it.
func (r *rig) on(t testing.TB, worker int, do func(o *Out)) {
	t.Helper()
	done := make(chan struct{})
	if !r.hub.Inbox(worker).Post(Event{Kind: Call, Do: func() { do(r.hub.Out(worker)); close(done) }}) {
		t.Fatal("event was not taken")
	}
	<-done
}

func nextConn(t testing.TB, c chan net.Conn) net.Conn {
	t.Helper()
	select {
	case x := <-c:
		_ = x.SetDeadline(time.Now().Add(5 * time.Second))
		return x
	case <-time.After(5 * time.Second):
		t.Fatal("no connection came")
		return nil
	}
}

// Section 19: four connections per server, by affinity; messages of one keep their order; answers come as Outgoing.
func TestFourConnectionsPerServer(t *testing.T) {
	r := newRig(t, Config{Node: 3, Workers: 2})
	l := r.open(t, "127.0.0.1:0", 0, ListenerConfig{Name: "tcp", Kind: TCP})[0]
	in := r.collect(t)
	dst, conns := acceptAll(t)
	flows := map[uint64]bool{}
	for i := range 400 {
		r.on(t, i%2, func(o *Out) {
			id, err := o.ToServer(l, TCP, dst, "", uint32(i%8), fmt.Appendf(nil, "%d:%03d\n", i%4, i))
			if err != nil {
				t.Error(err)
			}
			flows[id] = true
		})
	}
	if len(flows) != 4 {
		t.Fatalf("%d connections", len(flows))
	}
	for range 4 {
		c := nextConn(t, conns)
		defer func() { _ = c.Close() }()
		b := make([]byte, 600)
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
		want := ""
		for i := int(b[0] - '0'); i < 400; i += 4 {
			want += fmt.Sprintf("%d:%03d\n", i%4, i)
		}
		if string(b) != want {
			t.Fatalf("order: %q", b)
		}
		if _, err := io.WriteString(c, "SIP/2.0 200 OK\r\nCall-ID: a\r\nContent-Length: 0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		g := next(t, in)
		if !g.msg.Outgoing || !flows[g.msg.Flow] || g.msg.Remote != dst || g.msg.Listener != l || !g.msg.Local.IsValid() {
			t.Fatalf("answer came as %+v", g.msg)
		}
	}
}

// 9.3: when a server's connection breaks, every worker learns it, and the next message opens another.
func TestServerConnectionBreaks(t *testing.T) {
	r := newRig(t, Config{Node: 3, Workers: 2})
	l := r.open(t, "127.0.0.1:0", 0, ListenerConfig{Name: "tcp", Kind: TCP})[0]
	in := r.collect(t)
	dst, conns := acceptAll(t)
	var first uint64
	r.on(t, 0, func(o *Out) { first, _ = o.ToServer(l, TCP, dst, "", 1, []byte("one")) })
	c := nextConn(t, conns)
	if _, err := io.ReadFull(c, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	for range 2 {
		if g := next(t, in); g.event == nil || g.event.Kind != FlowClosed || g.event.Flow != first || g.event.Remote != dst {
			t.Fatalf("got %+v", g)
		}
	}
	r.on(t, 0, func(o *Out) {
		if err := o.OnFlow(first, []byte("x")); err != ErrFlowGone {
			t.Errorf("a closed flow took a message: %v", err)
		}
		if id, err := o.ToServer(l, TCP, dst, "", 1, []byte("two")); err != nil || id == first {
			t.Errorf("flow %x again, %v", id, err)
		}
	})
	c = nextConn(t, conns)
	defer func() { _ = c.Close() }()
	b := make([]byte, 3)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "two" {
		t.Fatalf("%q, %v", b, err)
	}
}

// SX-15: a refused connect is told at once, to those who asked.
func TestSX15RefusedConnect(t *testing.T) {
	r := newRig(t, Config{Node: 3, Workers: 3})
	l := r.open(t, "127.0.0.1:0", 0, ListenerConfig{Name: "tcp", Kind: TCP})[0]
	in := r.collect(t)
	s, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dst := s.Addr().(*net.TCPAddr).AddrPort()
	_ = s.Close()
	var id uint64
	// The refusal may be there before the message is queued: then the call itself says so, and nobody waits for an event.
	for range 50 {
		r.on(t, 2, func(o *Out) { id, err = o.ToServer(l, TCP, dst, "", 1, []byte("one")) })
		if !errors.Is(err, ErrFlowGone) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	g := next(t, in)
	if g.event == nil || g.event.Kind != FlowFailed || g.event.Flow != id || g.event.Remote != dst || g.worker != 2 ||
		!errors.Is(g.event.Err, unix.ECONNREFUSED) {
		t.Fatalf("got %+v %+v", g, g.event)
	}
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	if len(r.hub.servers) != 0 {
		t.Fatal("a server without connections is still known")
	}
}

// Section 19: 2 s for a connect; what is queued meanwhile is bounded, and nobody waits.
func TestConnectTimeoutAndQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ Kind, source netip.Addr, _ netip.AddrPort, _ string) (net.Conn, error) {
			if source != netip.MustParseAddr("127.0.0.9") {
				t.Errorf("source %v", source)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r, l := bare(t, Config{Node: 1, Workers: 1, Dial: hang, Settings: Settings{
			Source: func(Kind, netip.AddrPort) netip.Addr { return netip.MustParseAddr("127.0.0.9") }}},
			ListenerConfig{Name: "tcp", Kind: TCP})
		in := r.collect(t)
		start := time.Now()
		r.on(t, 0, func(o *Out) {
			var err error
			n := 0
			for ; err == nil && n < 1000; n++ {
				_, err = o.ToServer(l, TCP, netip.MustParseAddrPort("192.0.2.1:5060"), "", 0, make([]byte, 8<<10))
			}
			if err != ErrFull || n != 129 {
				t.Errorf("%v at message %d of 8 KiB", err, n)
			}
		})
		if g := next(t, in); g.event.Kind != FlowFailed || !errors.Is(g.event.Err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("%+v after %v", g.event, time.Since(start))
		}
	})
}

// SX-3, SX-8: no way to a destination that cannot be one, and none by a transport that we only serve.
func TestToServerRefuses(t *testing.T) {
	r, l := bare(t, Config{Node: 1, Workers: 1}, ListenerConfig{Name: "tcp", Kind: TCP})
	r.collect(t)
	r.on(t, 0, func(o *Out) {
		for _, c := range []struct {
			kind Kind
			dst  string
		}{{WS, "127.0.0.1:1"}, {UDP, "127.0.0.1:1"}, {TCP, "0.0.0.0:1"}, {TCP, "224.0.0.1:1"}, {TCP, "255.255.255.255:1"}, {TCP, "127.0.0.1:0"}} {
			if _, err := o.ToServer(l, c.kind, netip.MustParseAddrPort(c.dst), "", 0, []byte("x")); err == nil {
				t.Errorf("%v to %s was taken", c.kind, c.dst)
			}
		}
	})
}

// 12.4: a slow reader of a server is a transport error: FlowClosed after the write deadline.
func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far, near := net.Pipe()
		r, l := bare(t, Config{Node: 1, Workers: 1, Dial: func(context.Context, Kind, netip.Addr, netip.AddrPort, string) (net.Conn, error) {
			return near, nil
		}}, ListenerConfig{Name: "tcp", Kind: TCP})
		defer func() { _ = far.Close() }()
		in := r.collect(t)
		start := time.Now()
		r.on(t, 0, func(o *Out) {
			_, err := o.ToServer(l, TCP, netip.MustParseAddrPort("192.0.2.1:5060"), "", 0, []byte("x"))
			if err != nil {
				t.Error(err)
			}
		})
		if g := next(t, in); g.event.Kind != FlowClosed || time.Since(start) != 5*time.Second {
			t.Errorf("%+v after %v", g.event, time.Since(start))
		}
	})
}

// The answers of a server are not held to the rates of clients, and a stream that a server breaks is told like any other.
func TestBrokenServerStream(t *testing.T) {
	r := newRig(t, Config{Node: 3, Workers: 1})
	l := r.open(t, "127.0.0.1:0", 0, ListenerConfig{Name: "tcp", Kind: TCP})[0]
	in := r.collect(t)
	dst, conns := acceptAll(t)
	r.on(t, 0, func(o *Out) { _, _ = o.ToServer(l, TCP, dst, "", 1, []byte("one")) })
	c := nextConn(t, conns)
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, strings.Replace(request("OPTIONS", "q", 0), "Content-Length: 0\r\n", "", 1))
	if g := next(t, in); g.msg.Bad == nil || !g.msg.Outgoing || g.msg.Bad.Status != 400 {
		t.Fatalf("got %+v", g)
	}
	r.on(t, 0, func(o *Out) { o.CloseAfter(next1(r)) })
	if g := next(t, in); g.event == nil || g.event.Kind != FlowClosed {
		t.Fatalf("got %+v", g)
	}
}

// next1 is the only flow of a hub.
func next1(r *rig) (id uint64) {
	r.hub.flows.each(func(f *flow) { id = f.id })
	return id
}
