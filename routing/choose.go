package routing

import "math"

// choice is the outcome of one choice: an index into the view's members, or an error.
type choice struct {
	member int
	how    How
	err    error
}

// drawer gives the turns of round robin: traffic draws them, explain looks at them.
type drawer interface {
	next() uint64
	detour() uint64
}

// verdict says whether a member may get new traffic, and if not, why.
type verdict uint8

const (
	mayGet verdict = iota
	noAddress
	noWeight
	tried
	assumed
	inMaint
	inDrain
	isDown
	isEjected
	wasRefused
	isBusy
	isHeld
	isFull
	inSlowStart
)

// String is the why of explain.
func (v verdict) String() string {
	return [...]string{"", "no address for the protocol", "weight 0", "tried already", "taken for down", "maint",
		"draining (admin)", "down", "ejected", "refused its last connect", "draining (server asked)",
		"asked for a rest (Retry-After)", "at max_concurrent", "slow start"}[v]
}

// choose is the one choice behind Acquire and Explain.
func (p *Pool) choose(v *view, r *Request, turn drawer) choice {
	var d derived
	if len(r.Assume) == 0 {
		d = p.derive(v)
	} else {
		d = p.assume(v.Table, r.Assume)
	}
	switch {
	case r.Policy == LeastPolicy:
		return p.least(v.Table, r, d, turn)
	case r.Policy == HashPolicy && r.HasKey:
		return p.keyed(v, r, d)
	default:
		if i, err := p.known(v.Table, r, d); i >= 0 || err != nil {
			return choice{member: i, how: HowKnown, err: err}
		}
		return p.robin(v.Table, r, d, turn)
	}
}

// known gives the member that the request names, if it can take known traffic; else -1.
func (p *Pool) known(t *Table, r *Request, d derived) (int, error) {
	if r.Known == 0 {
		return -1, nil
	}
	i, ok := t.byTag[r.Known]
	if !ok {
		return -1, nil
	}
	m := &t.Members[i]
	if !p.takesKnown(m, r, d.panic(r.Proto)) {
		return -1, nil
	}
	if full(m) && r.Proto == HTTP && !r.Recent {
		return -1, ErrFull
	}
	return int(i), nil
}

func (p *Pool) takesKnown(m *Member, r *Request, panicking bool) bool {
	if !m.has(r.Proto) || r.Avoid.Has(m.Tag) || among(r.Assume, m.Tag) || !takesKnown(m.admin.Load()) {
		return false
	}
	w := p.word(m, r.Proto)
	return w.health() != Down || panicking && w&refused == 0
}

// keyed follows dcr.md 5.8.
//
//	u = first usable server of the key's list;   s = server in the token, if the pool still has it
//	pinned, or s drains, or failback is not immediate, or u became usable less than 64*T1 ago:   s, while it takes
//	                                                                                           in-dialog traffic
//	otherwise, and when s can't serve:                                                        u
func (p *Pool) keyed(v *view, r *Request, d derived) choice {
	s, err := p.known(v.Table, r, d)
	if err != nil {
		return choice{err: err}
	}
	if s >= 0 && (r.Pinned || r.Recent || p.cfg.Failback != Immediate || v.Members[s].Server.Admin() == Drain ||
		p.word(&v.Members[s], r.Proto).health() == Busy) {
		return choice{member: s, how: HowKnown}
	}
	u := p.first(v.Table, r, d)
	if s >= 0 && (u.err != nil || u.member == s || p.justChanged(v, &v.Members[u.member], r.Proto)) {
		return choice{member: s, how: HowKnown}
	}
	if i := p.held(v, r, d, u); i >= 0 {
		return choice{member: i, how: HowHeld}
	}
	return u
}

// justChanged says whether the dialogs of immediate failback must still wait: 64*T1 since the server came back, or
// since the table changed.
func (p *Pool) justChanged(v *view, m *Member, pr Proto) bool {
	since := p.cfg.Now().UnixNano() - max(m.back(p, pr), v.settled.Load())
	return since < int64(p.cfg.Settle)
}

// back is when the member last came back to use, by the scope.
func (m *Member) back(p *Pool, pr Proto) int64 {
	if p.cfg.Scope == ScopeAddress {
		return m.backAt[pr].Load()
	}
	return max(m.backAt[SIP].Load(), m.backAt[HTTP].Load())
}

// first is the first usable server of the key's list, over all ranks: the one that serves first, then the others.
func (p *Pool) first(t *Table, r *Request, d derived) choice {
	partition := t.Partition(r.Hash)
	serving := d.rank(r.Proto)
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
		c, found := p.firstOf(t, &t.ranks[at], uint64(partition), r, d)
		if !found {
			continue
		}
		if c.err == nil {
			c.how = standing(c.how, at, d.panic(r.Proto))
		}
		return c
	}
	return choice{err: ErrNoServer}
}

// standing ranks the letters: panic before standby before what else there is.
func standing(how How, rank int, panicking bool) How {
	switch {
	case panicking:
		return HowPanic
	case rank > 0:
		return HowStandby
	default:
		return how
	}
}

// firstOf walks the choices of one rank. A server in slow start that keeps this partition back is taken only when
// nobody else is there.
func (p *Pool) firstOf(t *Table, rt *rankTable, partition uint64, r *Request, d derived) (choice, bool) {
	if rt.row == 0 {
		return choice{}, false
	}
	slow := -1
	w := walk{rt: rt, partition: partition}
	for n := 0; ; n++ {
		i, ok := w.next()
		if !ok {
			break
		}
		m := &t.Members[i]
		switch p.may(t, m, r, d.panic(r.Proto)) {
		case mayGet:
		case isFull:
			if p.cfg.BoundedLoad > 0 {
				continue
			}
			return choice{err: ErrFull}, true
		default:
			continue
		}
		if !m.returned(p, partition, r.Proto) {
			if slow < 0 {
				slow = int(i)
			}
			continue
		}
		return choice{member: int(i), how: ordinal(n)}, true
	}
	if slow >= 0 {
		return choice{member: slow, how: HowFirst}, true
	}
	return choice{}, false
}

func ordinal(n int) How {
	if n == 0 {
		return HowFirst
	}
	return HowNext
}

// returned says whether slow start has given this partition back to the server. Of each server the same partitions come
// first, on all nodes.
func (m *Member) returned(p *Pool, partition uint64, pr Proto) bool {
	ramp := m.ramp[pr].Load()
	return ramp == 0 || uint32(mix(partition^uint64(m.Tag)<<32)>>32) >= ramp
}

// may says whether a member may get new traffic now, slow start left aside.
func (p *Pool) may(t *Table, m *Member, r *Request, panicking bool) verdict {
	switch {
	case !m.has(r.Proto):
		return noAddress
	case m.Weight == 0:
		return noWeight
	case r.Avoid.Has(m.Tag):
		return tried
	case among(r.Assume, m.Tag):
		return assumed
	}
	switch m.Server.Admin() {
	case Drain:
		return inDrain
	case Maint:
		return inMaint
	}
	if why := p.sick(m, r.Proto, panicking); why != mayGet {
		return why
	}
	if full(m) || p.cfg.BoundedLoad > 0 && p.crowded(t, m) {
		return isFull
	}
	return mayGet
}

// sick reads health. In panic only a refused connect is believed.
func (p *Pool) sick(m *Member, pr Proto, panicking bool) verdict {
	w := p.word(m, pr)
	h := w.health()
	switch {
	case h <= Up:
		return mayGet
	case h == Down && w&refused != 0:
		return wasRefused
	case panicking:
		return mayGet
	case w&ejected != 0:
		return isEjected
	case h == Down:
		return isDown
	case w&held != 0 && Health(w&healthBits) != Busy:
		return isHeld
	default:
		return isBusy
	}
}

func full(m *Member) bool {
	return m.MaxConcurrent > 0 && m.active.Load() >= int64(m.MaxConcurrent)
}

// crowded is bounded_load: more leases than its share of all, times the bound.
func (p *Pool) crowded(t *Table, m *Member) bool {
	var sum, weight int64 = 1, 0
	for i := range t.Members {
		sum += t.Members[i].active.Load()
		weight += int64(t.Members[i].Weight)
	}
	limit := float64(sum) * float64(m.Weight) / float64(weight) * float64(p.cfg.BoundedLoad) / 100
	return float64(m.active.Load()) >= math.Ceil(limit)
}

// held gives the server on which the key lives, if new traffic of the key must go there; else -1. With nothing away
// from its owner and the owner chosen there is nothing to look up.
func (p *Pool) held(v *view, r *Request, d derived, u choice) int {
	if u.err == nil && v.Members[u.member].Tag == v.owner(r.Hash) && p.shared.strays.Load() == 0 {
		return -1
	}
	b, ok := p.shared.bindings.find(r.Hash)
	if !ok {
		return -1
	}
	for _, h := range b.holders {
		if h.n == 0 {
			break
		}
		i, ok := v.byTag[h.tag]
		if !ok {
			continue
		}
		m := &v.Members[i]
		if u.err == nil && int(i) == u.member {
			return -1 // it lives where it would go
		}
		if !p.takesKnown(m, r, d.panic(r.Proto)) || full(m) {
			continue
		}
		if p.keeps(v, m, &b, u, r.Proto) {
			return int(i)
		}
	}
	return -1
}

// keeps says whether the holder of a live key keeps new traffic: a draining one by live_keys, others by failback.
func (p *Pool) keeps(v *view, holder *Member, b *binding, u choice, pr Proto) bool {
	if holder.Server.Admin() == Drain || p.word(holder, pr).health() == Busy {
		return !p.cfg.DrainMoves
	}
	if p.cfg.Failback != WhenIdle {
		return false
	}
	if p.cfg.MaxWait <= 0 || u.err != nil {
		return true
	}
	since := max(v.Members[u.member].back(p, pr), v.settled.Load(), b.since)
	return p.cfg.Now().UnixNano()-since < int64(p.cfg.MaxWait)
}
