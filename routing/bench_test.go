package routing

import (
	"slices"
	"testing"
)

// scenes are the states a choice is made in.
func scenes(t testing.TB) map[string]func() (*Pool, *Request) {
	whole := func() (*Registry, *Pool) {
		r := &Registry{}
		return r, pool(t, r, Config{MinUsable: 25, Passive: passive}, mems(r, slices.Repeat([]int{100}, 20)...)...)
	}
	return map[string]func() (*Pool, *Request){
		"owner": func() (*Pool, *Request) { _, p := whole(); return p, &Request{Hash: key(1), HasKey: true} },
		"next": func() (*Pool, *Request) {
			r, p := whole()
			p.SetHealth(srv(r, p.Choices(key(1))[0]), SIP, Down, "test", timeZero)
			return p, &Request{Hash: key(1), HasKey: true}
		},
		"held": func() (*Pool, *Request) {
			_, p := whole()
			p.Bind(key(1), Tag(p.Choices(key(1))[1]), timeZero)
			return p, &Request{Hash: key(1), HasKey: true}
		},
		"beyond stored": func() (*Pool, *Request) {
			r, p := whole()
			for _, n := range p.Choices(key(1))[:12] {
				p.SetAdmin(srv(r, n), Maint, "test", timeZero)
			}
			return p, &Request{Hash: key(1), HasKey: true}
		},
		"known": func() (*Pool, *Request) {
			_, p := whole()
			return p, &Request{Hash: key(1), HasKey: true, Known: Tag("as7")}
		},
		"round robin": func() (*Pool, *Request) {
			_, p := whole()
			return p, &Request{Proto: HTTP, Policy: StickyPolicy}
		},
		"round robin, one out": func() (*Pool, *Request) {
			r, p := whole()
			p.SetHealth(srv(r, "as3"), HTTP, Down, "test", timeZero)
			return p, &Request{Proto: HTTP, Policy: StickyPolicy}
		},
		"least": func() (*Pool, *Request) { _, p := whole(); return p, &Request{Policy: LeastPolicy} },
	}
}

// Rule 1 of architecture.md 4.2: a choice allocates nothing.
func TestAcquireAllocatesNothing(t *testing.T) {
	for name, scene := range scenes(t) {
		p, r := scene()
		n := testing.AllocsPerRun(200, func() {
			l, err := p.Acquire(r)
			if err != nil {
				t.Fatal(err)
			}
			l.Done(OutcomeOK)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkAcquire(b *testing.B) {
	for name, scene := range scenes(b) {
		b.Run(name, func(b *testing.B) {
			p, r := scene()
			b.ReportAllocs()
			for b.Loop() {
				l, _ := p.Acquire(r)
				l.Done(OutcomeOK)
			}
		})
	}
}
