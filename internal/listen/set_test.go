package listen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func running(t *testing.T) *Set {
	t.Helper()
	s := New(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = s.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

func want(name string, n Network, addr string) Want {
	return Want{Name: name, Network: n, Addr: netip.MustParseAddrPort(addr), Sockets: 2}
}

func adopt(t *testing.T, s *Set, w ...Want) []*Socket {
	t.Helper()
	c, err := s.Adopt(w)
	if err != nil {
		t.Fatal(err)
	}
	c.Commit()
	return c.Sockets
}

// saying is a service that greets and then echoes until the peer or the context ends.
func saying(hello string) *Service {
	return &Service{Handle: func(ctx context.Context, c net.Conn) {
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer stop()
		_, _ = io.WriteString(c, hello)
		_, _ = io.Copy(c, c)
	}}
}

func dial(t *testing.T, s *Socket) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

func expect(t *testing.T, c net.Conn, text string) {
	t.Helper()
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
		t.Fatalf("read %q, %v; want %q", b, err, text)
	}
}

// refusedDial says that a connection is reset, be it before or after dial has returned.
func refusedDial(t *testing.T, s *Socket) {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr.String())
	if err != nil {
		if !errors.Is(err, unix.ECONNRESET) {
			t.Fatal(err)
		}
		return
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	refused(t, c)
}

// refused says that the peer ended the connection without a word.
func refused(t *testing.T, c net.Conn) {
	t.Helper()
	var timeout net.Error
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatalf("read %d octets, %v", n, err)
	}
}

// A reload adopts by network and address; connections outlive the socket and keep the service they came with.
func TestAdoptAcrossGenerations(t *testing.T) {
	s := running(t)
	first := adopt(t, s, want("a", TCP, "127.0.0.1:0"), want("b", TCP, "127.0.0.1:0"), want("a", UDP, "127.0.0.1:0"))
	for _, x := range first[:2] {
		x.Serve(saying("one"))
	}
	old, leaving := dial(t, first[0]), dial(t, first[1])
	expect(t, old, "one")
	expect(t, leaving, "one")

	second := adopt(t, s, want("a", TCP, "127.0.0.1:0"), want("a", UDP, "127.0.0.1:0"))
	if second[0] != first[0] || second[1] != first[2] {
		t.Fatal("sockets of the same address were not adopted")
	}
	second[0].Serve(saying("two"))
	expect(t, dial(t, second[0]), "two")
	for _, c := range []net.Conn{old, leaving} {
		_, _ = io.WriteString(c, "still here")
		expect(t, c, "still here")
	}
	if c, err := net.Dial("tcp", first[1].Addr.String()); err == nil {
		_ = c.Close()
		t.Fatal("a socket that nobody adopted still accepts")
	}
	if got := second[0].Connections(); got != 2 {
		t.Fatalf("%d connections", got)
	}
}

// A port that cannot be opened is an error before anything has changed.
func TestBusyPortChangesNothing(t *testing.T) {
	s := running(t)
	mine := adopt(t, s, want("a", TCP, "127.0.0.1:0"))
	mine[0].Serve(saying("hello"))
	for _, n := range []Network{TCP, UDP} {
		busy, err := bind(want("other", n, "127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		free, err := bind(want("free", n, "127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		free.close()
		_, err = s.Adopt([]Want{want("new", n, free.Addr.String()), want("taken", n, busy.Addr.String())})
		if !errors.Is(err, unix.EADDRINUSE) || !bytes.Contains([]byte(err.Error()), []byte(`listener "taken"`)) {
			t.Fatalf("%s: %v", n, err)
		}
		again, err := bind(want("free", n, free.Addr.String()))
		if err != nil {
			t.Fatalf("%s: what was bound in vain is still bound: %v", n, err)
		}
		again.close()
		busy.close()
	}
	expect(t, dial(t, mine[0]), "hello")
	if _, err := s.Adopt([]Want{want("x", TCP, "127.0.0.1:9"), want("y", TCP, "127.0.0.1:9")}); !errors.Is(err, ErrTwice) {
		t.Fatalf("the same address twice: %v", err)
	}
	if _, err := s.Adopt([]Want{want("x", TCP, "192.0.2.1:9")}); !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Fatalf("an address that is not here: %v", err)
	}
}

// Several UDP sockets share a port; each datagram comes to one; all have the buffers that were asked for.
func TestUDPSocketsShareAPort(t *testing.T) {
	s := running(t)
	w := want("u", UDP, "[::1]:0")
	w.Sockets, w.Buffer = 4, 100_000
	sock := adopt(t, s, w)[0]
	if len(sock.UDP) != 4 {
		t.Fatalf("%d sockets", len(sock.UDP))
	}
	var wg sync.WaitGroup
	got := make(chan int, 1000)
	for i, c := range sock.UDP {
		if a := c.LocalAddr().(*net.UDPAddr).AddrPort(); a != sock.Addr {
			t.Errorf("socket %d is bound to %v", i, a)
		}
		rc, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = rc.Control(func(fd uintptr) {
			for _, opt := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF} {
				if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, opt); err != nil || n != 200_000 { // the kernel doubles
					t.Errorf("buffer %d, %v", n, err)
				}
			}
		})
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		wg.Go(func() {
			for {
				if _, _, err := c.ReadFromUDPAddrPort(make([]byte, 10)); err != nil {
					return
				}
				got <- i
			}
		})
	}
	for range 200 {
		c, err := net.Dial("udp", sock.Addr.String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte("x"))
		_ = c.Close()
	}
	used := map[int]int{}
	for range 200 {
		used[<-got]++
	}
	if len(used) != 4 {
		t.Fatalf("datagrams per socket: %v", used)
	}
	for _, c := range sock.UDP {
		_ = c.SetReadDeadline(time.Now())
	}
	wg.Wait()
}

// Architecture 4.8: stop accepting, leave the rest.
func TestStopAccepting(t *testing.T) {
	s := running(t)
	socks := adopt(t, s, want("a", TCP, "127.0.0.1:0"), want("u", UDP, "127.0.0.1:0"))
	socks[0].Serve(saying("hello"))
	c := dial(t, socks[0])
	expect(t, c, "hello")
	s.StopAccepting()
	if x, err := net.Dial("tcp", socks[0].Addr.String()); err == nil {
		_ = x.Close()
		t.Fatal("it still accepts")
	}
	_, _ = io.WriteString(c, "alive")
	expect(t, c, "alive")
	if _, err := socks[1].UDP[0].WriteToUDPAddrPort([]byte("x"), socks[1].Addr); err != nil {
		t.Fatal(err)
	}
}

// Section 14: mandatory from the listed peers, forbidden for others; the carried source counts for caps.
func TestProxyProtocolListener(t *testing.T) {
	s := running(t)
	sock := adopt(t, s, want("a", TCP, "127.0.0.1:0"))[0]
	v := &Service{
		ProxyFrom: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/31")}, PerSource: 1,
		Handle: func(ctx context.Context, c net.Conn) {
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			defer stop()
			p, ok := c.(*Conn)
			if !ok {
				_, _ = io.WriteString(c, "plain "+c.RemoteAddr().(*net.TCPAddr).IP.String())
			} else if _, real := p.NetConn().(*net.TCPConn); real {
				_, _ = io.WriteString(c, c.RemoteAddr().String()+" to "+c.LocalAddr().String())
			}
			_, _ = io.Copy(c, c)
		},
	}
	sock.Serve(v)
	const head = "PROXY TCP4 192.0.2.1 203.0.113.10 49152 5060\r\n"
	c := dial(t, sock)
	_, _ = io.WriteString(c, head+"behind")
	expect(t, c, "192.0.2.1:49152 to 203.0.113.10:5060behind")
	second := dial(t, sock)
	_, _ = io.WriteString(second, head)
	refused(t, second) // the same carried source, over its cap
	other := dial(t, sock)
	_, _ = io.WriteString(other, "PROXY TCP4 192.0.2.2 203.0.113.10 49152 5060\r\n")
	expect(t, other, "192.0.2.2")
	local := dial(t, sock)
	_, _ = io.WriteString(local, v2(0, 0))
	expect(t, local, "plain 127.0.0.1")
	bad := dial(t, sock)
	_, _ = io.WriteString(bad, "OPTIONS sip:a SIP/2.0\r\n\r\n")
	refused(t, bad)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	stranger, err := d.Dial("tcp", sock.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	_ = stranger.SetDeadline(time.Now().Add(10 * time.Second))
	refused(t, stranger)
	if n := sock.Stats.BadHeader.Load(); n != 2 {
		t.Fatalf("%d bad headers counted", n)
	}
}

func TestCapsAndNobodyServing(t *testing.T) {
	s := running(t)
	sock := adopt(t, s, want("a", TCP, "127.0.0.1:0"))[0]
	refusedDial(t, sock)
	v := saying("hello")
	v.Total = 2
	sock.Serve(v)
	a, b := dial(t, sock), dial(t, sock)
	expect(t, a, "hello")
	expect(t, b, "hello")
	refusedDial(t, sock)
	_ = a.Close()
	for end := time.Now().Add(10 * time.Second); sock.Connections() > 1; {
		if time.Now().After(end) {
			t.Fatal("a closed connection still counts")
		}
		<-time.After(time.Millisecond)
	}
	expect(t, dial(t, sock), "hello")
	if n := sock.Stats.Refused.Load(); n != 2 {
		t.Fatalf("%d refused", n)
	}
}

// Without descriptors accepting waits and goes on.
func TestAcceptSurvivesEMFILE(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	s := running(t)
	sock := adopt(t, s, want("a", TCP, "127.0.0.1:0"))[0]
	sock.Serve(saying("hello"))
	c := dial(t, sock)
	expect(t, c, "hello")
	// The next descriptor would have this number: with the limit there, accept fails while this process can still dial
	// by sockets made before.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(fd), Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	restore := func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &old) }
	defer restore()
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(sock.Addr.Port()), Addr: sock.Addr.Addr().As4()}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); sock.Stats.Failed.Load() == 0; {
		if time.Now().After(end) {
			t.Fatal("accept did not fail")
		}
		<-time.After(time.Millisecond)
	}
	restore()
	b := make([]byte, 5)
	if n, err := unix.Read(fd, b); err != nil || string(b[:n]) != "hello" {
		t.Fatalf("%q, %v", b[:n], err)
	}
}

func TestRaiseFileLimit(t *testing.T) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	got, err := RaiseFileLimit(l.Max)
	if err != nil || got != l.Max {
		t.Fatalf("got %d, %v, want the hard limit %d", got, err, l.Max)
	}
}
