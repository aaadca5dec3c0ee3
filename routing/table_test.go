package routing

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"
)

// mem makes a member with both addresses.
func mem(r *Registry, name string, weight int) Member {
	return Member{Server: r.Server("pool", name), Weight: weight, Addresses: []Address{
		{Proto: SIP, Transport: "udp", Addr: netip.MustParseAddrPort("127.0.0.1:5060")},
		{Proto: HTTP, Transport: "tcp", Addr: netip.MustParseAddrPort("127.0.0.1:8080")},
	}}
}

func mems(r *Registry, weights ...int) []Member {
	var out []Member
	for i, w := range weights {
		out = append(out, mem(r, fmt.Sprintf("as%d", i+1), w))
	}
	return out
}

func table(t testing.TB, members []Member) *Table {
	t.Helper()
	tb, err := NewTable(members, HashSettings{})
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

// small is a table that is quick to build, for tests whose subject is not the map.
var small = HashSettings{Partitions: 4099, Replicas: 60}

func pool(t testing.TB, r *Registry, c Config, members ...Member) *Pool {
	t.Helper()
	tb, err := NewTable(members, small)
	if err != nil {
		t.Fatal(err)
	}
	return NewPool(r, "pool", c, tb)
}

// whole is a pool over the table that ships.
func whole(t testing.TB, r *Registry, members ...Member) *Pool {
	t.Helper()
	return NewPool(r, "pool", Config{}, table(t, members))
}

func key(i int) uint64 { return xxhash.Sum64String(fmt.Sprintf("room-%d", i)) }

// place maps keys to servers as traffic would.
func place(t testing.TB, p *Pool, n int) []string {
	t.Helper()
	out := make([]string, n)
	for i := range n {
		out[i] = got(t, p, &Request{Hash: key(i), HasKey: true})
	}
	return out
}

func got(t testing.TB, p *Pool, r *Request) string {
	t.Helper()
	l, err := p.Acquire(r)
	if err != nil {
		return err.Error()
	}
	defer l.Done(OutcomeClientFault)
	return l.Member.Name
}

func count(names []string) map[string]int {
	m := map[string]int{}
	for _, n := range names {
		m[n]++
	}
	return m
}

// F5: any order of server lines gives the same map.
func TestOrderOfLinesDoesNotMatter(t *testing.T) {
	tb, err := NewTable(mems(&Registry{}, 3, 1, 2, 2, 5), small)
	if err != nil {
		t.Fatal(err)
	}
	want := tb.Digest()
	rapid.Check(t, func(rt *rapid.T) {
		m := mems(&Registry{}, 3, 1, 2, 2, 5)
		m = rapid.Permutation(m).Draw(rt, "members")
		tb, err := NewTable(m, small)
		if err != nil {
			rt.Fatal(err)
		}
		if d := tb.Digest(); d != want {
			rt.Fatalf("digest %x, want %x", d, want)
		}
	})
}

// A golden map: every build of the program must choose as the others do.
func TestMapIsTheSameInEveryBuild(t *testing.T) {
	tb := table(t, mems(&Registry{}, 100, 100, 50))
	if d := tb.Digest(); d != goldenDigest {
		t.Errorf("digest %#x, want %#x: nodes of two versions would choose differently", d, uint64(goldenDigest))
	}
	if p := tb.Partition(xxhash.Sum64String("room-4711")); p != 42930 {
		t.Errorf("partition %d, want 42930 (operations.md 5.3)", p)
	}
}

// decisions.md: max/mean 1.10 or less for equal weights.
func TestSpreadOfEqualWeights(t *testing.T) {
	for _, n := range []int{2, 4, 7, 20, 50} {
		tb := table(t, mems(&Registry{}, slices.Repeat([]int{100}, n)...))
		mean := float64(tb.Hash().Partitions) / float64(n)
		sum := 0
		for i := range tb.Members {
			own := tb.Partitions(tb.Members[i].Name)
			sum += own
			if float64(own) > math.Ceil(mean*1.10) {
				t.Errorf("%d servers: %s owns %d, mean %.0f", n, tb.Members[i].Name, own, mean)
			}
		}
		if sum != tb.Hash().Partitions {
			t.Errorf("%d servers own %d partitions of %d", n, sum, tb.Hash().Partitions)
		}
	}
}

func TestWeightsAreRespected(t *testing.T) {
	tb := table(t, mems(&Registry{}, 30, 30, 40, 100))
	for i := range tb.Members {
		m := &tb.Members[i]
		share := float64(tb.Partitions(m.Name)) / float64(tb.Hash().Partitions)
		if want := float64(m.Weight) / 200; math.Abs(share-want) > want*0.12 {
			t.Errorf("%s: share %.3f, want %.3f", m.Name, share, want)
		}
	}
}

// SA-10: 30/30/40 without the third is 50/50, and further on in the list too.
func TestFailedKeysSpreadByWeight(t *testing.T) {
	r := &Registry{}
	p := whole(t, r, mems(r, 30, 30, 40)...)
	before := place(t, p, 20000)
	p.SetHealth(r.Server("pool", "as3"), SIP, Down, "test", timeZero)
	after := place(t, p, 20000)
	extra := map[string]int{}
	for i := range before {
		if before[i] == "as3" {
			extra[after[i]]++
		} else if before[i] != after[i] {
			t.Fatalf("key %d moved from %s, which is up", i, before[i])
		}
	}
	if d := math.Abs(float64(extra["as1"]-extra["as2"])) / float64(extra["as1"]+extra["as2"]); d > 0.05 || len(extra) != 2 {
		t.Errorf("keys of as3 went to %v, want halves", extra)
	}
	p.SetHealth(r.Server("pool", "as3"), SIP, Up, "test", timeZero)
	if back := place(t, p, 20000); !slices.Equal(back, before) {
		t.Error("the map after the return is not the map before")
	}
}

// F5: removing one of four from the configuration moves its keys and next to nothing else.
func TestRemovedServerMovesItsKeys(t *testing.T) {
	const n = 20000
	for _, prefix := range []string{"as", "app-", "sip", "server"} {
		var m []Member
		r := &Registry{}
		for i := range 4 {
			m = append(m, mem(r, fmt.Sprint(prefix, i+1), 100))
		}
		before := place(t, whole(t, r, m...), n)
		for gone := range m {
			after := place(t, whole(t, r, slices.Delete(slices.Clone(m), gone, gone+1)...), n)
			needless := 0
			for i := range before {
				if before[i] != m[gone].Name && before[i] != after[i] {
					needless++
				}
			}
			if needless > n*5/1000 {
				t.Errorf("%s removed: %d of %d keys moved needlessly", m[gone].Name, needless, n)
			}
		}
	}
}

// F5: down moves exactly the server's own keys, over all survivors by weight; back is the map from before.
func TestDownMovesOwnKeysOnly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &Registry{}
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9-]{0,8}`), 2, 6, rapid.ID).Draw(rt, "names")
		var m []Member
		rest := 0
		gone := rapid.IntRange(0, len(names)-1).Draw(rt, "gone")
		for i, name := range names {
			w := rapid.IntRange(1, 4).Draw(rt, "weight")
			m = append(m, mem(r, name, w))
			if i != gone {
				rest += w
			}
		}
		tb, err := NewTable(m, small)
		if err != nil {
			rt.Fatal(err)
		}
		p := NewPool(r, "pool", Config{}, tb)
		choose := func() []string {
			out := make([]string, small.Partitions)
			for i := range out {
				out[i] = got(t, p, &Request{Hash: uint64(i), HasKey: true})
			}
			return out
		}
		before := choose()
		s := r.Server("pool", names[gone])
		p.SetHealth(s, SIP, Down, "test", timeZero)
		extra := map[string]int{}
		for i, name := range choose() {
			switch {
			case before[i] == s.Name:
				extra[name]++
			case before[i] != name:
				rt.Fatalf("a partition moved from %s, which is up", before[i])
			}
		}
		own := float64(count(before)[s.Name])
		for i, name := range names {
			if i == gone {
				continue
			}
			want := own * float64(m[i].Weight) / float64(rest)
			if d := math.Abs(float64(extra[name]) - want); d > 5*math.Sqrt(want)+1 {
				rt.Errorf("%s got %d of %.0f partitions, want about %.0f", name, extra[name], own, want)
			}
		}
		p.SetHealth(s, SIP, Up, "test", timeZero)
		if !slices.Equal(choose(), before) {
			rt.Error("the map after the return is not the map before")
		}
	})
}

// The choices of a partition are all servers once, also beyond the stored ones.
func TestChoicesAreAPermutation(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 0)...)
	for i := range 500 {
		c := p.Choices(key(i))
		slices.Sort(c)
		if len(slices.Compact(c)) != 12 {
			t.Fatalf("key %d: choices %v", i, c)
		}
	}
}

// What is worked out agrees with what is laid out: the ninth choice is what a row of nine would have held.
func TestFurtherChoicesContinueTheOrder(t *testing.T) {
	tb := table(t, mems(&Registry{}, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3))
	rt := &tb.ranks[0]
	for p := range uint64(300) {
		w := walk{rt: rt, partition: p}
		owner, _ := w.next()
		last := uint64(0)
		for i, ok := w.next(); ok; i, ok = w.next() {
			s := rt.score(p, slices.Index(rt.members, i))
			if i == owner || s < last {
				t.Fatalf("partition %d: out of order", p)
			}
			last = s
		}
	}
}

// WG120, WG124: refused, where the library would panic.
func TestBadSettingsAreErrors(t *testing.T) {
	m := mems(&Registry{}, 1, 1, 1)
	for _, h := range []HashSettings{
		{Load: 0.9}, {Load: math.NaN()}, {Load: math.Inf(1)}, {Load: -1}, {Partitions: 2}, {Partitions: -1},
		{Replicas: -1}, {Replicas: 1 << 30}, {Partitions: 1 << 30},
	} {
		if _, err := NewTable(m, h); !errors.Is(err, ErrHash) {
			t.Errorf("%+v: %v", h, err)
		}
	}
	if _, err := NewTable(append(m, m[0]), HashSettings{}); !errors.Is(err, ErrTag) {
		t.Errorf("a name twice: %v", err)
	}
	zero := m[0]
	zero.Server = &Server{Name: "x"}
	if _, err := NewTable([]Member{zero}, HashSettings{}); !errors.Is(err, ErrTag) {
		t.Errorf("tag 0: %v", err)
	}
}

func TestReduceWeights(t *testing.T) {
	for _, c := range []struct{ in, want []int }{
		{[]int{100, 100, 100}, []int{1, 1, 1}},
		{[]int{100, 50, 0}, []int{2, 1, 0}},
		{[]int{30, 30, 40}, []int{3, 3, 4}},
		{[]int{1, 1000}, []int{1, 16}},
		{[]int{0, 0}, []int{0, 0}},
	} {
		if got := reduce(c.in, maxVirtual); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.in, got, c.want)
		}
	}
}

func TestOverrideOfWeight(t *testing.T) {
	tb := table(t, mems(&Registry{}, 100, 100))
	over, err := tb.WithWeights(map[string]int{"as1": 50})
	if err != nil {
		t.Fatal(err)
	}
	m := over.ByName("as1")
	if m.Weight != 50 || m.FileWeight() != 100 {
		t.Errorf("weight %d, file %d", m.Weight, m.FileWeight())
	}
	if a, b := over.Partitions("as1"), over.Partitions("as2"); math.Abs(float64(b)/float64(a)-2) > 0.3 {
		t.Errorf("partitions %d and %d", a, b)
	}
	back, err := over.WithWeights(nil)
	if err != nil || back.Digest() != tb.Digest() {
		t.Errorf("clearing the override does not give the file's table: %v", err)
	}
}

// A name that is not resolved yet: the server keeps its place in the table and gets nothing; when it is known, it gets
// its own keys, and nobody else's move.
func TestUnresolvedServer(t *testing.T) {
	r := &Registry{}
	m := mems(r, 1, 1, 1)
	whole := place(t, pool(t, r, Config{}, m...), 3000)
	known := m[1].Addresses
	m[1].Addresses = []Address{{Proto: SIP, Transport: "udp", Host: "as2.example.net"}}
	p := pool(t, r, Config{}, m...)
	for i, name := range place(t, p, 3000) {
		if name == "as2" || whole[i] != "as2" && name != whole[i] {
			t.Fatalf("key %d went to %s, was %s", i, name, whole[i])
		}
	}
	if p.Usable(p.Table().ByName("as2")) {
		t.Error("it is usable without an address")
	}
	m[1].Addresses = []Address{known[1], {Proto: SIP, Transport: "udp", Host: "as2.example.net"}}
	half := pool(t, r, Config{}, m...)
	if n := got(t, half, &Request{Proto: HTTP, Hash: ownedBy(half, "as2"), HasKey: true}); n == "as2" {
		t.Error("scope server: its page goes where its call cannot")
	}
	p.SetTable(p.Table().WithAddresses(func(m *Member) []Address {
		if m.Name == "as2" {
			return known
		}
		return nil
	}))
	if !slices.Equal(place(t, p, 3000), whole) {
		t.Error("resolved, and not the same map")
	}
}

func BenchmarkNewTable(b *testing.B) {
	for _, n := range []int{4, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := mems(&Registry{}, slices.Repeat([]int{100}, n)...)
			b.ReportAllocs()
			for b.Loop() {
				_ = table(b, m)
			}
		})
	}
	b.Run("50-weights", func(b *testing.B) {
		var w []int
		for range 50 {
			w = append(w, 50*(1+rand.IntN(3)))
		}
		m := mems(&Registry{}, w...)
		for b.Loop() {
			_ = table(b, m)
		}
	})
}
