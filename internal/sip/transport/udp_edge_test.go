package transport

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wyegate/wyegate/internal/limit"
	"github.com/wyegate/wyegate/internal/listen"
)

// SX-6: keep-alives and empty datagrams end in the reader; a STUN Binding request is answered.
func TestSX6KeepAlivesAndSTUN(t *testing.T) {
	for _, bind := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0"} {
		t.Run(bind, func(t *testing.T) {
			r := newRig(t, Config{Node: 1, Workers: 1})
			l := r.open(t, bind, 1, ListenerConfig{Name: "u", Kind: UDP})[0]
			in := r.collect(t)
			to := l.Addr
			if to.Addr().IsUnspecified() {
				to = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.7"), to.Port())
			}
			c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)) // connected: answers from elsewhere are not seen
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			for _, b := range []string{"", "\r\n", "\r\n\r\n", "\x00", "\x00\x00\x00\x00", "\r\n\x00"} {
				_, _ = c.Write([]byte(b))
			}
			id := []byte("transaction!")
			q := append([]byte{0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42}, id...)
			_, _ = c.Write(q[:19])                          // too short
			_, _ = c.Write(append([]byte{0, 17}, q[2:]...)) // an indication
			_, _ = c.Write(q)
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			b := make([]byte, 200)
			n, err := c.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			us := c.LocalAddr().(*net.UDPAddr).AddrPort()
			if got := xorMapped(b[:n], id); got != us {
				t.Fatalf("mapped address %v, want %v, in % x", got, us, b[:n])
			}
			_, _ = c.Write([]byte(request("OPTIONS", "x", 0)))
			if g := next(t, in); g.msg.Remote != us || g.msg.Local != to || g.bytes != request("OPTIONS", "x", 0) {
				t.Fatalf("first message is %+v %q", g.msg, g.bytes)
			}
		})
	}
}

// xorMapped reads a Binding success as RFC 8489 section 14.2 says, written apart from the code under test.
func xorMapped(b, id []byte) netip.AddrPort {
	if len(b) < 32 || b[0] != 1 || b[1] != 1 || !bytes.Equal(b[8:20], id) || binary.BigEndian.Uint16(b[20:]) != 0x20 ||
		int(binary.BigEndian.Uint16(b[2:])) != len(b)-20 {
		return netip.AddrPort{}
	}
	mask := slices.Concat([]byte{0x21, 0x12, 0xa4, 0x42}, id)
	ip := slices.Clone(b[28:])
	for i := range ip {
		ip[i] ^= mask[i]
	}
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(b[26:])^0x2112)
}

// SX-2: on a wildcard socket the answer leaves from the address that the request came to.
func TestSX2WildcardAnswersFromTheSameAddress(t *testing.T) {
	for _, workers := range []int{1, 3} {
		r := newRig(t, Config{Node: 1, Workers: workers})
		l := r.open(t, "0.0.0.0:0", 1, ListenerConfig{Name: "u", Kind: UDP})[0]
		r.work(t, func(o *Out, g got) { o.Datagram(g.msg.Listener, g.msg.Remote, []byte(g.bytes)) })
		for i := range byte(20) {
			to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 10 + i}), l.Addr.Port())
			c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Write([]byte(request("OPTIONS", string('a'+rune(i)), 0)))
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := c.Read(make([]byte, 1000)); err != nil {
				t.Fatalf("from %v: %v", to, err)
			}
			_ = c.Close()
		}
	}
}

// SX-15: an ICMP error is told for destinations we have sent to lately, others go on, and the batch goes out whole.
func TestSX15PortUnreachable(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		r := newRig(t, Config{Node: 1, Workers: 2})
		l := r.open(t, netip.AddrPortFrom(netip.MustParseAddr(host), 0).String(), 1, ListenerConfig{Name: "u", Kind: UDP})[0]
		in := r.collect(t)
		closed, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(host)})
		if err != nil {
			t.Fatal(err)
		}
		dead := closed.LocalAddr().(*net.UDPAddr).AddrPort()
		_ = closed.Close()
		alive, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(host)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = alive.Close() }()
		r.on(t, 0, func(o *Out) {
			for range 10 {
				o.Datagram(l, dead, []byte("to nobody"))
				o.Datagram(l, alive.LocalAddr().(*net.UDPAddr).AddrPort(), []byte("to somebody"))
			}
		})
		workers := map[int]bool{}
		for len(workers) < 2 {
			g := next(t, in)
			if g.event == nil || g.event.Kind != Unreachable || g.event.Remote != dead || !errors.Is(g.event.Err, unix.ECONNREFUSED) {
				t.Fatalf("got %+v %+v", g.msg, g.event)
			}
			workers[g.worker] = true
		}
		_ = alive.SetReadDeadline(time.Now().Add(5 * time.Second))
		for i := range 10 {
			if _, err := alive.Read(make([]byte, 100)); err != nil {
				t.Fatalf("datagram %d to the living: %v", i, err)
			}
		}
	}
}

// A failed send is told as well: no route, or not permitted.
func TestFailedSendIsTold(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 1})
	l := r.open(t, "127.0.0.1:0", 1, ListenerConfig{Name: "u", Kind: UDP})[0]
	r.collect(t)
	r.on(t, 0, func(o *Out) {
		for _, d := range []string{"0.0.0.0:5", "224.0.0.5:5", "255.255.255.255:5", "127.0.0.1:0", "[::1]:5"} {
			o.Datagram(l, netip.MustParseAddrPort(d), []byte("x"))
		}
		o.Datagram(l, l.Addr, make([]byte, 65536))
		o.Datagram(l, l.Addr, nil)
		o.Datagram(&Listener{Name: "of nobody"}, l.Addr, []byte("x"))
	})
	if n := l.Counters().NotSent.Load(); n != 7 {
		t.Fatalf("%d counted as not sent", n)
	}
}

func TestRecentDestinations(t *testing.T) {
	r, now := new(recent), time.Unix(1_700_000_000, 0)
	a, b := netip.MustParseAddrPort("192.0.2.1:5060"), netip.MustParseAddrPort("[2001:db8::1]:5060")
	r.sent(a, now.Unix())
	for _, c := range []struct {
		dst  netip.AddrPort
		at   time.Duration
		want bool
	}{{a, 0, true}, {a, 32 * time.Second, true}, {a, 33 * time.Second, false}, {b, 0, false},
		{netip.MustParseAddrPort("192.0.2.1:5061"), 0, false}} {
		if got := r.has(c.dst, now.Add(c.at)); got != c.want {
			t.Errorf("%v after %v: %v", c.dst, c.at, got)
		}
	}
}

// SS-5: a source above its rate is cut, before anything deep; another one is not.
func TestSS5DatagramRate(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 1, Settings: Settings{Rates: limit.NewRates(limit.Config{PerSource: limit.Rate{PerSecond: 1, Burst: 5}})}})
	l := r.open(t, "127.0.0.1:0", 1, ListenerConfig{Name: "u", Kind: UDP})[0]
	in := r.collect(t)
	flood, quiet := dialUDP(t, l), &net.UDPConn{}
	for range 100 {
		_, _ = flood.Write([]byte(request("OPTIONS", "flood", 0)))
	}
	eventually(t, func() bool { return l.Counters().Limited.Load() == 95 })
	quiet, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}, net.UDPAddrFromAddrPort(l.Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = quiet.Close() }()
	_, _ = quiet.Write([]byte(request("OPTIONS", "quiet", 0)))
	for range 5 {
		next(t, in)
	}
	if g := next(t, in); g.bytes != request("OPTIONS", "quiet", 0) {
		t.Fatalf("got %q", g.bytes)
	}
}

// 11.4: reloads under traffic lose nothing, whether the listener stays, gets another name, or moves to another socket.
func TestReloadsLoseNothing(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 2})
	l := r.open(t, "127.0.0.1:0", 2, ListenerConfig{Name: "u", Kind: UDP})[0]
	r.work(t, func(o *Out, g got) { o.Datagram(g.msg.Listener, g.msg.Remote, []byte(g.msg.Listener.Name)) })
	c := dialUDP(t, l)
	other, err := r.set.Adopt([]listen.Want{{Name: "u", Network: listen.UDP, Addr: netip.MustParseAddrPort("127.0.0.1:0")},
		{Name: "v", Network: listen.UDP, Addr: netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	for i := range 100 {
		name := []string{"u", "renamed"}[i%2]
		again, err := r.hub.Open(ListenerConfig{Name: name, Kind: UDP}, other.Sockets[0])
		if err != nil {
			t.Fatal(err)
		}
		list := []*Listener{again}
		if i%3 == 0 {
			second, err := r.hub.Open(ListenerConfig{Name: "v", Kind: UDP}, other.Sockets[1])
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, second)
		}
		r.hub.Use(list)
		if again.Addr != l.Addr || again.Counters() != l.Counters() {
			t.Fatal("the socket was not adopted")
		}
		_, _ = c.Write([]byte(request("OPTIONS", "x", 0)))
		if n, err := c.Read(b); err != nil || string(b[:n]) != name {
			t.Fatalf("reload %d: %q, %v", i, b[:n], err)
		}
	}
	other.Undo()
}

// A worker whose home is closed goes on with another socket, which becomes its home.
func TestHomeMoves(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 1})
	a := r.open(t, "127.0.0.1:0", 1, ListenerConfig{Name: "a", Kind: UDP})[0]
	in := r.collect(t)
	_, _ = dialUDP(t, a).Write([]byte(request("OPTIONS", "one", 0)))
	next(t, in)
	b := r.open(t, "127.0.0.2:0", 1, ListenerConfig{Name: "b", Kind: UDP})[0] // a is closed
	c := dialUDP(t, b)
	eventually(t, func() bool {
		_, _ = c.Write([]byte(request("OPTIONS", "two", 0)))
		home := r.hub.Inbox(0).home.Load()
		return home != nil && home.ep == b.ep
	})
	next(t, in)
}

// Receive keeps its deadline, on a home socket and without one.
func TestReceiveDeadline(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 2})
	r.open(t, "127.0.0.1:0", 1, ListenerConfig{Name: "u", Kind: UDP})
	for i := range 2 {
		in := r.hub.Inbox(i)
		for _, d := range []time.Duration{0, 20 * time.Millisecond, 5 * time.Millisecond, 40 * time.Millisecond} {
			start := time.Now()
			msgs, events, now := in.Receive(r.ctx, start.Add(d))
			if took := time.Since(start); took < d || took > d+2*time.Second || len(msgs)+len(events) > 0 || now.Before(start.Add(d)) {
				t.Fatalf("worker %d: asked %v, took %v", i, d, took)
			}
		}
		ctx, cancel := context.WithCancel(r.ctx)
		go cancel()
		in.Receive(ctx, time.Time{}) // returns, or the test hangs
	}
}

// No put is lost and no worker sleeps through one, whoever puts while it goes to sleep.
func TestNoWakeIsLost(t *testing.T) {
	for _, home := range []bool{true, false} {
		r := newRig(t, Config{Node: 1, Workers: 1})
		if home {
			r.open(t, "127.0.0.1:0", 1, ListenerConfig{Name: "u", Kind: UDP})
		}
		r.collect(t)
		var ran int
		for i := range 5000 {
			r.on(t, 0, func(*Out) { ran++ })
			if i%7 == 0 {
				runtime.Gosched()
			}
		}
		if ran != 5000 {
			t.Fatalf("%d of 5000", ran)
		}
	}
}

// Section 12.1: the wait counts from the kernel, not from when a worker found time to read.
func TestWaitFromSocketToWorker(t *testing.T) {
	for _, bind := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0"} {
		r := newRig(t, Config{Node: 1, Workers: 1})
		l := r.open(t, bind, 1, ListenerConfig{Name: "u", Kind: UDP})[0]
		to := l.Addr
		if to.Addr().IsUnspecified() {
			to = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), to.Port())
		}
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		eventually(t, func() bool { // the kernel begins to note arrivals a little after the first socket asks for it
			for range 3 {
				_, _ = c.Write([]byte(request("OPTIONS", "x", 0)))
				<-time.After(10 * time.Millisecond)
			}
			if msgs, _, _ := r.hub.Inbox(0).Receive(r.ctx, time.Time{}); len(msgs) != 3 {
				t.Fatalf("%d messages", len(msgs))
			}
			return r.hub.Wait() >= 30*time.Millisecond
		})
		start := time.Now()
		_, _ = c.Write([]byte(request("OPTIONS", "x", 0)))
		r.hub.Inbox(0).Receive(r.ctx, time.Time{})
		if w := r.hub.Inbox(0).Wait(); w < 0 || w > time.Since(start) {
			t.Fatalf("%s: then waited %v", bind, w)
		}
	}
}

// What tells an overload from a machine that is busy with something else: a worker called late finds its queue empty in
// the end, one that is offered more than it can do does not.
func TestEmptiedTellsWhetherWorkIsLeft(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 1})
	l := r.open(t, "127.0.0.1:0", 1, ListenerConfig{Name: "u", Kind: UDP})[0]
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(l.Addr))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	in := r.hub.Inbox(0)
	const more = 4 * (takeAtOnce + batch)
	for range more {
		_, _ = c.Write([]byte(request("OPTIONS", "x", 0)))
	}
	got := 0
	for got < more {
		msgs, _, _ := in.Receive(r.ctx, time.Time{})
		got += len(msgs)
		if in.Emptied() && got > len(msgs) {
			t.Fatalf("emptied after %d of %d", got, more)
		}
	}
	if msgs, _, _ := in.Receive(r.ctx, time.Now().Add(20*time.Millisecond)); len(msgs) != 0 || !in.Emptied() || in.Emptied() || r.hub.Wait() != 0 {
		t.Fatalf("%d messages, still busy", len(msgs))
	}
}

// Whatever comes: an answer only to a whole Binding request, never longer than 44 octets, always with its transaction.
func FuzzBinding(f *testing.F) {
	q := append([]byte{0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42}, "transaction!"...)
	f.Add(q, true)
	f.Add(append(append([]byte{0, 1, 0, 4}, q[4:]...), 0x80, 0x22, 0, 0), false)
	f.Fuzz(func(t *testing.T, b []byte, v6 bool) {
		from := netip.MustParseAddrPort("192.0.2.1:5060")
		if v6 {
			from = netip.MustParseAddrPort("[2001:db8::1]:5060")
		}
		var out [stunHeader + 24]byte
		n := bindingResponse(out[:], b, from)
		if n == 0 {
			return
		}
		if b[0] != 0 || b[1] != 1 || xorMapped(out[:n], b[8:20]) != from {
			t.Fatalf("% x to % x", out[:n], b)
		}
	})
}
