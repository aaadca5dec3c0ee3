package policycluster

import (
	"math/rand/v2"
	"slices"
)

// whatIf says what the answer would do to the roles: the active one stays while it is listed, else the best standby that
// is listed, else the best rank that would be opened.
func (c *Cluster) whatIf(list []server) WhatIf {
	w := WhatIf{Steps: c.plan(list)}
	a := c.active()
	stays, best := false, Step{}
	for _, st := range w.Steps {
		if st.Do == "close" || st.Do == "skip" && (st.slot == nil || st.slot.state != Active) {
			continue
		}
		w.Left++
		if a != nil && st.slot == a {
			stays = true
		}
		if st.rank > 0 && (best.Do == "" || better(st, best)) {
			best = st
		}
	}
	if a != nil {
		w.From, w.To = a.Address(), a.Address()
	}
	if !stays && best.Do != "" {
		if best.slot != nil {
			w.To = best.slot.Address()
		} else {
			w.To = best.server.addrs[0]
		}
		if a != nil {
			w.Sessions = a.Sessions.Load()
		}
	}
	return w
}

// better prefers a standby that is connected, then the rank.
func better(a, b Step) bool {
	up := func(s Step) bool { return s.slot != nil && s.slot.state == Standby }
	if up(a) != up(b) {
		return up(a)
	}
	return a.rank < b.rank
}

// whatIfRandom: members stay while healthy, lost ones are replaced, and what is short is picked with the given seed.
func (c *Cluster) whatIfRandom(list []server, seed uint64) WhatIf {
	var w WhatIf
	free := slices.DeleteFunc(slices.Clone(list), func(n server) bool {
		return slices.ContainsFunc(c.slots, func(s *slot) bool { return s.matches(n) })
	})
	r := rand.New(rand.NewPCG(seed, seed))
	r.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	want := c.cfg.MaxConnections
	for _, s := range c.slots {
		step := Step{Do: "keep", Address: s.Address().String(), State: s.state.String(), Note: "unchanged"}
		if !slices.ContainsFunc(list, s.matches) {
			step.Note = changeUnlisted + ", stays while it is healthy"
		}
		if s.conn != connected && s.tried && len(free) > 0 {
			step.Do, step.Note = "close", "replaced by "+free[0].addrs[0].String()
			w.Steps = append(w.Steps, step, Step{Do: "open", Address: free[0].addrs[0].String(), State: "-", Note: "picked"})
			free = free[1:]
			want--
			w.Left++
			continue
		}
		want--
		w.Left++
		w.Steps = append(w.Steps, step)
	}
	for i, n := range free {
		step := Step{Do: "open", Address: n.addrs[0].String(), State: "-", Note: "picked"}
		if i >= want {
			step.Do, step.Note = "skip", changeBeyond
		} else {
			w.Left++
		}
		w.Steps = append(w.Steps, step)
	}
	if a := c.active(); a != nil {
		w.From, w.To = a.Address(), a.Address()
	}
	return w
}
