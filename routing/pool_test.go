package routing

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func srv(r *Registry, name string) *Server { return r.Server("pool", name) }

// The truth table of State, cell by cell, for new and for known traffic.
func TestTruthTable(t *testing.T) {
	for _, c := range []struct {
		a          Admin
		h          Health
		new, known bool
	}{
		{Ready, Unknown, true, true}, {Ready, Up, true, true}, {Ready, Busy, false, true}, {Ready, Down, false, false},
		{Drain, Unknown, false, true}, {Drain, Up, false, true}, {Drain, Busy, false, true}, {Drain, Down, false, false},
		{Maint, Unknown, false, false}, {Maint, Up, false, false}, {Maint, Busy, false, false}, {Maint, Down, false, false},
	} {
		for pr := range numProtos {
			r := &Registry{}
			p := pool(t, r, Config{}, mems(r, 1)...)
			s := srv(r, "as1")
			p.SetAdmin(s, c.a, "test", timeZero)
			p.SetHealth(s, pr, c.h, "test", timeZero)
			if s.AcceptsNew(pr) != c.new || s.TakesKnown(pr) != c.known {
				t.Errorf("%v, %v: state says new %v, known %v", c.a, c.h, s.AcceptsNew(pr), s.TakesKnown(pr))
			}
			fresh := got(t, p, &Request{Proto: pr, Hash: 1, HasKey: true}) == "as1"
			robin := got(t, p, &Request{Proto: pr, Policy: StickyPolicy}) == "as1"
			least := got(t, p, &Request{Proto: pr, Policy: LeastPolicy}) == "as1"
			known := got(t, p, &Request{Proto: pr, Hash: 1, HasKey: true, Known: s.Tag}) == "as1"
			if fresh != c.new || robin != c.new || least != c.new || known != c.known {
				t.Errorf("%v, %v: new %v/%v/%v, known %v", c.a, c.h, fresh, robin, least, known)
			}
		}
	}
}

// 400 requests of 8 workers on 4 equal servers: exactly 100 each.
func TestRoundRobinIsExactUnderConcurrency(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 10, 10, 10, 10)...)
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				name := got(t, p, &Request{Proto: HTTP, Policy: StickyPolicy})
				mu.Lock()
				seen[name]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		if n := seen[fmt.Sprintf("as%d", i+1)]; n != 100 {
			t.Errorf("as%d got %d of 400", i+1, n)
		}
	}
}

// A server that is out must not double its neighbour in the list (trap 6 of sip-http.md 20).
func TestRoundRobinSpreadsTheTurnsOfTheMissing(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 1, 1, 1)...)
	p.SetHealth(srv(r, "as2"), HTTP, Down, "test", timeZero)
	var names []string
	for range 1200 {
		names = append(names, got(t, p, &Request{Proto: HTTP, Policy: StickyPolicy}))
	}
	for name, n := range count(names) {
		if n != 400 {
			t.Errorf("%s got %d, want 400", name, n)
		}
	}
}

func TestRoundRobinByWeight(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 100, 50, 30)...)
	var names []string
	for range 1800 {
		names = append(names, got(t, p, &Request{Proto: HTTP, Policy: StickyPolicy}))
	}
	if c := count(names); c["as1"] != 1000 || c["as2"] != 500 || c["as3"] != 300 {
		t.Errorf("got %v", c)
	}
	longest, run := 0, 0
	for i := range names {
		if i > 0 && names[i] == names[i-1] {
			run++
		} else {
			run = 1
		}
		longest = max(longest, run)
	}
	if longest > 2 {
		t.Errorf("%d turns of one server in a row: not smooth", longest)
	}
}

// Turns go on over a reload: the pool of the next generation does not begin with the first server again.
func TestTurnsOutliveAGeneration(t *testing.T) {
	r := &Registry{}
	var names []string
	for range 40 {
		p := pool(t, r, Config{}, mems(r, 1, 1, 1, 1)...)
		names = append(names, got(t, p, &Request{Proto: HTTP, Policy: StickyPolicy}))
	}
	if c := count(names); c["as1"] != 10 {
		t.Errorf("got %v, want ten each", c)
	}
}

// HS-1: a known server keeps its client while it drains, gives it away when it is down.
func TestSticky(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 1, 1)...)
	s := srv(r, "as2")
	req := func() *Request { return &Request{Proto: HTTP, Policy: StickyPolicy, Known: s.Tag, Pinned: true} }
	for range 5 {
		l, err := p.Acquire(req())
		if err != nil || l.Member.Name != "as2" || l.How != HowKnown {
			t.Fatalf("%v %v", l.Member, err)
		}
		l.Done(OutcomeOK)
	}
	p.SetAdmin(s, Drain, "alice", timeZero)
	if n := got(t, p, req()); n != "as2" {
		t.Errorf("draining: %s", n)
	}
	p.MoveDrained(s, "deadline", timeZero)
	if n := got(t, p, req()); n == "as2" {
		t.Error("drain deadline with move: still there")
	}
	p.SetAdmin(s, Ready, "alice", timeZero)
	p.SetHealth(s, HTTP, Down, "timeout", timeZero)
	if n := got(t, p, req()); n == "as2" {
		t.Error("down: still there")
	}
	if n := got(t, p, &Request{Proto: HTTP, Policy: StickyPolicy, Known: 12345}); n == ErrNoServer.Error() {
		t.Error("an unknown route must give a new server")
	}
}

// WLC: 600 connections on 1:2:3 give exactly 100, 200, 300 (decisions.md).
func TestLeastConnections(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 2, 3)...)
	for range 600 {
		if _, err := p.Acquire(&Request{Policy: LeastPolicy}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int64{100, 200, 300} {
		if n := srv(r, fmt.Sprintf("as%d", i+1)).Active(); n != want {
			t.Errorf("as%d has %d, want %d", i+1, n, want)
		}
	}
}

// 12.5: beyond max_concurrent round robin takes the next server, keyed traffic is refused.
func TestMaxConcurrent(t *testing.T) {
	r := &Registry{}
	m := mems(r, 1, 1)
	m[0].MaxConcurrent, m[1].MaxConcurrent = 2, 2
	p := pool(t, r, Config{}, m...)
	k := key(1)
	var leases []Lease
	for range 2 {
		l, err := p.Acquire(&Request{Hash: k, HasKey: true})
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	if _, err := p.Acquire(&Request{Hash: k, HasKey: true}); !errors.Is(err, ErrFull) || !errors.Is(err, ErrNoServer) {
		t.Errorf("keyed: %v", err)
	}
	owner := leases[0].Member
	if _, err := p.Acquire(&Request{Hash: k, HasKey: true, Known: owner.Tag}); err != nil {
		t.Errorf("SIP that is known passes: %v", err)
	}
	for range 2 {
		l, err := p.Acquire(&Request{Proto: HTTP, Policy: StickyPolicy})
		if err != nil || l.Member.Name == owner.Name {
			t.Errorf("round robin: %v, %v", l.Member, err)
		}
	}
	if _, err := p.Acquire(&Request{Proto: HTTP, Policy: StickyPolicy}); !errors.Is(err, ErrNoServer) {
		t.Errorf("all full: %v", err)
	}
	leases[0].Done(OutcomeOK)
	leases[0].Done(OutcomeOK)
	if n := owner.Active(); n != 2 {
		t.Errorf("active %d after a lease was given back twice, want 2", n)
	}
}

func TestMaxConcurrentIsExactUnderConcurrency(t *testing.T) {
	r := &Registry{}
	m := mems(r, 1)
	m[0].MaxConcurrent = 10
	p := pool(t, r, Config{}, m...)
	var wg sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for range 64 {
		wg.Go(func() {
			if _, err := p.Acquire(&Request{Proto: HTTP, Policy: StickyPolicy}); err == nil {
				mu.Lock()
				granted++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if granted != 10 {
		t.Errorf("%d leases, want 10", granted)
	}
}

// Connect tries: the same call with one more name in it walks the key's list.
func TestAvoidWalksTheChoices(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 1, 1, 1)...)
	want := p.Choices(key(3))
	req := &Request{Hash: key(3), HasKey: true}
	for i, name := range want {
		l, err := p.Acquire(req)
		if err != nil || l.Member.Name != name || (i > 0) != (l.How == HowNext) {
			t.Fatalf("try %d: %v %v %v, want %s", i, l.Member, l.How, err, name)
		}
		req.Avoid.Add(l.Member.Tag)
	}
	if _, err := p.Acquire(req); !errors.Is(err, ErrNoServer) {
		t.Errorf("all tried: %v", err)
	}
	rr := &Request{Proto: HTTP, Policy: StickyPolicy}
	for range 4 {
		l, err := p.Acquire(rr)
		if err != nil || rr.Avoid.Has(l.Member.Tag) {
			t.Fatalf("%v %v", l.Member, err)
		}
		rr.Avoid.Add(l.Member.Tag)
	}
}

func TestScope(t *testing.T) {
	for _, c := range []struct {
		scope Scope
		http  string // who gets HTTP when only SIP is down
	}{{ScopeServer, "as2"}, {ScopeAddress, "as1"}} {
		r := &Registry{}
		p := pool(t, r, Config{Scope: c.scope}, mems(r, 1, 1)...)
		k := ownedBy(p, "as1")
		p.SetHealth(srv(r, "as1"), SIP, Down, "timeout", timeZero)
		if n := got(t, p, &Request{Proto: SIP, Hash: k, HasKey: true}); n != "as2" {
			t.Errorf("scope %d: SIP to %s", c.scope, n)
		}
		if n := got(t, p, &Request{Proto: HTTP, Hash: k, HasKey: true}); n != c.http {
			t.Errorf("scope %d: HTTP to %s, want %s", c.scope, n, c.http)
		}
	}
	r := &Registry{}
	p := pool(t, r, Config{InUse: [2]bool{HTTP: true}}, mems(r, 1, 1)...)
	p.SetHealth(srv(r, "as1"), SIP, Down, "timeout", timeZero)
	if n := got(t, p, &Request{Proto: HTTP, Hash: ownedBy(p, "as1"), HasKey: true}); n != "as1" {
		t.Errorf("an address that is not in use counts: %s", n)
	}
}

// ownedBy gives a hash whose owner is that server.
func ownedBy(p *Pool, name string) uint64 {
	for i := 0; ; i++ {
		if p.Choices(key(i))[0] == name {
			return key(i)
		}
	}
}

// F10: below the share health is not believed, but a refused connect is.
func TestPanic(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{MinUsable: 30}, mems(r, 1, 1, 1, 1)...)
	for _, n := range []string{"as1", "as2"} {
		p.SetHealth(srv(r, n), SIP, Down, "timeout", timeZero)
	}
	if _, panicking := p.Serving(SIP); panicking {
		t.Fatal("half is above 30 %")
	}
	p.Report(srv(r, "as3"), SIP, OutcomeRefused)
	if _, panicking := p.Serving(SIP); !panicking {
		t.Fatal("no panic with one of four")
	}
	seen := count(place(t, p, 2000))
	if len(seen) != 3 || seen["as3"] != 0 {
		t.Errorf("traffic to %v, want all but the one that refused", seen)
	}
	l, _ := p.Acquire(&Request{Hash: 1, HasKey: true})
	if l.How != HowPanic {
		t.Errorf("how %v", l.How)
	}
	for _, n := range []string{"as1", "as2", "as4"} {
		p.SetRefused(srv(r, n), SIP, "refused×3", timeZero)
	}
	if _, err := p.Acquire(&Request{Hash: 1, HasKey: true}); !errors.Is(err, ErrNoServer) {
		t.Errorf("SH-7: all refused: %v", err)
	}

	refuse := NewPool(r, "pool", Config{MinUsable: 30, PanicRefuse: true}, p.Table())
	p.SetHealth(srv(r, "as1"), SIP, Up, "hits", timeZero)
	if seen := count(place(t, refuse, 200)); len(seen) != 1 || seen["as1"] != 200 {
		t.Errorf("action refuse: %v", seen)
	}
}

// The lowest rank with a usable server carries the traffic, all of it; all-active is one rank.
func TestSiteRanks(t *testing.T) {
	r := &Registry{}
	m := mems(r, 1, 1, 1, 1)
	m[2].SiteRank, m[3].SiteRank = 2, 2
	m[0].SiteRank, m[1].SiteRank = 1, 1
	p := pool(t, r, Config{}, m...)
	if seen := count(place(t, p, 500)); len(seen) != 2 || seen["as1"] == 0 || seen["as2"] == 0 {
		t.Errorf("rank 1 is whole: %v", seen)
	}
	p.SetHealth(srv(r, "as1"), SIP, Down, "timeout", timeZero)
	if seen := count(place(t, p, 500)); seen["as2"] != 500 {
		t.Errorf("one of rank 1 is left: %v", seen)
	}
	d := p.Explain(Request{Hash: key(1), HasKey: true}, []string{"as2"})
	if d.Server != "as3" && d.Server != "as4" || d.How != HowStandby {
		t.Errorf("if as2 is down: %+v", d)
	}
	if rank, _ := p.Serving(SIP); rank != 1 {
		t.Errorf("explain moved the site: %d", rank)
	}
	p.SetHealth(srv(r, "as2"), SIP, Down, "timeout", timeZero)
	l, err := p.Acquire(&Request{Hash: key(1), HasKey: true})
	if err != nil || l.Member.SiteRank != 2 || l.How != HowStandby {
		t.Errorf("rank 1 gone: %v %v", l.How, err)
	}
}

// operations.md 3.2: the primary must stay usable for revert_hold before traffic returns.
func TestRevertHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Registry{}
		m := mems(r, 1, 1)
		m[1].SiteRank = 1
		var moves []SiteMove
		p := pool(t, r, Config{RevertHold: time.Minute, OnSite: func(m SiteMove) { moves = append(moves, m) }}, m...)
		at := func() string { return got(t, p, &Request{Hash: 1, HasKey: true}) }
		if at() != "as1" {
			t.Fatal("the primary does not serve")
		}
		p.SetHealth(srv(r, "as1"), SIP, Down, "timeout", time.Now())
		if at() != "as2" {
			t.Fatal("standby does not serve")
		}
		p.SetHealth(srv(r, "as1"), SIP, Up, "hits", time.Now())
		if at() != "as2" {
			t.Error("came back at once")
		}
		time.Sleep(59 * time.Second)
		p.Tick(time.Now())
		if at() != "as2" {
			t.Error("came back before the hold")
		}
		time.Sleep(2 * time.Second)
		p.Tick(time.Now())
		if at() != "as1" {
			t.Error("did not come back after the hold")
		}
		if len(moves) != 4 || moves[0].To != 1 || moves[0].Revert || moves[2].To != 0 || !moves[2].Revert || !moves[2].At.Equal(moves[3].At) {
			t.Errorf("moves %+v: want one there and one back, of both protocols at once", moves)
		}
	})
}

// F11: a share of its own partitions, growing, the same ones first on all nodes; no key moves twice.
func TestSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := [2]*Pool{}
		for i := range nodes {
			r := &Registry{}
			nodes[i] = pool(t, r, Config{SlowStart: 90 * time.Second}, mems(r, 1, 1, 1, 1)...)
		}
		const n = 8000
		before := place(t, nodes[0], n)
		for _, p := range nodes {
			s := p.Table().ByName("as2").Server
			p.SetHealth(s, SIP, Down, "timeout", time.Now())
			p.SetHealth(s, SIP, Up, "hits", time.Now())
		}
		own := count(before)["as2"]
		last := place(t, nodes[0], n)
		if c := count(last)["as2"]; c > own/100 {
			t.Errorf("at 0 s it has %d of %d already", c, own)
		}
		for s := 15; s <= 90; s += 15 {
			time.Sleep(15 * time.Second)
			for _, p := range nodes {
				p.Tick(time.Now())
			}
			now := place(t, nodes[0], n)
			if !slices.Equal(now, place(t, nodes[1], n)) {
				t.Fatalf("at %d s the nodes differ", s)
			}
			for i := range now {
				if now[i] != last[i] && now[i] != before[i] {
					t.Fatalf("at %d s key %d went to %s, which is not its owner", s, i, now[i])
				}
				if last[i] == before[i] && now[i] != before[i] {
					t.Fatalf("at %d s key %d left its owner again", s, i)
				}
			}
			share := float64(count(now)["as2"]) / float64(own)
			if want := float64(s) / 90; share < want-0.05 || share > want+0.05 {
				t.Errorf("at %d s it has %.2f, want %.2f", s, share, want)
			}
			last = now
		}
		if !slices.Equal(last, before) {
			t.Error("at 90 s the map is not the one before")
		}
		if s := nodes[0].Table().ByName("as2").SlowStart(SIP); s != 1 {
			t.Errorf("share %v at the end", s)
		}
	})
}

// A pool that starts has no slow start: nobody returns.
func TestNoSlowStartAtStart(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{SlowStart: time.Hour}, mems(r, 1, 1)...)
	p.SetHealth(srv(r, "as1"), SIP, Up, "hit", timeZero)
	if s := srv(r, "as1").SlowStart(SIP); s != 1 {
		t.Errorf("share %v", s)
	}
}

// Slow start of round robin: the share of its turns grows.
func TestSlowStartOfTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Registry{}
		p := pool(t, r, Config{SlowStart: 60 * time.Second}, mems(r, 1, 1)...)
		p.SetHealth(srv(r, "as1"), HTTP, Down, "timeout", time.Now())
		p.SetHealth(srv(r, "as1"), HTTP, Up, "hits", time.Now())
		time.Sleep(30 * time.Second)
		p.Tick(time.Now())
		var names []string
		for range 4000 {
			names = append(names, got(t, p, &Request{Proto: HTTP, Policy: StickyPolicy}))
		}
		if n := count(names)["as1"]; n < 850 || n > 1150 {
			t.Errorf("half way it got %d of 4000, want about 1000", n)
		}
	})
}
