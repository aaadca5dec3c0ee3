package policypeer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/wyegate/wyegate/diameterlb/peer"
	"github.com/wyegate/wyegate/diameterlb/policycluster"
	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/diam/base"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a node with one cluster of servers behind pipes, in virtual time.
type lab struct {
	*testing.T
	mu      sync.Mutex
	servers map[netip.AddrPort]*server
	cluster *policycluster.Cluster
	bridge  *Bridge
}

// server answers CER, DWR and DPR on the far end of a pipe.
type server struct {
	host string
	mu   sync.Mutex
	conn net.Conn // the last one
	mute bool     // reads and answers nothing, like a process that is stopped
	off  bool     // refuses connections
	dprs []uint32 // causes of DPRs it got
	n    int      // connections it took
}

func (l *lab) Open(*peer.Link) peer.Receiver { return idle{} }

// idle is a relay without requests.
type idle struct{}

func (idle) Message(diam.Header, []byte) {}
func (idle) Flush()                      {}
func (idle) Suspend(bool)                {}
func (idle) Resume()                     {}
func (idle) Pending() int                { return 0 }
func (idle) Closed()                     {}

type pipeDialer struct{ s *server }

func (d pipeDialer) Dial(context.Context) (peer.Conn, error) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.s.off {
		return nil, errors.New("dial: connection refused")
	}
	here, there := net.Pipe()
	d.s.conn = here
	d.s.n++
	go d.s.serve(here)
	return peer.NewConn(there, time.Second), nil
}

func (s *server) serve(c net.Conn) {
	node := base.Node{Host: s.host, Realm: "test", Product: "ps", Apps: []uint32{diam.AppRelay}}
	f := diam.NewFramer(1 << 16)
	for {
		msg, err := f.Next()
		if err != nil {
			_ = c.Close()
			return
		}
		if msg == nil {
			n, err := c.Read(f.Space())
			f.Filled(n)
			if err != nil {
				return
			}
			continue
		}
		h, err := diam.ParseHeader(msg, len(msg))
		if err != nil {
			return
		}
		s.mu.Lock()
		mute := s.mute
		s.mu.Unlock()
		if !mute {
			s.answer(c, &node, h, msg)
		}
	}
}

func (s *server) answer(c net.Conn, node *base.Node, h diam.Header, msg []byte) {
	if !h.IsRequest() {
		return
	}
	ids := base.IDsOf(h)
	switch h.Command {
	case diam.CommandCapabilitiesExchange:
		_, _ = c.Write(node.CEA(ids, []netip.Addr{netip.MustParseAddr("10.0.0.9")}, base.Refusal{}))
	case diam.CommandDeviceWatchdog:
		_, _ = c.Write(node.DWA(ids))
	case diam.CommandDisconnectPeer:
		s.mu.Lock()
		s.dprs = append(s.dprs, causeIn(msg))
		s.mu.Unlock()
		_, _ = c.Write(node.DPA(ids, 2001))
	}
}

// causeIn reads Disconnect-Cause, or gives 99.
func causeIn(msg []byte) uint32 {
	for i := 20; i+12 <= len(msg); {
		code := uint32(msg[i])<<24 | uint32(msg[i+1])<<16 | uint32(msg[i+2])<<8 | uint32(msg[i+3])
		if code == 273 {
			return uint32(msg[i+11])
		}
		n := int(msg[i+5])<<16 | int(msg[i+6])<<8 | int(msg[i+7])
		i += (n + 3) &^ 3
	}
	return 99
}

// end closes the server's side, as a process that is killed does.
func (s *server) end(off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = off
	_ = s.conn.Close()
}

func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func at(i byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, i}), 3868)
}

// inLab runs body with a cluster of n servers that are up.
func inLab(t *testing.T, n int, change func(*policycluster.Config, *peer.Settings), body func(l *lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{T: t, servers: map[netip.AddrPort]*server{}}
		cfg := policycluster.Config{
			Name: "pcrf", MaxConnections: n, MonitorLimit: 4, Reconnect: 10 * time.Second, StartWait: time.Second,
			DrainTimeout: 5 * time.Second, DryUpTimeout: 30 * time.Second, Pinning: true,
		}
		for i := range n {
			a := at(byte(i + 1))
			l.servers[a] = &server{host: "ps" + string('1'+rune(i)) + ".test"}
			cfg.Addresses = append(cfg.Addresses, a)
		}
		settings := peer.DefaultSettings
		settings.Watchdog.Proving = 0
		if change != nil {
			change(&cfg, &settings)
		}
		node := peer.NewNode(peer.NodeConfig{
			Local:    base.Node{Host: "edge.test", Realm: "test", Product: "wyegate", Apps: []uint32{diam.AppRelay}},
			Defaults: settings, Limits: peer.DefaultLimits, Handler: l,
		}, nil)
		l.bridge = New(node, Config{Settings: settings, Dialer: func(to netip.AddrPort) peer.Dialer { return pipeDialer{l.servers[to]} }})
		l.cluster = policycluster.New(cfg, l.bridge)
		ctx, cancel := context.WithCancel(t.Context())
		inner, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = node.Run(ctx) })
		synctest.Wait()
		wg.Go(func() { _ = l.cluster.Run(inner) })
		l.after(2 * time.Second)
		body(l)
		stop()
		l.after(20 * time.Second)
		cancel()
		wg.Wait()
		l.bridge.Wait()
	})
}

func (l *lab) after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// want compares the states of the servers, in the order of their addresses.
func (l *lab) want(states ...string) policycluster.Status {
	l.Helper()
	st, err := l.cluster.Status(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	for i, s := range st.Servers {
		if i >= len(states) || s.State != states[i] {
			l.Errorf("%s is %s (%s), want %v", s.Address, s.State, s.LastChange, states)
		}
	}
	return st
}

// active is the address that a new request goes to.
func (l *lab) active() netip.AddrPort {
	list := l.cluster.Candidates(nil, "")
	if len(list) == 0 {
		return netip.AddrPort{}
	}
	return list[0].Address()
}

func TestMembersHaveThePeersOfTheNode(t *testing.T) {
	inLab(t, 2, nil, func(l *lab) {
		l.want("active", "standby")
		m := l.cluster.Candidates(nil, "")[0]
		p := Peer(m)
		if p == nil || p.Host() != "ps1.test" || len(p.Links()) != 1 {
			t.Fatalf("peer %+v", p)
		}
		if id, _ := m.Identity(); id.Host != "ps1.test" || id.Realm != "test" {
			t.Errorf("identity %+v", id)
		}
		if p.Results() == nil {
			t.Error("nobody learns how requests end")
		}
	})
}

// diameter.md 14: FIN to the new active within 1 s; here in no virtual time at all.
func TestFINPromotesAtOnce(t *testing.T) {
	inLab(t, 2, nil, func(l *lab) {
		l.after(20 * time.Second)
		began := time.Now()
		l.servers[at(1)].end(true)
		synctest.Wait()
		if got := l.active(); got != at(2) || time.Since(began) != 0 {
			t.Errorf("active %v after %v", got, time.Since(began))
		}
		l.after(time.Second)
		st := l.want("inactive", "active")
		if c := st.Servers[0].LastChange; c.String() != "cer_failed: connection refused" {
			t.Errorf("after the loss it was dialled at once: %s", c)
		}
		l.servers[at(1)].set(func() { l.servers[at(1)].off = false })
		l.after(10 * time.Second)
		l.want("standby", "active")
		if n := l.cluster.Failovers[policycluster.Closed].Load(); n != 1 {
			t.Errorf("%d failovers", n)
		}
	})
}

// A server that is stopped (SIGSTOP) keeps its socket: SUSPECT gives its role away, DOWN closes it (RFC 3539).
func TestSilenceMakesSuspectThenInactive(t *testing.T) {
	inLab(t, 2, func(_ *policycluster.Config, s *peer.Settings) {
		s.Watchdog.Interval, s.Watchdog.Jitter = 6*time.Second, 0
	}, func(l *lab) {
		l.servers[at(1)].set(func() { l.servers[at(1)].mute = true })
		l.after(13 * time.Second)
		l.want("suspect", "active")
		l.after(6 * time.Second)
		st := l.want("inactive", "active")
		if n := l.cluster.Failovers[policycluster.DWRTimeouts].Load(); n != 1 {
			t.Errorf("%d failovers by dwr_timeouts: %+v", n, st.Servers)
		}
	})
}

// Their DPR takes the role away before the connection has ended, and says when they are dialled again.
func TestTheirDPR(t *testing.T) {
	inLab(t, 2, nil, func(l *lab) {
		s := l.servers[at(1)]
		node := base.Node{Host: s.host, Realm: "test"}
		s.set(func() { _, _ = s.conn.Write(node.DPR(base.IDs{HopByHop: 9, EndToEnd: 9}, diam.CauseRebooting)) })
		synctest.Wait()
		if l.active() != at(2) {
			t.Fatalf("active %v", l.active())
		}
		s.end(false)
		l.after(25 * time.Second)
		l.want("inactive", "active")
		dialled := 0
		s.set(func() { dialled = s.n })
		if dialled != 1 {
			t.Errorf("dialled before after_dpr.rebooting was over")
		}
		l.after(10 * time.Second)
		l.want("standby", "active")
	})
}

// Our DPR carries the cause of diameter.md 2.6: 2 out of service, 0 when the process stops.
func TestOurDPR(t *testing.T) {
	var all []*server
	inLab(t, 2, nil, func(l *lab) {
		for _, s := range l.servers {
			all = append(all, s)
		}
		if _, _, err := l.cluster.SetMode(l.Context(), policycluster.OutOfService, false); err != nil {
			t.Fatal(err)
		}
		l.after(20 * time.Second)
		l.want("inactive", "inactive")
		if _, _, err := l.cluster.SetMode(l.Context(), policycluster.ModeActive, false); err != nil {
			t.Fatal(err)
		}
		l.after(2 * time.Second)
		l.want("active", "standby")
	})
	for _, s := range all {
		if len(s.dprs) != 2 || s.dprs[0] != 2 || s.dprs[1] != 0 {
			t.Errorf("%s got DPRs with causes %v, want 2 and 0", s.host, s.dprs)
		}
	}
}

// Request time-outs end the connection without DPR; the server is standby when it is back.
func TestRequestTimeoutsCloseAndComeBack(t *testing.T) {
	inLab(t, 2, func(c *policycluster.Config, _ *peer.Settings) { c.MaxTimeouts = 3 }, func(l *lab) {
		p := Peer(l.cluster.Candidates(nil, "")[0])
		for range 2 {
			p.Results().TimedOut(p, 265)
		}
		p.Results().Answered(p, 265, 2001)
		for range 3 {
			p.Results().TimedOut(p, 265)
		}
		synctest.Wait()
		if l.active() != at(2) {
			t.Fatalf("active %v", l.active())
		}
		l.after(20 * time.Second)
		l.want("standby", "active")
		if n := l.cluster.Failovers[policycluster.RequestTimeouts].Load(); n != 1 {
			t.Errorf("%d failovers", n)
		}
	})
}

func TestExpectedIdentity(t *testing.T) {
	inLab(t, 2, func(c *policycluster.Config, _ *peer.Settings) {
		c.Expect = policycluster.Identity{Host: "ps2.test"}
	}, func(l *lab) {
		st := l.want("inactive", "active")
		if c := st.Servers[0].LastChange.String(); c != "cer_failed: identity ps1.test, expected ps2.test" {
			t.Error(c)
		}
	})
}
