package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// What a flood may cost in resident memory.
const floodMemory = 64 << 20

// Spoofed sources, half-open handshakes, large heads and slow senders (SS-5, sections 12, 13.7, 19):
// memory stays bounded, and calls of others go on without one failure.
func TestFloodsStayBounded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc, and sends from all of 127.0.0.0/8")
	}
	const half = 10_000
	descriptors(t, half+2000)
	s, err := lbtest.NewServer("as1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	certs := t.TempDir()
	lbtest.NewCA(t).Files(certs, "public", lbtest.Leaf{Names: []string{"front.example.net"}})
	udp, tls, web := freePort(t), freePort(t), freePort(t)
	n := startNode(t, map[string]string{
		"rules.xml": explainRules, "wyegate.yaml": fmt.Sprintf(`version: 1
node: {name: edge-1, state_dir: $DIR/state, shutdown: {delay: 0s, deadline: 1s}}
admin: {sockets: [{path: $DIR/admin.sock}], metrics: {address: "127.0.0.1:0"}}
certificates: [{name: public, cert_file: %s/public.pem, key_file: %s/public.key}]
listeners:
  - {name: sip-udp, protocol: sip, transport: udp, bind: "127.0.0.1:%d"}
  - {name: sip-tcp, protocol: sip, transport: tcp, bind: "127.0.0.1:%d"}
  - {name: sip-tls, protocol: sip, transport: tls, bind: "127.0.0.1:%d", certificate: public}
  - {name: http, protocol: http, transport: tcp, bind: "127.0.0.1:%d"}
services:
  - {name: main, pool: appservers, affinity: {rules: rules.xml}}
pools:
  - name: appservers
    health: {active: {sip: {fall: 100}}} # the server of the test drowns as well, and is not what is tested
    servers:
      - {name: as1, sip: %q, http: %q}
`, certs, certs, udp, udp, tls, web, s.Addr, s.Web)})
	made, failed, end := steadyCalls(t, udp)
	defer end()
	const calls = "100,000 sources of INVITE" // each leaves a call behind that is remembered: measured by itself
	began := n.settled()
	for _, flood := range []struct {
		name string
		run  func(t *testing.T) (stop func())
	}{
		{"100,000 sources of OPTIONS", func(t *testing.T) func() { spoofed(t, s, udp, 100_000, "OPTIONS"); return func() {} }},
		{"10,000 half-open handshakes", func(t *testing.T) func() { return silent(t, tls, half, "\x16\x03\x01") }},
		{"heads of a megabyte", func(t *testing.T) func() { return endless(t, udp, 200) }},
		{"senders of an octet a second", func(t *testing.T) func() { return dripping(t, udp, 1000) }},
		{calls, func(t *testing.T) func() { spoofed(t, s, udp, 100_000, "INVITE"); return func() {} }},
	} {
		before, start := made.Load(), n.settled()
		stop := flood.run(t)
		n.eventually(30*time.Second, "calls during the flood", func() error {
			if made.Load() < before+20 {
				return fmt.Errorf("%d calls", made.Load()-before)
			}
			return nil
		})
		now := n.settled()
		if now-start > floodMemory || now-began > floodMemory && flood.name != calls {
			t.Errorf("%s: resident memory grew by %d MiB, since the start by %d MiB", flood.name, (now-start)>>20, (now-began)>>20)
		}
		t.Logf("%s: %d MiB, since the start %d MiB", flood.name, (now-start)>>20, (now-began)>>20)
		stop()
	}
	end()
	if failed.Load() > 0 || made.Load() == 0 {
		t.Errorf("%d of %d calls failed", failed.Load(), made.Load())
	}
}

// descriptors makes sure that this process may have that many.
func descriptors(t *testing.T, want uint64) {
	t.Helper()
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		t.Fatal(err)
	}
	if lim.Cur >= want {
		return
	}
	lim.Cur = min(lim.Max, 1<<16)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil || lim.Cur < want {
		t.Skipf("this process may have %d descriptors only", lim.Cur)
	}
}

// steadyCalls makes whole calls over UDP and TCP, one after the other, until end.
func steadyCalls(t *testing.T, port int) (made, failed *atomic.Int64, end func()) {
	t.Helper()
	made, failed = new(atomic.Int64), new(atomic.Int64)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, transport := range []string{"UDP", "TCP"} {
		ua, err := lbtest.NewUA("honest"+transport, lbtest.Answer)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ua.Close)
		ua.Repeat = 500 * time.Millisecond // T1: the flood may fill the kernel's queue for a moment
		path, err := ua.Dial(transport, mustAddr(port))
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				if err := wholeCall(ua, path, i); err != nil {
					failed.Add(1)
					t.Errorf("call %d over %s: %v", i, transport, err)
				}
				made.Add(1)
			}
		})
	}
	var once sync.Once
	return made, failed, func() { once.Do(func() { close(stop); running.Wait() }) }
}

func wholeCall(ua *lbtest.UA, path *lbtest.Path, i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	d, m, err := ua.Invite(ctx, path, lbtest.InviteOptions{RequestURI: fmt.Sprintf("sip:u%d@front.example.net", i)})
	if err != nil || m.Status != 200 {
		return fmt.Errorf("INVITE: %s %w", said(m), err)
	}
	if m, err = d.Bye(ctx); err != nil || m.Status != 200 {
		return fmt.Errorf("BYE: %s %w", said(m), err)
	}
	return nil
}

// source is the i-th of many addresses of this host.
func source(i int) *[4]byte { return &[4]byte{127, byte(1 + i>>16), byte(i >> 8), byte(i)} }

// spoofed sends one request from each of many source addresses, no faster than the server of this test keeps up: it is
// the node's memory that is looked at, not how soon the server drowns.
func spoofed(t *testing.T, s *lbtest.Server, port, count int, method string) {
	t.Helper()
	const ahead = 200
	before := s.SeenCount("")
	to := &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	for i := range count {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		a := source(i)
		if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: *a}); err != nil {
			t.Fatal(err)
		}
		msg := fmt.Sprintf("%s sip:u%d@front.example.net SIP/2.0\r\nVia: SIP/2.0/UDP %d.%d.%d.%d:9;branch=z9hG4bKf%d\r\nMax-Forwards: 70\r\n"+
			"From: <sip:a@b.example>;tag=%d\r\nTo: <sip:c@d.example>\r\nCall-ID: flood%d\r\nCSeq: 1 %s\r\nContent-Length: 0\r\n\r\n",
			method, i, a[0], a[1], a[2], a[3], i, i, i, method)
		_ = syscall.Sendto(fd, []byte(msg), 0, to)
		syscall.Close(fd)
		if i%ahead != ahead-1 {
			continue
		}
		for end := time.Now().Add(time.Second); s.SeenCount("")-before < i-2*ahead && time.Now().Before(end); {
			<-time.After(time.Millisecond)
		}
	}
}

// dripping sends the same octet on each of many connections once a second, until stop.
func dripping(t *testing.T, port, count int) (stop func()) {
	t.Helper()
	conns := many(t, port, count)
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for i := 0; ; i++ {
			for _, c := range conns {
				_, _ = c.Write([]byte{"INVITE sip:a@b SIP/2.0\r\nVia: "[i%30]})
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// silent opens connections from many sources, sends the same few octets on each, and leaves them.
func silent(t *testing.T, port, count int, begin string) (stop func()) {
	t.Helper()
	conns := many(t, port, count)
	for _, c := range conns {
		_, _ = io.WriteString(c, begin)
	}
	return func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// many opens connections from many sources.
func many(t *testing.T, port, count int) (conns []net.Conn) {
	t.Helper()
	for i := range count {
		a := source(i / 100) // below the bound of one source
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(a[0], a[1], a[2], a[3])}, Timeout: 10 * time.Second}
		c, err := d.Dial("tcp", mustAddr(port).String())
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		conns = append(conns, c)
	}
	return conns
}

// endless sends a head of a megabyte on each of many connections.
func endless(t *testing.T, port, count int) (stop func()) {
	t.Helper()
	head := "INVITE sip:a@b SIP/2.0\r\nCall-ID: big\r\n" + strings.Repeat("X-Filler: "+strings.Repeat("x", 86)+"\r\n", 10000)
	for range count {
		c, err := net.Dial("tcp", mustAddr(port).String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(c, head) // it is cut off long before its end
		_ = c.Close()
	}
	return func() {}
}

// said is a response in a word or two.
func said(m *lbtest.Message) string {
	if m == nil {
		return "nothing"
	}
	return strconv.Itoa(m.Status) + " " + m.Header("Retry-After")
}
