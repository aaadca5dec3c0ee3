package routing

import (
	"errors"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// F2: a call and its page meet. With scope "server" both protocols give one server for one key, in every state.
func TestCallAndPageMeet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &Registry{}
		m := mems(r, 1, 2, 1, 1, 3)
		for i := range m {
			m[i].SiteRank = rapid.IntRange(0, 1).Draw(rt, "rank")
		}
		tb, err := NewTable(m, HashSettings{Partitions: 509, Replicas: 20})
		if err != nil {
			rt.Fatal(err)
		}
		now := time.Unix(1_800_000_000, 0)
		p := NewPool(r, "pool", Config{
			MinUsable: rapid.SampledFrom([]int{0, 25, 60}).Draw(rt, "panic"), SlowStart: time.Minute, Passive: passive,
			Now: func() time.Time { return now },
		}, tb)
		for range rapid.IntRange(0, 30).Draw(rt, "edges") {
			s := m[rapid.IntRange(0, len(m)-1).Draw(rt, "server")].Server
			pr := rapid.SampledFrom([]Proto{SIP, HTTP}).Draw(rt, "proto")
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "seconds")) * time.Second)
			switch rapid.IntRange(0, 4).Draw(rt, "edge") {
			case 0:
				p.SetHealth(s, pr, rapid.SampledFrom([]Health{Up, Busy, Down}).Draw(rt, "health"), "test", now)
			case 1:
				p.SetAdmin(s, rapid.SampledFrom([]Admin{Ready, Ready, Drain, Maint}).Draw(rt, "admin"), "test", now)
			case 2:
				p.Report(s, pr, OutcomeRefused)
			case 3:
				p.Hold(s, pr, 10*time.Second, now)
			case 4:
				p.Bind(rapid.Uint64Range(0, 40).Draw(rt, "key"), s.Tag, now)
			}
			p.Tick(now)
			for k := range uint64(40) {
				call := got(t, p, &Request{Proto: SIP, Hash: k, HasKey: true})
				page := got(t, p, &Request{Proto: HTTP, Hash: k, HasKey: true})
				if call != page {
					rt.Fatalf("key %d: the call goes to %s, the page to %s", k, call, page)
				}
			}
		}
	})
}

// Traffic, edges, ticks and new tables at once: leases balance, and nothing is chosen that no table has.
func TestEverythingAtOnce(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{MinUsable: 25, SlowStart: time.Millisecond, Passive: passive}, mems(r, 1, 1, 1, 1)...)
	light, err := p.Table().WithWeights(map[string]int{"as1": 3})
	if err != nil {
		t.Fatal(err)
	}
	tables := []*Table{p.Table(), light}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				req := &Request{Proto: Proto(i % 2), Hash: uint64(i * w), HasKey: i%3 != 0, Policy: PolicyKind(i % 3)}
				l, err := p.Acquire(req)
				if err != nil {
					if !errors.Is(err, ErrNoServer) {
						t.Error(err)
					}
					continue
				}
				p.Bind(req.Hash, l.Member.Tag, timeZero)
				l.Done(Outcome(i % 5))
				p.Unbind(req.Hash, l.Member.Tag, timeZero)
			}
		})
	}
	wg.Go(func() {
		for i := range 300 {
			s := tables[0].Members[i%4].Server
			p.SetHealth(s, Proto(i%2), Health(1+i%3), "test", time.Now())
			p.SetHealth(s, Proto(i%2), Up, "test", time.Now())
			p.Tick(time.Now())
			p.SetTable(tables[i%2])
			p.Explain(Request{Hash: uint64(i), HasKey: true}, []string{"as2"})
		}
	})
	wg.Wait()
	for i := range tables[0].Members {
		if m := &tables[0].Members[i]; m.Active() != 0 || m.LiveKeys() != 0 {
			t.Errorf("%s: %d active, %d live keys", m.Name, m.Active(), m.LiveKeys())
		}
	}
	if p.LiveKeys() != 0 || p.shared.strays.Load() != 0 {
		t.Errorf("%d live keys, %d strays are left", p.LiveKeys(), p.shared.strays.Load())
	}
}

// bounded_load: a server above its share of the live load passes keyed traffic on to the key's next choice.
func TestBoundedLoad(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{BoundedLoad: 125}, mems(r, 1, 1, 1, 1)...)
	for range 400 {
		if _, err := p.Acquire(&Request{Hash: key(1), HasKey: true}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range p.Table().Members {
		if n := p.Table().Members[i].Active(); n > 126 {
			t.Errorf("%s has %d of 400", p.Table().Members[i].Name, n)
		}
	}
	if n := srv(r, p.Choices(key(1))[0]).Active(); n < 100 {
		t.Errorf("the owner has only %d", n)
	}
}
