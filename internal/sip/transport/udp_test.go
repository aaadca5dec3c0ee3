package transport

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/listen"
)

// rig is a running hub with its sockets, on loopback.
type rig struct {
	hub *Hub
	set *listen.Set
	ctx context.Context

	busy atomic.Bool // the workers have a transaction open on every connection
}

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &rig{hub: New(cfg), set: listen.New(nil), ctx: ctx}
	done := make(chan struct{}, 2)
	go func() { _ = r.hub.Run(ctx); done <- struct{}{} }()
	go func() { _ = r.set.Run(ctx); done <- struct{}{} }()
	t.Cleanup(func() { cancel(); <-done; <-done })
	return r
}

// open makes these the listeners, on the given addresses.
func (r *rig) open(t testing.TB, addr string, sockets int, cs ...ListenerConfig) []*Listener {
	t.Helper()
	var wants []listen.Want
	for _, c := range cs {
		n := listen.TCP
		if c.Kind == UDP {
			n = listen.UDP
		}
		wants = append(wants, listen.Want{Name: c.Name, Network: n, Addr: netip.MustParseAddrPort(addr), Sockets: sockets})
	}
	change, err := r.set.Adopt(wants)
	if err != nil {
		t.Fatal(err)
	}
	var ls []*Listener
	for i, c := range cs {
		l, err := r.hub.Open(c, change.Sockets[i])
		if err != nil {
			t.Fatal(err)
		}
		ls = append(ls, l)
	}
	r.hub.Use(ls)
	change.Commit()
	return ls
}

// got is a copy of what one Receive lent.
type got struct {
	worker int
	msg    Inbound
	bytes  string
	event  *Event
}

// work runs do for each message and event of every worker until the test ends.
func (r *rig) work(t testing.TB, do func(o *Out, g got)) {
	t.Helper()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(r.ctx)
	for i := range r.hub.Workers() {
		go func() {
			in, o := r.hub.Inbox(i), r.hub.Out(i)
			for ctx.Err() == nil {
				msgs, events, _ := in.Receive(ctx, time.Time{})
				for j := range msgs {
					do(o, got{worker: i, msg: msgs[j], bytes: string(msgs[j].Bytes)})
				}
				for j := range events {
					if events[j].Kind == Aged && r.busy.Load() {
						continue
					}
					if events[j].Do != nil {
						events[j].Do()
						continue
					}
					e := events[j]
					do(o, got{worker: i, event: &e})
				}
				o.Flush()
			}
			done <- struct{}{}
		}()
	}
	t.Cleanup(func() {
		cancel()
		for range r.hub.Workers() {
			<-done
		}
	})
}

// collect is work that sends everything to a channel.
func (r *rig) collect(t testing.TB) chan got {
	c := make(chan got, 10000)
	r.work(t, func(_ *Out, g got) { c <- g })
	return c
}

func next(t testing.TB, c <-chan got) got {
	t.Helper()
	select {
	case g := <-c:
		return g
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
		return got{}
	}
}

func request(method, callID string, body int) string {
	return fmt.Sprintf("%s sip:a@ex.com SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK1\r\nCall-ID: %s\r\nCSeq: 1 %s\r\nContent-Length: %d\r\n\r\n%*s",
		method, callID, method, body, body, "")
}

func dialUDP(t testing.TB, l *Listener) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(l.Addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	return c
}

func TestUDPReceiveAndAnswer(t *testing.T) {
	for _, workers := range []int{1, 3} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			r := newRig(t, Config{Node: 1, Workers: workers})
			l := r.open(t, "127.0.0.1:0", 2, ListenerConfig{Name: "sip-udp", Kind: UDP})[0]
			r.work(t, func(o *Out, g got) {
				if g.event == nil {
					o.Datagram(g.msg.Listener, g.msg.Source, []byte("SIP/2.0 200 OK\r\n"+g.bytes))
				}
			})
			c := dialUDP(t, l)
			b := make([]byte, 65536)
			for i := range 200 {
				q := request("OPTIONS", fmt.Sprint("c", i), i*7)
				if _, err := c.Write([]byte(q)); err != nil {
					t.Fatal(err)
				}
				n, err := c.Read(b)
				if err != nil {
					t.Fatal(i, err)
				}
				if string(b[:n]) != "SIP/2.0 200 OK\r\n"+q {
					t.Fatalf("answer %d is %q", i, b[:n])
				}
			}
		})
	}
}

// SX-9: up to 65,507 octets, the most that UDP over IPv4 carries, and never cut; also through another worker's inbox.
func TestSX9LargestDatagram(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 4})
	l := r.open(t, "127.0.0.1:0", 1, ListenerConfig{Name: "u", Kind: UDP})[0]
	c := dialUDP(t, l)
	in := r.collect(t)
	for i := range 8 {
		q := request("MESSAGE", fmt.Sprint("big", i), 0)
		q += fmt.Sprintf("%*s", 65507-len(q), "x")
		if _, err := c.Write([]byte(q)); err != nil {
			t.Fatal(err)
		}
		if g := next(t, in); g.bytes != q || g.msg.Local != l.Addr {
			t.Fatalf("%d octets on %v", len(g.bytes), g.msg.Local)
		}
	}
	if n := r.hub.large.Load(); n > 65507 {
		t.Fatalf("%d octets of large messages were not given back", n)
	}
}
