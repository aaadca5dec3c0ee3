package routing

import "time"

// derived is what follows from all servers' states together, for both protocols: which rank carries the traffic, and
// whether health is believed. It is worked out once per edge and packed into one word.
//
//	bits 0-7, 8-15  rank that serves SIP, HTTP, as an index into Table.ranks
//	bits 16, 17     panic for SIP, HTTP
//	bits 20-63      the epoch it was worked out in
type derived uint64

const (
	panicBit   = 16
	epochShift = 20
)

func (d derived) rank(p Proto) int   { return int(d >> (8 * p) & 0xff) }
func (d derived) panic(p Proto) bool { return d>>(panicBit+p)&1 != 0 }

// derive gives the view's derived word, worked out again when a state has changed since.
func (p *Pool) derive(v *view) derived {
	epoch := p.shared.epoch.Load() + 1 // never 0: that is a view nobody has looked at
	d := derived(v.derived.Load())
	if uint64(d>>epochShift) == epoch&(1<<(64-epochShift)-1) {
		return d
	}
	if !p.shared.mu.TryLock() {
		if d != 0 {
			return d // somebody else is at it; what held a moment ago will do
		}
		p.shared.mu.Lock()
	}
	var moves []SiteMove
	now := p.cfg.Now() // one reading, so that both protocols change sites together
	d = p.evaluate(v.Table, nil, func(pr Proto, best int, usable func(int) bool) int {
		from := p.shared.sites[pr]
		at := p.shared.serve(&p.cfg, pr, v.Table, best, usable, now)
		if to := v.rankOf(at); from.known && to != from.serving {
			moves = append(moves, SiteMove{Proto: pr, From: from.serving, To: to, Revert: to < from.serving, At: now})
		}
		return at
	})
	d |= derived(epoch) << epochShift
	v.derived.Store(uint64(d))
	p.shared.mu.Unlock()
	if f := p.cfg.OnSite; f != nil {
		for _, m := range moves {
			f(m)
		}
	}
	return d
}

// SiteMove says that the traffic of a protocol goes to another site rank.
type SiteMove struct {
	Proto    Proto
	From, To int  // ranks
	Revert   bool // back to a lower rank; else the old one had no usable server
	At       time.Time
}

// assume is derive for explain: with servers taken for down, and without a trace left.
func (p *Pool) assume(t *Table, down []uint32) derived {
	return p.evaluate(t, down, func(pr Proto, best int, usable func(int) bool) int {
		p.shared.mu.Lock()
		s := p.shared.sites[pr]
		p.shared.mu.Unlock()
		if i := t.rankIndex(s.serving); s.known && i >= 0 && usable(i) {
			return i
		}
		return best
	})
}

// evaluate is the one sum behind both.
func (p *Pool) evaluate(t *Table, down []uint32, serving func(Proto, int, func(int) bool) int) derived {
	var d derived
	for pr := range numProtos {
		ready, usable := p.weights(t, pr, down)
		if ready > 0 && usable*100 < ready*p.cfg.MinUsable && !p.cfg.PanicRefuse {
			d |= 1 << (panicBit + pr)
		}
		alive := func(i int) bool { return p.anyUsable(t, &t.ranks[i], pr, down) }
		best := 0
		for i := range t.ranks {
			if alive(i) {
				best = i
				break
			}
		}
		d |= derived(serving(pr, best, alive)) << (8 * pr)
	}
	return d
}

// weights sums up what could serve a protocol (the operator wants it) and what is usable of it.
func (p *Pool) weights(t *Table, pr Proto, down []uint32) (ready, usable int) {
	for i := range t.Members {
		m := &t.Members[i]
		if !m.has(pr) || m.Server.Admin() != Ready {
			continue
		}
		ready += m.Weight
		if p.word(m, pr).health() != Down && !among(down, m.Tag) {
			usable += m.Weight
		}
	}
	return ready, usable
}

func (p *Pool) anyUsable(t *Table, rt *rankTable, pr Proto, down []uint32) bool {
	for _, i := range rt.members {
		m := &t.Members[i]
		if m.Weight > 0 && m.has(pr) && m.admin.Load() == uint32(Ready) && p.word(m, pr).health() <= Up && !among(down, m.Tag) {
			return true
		}
	}
	return false
}

// serve decides which rank carries the traffic, with the memory that a revert hold needs. s.mu is held.
func (s *shared) serve(c *Config, pr Proto, t *Table, best int, usable func(int) bool, now time.Time) int {
	st := &s.sites[pr]
	cur := t.rankIndex(st.serving)
	if !st.known || cur < 0 || best >= cur || !usable(cur) {
		st.known, st.serving, st.better = true, t.rankOf(best), time.Time{}
		return best
	}
	if c.RevertManual {
		return cur
	}
	if st.better.IsZero() {
		st.better = now
	}
	if now.Sub(st.better) < c.RevertHold {
		return cur
	}
	st.serving, st.better = t.rankOf(best), time.Time{}
	return best
}

// Serving gives the site rank that carries the traffic of a protocol, and whether health is ignored for it.
func (p *Pool) Serving(pr Proto) (rank int, panicking bool) {
	v := p.view.Load()
	if v == nil || v.Table == nil {
		return 0, false
	}
	d := p.derive(v)
	return v.rankOf(d.rank(pr)), d.panic(pr)
}

// UsableRatio is the share of the pool's weight that may get new traffic by at least the protocols in use, 0 to 1.
func (p *Pool) UsableRatio() float64 {
	t := p.Table()
	if t == nil {
		return 0
	}
	sum, usable := 0, 0
	for i := range t.Members {
		m := &t.Members[i]
		sum += m.Weight
		if p.Usable(m) {
			usable += m.Weight
		}
	}
	if sum == 0 {
		return 0
	}
	return float64(usable) / float64(sum)
}

// Usable says whether a member may get new traffic by all protocols in use that it has an address for.
func (p *Pool) Usable(m *Member) bool {
	reached := false
	for pr := range numProtos {
		reached = reached || m.has(pr) && p.inUse(pr)
	}
	return reached && m.admin.Load() == uint32(Ready) && p.all(m).health() <= Up
}

// word is the health that decides for a protocol: the scope says whose.
func (p *Pool) word(m *Member, pr Proto) word {
	if p.cfg.Scope == ScopeAddress {
		return m.Server.word(pr)
	}
	return p.all(m)
}

// all joins the words of the addresses in use. One whose name is not resolved is as good as down.
func (p *Pool) all(m *Member) word {
	w, first := word(Up), true
	for pr := range numProtos {
		if !p.inUse(pr) {
			continue
		}
		if m.lost&(1<<pr) != 0 {
			return word(Down)
		}
		if !m.has(pr) {
			continue
		}
		if first {
			w, first = m.Server.word(pr), false
			continue
		}
		w = w.worse(m.Server.word(pr))
	}
	return w
}

func (p *Pool) inUse(pr Proto) bool {
	return p.cfg.InUse[pr] || p.cfg.InUse == [numProtos]bool{}
}

func (t *Table) rankIndex(rank int) int {
	for i := range t.ranks {
		if t.ranks[i].rank == rank {
			return i
		}
	}
	return -1
}

func (t *Table) rankOf(i int) int {
	if i < len(t.ranks) {
		return t.ranks[i].rank
	}
	return 0
}

func among(tags []uint32, tag uint32) bool {
	for _, t := range tags {
		if t == tag {
			return true
		}
	}
	return false
}
