package transport

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// load is a client and the server behind the hub in one: it sends a window of datagrams and reads as many back, with the
// hub's own batch calls, so that its part of the cost is small.
type load struct {
	send *sendBatch
	recv *udpSocket
	in   *Inbox
	sink netip.AddrPort
}

func newLoad(t testing.TB) *load {
	t.Helper()
	// An endpoint of a hub that never runs: its sockets are the load's.
	r := newRig(t, Config{Node: 1, Workers: 1})
	socks, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socks.Close() })
	_ = socks.SetReadBuffer(4 << 20)
	ep := &endpoint{hub: r.hub, kind: UDP, addr: socks.LocalAddr().(*net.UDPAddr).AddrPort()}
	s, err := newUDPSocket(ep, 0, socks)
	if err != nil {
		t.Fatal(err)
	}
	return &load{send: newSendBatch(ep, s), recv: s, in: r.hub.Inbox(0), sink: ep.addr}
}

// round sends the messages to dst and waits for as many.
func (l *load) round(t testing.TB, dst netip.AddrPort, msgs [][]byte) {
	for _, m := range msgs {
		l.send.add(dst, m, anyDialog, l.in)
	}
	l.send.flush()
	_ = l.recv.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	for left := len(msgs); left > 0; left -= l.recv.got {
		if err := l.recv.rc.Read(l.recv.recv); err != nil {
			t.Fatal(err, left)
		}
	}
}

// forwarding starts workers that send everything they get to the sink.
func forwarding(t testing.TB, r *rig, to *Listener, sink netip.AddrPort) {
	t.Helper()
	ctx, cancel := context.WithCancel(r.ctx)
	var wg sync.WaitGroup
	for i := range r.hub.Workers() {
		wg.Go(func() {
			in, o := r.hub.Inbox(i), r.hub.Out(i)
			for ctx.Err() == nil {
				msgs, _, _ := in.Receive(ctx, time.Time{})
				for j := range msgs {
					o.Datagram(to, sink, msgs[j].Bytes)
				}
				o.Flush()
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func window(n int) [][]byte {
	var msgs [][]byte
	for i := range n {
		msgs = append(msgs, []byte(request("INVITE", fmt.Sprint("call-", i, "@ua.example.com"), 700)))
	}
	return msgs
}

// BenchmarkForwardUDP is one message of 850 octets through the hub and back, the load's own part ("direct") to be
// subtracted. "home" is a socket that the worker reads itself, "reader" one with a goroutine of its own (the second
// listener of a worker), "4workers" spreads one flow over four workers. Compare lines of one run, with -cpu 1.
func BenchmarkForwardUDP(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		msgs := window(n)
		b.Run(fmt.Sprint("direct/window", n), func(b *testing.B) {
			l := newLoad(b)
			b.ReportAllocs()
			for i := 0; i < b.N; i += n {
				l.round(b, l.sink, msgs)
			}
		})
		for _, c := range []struct {
			name           string
			workers, which int
		}{{"home", 1, 0}, {"reader", 1, 1}, {"4workers", 4, 0}} {
			b.Run(fmt.Sprint(c.name, "/window", n), func(b *testing.B) {
				r := newRig(b, Config{Node: 1, Workers: c.workers})
				ls := r.open(b, "127.0.0.1:0", 1, ListenerConfig{Name: "a", Kind: UDP}, ListenerConfig{Name: "b", Kind: UDP})
				l := newLoad(b)
				forwarding(b, r, ls[c.which], l.sink)
				b.ReportAllocs()
				for i := 0; i < b.N; i += n {
					l.round(b, ls[c.which].Addr, msgs)
				}
			})
		}
	}
}

// The path of a datagram allocates nothing: received, handed over (own socket and another's), sent.
func TestUDPPathDoesNotAllocate(t *testing.T) {
	for _, workers := range []int{1, 3} {
		r := newRig(t, Config{Node: 1, Workers: workers})
		ls := r.open(t, "127.0.0.1:0", 1, ListenerConfig{Name: "a", Kind: UDP}, ListenerConfig{Name: "b", Kind: UDP})
		l := newLoad(t)
		forwarding(t, r, ls[0], l.sink)
		msgs := window(32)
		for _, to := range ls {
			l.round(t, to.Addr, msgs)
			// Everything in this process counts. A worker that sleeps on its home and is woken by another goroutine pays
			// one allocation of package net for the expired deadline (see notify): so much per round, not per message.
			most := map[string]float64{"a": 0.3, "b": 3}[to.Name]
			if n := testing.AllocsPerRun(200, func() { l.round(t, to.Addr, msgs) }); n > most {
				t.Errorf("%d workers, %s: %.2f allocations for 32 messages", workers, to.Name, n)
			}
		}
	}
}

// The path of a stream message allocates nothing in steady state either.
func TestStreamPathDoesNotAllocate(t *testing.T) {
	r := newRig(t, Config{Node: 1, Workers: 2})
	l := r.open(t, "127.0.0.1:0", 0, ListenerConfig{Name: "tcp", Kind: TCP})[0]
	ctx, cancel := context.WithCancel(r.ctx)
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			in, o := r.hub.Inbox(i), r.hub.Out(i)
			for ctx.Err() == nil {
				msgs, _, _ := in.Receive(ctx, time.Time{})
				for j := range msgs {
					_ = o.OnFlow(msgs[j].Flow, msgs[j].Bytes)
				}
			}
		})
	}
	defer wg.Wait()
	defer cancel()
	c, err := net.Dial("tcp", l.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	rc, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	q := []byte(request("INVITE", "x", 700) + request("BYE", "y", 0))
	b := make([]byte, len(q))
	got := 0
	read := func(fd uintptr) bool {
		n, err := unix.Read(int(fd), b[got:])
		if err != nil {
			return false
		}
		got += n
		return true
	}
	round := func() {
		if _, err := c.Write(q); err != nil {
			t.Fatal(err)
		}
		for got = 0; got < len(q); {
			if err := rc.Read(read); err != nil {
				t.Fatal(err)
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(300, round); n > 0.3 {
		t.Errorf("%.2f allocations for two messages there and back", n)
	}
}

// chanBox is the alternative to the ring that ADR 1 measures: a channel of the same letters, and one of free ones.
type chanBox struct{ full, free chan *letter }

func BenchmarkHandOver(b *testing.B) {
	msg := Inbound{Bytes: window(1)[0]}
	for _, producers := range []int{1, 4} {
		b.Run(fmt.Sprint("ring/", producers), func(b *testing.B) {
			h := New(Config{Node: 1, Workers: 1})
			in := h.Inbox(0)
			benchHandOver(b, producers, func() bool {
				if !in.put(&msg, 1) {
					return false
				}
				in.notify()
				return true
			}, func(ctx context.Context) int {
				msgs, _, _ := in.Receive(ctx, time.Time{})
				return len(msgs)
			})
		})
		b.Run(fmt.Sprint("chan/", producers), func(b *testing.B) {
			box := chanBox{make(chan *letter, inboxPlaces), make(chan *letter, inboxPlaces)}
			for range inboxPlaces {
				box.free <- &letter{own: make([]byte, placeOctets)}
			}
			var lent []*letter
			benchHandOver(b, producers, func() bool {
				select {
				case v := <-box.free:
					v.msg = msg
					v.msg.Bytes = append(v.own[:0], msg.Bytes...)
					box.full <- v
					return true
				default:
					return false
				}
			}, func(ctx context.Context) int {
				for _, v := range lent {
					box.free <- v
				}
				lent = append(lent[:0], <-box.full)
				for len(lent) < takeAtOnce {
					select {
					case v := <-box.full:
						lent = append(lent, v)
						continue
					default:
					}
					break
				}
				return len(lent)
			})
		})
	}
}

func benchHandOver(b *testing.B, producers int, put func() bool, take func(context.Context) int) {
	b.ReportAllocs()
	per := b.N/producers + 1
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for i := 0; i < per; {
				if put() {
					i++
				} else {
					runtime.Gosched()
				}
			}
		})
	}
	for n := 0; n < per*producers; {
		n += take(b.Context())
	}
	wg.Wait()
}
