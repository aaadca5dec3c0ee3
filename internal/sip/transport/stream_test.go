package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wyegate/wyegate/internal/limit"
	"github.com/wyegate/wyegate/internal/listen"
)

// bare is a hub with one stream listener and no socket: connections are pipes.
func bare(t testing.TB, cfg Config, lc ListenerConfig) (*rig, *Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &rig{hub: New(cfg), ctx: ctx}
	done := make(chan struct{})
	go func() { _ = r.hub.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	l, err := r.hub.Open(lc, &listen.Socket{Network: listen.TCP, Addr: netip.MustParseAddrPort("192.0.2.1:5060")})
	if err != nil {
		t.Fatal(err)
	}
	r.hub.Use([]*Listener{l})
	return r, l
}

// pipe serves one end and gives the other; served is closed when Serve has returned.
func (r *rig) pipe(t testing.TB, l *Listener) (c net.Conn, served chan struct{}) {
	c, s := net.Pipe()
	served = make(chan struct{})
	go func() { r.hub.Serve(r.ctx, l, s); close(served) }()
	t.Cleanup(func() { _ = c.Close(); <-served })
	return c, served
}

// conversation has messages, pings, a pong, a fold, a body and lines between messages.
var (
	inConversation = []string{
		request("INVITE", "a1", 5), request("ACK", "a1", 0),
		strings.Replace(request("MESSAGE", "b2", 3), "CSeq:", "Subject: one\r\n two\r\nCSeq:", 1), request("BYE", "a1", 0),
	}
	conversation = "\r\n\r\n" + inConversation[0] + "\r\n" + inConversation[1] + "\r\n\r\n" + inConversation[2] + inConversation[3]
)

// SX-5: any split gives the same messages; SX-6: and the same pongs.
func TestSX5CutAtEveryOctet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := bare(t, Config{Node: 7, Workers: 1}, ListenerConfig{Name: "tcp", Kind: TCP})
		in := r.collect(t)
		for cut := 1; cut < len(conversation); cut++ {
			c, _ := r.pipe(t, l)
			pongs := make(chan string)
			go func() { b, _ := io.ReadAll(c); pongs <- string(b) }()
			for _, part := range []string{conversation[:cut], conversation[cut:]} {
				if _, err := io.WriteString(c, part); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			for _, want := range inConversation {
				g := next(t, in)
				if g.bytes != want {
					t.Fatalf("cut at %d: got %q, want %q", cut, g.bytes, want)
				}
				if g.msg.Kind != TCP || g.msg.Flow>>48 != 7 || g.msg.Listener != l || g.msg.Outgoing || g.msg.Bad != nil {
					t.Fatalf("message came as %+v", g.msg)
				}
			}
			_ = c.Close()
			if p := <-pongs; p != "\r\n\r\n" {
				t.Fatalf("cut at %d: answers to the two pings: %q", cut, p)
			}
			synctest.Wait()
			if g := next(t, in); g.event == nil || g.event.Kind != FlowClosed {
				t.Fatalf("after the end came %+v", g)
			}
		}
	})
}

// Sections 12 and 19: which silence ends a connection, and when.
func TestStreamTimers(t *testing.T) {
	q := request("OPTIONS", "t1", 10)
	head := strings.Index(q, "\r\n\r\n") + 4
	for _, c := range []struct {
		name  string
		write []string // one each 4 s
		want  time.Duration
		why   error
	}{
		{"nothing comes", nil, 30 * time.Second, errTooSlow},
		{"only pings come", []string{"\r\n\r\n"}, 30 * time.Second, errTooSlow},
		{"half a head", []string{q[:20]}, 10 * time.Second, errTooSlow},
		{"a head that drips", []string{q[:20], q[20:30], q[30:40], q[40:50]}, 10 * time.Second, errTooSlow},
		{"half a body", []string{q[:head], q[head : head+1]}, 30 * time.Second, errTooSlow},
		{"one message, then silence", []string{q}, 15 * time.Minute, errIdle},
		{"silence counts from the last octet", []string{q, "\r\n\r\n"}, 15*time.Minute + 4*time.Second, errIdle},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := bare(t, Config{Node: 1, Workers: 1}, ListenerConfig{Name: "tcp", Kind: TCP})
				in := r.collect(t)
				start := time.Now()
				conn, served := r.pipe(t, l)
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				took := make(chan time.Duration, 1)
				go func() { <-served; took <- time.Since(start) }()
				for i, w := range c.write {
					if i > 0 {
						time.Sleep(4 * time.Second)
					}
					if _, err := io.WriteString(conn, w); err != nil && i < 3 {
						t.Fatal(err)
					}
				}
				if took := <-took; took != c.want {
					t.Errorf("closed after %v, want %v", took, c.want)
				}
				var last got
				for last.event == nil {
					last = next(t, in)
				}
				if last.event.Err != c.why {
					t.Errorf("closed for %v, want %v", last.event.Err, c.why)
				}
			})
		})
	}
}

// Section 11.5: an old connection is closed once it is quiet, spread by the jitter.
func TestConnectionAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := bare(t, Config{Node: 1, Workers: 1, Timers: Timers{Idle: 100 * time.Hour}},
			ListenerConfig{Name: "tcp", Kind: TCP, MaxAge: time.Hour, AgeJitter: 0.2})
		r.collect(t)
		var ages []time.Duration
		for range 20 {
			start := time.Now()
			c, served := r.pipe(t, l)
			if _, err := io.WriteString(c, request("REGISTER", "r", 0)); err != nil {
				t.Fatal(err)
			}
			<-served
			ages = append(ages, time.Since(start))
		}
		low, high := ages[0], ages[0]
		for _, a := range ages {
			low, high = min(low, a), max(high, a)
		}
		if low < 48*time.Minute || high > 72*time.Minute+askAged || high-low < time.Minute { // at its age the workers are asked first
			t.Fatalf("ages from %v to %v", low, high)
		}
		// While a worker has a transaction open on it, and while something goes over it, it stays; pings alone do not keep it.
		r.busy.Store(true)
		start := time.Now()
		c, served := r.pipe(t, l)
		go func() { _, _ = io.Copy(io.Discard, c) }()
		if _, err := io.WriteString(c, request("INVITE", "r", 0)); err != nil {
			t.Fatal(err)
		}
		for time.Since(start) < 90*time.Minute {
			if _, err := io.WriteString(c, "\r\n\r\n"); err != nil {
				t.Fatalf("a busy connection was closed after %v", time.Since(start))
			}
			time.Sleep(30 * time.Second)
		}
		r.busy.Store(false)
		free := time.Now()
		for range 50 {
			if _, err := io.WriteString(c, request("ACK", "r", 0)); err != nil {
				t.Fatalf("a connection in use was closed after %v", time.Since(free))
			}
			time.Sleep(200 * time.Millisecond)
		}
		<-served
		if took := time.Since(free); took > 13*time.Second {
			t.Fatalf("closed %v after the end of its transaction", took)
		}
	})
}

// SX-5: what cannot be framed is handed over once, so that it can be answered, and the connection ends with the answer.
func TestSX5BrokenStreamIsAnsweredThenClosed(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 2})
	l := r.open(t, "127.0.0.1:0", 0, ListenerConfig{Name: "tcp", Kind: TCP})[0]
	r.work(t, func(o *Out, g got) {
		if g.event != nil {
			return
		}
		answer := "SIP/2.0 200 OK\r\n\r\n"
		if g.msg.Bad != nil {
			answer = fmt.Sprintf("SIP/2.0 %d %s\r\n\r\n", g.msg.Bad.Status, g.msg.Bad.Reason)
		}
		if err := o.OnFlow(g.msg.Flow, []byte(answer)); err != nil {
			t.Error(err)
		}
		if g.msg.Bad != nil {
			o.CloseAfter(g.msg.Flow)
		}
	})
	c, err := net.Dial("tcp", l.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	good := request("OPTIONS", "x", 0)
	bad := strings.Replace(good, "Content-Length: 0", "Content-Length: -1", 1)
	start := time.Now()
	if _, err := io.WriteString(c, good+bad+strings.Repeat("rubbish", 10000)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("read %q, then %v", b, err)
	}
	if string(b) != "SIP/2.0 200 OK\r\n\r\nSIP/2.0 400 Bad Request\r\n\r\n" {
		t.Fatalf("got %q", b)
	}
	if took := time.Since(start); took > time.Second {
		t.Fatalf("closed after %v", took)
	}
}

// SX-5: no SIP at all: closed, with no word, and no message for a worker.
func TestSX5NotSIPIsClosed(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 1})
	l := r.open(t, "127.0.0.1:0", 0, ListenerConfig{Name: "tcp", Kind: TCP})[0]
	in := r.collect(t)
	for _, s := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\x16\x03\x01\x02\x00\x01", "\x00\x01\x02",
		"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n" + request("OPTIONS", "x", 0)} {
		c, err := net.Dial("tcp", l.Addr.String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, s)
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if b, err := io.ReadAll(c); len(b) > 0 || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%q: got %q, %v", s, b, err)
		}
		_ = c.Close()
		if g := next(t, in); g.event == nil || g.event.Kind != FlowClosed {
			t.Errorf("%q: a worker got %+v", s, g)
		}
	}
	if n := l.Counters().Unframed.Load(); n != 4 {
		t.Errorf("%d unframed streams counted", n)
	}
}

// Section 12.4: a client that does not read is closed when its queue is full, or a write takes too long; nobody waits.
func TestSlowClientIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := bare(t, Config{Node: 1, Workers: 1}, ListenerConfig{Name: "tcp", Kind: TCP})
		full := make(chan error, 1)
		r.work(t, func(o *Out, g got) {
			var err error
			for i := 0; g.event == nil && i < 200 && err == nil; i++ {
				err = o.OnFlow(g.msg.Flow, make([]byte, 10000))
			}
			if g.event == nil {
				full <- err
			}
		})
		start := time.Now()
		c, served := r.pipe(t, l)
		if _, err := io.WriteString(c, request("OPTIONS", "x", 0)); err != nil {
			t.Fatal(err)
		}
		<-served
		if err := <-full; err != ErrFull || time.Since(start) > 0 {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r, l := bare(t, Config{Node: 1, Workers: 1}, ListenerConfig{Name: "tcp", Kind: TCP})
		r.work(t, func(o *Out, g got) {
			if g.event == nil {
				_ = o.OnFlow(g.msg.Flow, make([]byte, 10000))
			}
		})
		start := time.Now()
		c, served := r.pipe(t, l)
		if _, err := io.WriteString(c, request("OPTIONS", "x", 0)); err != nil {
			t.Fatal(err)
		}
		<-served
		if took := time.Since(start); took != 5*time.Second {
			t.Fatalf("closed after %v, want the write deadline of 5s", took)
		}
	})
}

// A message in a flow that has gone finds nobody, also when another flow has its slot.
func TestFlowNumbers(t *testing.T) {
	table := newFlows(0xabcd)
	var ids []uint64
	for range 1000 {
		f := &flow{}
		if !table.add(f) {
			t.Fatal("no room")
		}
		if f.id>>48 != 0xabcd || table.get(f.id) != f {
			t.Fatalf("id %x", f.id)
		}
		table.remove(f)
		ids = append(ids, f.id)
	}
	if table.next != 1 {
		t.Fatalf("%d slots used for one flow at a time", table.next)
	}
	for _, id := range ids {
		if table.get(id) != nil {
			t.Fatalf("%x was found after its end", id)
		}
	}
	if table.get(0) != nil {
		t.Fatal("0 is no flow")
	}
}

// SS-5: caps per source, and the bucket of a stream's source.
func TestSS5StreamLimits(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 1, Settings: Settings{Rates: limit.NewRates(limit.Config{PerSource: limit.Rate{PerSecond: 1, Burst: 3}})}})
	l := r.open(t, "127.0.0.1:0", 0, ListenerConfig{Name: "tcp", Kind: TCP, PerSource: 2})[0]
	in := r.collect(t)
	var open []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", l.Addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		open = append(open, c)
	}
	if _, err := io.WriteString(open[0], strings.Repeat(request("OPTIONS", "x", 0), 10)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		next(t, in)
	}
	eventually(t, func() bool { return l.Counters().Limited.Load() == 7 && l.Connections() == 2 })
	third, err := net.Dial("tcp", l.Addr.String())
	if err == nil {
		_ = third.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := third.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("third connection of a source: %v", err)
		}
		_ = third.Close()
	}
	if l.Accepted() != 3 {
		t.Fatalf("%d accepted", l.Accepted())
	}
}

// eventually polls with a deadline.
func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatal("did not happen")
		}
		<-time.After(time.Millisecond)
	}
}

// A client that has ended its side still gets the answer to what it sent last.
func TestHalfClosedClientGetsItsAnswer(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 1})
	l := r.open(t, "127.0.0.1:0", 0, ListenerConfig{Name: "tcp", Kind: TCP})[0]
	r.work(t, func(o *Out, g got) {
		if g.event == nil {
			_ = o.OnFlow(g.msg.Flow, []byte("answer\r\n"))
		}
	})
	c, err := net.Dial("tcp", l.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, request("OPTIONS", "x", 0))
	_ = c.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if s, err := bufio.NewReader(c).ReadString('\n'); s != "answer\r\n" {
		t.Fatalf("got %q, %v", s, err)
	}
}

// Section 14 and 6.4: the carried source is Source, the real socket stays Remote and Local.
func TestProxiedStream(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 1})
	from := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	l := r.open(t, "127.0.0.1:0", 0, ListenerConfig{Name: "tcp", Kind: TCP, ProxyFrom: from})[0]
	in := r.collect(t)
	c, err := net.Dial("tcp", l.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, "PROXY TCP4 192.0.2.1 203.0.113.10 49152 5060\r\n"+request("OPTIONS", "x", 0))
	g := next(t, in)
	if g.msg.Source.String() != "192.0.2.1:49152" || g.msg.Remote.String() != c.LocalAddr().String() || g.bytes != request("OPTIONS", "x", 0) {
		t.Fatalf("got %+v", g.msg)
	}
}
