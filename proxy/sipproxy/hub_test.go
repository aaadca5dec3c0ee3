package sipproxy

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
	"github.com/wyegate/wyegate/internal/listen"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// front is the proxy on real sockets of 127.0.0.1, in front of servers that answer.
type front struct {
	t        testing.TB
	proxy    *Proxy
	udp, tcp netip.AddrPort
	servers  []*lbtest.Server
	pool     *routing.Pool
}

// newFront starts servers, sockets, hub and proxy; the servers are spoken to over the transport given.
func newFront(t testing.TB, towards string, servers int) *front {
	t.Helper()
	f := &front{t: t}
	var reg routing.Registry
	var members []routing.Member
	for i := range servers {
		s, err := lbtest.NewServer(fmt.Sprint("as", i+1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		f.servers = append(f.servers, s)
		members = append(members, routing.Member{Server: reg.Server("app", s.Name), Weight: 100, Addresses: []routing.Address{{Proto: routing.SIP, Transport: towards, Addr: s.Addr}}})
	}
	table, err := routing.NewTable(members, routing.HashSettings{})
	if err != nil {
		t.Fatal(err)
	}
	f.pool = routing.NewPool(&reg, "app", routing.Config{}, table)
	f.pool.Activate()
	sockets := listen.New(slog.New(slog.DiscardHandler))
	any4 := netip.MustParseAddrPort("127.0.0.1:0")
	change, err := sockets.Adopt([]listen.Want{{Name: "sip-udp", Network: listen.UDP, Addr: any4, Sockets: 2}, {Name: "sip-tcp", Network: listen.TCP, Addr: any4}})
	if err != nil {
		t.Fatal(err)
	}
	hub := transport.New(transport.Config{Workers: 2})
	target := &proxy.Target{Service: "s", Application: "a", Name: "s/a", Tag: tag32("s/a"), Pool: f.pool}
	var m proxy.Matcher
	m.Add(proxy.Pattern{}, target)
	g := GenerationConfig{Number: 1, Secrets: testSecrets(t), Pools: []PoolConfig{{Pool: f.pool}}, Targets: []TargetConfig{{Target: target}}}
	var listeners []*transport.Listener
	for i, s := range change.Sockets {
		l, err := hub.Open(transport.ListenerConfig{Name: []string{"sip-udp", "sip-tcp"}[i], Kind: transport.Kind(i + 1)}, s)
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
		g.Listeners = append(g.Listeners, ListenerConfig{Listener: l, Matcher: &m})
	}
	f.udp, f.tcp = listeners[0].Addr, listeners[1].Addr
	gen, err := NewGeneration(g)
	if err != nil {
		t.Fatal(err)
	}
	f.proxy, err = New(Config{
		Ports: []Port{{In: hub.Inbox(0), Out: hub.Out(0)}, {In: hub.Inbox(1), Out: hub.Out(1)}}, Owner: hub.Worker,
		Panic: func(v any, stack []byte) { t.Errorf("panic: %v\n%s", v, stack) },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.proxy.Swap(gen, time.Now(), false)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = hub.Run(ctx) })
	wg.Go(func() { _ = f.proxy.Run(ctx) })
	wg.Go(func() { _ = sockets.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	change.Commit()
	hub.Use(listeners)
	return f
}

// Calls over real sockets, all four pairs of transports: the caller hangs up, and the callee, along their route sets.
func TestSA9_RealSockets(t *testing.T) {
	for _, towards := range []string{"udp", "tcp"} {
		for _, client := range []string{"UDP", "TCP"} {
			t.Run(client+" to "+towards, func(t *testing.T) {
				f := newFront(t, towards, 3)
				caller, err := lbtest.NewUA("caller", lbtest.Answer)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(caller.Close)
				to := f.udp
				if client == "TCP" {
					to = f.tcp
				}
				p, err := caller.Dial(client, to)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				used := map[string]int{}
				for i := range 20 {
					f.call(ctx, caller, p, i, towards, used)
				}
				if len(used) < 2 {
					t.Errorf("all calls went to %v", used)
				}
			})
		}
	}
}

func (f *front) call(ctx context.Context, caller *lbtest.UA, p *lbtest.Path, i int, towards string, used map[string]int) {
	f.t.Helper()
	d, m, err := caller.Invite(ctx, p, lbtest.InviteOptions{RequestURI: "sip:room@127.0.0.1:" + fmt.Sprint(f.udp.Port())})
	if err != nil || m.Status != 200 {
		f.t.Fatalf("call %d: %v, %v", i, m, err)
	}
	used[d.Peer]++
	for _, method := range []string{"INFO", "INVITE"} {
		m, err := d.Do(ctx, method)
		if err != nil || m.Status != 200 || m.Header("X-Server") != d.Peer {
			f.t.Fatalf("call %d: %s went to %v, %v, want %s", i, method, m, err, d.Peer)
		}
	}
	if i%2 == 0 || towards == "tcp" {
		if m, err := d.Bye(ctx); err != nil || m.Status != 200 || m.Header("X-Server") != d.Peer {
			f.t.Fatalf("call %d: BYE: %v, %v", i, m, err)
		}
		return
	}
	for _, s := range f.servers {
		if s.Name != d.Peer {
			continue
		}
		back, err := s.Dial("UDP", f.udp)
		if err != nil {
			f.t.Fatal(err)
		}
		callee := s.DialogOf(d.CallID)
		callee.SetPath(back)
		if m, err := callee.Bye(ctx); err != nil || m.Status != 200 || m.Header("X-Server") != "caller" {
			f.t.Fatalf("call %d: callee's BYE: %v, %v", i, m, err)
		}
	}
}

// 9.3, SX-15: a server whose port is closed costs a stream client nothing.
func TestSX15_DeadServerOnRealSockets(t *testing.T) {
	for _, towards := range []string{"udp", "tcp"} {
		t.Run(towards, func(t *testing.T) {
			f := newFront(t, towards, 2)
			f.servers[0].Close()
			caller, err := lbtest.NewUA("caller", nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(caller.Close)
			p, err := caller.Dial("TCP", f.tcp)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for i := range 10 {
				d, m, err := caller.Invite(ctx, p, lbtest.InviteOptions{RequestURI: "sip:room@ex.com"})
				if err != nil || m.Status != 200 || d.Peer != "as2" {
					t.Fatalf("call %d: %v, %v", i, m, err)
				}
			}
		})
	}
}
