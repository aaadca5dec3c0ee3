package routing

import "math"

// robin is round robin by weight over the rank that serves, then over the others: equal servers get equal counts,
// exactly, however many workers ask. A turn whose server may not get the message is drawn again among those that may,
// in proportion to weight, so that no neighbour gets two shares.
func (p *Pool) robin(t *Table, r *Request, d derived, turn drawer) choice {
	serving := d.rank(r.Proto)
	n := turn.next() // one turn per choice, however many ranks it asks
	for i := -1; i < len(t.ranks); i++ {
		at := i
		if i < 0 {
			at = serving
		} else if i == serving {
			continue
		}
		if at >= len(t.ranks) {
			continue
		}
		if m, how := p.robinOf(t, &t.ranks[at], r, d, n, turn); m >= 0 {
			return choice{member: m, how: standing(how, at, d.panic(r.Proto))}
		}
	}
	return choice{err: ErrNoServer}
}

func (p *Pool) robinOf(t *Table, rt *rankTable, r *Request, d derived, n uint64, turn drawer) (int, How) {
	if len(rt.round) == 0 {
		return -1, 0
	}
	panicking := d.panic(r.Proto)
	i := rt.round[n%uint64(len(rt.round))]
	m := &t.Members[i]
	if p.may(t, m, r, panicking) == mayGet && m.inTurn(n, r.Proto) {
		return int(i), HowFirst
	}
	var free, slow uint64
	for place, i := range rt.members {
		m := &t.Members[i]
		if p.may(t, m, r, panicking) != mayGet {
			continue
		}
		slow += uint64(rt.virtual[place])
		if m.ramp[r.Proto].Load() == 0 {
			free += uint64(rt.virtual[place])
		}
	}
	if slow == 0 {
		return -1, 0
	}
	total := free
	if free == 0 {
		total = slow
	}
	k := turn.detour() % total
	for place, i := range rt.members {
		m := &t.Members[i]
		if p.may(t, m, r, panicking) != mayGet || free > 0 && m.ramp[r.Proto].Load() != 0 {
			continue
		}
		if w := uint64(rt.virtual[place]); k >= w {
			k -= w
			continue
		}
		return int(i), HowNext
	}
	return -1, 0
}

// inTurn lets a server in slow start take a growing share of its turns.
func (m *Member) inTurn(n uint64, pr Proto) bool {
	ramp := m.ramp[pr].Load()
	return ramp == 0 || uint32(mix(n^uint64(m.Tag)<<32)>>32) >= ramp
}

// least compares (active+1)/weight by cross-multiplication: no float, no division by zero. Of equals the heavier wins,
// and equally heavy ones take turns: each scan starts one further.
func (p *Pool) least(t *Table, r *Request, d derived, turn drawer) choice {
	if i, err := p.known(t, r, d); i >= 0 || err != nil {
		return choice{member: i, how: HowKnown, err: err}
	}
	if len(t.Members) == 0 {
		return choice{err: ErrNoServer}
	}
	start := int(turn.next() % uint64(len(t.Members)))
	best, bestRank := -1, math.MaxInt
	for i := range t.Members {
		at := (start + i) % len(t.Members)
		m := &t.Members[at]
		if p.may(t, m, r, d.panic(r.Proto)) != mayGet {
			continue
		}
		rank := p.rankOrder(t, m, d.rank(r.Proto))
		if best < 0 || rank < bestRank || rank == bestRank && lighter(m, &t.Members[best]) {
			best, bestRank = at, rank
		}
	}
	if best < 0 {
		return choice{err: ErrNoServer}
	}
	how := HowFirst
	if t.Members[best].SiteRank != t.rankOf(0) {
		how = HowStandby
	}
	return choice{member: best, how: standing(how, 0, d.panic(r.Proto))}
}

// rankOrder puts the serving rank first, then the others in order.
func (p *Pool) rankOrder(t *Table, m *Member, serving int) int {
	if m.SiteRank == t.rankOf(serving) {
		return math.MinInt
	}
	return m.SiteRank
}

func lighter(m, best *Member) bool {
	a, b := (m.active.Load()+1)*int64(best.Weight), (best.active.Load()+1)*int64(m.Weight)
	return a < b || a == b && m.Weight > best.Weight
}
