package routing

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// F3: what Explain says is what Acquire does, in any state.
func TestExplainIsTheDecision(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &Registry{}
		m := mems(r, 1, 2, 1, 3)
		for i := range m {
			m[i].SiteRank = rapid.IntRange(0, 1).Draw(rt, "rank")
		}
		tb, err := NewTable(m, HashSettings{Partitions: 1021, Replicas: 20})
		if err != nil {
			rt.Fatal(err)
		}
		p := NewPool(r, "pool", Config{MinUsable: 25}, tb)
		for i := range m {
			p.SetAdmin(m[i].Server, rapid.SampledFrom([]Admin{Ready, Ready, Drain, Maint}).Draw(rt, "admin"), "test", timeZero)
			for pr := range numProtos {
				p.SetHealth(m[i].Server, pr, rapid.SampledFrom([]Health{Unknown, Up, Up, Busy, Down}).Draw(rt, "health"), "test", timeZero)
			}
		}
		for range 20 {
			req := Request{
				Policy: rapid.SampledFrom([]PolicyKind{HashPolicy, StickyPolicy, LeastPolicy}).Draw(rt, "policy"),
				Proto:  rapid.SampledFrom([]Proto{SIP, HTTP}).Draw(rt, "proto"),
				Hash:   rapid.Uint64().Draw(rt, "hash"), HasKey: true,
				Known: rapid.SampledFrom([]uint32{0, m[0].Tag, m[3].Tag, 77}).Draw(rt, "known"),
			}
			d := p.Explain(req, nil)
			l, err := p.Acquire(&req)
			if (err == nil) != (d.Err == nil) {
				rt.Fatalf("explain says %v, traffic %v", d.Err, err)
			}
			if err != nil {
				continue
			}
			l.Done(OutcomeClientFault)
			if l.Member.Name != d.Server || l.How != d.How {
				rt.Fatalf("explain says %s %v, traffic went to %s %v", d.Server, d.How, l.Member.Name, l.How)
			}
			if len(d.Order) != len(m) {
				rt.Fatalf("order has %d of %d servers", len(d.Order), len(m))
			}
		}
	})
}

func TestExplainSaysWhy(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{Passive: passive}, mems(r, 1, 1, 1, 1, 1)...)
	p.SetHealth(srv(r, "as1"), SIP, Down, "timeout", timeZero)
	p.SetAdmin(srv(r, "as2"), Drain, "alice", timeZero)
	fails(p, srv(r, "as3"), 5)
	p.SetHealth(srv(r, "as4"), SIP, Busy, "503", timeZero)
	d := p.Explain(Request{Hash: 1, HasKey: true}, nil)
	why := map[string]string{}
	for _, s := range d.Order {
		why[s.Server] = s.Why
	}
	for name, want := range map[string]string{
		"as1": "down", "as2": "draining (admin)", "as3": "ejected", "as4": "draining (server asked)", "as5": "",
	} {
		if why[name] != want {
			t.Errorf("%s: %q, want %q", name, why[name], want)
		}
	}
	if d.Server != "as5" || d.Partition != 1 {
		t.Errorf("%+v", d)
	}
}

// "if as2 is down" asks the same code; it changes nothing.
func TestExplainIfDown(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 1, 1)...)
	choices := p.Choices(key(9))
	for i := range choices {
		d := p.Explain(Request{Hash: key(9), HasKey: true}, choices[:i])
		if d.Server != choices[i] {
			t.Errorf("without %v: %s", choices[:i], d.Server)
		}
	}
	if d := p.Explain(Request{Hash: key(9), HasKey: true}, choices); d.Err == nil {
		t.Errorf("with none: %+v", d)
	}
	if got(t, p, &Request{Hash: key(9), HasKey: true}) != choices[0] {
		t.Error("explain changed traffic")
	}
	var order []string
	for _, s := range p.Explain(Request{Hash: key(9), HasKey: true}, nil).Order {
		order = append(order, s.Server)
	}
	if !slices.Equal(order, choices) {
		t.Errorf("order %v, choices %v", order, choices)
	}
}
