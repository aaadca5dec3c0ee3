package routing

import "slices"

// Standing is one server in the order of a choice.
type Standing struct {
	Server string
	Weight int
	Site   string
	Rank   int
	Why    string // why it may not get the message; empty: it may
	Spare  bool   // its site rank is not the one that carries the traffic
}

// Decision is a choice that was not made: which server a request would get, and why the others not.
type Decision struct {
	Partition int // -1: chosen without a key
	Order     []Standing
	Server    string // empty: none
	How       How
	Held      bool // the key lives on Server
	Err       error
	Panic     bool
	Serving   int // rank that carries the traffic
}

// peek looks at turns and draws none.
type peek struct{ *shared }

func (t peek) next() uint64   { return t.rotor.Load() }
func (t peek) detour() uint64 { return t.shared.detour.Load() }

// Explain makes the choice that Acquire would make now, with the same code, counts nothing, and tells how it went.
// Servers named in down are taken for down: they are not in use, and panic and site ranks are worked out without them.
func (p *Pool) Explain(r Request, down []string) Decision {
	v := p.view.Load()
	if v == nil || v.Table == nil {
		return Decision{Partition: -1, Err: ErrNoServer}
	}
	for _, name := range down {
		if m := v.ByName(name); m != nil {
			r.Assume = append(slices.Clip(r.Assume), m.Tag)
		}
	}
	d := p.derive(v)
	if len(r.Assume) > 0 {
		d = p.assume(v.Table, r.Assume)
	}
	out := Decision{Partition: -1, Panic: d.panic(r.Proto), Serving: v.rankOf(d.rank(r.Proto))}
	if r.HasKey {
		out.Partition = v.Partition(r.Hash)
	}
	c := p.choose(v, &r, peek{p.shared})
	if out.Err = c.err; c.err == nil {
		out.Server, out.How, out.Held = v.Members[c.member].Name, c.how, c.how == HowHeld
	}
	for i := range v.ranks {
		out.Order = p.standings(out.Order, v.Table, &v.ranks[i], &r, d, out.Serving)
	}
	return out
}

// standings appends the servers of one rank in the order of the key's partition, or by name without a key. Servers
// that get nothing new come last.
func (p *Pool) standings(to []Standing, t *Table, rt *rankTable, r *Request, d derived, serving int) []Standing {
	partition := uint64(t.Partition(r.Hash))
	var order []uint16
	if r.HasKey {
		w := walk{rt: rt, partition: partition}
		for i, ok := w.next(); ok; i, ok = w.next() {
			order = append(order, i)
		}
	}
	for _, i := range rt.members {
		if !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	for _, i := range order {
		m := &t.Members[i]
		why := p.may(t, m, r, d.panic(r.Proto))
		if why == mayGet && r.HasKey && !m.returned(p, partition, r.Proto) {
			why = inSlowStart
		}
		to = append(to, Standing{
			Server: m.Name, Weight: m.Weight, Site: m.Site, Rank: m.SiteRank,
			Why: why.String(), Spare: rt.rank != serving,
		})
	}
	return to
}

// Choices gives the names of a hash's servers in order, whatever their state: rank by rank, owner first.
func (p *Pool) Choices(hash uint64) []string {
	t := p.Table()
	if t == nil {
		return nil
	}
	var names []string
	for i := range t.ranks {
		w := walk{rt: &t.ranks[i], partition: uint64(t.Partition(hash))}
		if w.rt.row == 0 {
			continue
		}
		for m, ok := w.next(); ok; m, ok = w.next() {
			names = append(names, t.Members[m].Name)
		}
	}
	return names
}
