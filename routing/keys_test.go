package routing

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// away sets a scene: a key of as1, which was down while the key got a live dialog on another server, and is back.
type away struct {
	r     *Registry
	p     *Pool
	hash  uint64
	owner *Server
	other *Server
}

func newAway(t *testing.T, c Config) away {
	t.Helper()
	r := &Registry{}
	a := away{r: r, p: pool(t, r, c, mems(r, 1, 1, 1)...), owner: srv(r, "as1")}
	a.hash = ownedBy(a.p, "as1")
	a.p.SetHealth(a.owner, SIP, Down, "timeout", time.Now())
	l, err := a.p.Acquire(&Request{Hash: a.hash, HasKey: true})
	if err != nil {
		t.Fatal(err)
	}
	l.Done(OutcomeOK)
	a.other = l.Member.Server
	a.p.Bind(a.hash, a.other.Tag, time.Now())
	a.p.SetHealth(a.owner, SIP, Up, "hits", time.Now())
	return a
}

func (a away) fresh(t *testing.T) string { return got(t, a.p, &Request{Hash: a.hash, HasKey: true}) }
func (a away) dialog(t *testing.T) string {
	return got(t, a.p, &Request{Hash: a.hash, HasKey: true, Known: a.other.Tag})
}

// F11: a new page for a live call still meets it, and goes to the old owner when it has ended.
func TestFailbackWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAway(t, Config{Failback: WhenIdle, MaxWait: 30 * time.Minute})
		l, _ := a.p.Acquire(&Request{Proto: HTTP, Hash: a.hash, HasKey: true})
		if l.Member.Server != a.other || l.How != HowHeld {
			t.Errorf("live: %s %v", l.Member.Name, l.How)
		}
		l.Done(OutcomeOK)
		a.p.Bind(a.hash, a.other.Tag, time.Now())
		a.p.Unbind(a.hash, a.other.Tag, time.Now())
		if a.fresh(t) != a.other.Name {
			t.Error("one of two dialogs ended and the key left")
		}
		a.p.Unbind(a.hash, a.other.Tag, time.Now())
		if a.fresh(t) != "as1" {
			t.Error("idle, and still not back")
		}
		if a.dialog(t) != a.other.Name {
			t.Error("a running dialog must follow its token")
		}
	})
}

func TestFailbackWhenIdleWaitsNoLongerThanMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAway(t, Config{MaxWait: 30 * time.Minute})
		time.Sleep(29 * time.Minute)
		if a.fresh(t) != a.other.Name {
			t.Error("left early")
		}
		time.Sleep(2 * time.Minute)
		if a.fresh(t) != "as1" {
			t.Error("waits longer than max_wait")
		}
		if a.dialog(t) != a.other.Name {
			t.Error("the dialog itself must stay")
		}
	})
}

func TestFailbackNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAway(t, Config{Failback: Never})
		if a.fresh(t) != "as1" || a.dialog(t) != a.other.Name {
			t.Errorf("new to %s, dialog to %s", a.fresh(t), a.dialog(t))
		}
	})
}

// dcr.md 5.8: the owner gets running dialogs too, but not within 64*T1 of the change.
func TestFailbackImmediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAway(t, Config{Failback: Immediate})
		pinned := &Request{Hash: a.hash, HasKey: true, Known: a.other.Tag, Pinned: true}
		recent := &Request{Hash: a.hash, HasKey: true, Known: a.other.Tag, Recent: true}
		if a.fresh(t) != "as1" {
			t.Error("new traffic must return at once")
		}
		time.Sleep(31 * time.Second)
		if a.dialog(t) != a.other.Name {
			t.Error("within 64*T1 a dialog moved")
		}
		time.Sleep(2 * time.Second)
		if a.dialog(t) != "as1" {
			t.Error("after 64*T1 the dialog has not moved")
		}
		if got(t, a.p, pinned) != a.other.Name || got(t, a.p, recent) != a.other.Name {
			t.Error("pinned, and live transactions, stay")
		}
		a.p.SetAdmin(a.other, Drain, "alice", time.Now())
		if a.dialog(t) != a.other.Name {
			t.Error("s drains: its dialogs stay")
		}
	})
}

// A token whose server cannot serve goes to the first usable server of the key.
func TestTokenOfADownServer(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 1, 1)...)
	h := ownedBy(p, "as1")
	next := p.Choices(h)[1]
	p.SetHealth(srv(r, "as1"), SIP, Down, "timeout", timeZero)
	if n := got(t, p, &Request{Hash: h, HasKey: true, Known: srv(r, "as1").Tag}); n != next {
		t.Errorf("went to %s, want %s", n, next)
	}
	if n := got(t, p, &Request{Hash: h, HasKey: true, Known: 4711}); n != next {
		t.Errorf("a token of a server that is gone: %s, want %s", n, next)
	}
}

// Drain: new keys elsewhere, live ones stay; with live_keys: move they go too.
func TestDrainKeepsLiveKeys(t *testing.T) {
	for _, move := range []bool{false, true} {
		r := &Registry{}
		p := pool(t, r, Config{DrainMoves: move}, mems(r, 1, 1, 1)...)
		h := ownedBy(p, "as1")
		s := srv(r, "as1")
		p.Bind(h, s.Tag, timeZero)
		s.AddLive(Dialogs, 1)
		p.SetAdmin(s, Drain, "alice", timeZero)
		idle := ownedBy(p, "as1") + uint64(small.Partitions)*3 // another key of the same partition
		if n := got(t, p, &Request{Hash: idle, HasKey: true}); n == "as1" {
			t.Error("a new key went to a draining server")
		}
		if n := got(t, p, &Request{Hash: h, HasKey: true}); (n == "as1") == move {
			t.Errorf("move %v: live key to %s", move, n)
		}
		if s.Live(Dialogs) != 1 || s.LiveKeys() != 1 {
			t.Errorf("drain shows %d dialogs, %d keys", s.Live(Dialogs), s.LiveKeys())
		}
		p.Unbind(h, s.Tag, timeZero)
		if n := got(t, p, &Request{Hash: h, HasKey: true}); n == "as1" || s.LiveKeys() != 0 {
			t.Errorf("idle key to %s, %d keys left", n, s.LiveKeys())
		}
	}
}

// A server that asks for a drain by itself keeps its live keys in the same way.
func TestBusyKeepsLiveKeys(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 1)...)
	h := ownedBy(p, "as1")
	p.Bind(h, srv(r, "as1").Tag, timeZero)
	p.SetHealth(srv(r, "as1"), SIP, Busy, "503", timeZero)
	if n := got(t, p, &Request{Hash: h, HasKey: true}); n != "as1" {
		t.Errorf("live key to %s", n)
	}
	if n := got(t, p, &Request{Hash: h + uint64(small.Partitions), HasKey: true}); n != "as2" {
		t.Errorf("new key to %s", n)
	}
}

// Trap 3: a change of weight moves idle keys at once, live ones when they have ended.
func TestNewTableHoldsLiveKeys(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 1)...)
	over, err := p.Table().WithWeights(map[string]int{"as1": 0})
	if err != nil {
		t.Fatal(err)
	}
	h := ownedBy(p, "as1")
	p.Bind(h, srv(r, "as1").Tag, timeZero)
	p.SetTable(over)
	if n := got(t, p, &Request{Hash: h, HasKey: true}); n != "as1" {
		t.Errorf("live key to %s", n)
	}
	if n := got(t, p, &Request{Hash: h + uint64(small.Partitions), HasKey: true}); n != "as2" {
		t.Errorf("idle key to %s", n)
	}
	if p.KeysMoved() != 1 {
		t.Errorf("keys moved %d, want 1", p.KeysMoved())
	}
	p.Unbind(h, srv(r, "as1").Tag, timeZero)
	if n := got(t, p, &Request{Hash: h, HasKey: true}); n != "as2" {
		t.Errorf("ended: key to %s", n)
	}
}

// Bind and Unbind in any order: counts never go below zero, and the table is empty in the end.
func TestBindingsBalance(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 1)...)
	rapid.Check(t, func(rt *rapid.T) {
		type one struct {
			hash uint64
			tag  uint32
		}
		var out []one
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			o := one{rapid.Uint64Range(0, 5).Draw(rt, "key"), srv(r, rapid.SampledFrom([]string{"as1", "as2"}).Draw(rt, "server")).Tag}
			if rapid.Bool().Draw(rt, "bind") {
				p.Bind(o.hash, o.tag, timeZero)
				out = append(out, o)
			} else {
				p.Unbind(99, o.tag, timeZero) // never begun
			}
		}
		live := map[uint64]bool{}
		for _, o := range out {
			live[o.hash] = true
		}
		if p.LiveKeys() != len(live) {
			rt.Fatalf("%d live keys, want %d", p.LiveKeys(), len(live))
		}
		for _, o := range rapid.Permutation(out).Draw(rt, "order") {
			p.Unbind(o.hash, o.tag, timeZero)
		}
		if p.LiveKeys() != 0 || p.shared.strays.Load() != 0 || srv(r, "as1").LiveKeys() != 0 || srv(r, "as2").LiveKeys() != 0 {
			rt.Fatalf("left: %d keys, %d strays, %d and %d on the servers", p.LiveKeys(), p.shared.strays.Load(),
				srv(r, "as1").liveKeys.Load(), srv(r, "as2").liveKeys.Load())
		}
	})
}

func TestLiveTellsWhere(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 1)...)
	p.Bind(7, srv(r, "as1").Tag, timeZero)
	p.Bind(7, srv(r, "as2").Tag, timeZero)
	p.Bind(7, srv(r, "as2").Tag, timeZero)
	k, ok := p.Live(7)
	if !ok || k.Servers[0] != "as2" || k.Counts[0] != 2 || k.Servers[1] != "as1" || !k.Since.Equal(timeZero) {
		t.Errorf("%+v", k)
	}
	if _, ok := p.Live(8); ok {
		t.Error("a key that is not live is")
	}
}

func TestEachLive(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 1)...)
	for i := range 100 {
		p.Bind(key(i), srv(r, "as1").Tag, timeZero)
	}
	seen := map[uint64]bool{}
	p.EachLive(func(h uint64, k LiveKey) bool {
		if k.Servers[0] != "as1" || k.Counts[0] != 1 {
			t.Errorf("%+v", k)
		}
		seen[h] = true
		return true
	})
	if len(seen) != 100 {
		t.Errorf("%d of 100 keys", len(seen))
	}
	calls := 0
	p.EachLive(func(uint64, LiveKey) bool { calls++; return calls < 3 })
	if calls != 3 {
		t.Errorf("%d calls after false", calls)
	}
}

func TestLiveKeysAreBounded(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1)...)
	for i := range uint64(maxKeys + 10) { // all in one shard
		p.Bind(i, srv(r, "as1").Tag, timeZero)
	}
	if p.LiveKeys() != maxKeys || srv(r, "as1").LiveKeys() != maxKeys {
		t.Errorf("%d live keys", p.LiveKeys())
	}
	for i := range uint64(maxKeys + 10) {
		p.Unbind(i, srv(r, "as1").Tag, timeZero)
	}
	if p.LiveKeys() != 0 || srv(r, "as1").LiveKeys() != 0 {
		t.Errorf("%d live keys are left", p.LiveKeys())
	}
}
