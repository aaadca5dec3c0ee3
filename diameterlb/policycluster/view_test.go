package policycluster

import (
	"net/netip"
	"testing"
	"time"
)

// ready makes a cluster with connected members, without Run.
func ready(t *testing.T, cfg Config, n int) *Cluster {
	t.Helper()
	cfg.Name, cfg.Pinning, cfg.MonitorLimit = "pcrf", true, n
	c := New(cfg, nil)
	now := time.Now()
	for i := range n {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 3868)
		s := c.newSlot(server{addrs: []netip.AddrPort{at}}, now)
		s.rank, s.conn = i+1, connected
		s.identity.Store(&Identity{Host: string('a'+rune(i)) + ".test"})
		s.become(Standby, changeStart, "", now)
		if i == 0 || cfg.Selection == Random {
			s.become(Active, changeStart, "", now)
		}
		c.slots = append(c.slots, s)
	}
	c.publish()
	return c
}

// architecture.md 4.2 rule 1: nothing is allocated to choose a server, pinned or not, nor to count its answers.
func TestNoAllocationPerRequest(t *testing.T) {
	for _, share := range []LoadShare{ShareNone, RoundRobin, LeastPending} {
		c := ready(t, Config{Selection: Random, MaxConnections: 4, Share: share}, 4)
		dst := make([]*Member, 0, 8)
		host := "c.test"
		if n := testing.AllocsPerRun(1000, func() {
			m := c.Candidates(dst[:0], host)[0]
			m = c.Candidates(dst[:0], "")[len(dst)]
			m.Answered(Request)
			m.Result(false)
			m.TimedOut(Request)
		}); n != 0 {
			t.Errorf("share %d: %.1f allocations", share, n)
		}
	}
}

func TestRoundRobinVisitsAllEqually(t *testing.T) {
	c := ready(t, Config{Selection: Random, MaxConnections: 3, Share: RoundRobin}, 3)
	seen := map[netip.AddrPort]int{}
	for range 300 {
		list := c.Candidates(nil, "")
		if len(list) != 3 {
			t.Fatalf("%d candidates", len(list))
		}
		seen[list[0].Address()]++
	}
	for at, n := range seen {
		if n != 100 {
			t.Errorf("%s was first %d times of 300", at, n)
		}
	}
}

func TestLeastPendingComesFirst(t *testing.T) {
	c := ready(t, Config{Selection: Random, MaxConnections: 3, Share: LeastPending}, 3)
	for i, s := range c.slots {
		s.Pending.Store(int64(10 - i))
	}
	for range 10 {
		if got := c.Candidates(nil, "")[0]; got != c.slots[2].Member {
			t.Fatalf("%s first, it has %d pending", got.Address(), got.Pending.Load())
		}
	}
}

// session_pinning: false sends every request to the active one.
func TestPinningOff(t *testing.T) {
	c := ready(t, Config{MaxConnections: 2}, 2)
	if got := c.Candidates(nil, "b.test"); len(got) != 1 || got[0] != c.slots[1].Member {
		t.Fatalf("pinned: %d candidates", len(got))
	}
	c.cfg.Pinning = false
	c.publish()
	if got := c.Candidates(nil, "b.test"); got[0] != c.slots[0].Member {
		t.Fatalf("not pinned: %s first", got[0].Address())
	}
}

// wyegate_policy_failover_seconds has one value per failover: that of the first request on the new active.
func TestFirstRequestAfterFailoverIsMeasuredOnce(t *testing.T) {
	c := ready(t, Config{MaxConnections: 2}, 2)
	var took []time.Duration
	c.Took = func(d time.Duration) { took = append(took, d) }
	now := time.Now()
	c.slots[0].conn = none
	c.lost(c.slots[0], Closed, "FIN", now)
	c.promote(now)
	c.publish()
	c.publish() // a view that follows before the first request changes nothing
	for range 3 {
		c.Candidates(nil, "")
	}
	if len(took) != 1 || took[0] < 0 {
		t.Fatalf("measured %v", took)
	}
	if c.Failovers[Closed].Load() != 1 {
		t.Error("not counted")
	}
}
