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
		if !b.add(to[d].LocalAddr().(*net.UDPAddr).AddrPort(), m, anyDialog, in) {
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

// Messages of different dialogs may change places within a batch, those of one dialog never do, and nothing passes what
// belongs to a dialog that is not known.
func TestBatchKeepsOrderWithinDialogs(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 1})
	l := r.open(t, "127.0.0.1:0", 1, ListenerConfig{Name: "u", Kind: UDP})[0]
	out := r.hub.Out(0)
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetReadBuffer(4 << 20)
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	to := c.LocalAddr().(*net.UDPAddr).AddrPort()
	rnd := rand.New(rand.NewPCG(3, 4))
	dialogs := []uint32{0, 1, 2, 3, 40, 62, 63}
	passed := 0
	for range 40 {
		var order []int // dialog of each message of the batch, by its number
		for i := range 2 + rnd.IntN(batch-2) {
			d := min(rnd.IntN(60), len(dialogs)-1) // nearly all of one dialog would show nothing, and all of none neither
			if d == len(dialogs)-1 {
				d = 1 + rnd.IntN(len(dialogs)-1)
			}
			size := []int{300, 400, 500}[rnd.IntN(3)]
			out.About(dialogs[d])
			out.Datagram(l, to, append(fmt.Appendf(nil, "%03d", i), make([]byte, size-3)...))
			order = append(order, d)
		}
		out.Flush()
		latest := make([]int, len(dialogs))
		for i := range latest {
			latest[i] = -1
		}
		all, unknown := -1, -1
		for range order {
			var b [1000]byte
			if _, err := c.Read(b[:]); err != nil {
				t.Fatal(err)
			}
			var i int
			if _, err := fmt.Sscanf(string(b[:3]), "%03d", &i); err != nil {
				t.Fatal(err)
			}
			d := order[i]
			if i < latest[d] || i < unknown || d == 0 && i < all {
				t.Fatalf("message %d of dialog %d comes after %d of its own, %d of all, %d of nobody's", i, d, latest[d], all, unknown)
			}
			if i < all {
				passed++
			}
			latest[d] = i
			all = max(all, i)
			if d == 0 {
				unknown = i
			}
		}
	}
	if passed == 0 {
		t.Error("no message has passed another one: nothing was gathered over dialogs")
	}
}

// Two messages each of many dialogs, one long and one short, go in two pieces, not in as many as there are messages.
func TestGroupsAreFormedOverDialogs(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 1})
	l := r.open(t, "127.0.0.1:0", 1, ListenerConfig{Name: "u", Kind: UDP})[0]
	b := newSendBatch(l.ep, l.ep.sockets[0])
	to := netip.MustParseAddrPort("127.0.0.1:9")
	for _, c := range []struct {
		dialogs int // that the messages belong to; 0: nobody knows
		want    int
	}{{10, 2}, {1, 20}, {0, 20}} {
		b.n, b.used, b.groups.refused = 0, 0, 0
		for i := range 10 {
			about := anyDialog
			if c.dialogs > 0 {
				about = 1 << (i % c.dialogs)
			}
			for _, size := range []int{600, 500} {
				if !b.add(to, make([]byte, size), about, r.hub.Inbox(0)) {
					t.Fatal("not taken")
				}
			}
		}
		b.groups.divide(b)
		if b.groups.n != c.want {
			t.Errorf("20 messages of %d dialogs make %d groups, want %d", c.dialogs, b.groups.n, c.want)
		}
	}
	b.n = 0
}
