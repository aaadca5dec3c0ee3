package policycluster

import (
	"net/netip"
	"slices"
	"time"
)

// settleRandom is the strategy of [PSX]: MaxConnections addresses at random, all in the mode of the cluster.
func (c *Cluster) settleRandom(now time.Time) {
	c.congestedByQueue(now)
	c.shrink(now)
	c.fill("", now)
	for _, s := range c.slots {
		if s.conn == none && !s.never && !s.retryAt.After(now) {
			c.dial(s, now)
		}
		want := Active
		if c.cfg.Mode == ModeStandby || c.held {
			want = Standby
		}
		if s.conn == connected && s.state != Suspect && s.state != want {
			s.become(want, s.change.Cause, s.change.Detail, now)
		}
	}
	c.first, c.gone = nil, c.carried(now)
	c.shortage(now)
}

// carried ends the departure that the loss of a member began: the others are active already, so it is a move to each of
// them, counted when there is one, with nobody named.
func (c *Cluster) carried(now time.Time) *departure {
	a := c.active()
	if a == nil {
		if c.none.IsZero() {
			c.none = now
		}
		return c.gone
	}
	c.none = time.Time{}
	if d := c.gone; d != nil && d.from != a {
		c.Failovers[d.cause].Add(1)
		c.names.failedAt = d.at
		c.noteFailover(d, a)
	}
	return nil
}

// congestedByQueue marks members whose pending table has been full for FullFor.
func (c *Cluster) congestedByQueue(now time.Time) {
	for _, s := range c.slots {
		if !s.fullAt.IsZero() && !s.fullAt.After(now) {
			s.fullAt = time.Time{}
			c.congested(s.Member, "pending table full", now)
		}
	}
}

// shrink closes what is too much: inactive ones first, then by chance (diameter.md 5.2 rule 3).
func (c *Cluster) shrink(now time.Time) {
	for len(c.here()) > c.cfg.MaxConnections {
		list := c.here()
		idle := removeIf(slices.Clone(list), func(s *slot) bool { return s.conn == connected })
		if len(idle) > 0 {
			list = idle
		}
		s := list[c.rand.IntN(len(list))]
		s.become(s.state, changeBeyond, "", now)
		c.leave(s, Closing{DPR: DoNotWant, Drain: c.cfg.DrainTimeout})
	}
}

// here are the members that stay.
func (c *Cluster) here() []*slot {
	return removeIf(slices.Clone(c.slots), func(s *slot) bool { return s.forgotten })
}

// fill picks addresses until there are enough; all unused ones are equally likely.
func (c *Cluster) fill(replaced string, now time.Time) {
	for len(c.here()) < c.cfg.MaxConnections {
		free := c.unused(now)
		if len(free) == 0 {
			return
		}
		s := c.newSlot(free[c.rand.IntN(len(free))], now)
		s.replaced = replaced
		c.slots = append(c.slots, s)
	}
}

// unused are the servers of the last answer nobody uses; a rested one only when there is no other (rule 5).
func (c *Cluster) unused(now time.Time) []server {
	taken := map[netip.AddrPort]bool{}
	for _, s := range c.slots {
		taken[s.Address()] = true
	}
	var fresh, rested []server
	for _, n := range c.names.servers {
		switch at := n.addrs[0]; {
		case taken[at]:
		case c.rested[at.String()].After(now):
			rested = append(rested, n)
		default:
			fresh = append(fresh, n)
		}
	}
	if len(fresh) == 0 {
		return rested
	}
	return fresh
}

// replaceDefunct is called with a fresh answer: members that are lost or congested give their place to unused addresses.
// One for which there is none is dialled on, and a congested one is kept (rule 4).
func (c *Cluster) replaceDefunct(now time.Time) {
	for at, until := range c.rested {
		if !until.After(now) {
			delete(c.rested, at)
		}
	}
	for _, s := range slices.Clone(c.slots) {
		lost := s.conn != connected && s.tried
		if !lost && s.congestedBy == "" {
			if !s.listed && !c.cfg.KeepRemoved {
				c.replace(s, changeUnlisted, DNSRemoved, now)
			}
			continue
		}
		why, cause := s.change.Cause, causeOf(s.change.Cause)
		if !lost {
			why, cause = Congestion.String(), Congestion
		}
		if len(c.unused(now)) > 0 {
			c.replace(s, why, cause, now)
			continue
		}
		if s.redial {
			s.retryAt = now
		}
		s.congestedBy = ""
		s.busy.Store(0)
	}
}

// replace takes a member out and picks another one for its place.
func (c *Cluster) replace(s *slot, why string, cause Cause, now time.Time) {
	if s.state == Active {
		c.depart(s, cause, "", now)
	}
	how := Closing{DPR: noDPR}
	if s.conn == connected {
		how = Closing{DPR: DoNotWant, Drain: c.cfg.DrainTimeout}
	}
	c.rested[s.Address().String()] = now.Add(c.cfg.RechooseAfter)
	c.leave(s, how)
	c.Replacements[cause].Add(1)
	c.fill(changeReplaced+s.Address().Addr().String()+": "+why, now)
}

func causeOf(word string) Cause {
	for k := range Causes {
		if k.String() == word {
			return k
		}
	}
	return Closed
}

// shortage has the name asked every ShortageRetry while fewer than wanted are usable (rule 2).
func (c *Cluster) shortage(now time.Time) {
	usable := 0
	for _, s := range c.here() {
		if s.conn == connected {
			usable++
		}
	}
	switch {
	case usable >= c.cfg.MaxConnections:
		c.askAt = time.Time{}
	case c.askAt.IsZero():
		c.askAt = now.Add(c.cfg.ShortageRetry)
	case !c.askAt.After(now):
		c.ask(now)
	}
}
