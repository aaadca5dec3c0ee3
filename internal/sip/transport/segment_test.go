package transport

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// However the kernel is asked, in groups, apart, or apart after it refused the groups: each destination gets every
// datagram, whole, and in the order in which they were queued.
func TestBatchKeepsOrderPerDestination(t *testing.T) {
	for _, c := range []struct {
		name    string
		refused int  // state of the groups at the start
		noCheck bool // a socket without checksums cannot segment: the kernel refuses groups, and takes single datagrams
	}{{"groups", 0, false}, {"apart", segmentRefused, false}, {"refused", 0, true}} {
		for _, host := range []string{"127.0.0.1", "::1"} {
			if c.noCheck && host == "::1" {
				continue // SO_NO_CHECK is an option of IPv4
			}
			t.Run(c.name+" "+host, func(t *testing.T) {
				r := newRig(t, Config{Node: 1, Workers: 1})
				l := r.open(t, netip.AddrPortFrom(netip.MustParseAddr(host), 0).String(), 1, ListenerConfig{Name: "u", Kind: UDP})[0]
				sock := l.ep.sockets[0]
				if c.noCheck {
					_ = sock.rc.Control(func(fd uintptr) {
						if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
							t.Fatal(err)
						}
					})
				}
				b := newSendBatch(l.ep, sock)
				b.groups.refused = c.refused
				orderedRound(t, b, r.hub.Inbox(0), host)
				if got := l.Counters().NotSent.Load(); got != 0 {
					t.Errorf("%d not sent", got)
				}
				if got := b.groups.refused; c.noCheck && got == 0 || c.name == "groups" && got != 0 {
					t.Errorf("the kernel refused %d groups", got)
				}
			})
		}
	}
}

func orderedRound(t *testing.T, b *sendBatch, in *Inbox, host string) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	var to []*net.UDPConn
	for range 4 {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(host)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_ = c.SetReadBuffer(4 << 20)
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		to = append(to, c)
	}
	want := make([][][]byte, len(to))
	for i := range 600 {
		d := rnd.IntN(len(to))
		size := []int{500, 500, 500, 501, 20, 1400, 1401, 5000}[rnd.IntN(8)]
		m := fmt.Appendf(nil, "%05d", i)
		m = append(m, bytes.Repeat([]byte{byte('a' + i%26)}, size-len(m))...)
		if !b.add(to[d].LocalAddr().(*net.UDPAddr).AddrPort(), m, in) {
			t.Fatal("not taken")
		}
		want[d] = append(want[d], m)
		if rnd.IntN(40) == 0 {
			b.flush()
		}
	}
	b.flush()
	buf := make([]byte, 65536)
	for d, list := range want {
		for i, m := range list {
			n, err := to[d].Read(buf)
			if err != nil {
				t.Fatalf("destination %d, datagram %d of %d: %v", d, i, len(list), err)
			}
			if !bytes.Equal(buf[:n], m) {
				t.Fatalf("destination %d, datagram %d: %d octets %q, want %d %q", d, i, n, buf[:5], len(m), m[:5])
			}
		}
	}
}
