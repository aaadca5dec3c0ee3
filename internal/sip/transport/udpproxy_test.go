package transport

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// header2 is a PROXY header of version 2 for a datagram of IPv4.
func header2(from, to netip.AddrPort) []byte {
	b := append([]byte("\r\n\r\n\x00\r\nQUIT\n"), 0x21, 0x12, 0, 12)
	f, t := from.Addr().As4(), to.Addr().As4()
	b = append(append(b, f[:]...), t[:]...)
	return append(b, byte(from.Port()>>8), byte(from.Port()), byte(to.Port()>>8), byte(to.Port()))
}

// Section 14 over UDP: the carried source is the client, what goes to it goes to the proxy; servers send no header, and
// nobody else gets in.
func TestProxiedDatagrams(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 2})
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 3)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	l := r.open(t, "127.0.0.1:0", 2, ListenerConfig{
		Name: "u", Kind: UDP, ProxyFrom: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Servers: []netip.AddrPort{server.LocalAddr().(*net.UDPAddr).AddrPort()},
	})[0]
	in := r.collect(t)
	from := func(host string) *net.UDPConn {
		c, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(host)}, net.UDPAddrFromAddrPort(l.Addr))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	proxy, stranger := from("127.0.0.2"), from("127.0.0.3")
	client, front := netip.MustParseAddrPort("192.0.2.1:49152"), netip.MustParseAddrPort("203.0.113.10:5060")
	write := func(c *net.UDPConn, b ...[]byte) {
		var all []byte
		for _, x := range b {
			all = append(all, x...)
		}
		if _, err := c.Write(all); err != nil {
			t.Fatal(err)
		}
	}
	lost := [][]byte{[]byte(request("OPTIONS", "bare", 0)), header2(client, front)[:20]}
	for _, b := range lost {
		write(proxy, b)
	}
	write(stranger, header2(client, front), []byte(request("OPTIONS", "stranger", 0)))
	write(stranger, []byte(request("OPTIONS", "stranger", 0)))
	write(proxy, header2(client, front), []byte("\r\n\r\n")) // a keep-alive
	write(proxy, header2(client, front), []byte(request("OPTIONS", "client", 0)))
	g := next(t, in)
	if g.msg.Source != client || g.msg.Local != front || g.msg.Remote.String() != proxy.LocalAddr().String() || g.bytes != request("OPTIONS", "client", 0) {
		t.Fatalf("got %+v %q", g.msg, g.bytes)
	}
	if _, err := server.WriteToUDPAddrPort([]byte(request("OPTIONS", "server", 0)), l.Addr); err != nil {
		t.Fatal(err)
	}
	if g := next(t, in); g.msg.Source.String() != server.LocalAddr().String() || g.msg.Source != g.msg.Remote {
		t.Fatalf("a server's message: %+v", g.msg)
	}
	if n := l.ep.socket.Stats.BadHeader.Load(); n != 4 {
		t.Errorf("%d datagrams refused, want 4", n)
	}
	asked := stranger.LocalAddr().(*net.UDPAddr).AddrPort()
	r.on(t, 0, func(o *Out) { o.Datagram(l, asked, []byte("question")); o.Flush() })
	write(stranger, []byte(request("OPTIONS", "asked", 0)))
	if g := next(t, in); g.msg.Remote != asked {
		t.Fatalf("from one who was asked: %+v", g.msg)
	}
	r.on(t, 0, func(o *Out) { o.Datagram(l, client, []byte("answer")); o.Flush() })
	_ = proxy.SetReadDeadline(time.Now().Add(10 * time.Second))
	b := make([]byte, 100)
	if n, err := proxy.Read(b); err != nil || string(b[:n]) != "answer" {
		t.Errorf("the proxy got %q, %v", b[:n], err)
	}
	q := append([]byte{0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42}, "transaction!"...)
	write(proxy, header2(client, front), q)
	n, err := proxy.Read(b)
	if err != nil || xorMapped(b[:n], []byte("transaction!")) != client {
		t.Errorf("STUN names % x, %v", b[:n], err)
	}
}

// The way to a client is forgotten after five idle minutes, follows the proxy to a new socket, and a flood of names costs
// nobody more than the memory that is there.
func TestWaysThroughProxies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(proxied)
		client, one, two := netip.MustParseAddrPort("192.0.2.1:49152"), netip.MustParseAddrPort("10.0.0.1:1000"), netip.MustParseAddrPort("10.0.0.1:1001")
		now := func() int64 { return time.Now().UnixNano() }
		if got := p.way(client, now()); got != client {
			t.Errorf("unheard of: %v", got)
		}
		p.note(client, one, now())
		time.Sleep(proxiedIdle - 1)
		if got := p.way(client, now()); got != one {
			t.Errorf("before the time is up: %v", got)
		}
		p.note(client, two, now())
		if got := p.way(client, now()); got != two {
			t.Errorf("by a new socket: %v", got)
		}
		time.Sleep(proxiedIdle)
		if got := p.way(client, now()); got != client {
			t.Errorf("after the time is up: %v", got)
		}
		p.note(client, two, now())
		for i := range 200_000 {
			a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), uint16(i>>16)+1)
			p.note(a, one, now())
			if got := p.way(a, now()); got != one {
				t.Fatalf("%v goes to %v", a, got)
			}
			time.Sleep(time.Microsecond)
		}
		if allocs := testing.AllocsPerRun(100, func() { p.note(client, two, now()); p.way(client, now()) }); allocs > 0 {
			t.Errorf("%v allocations for a client that is known", allocs)
		}
	})
}
