package policycluster

import "time"

// settleFailover is the strategy of [HA]: one active, the best ranks connected.
func (c *Cluster) settleFailover(now time.Time) {
	c.promote(now)
	c.removeUnlisted(now)
	down := c.allDown()
	for _, s := range c.slots {
		if !s.listed {
			continue
		}
		if c.wants(s, down) {
			if s.conn == none && !s.never && !s.retryAt.After(now) {
				c.dial(s, now)
			}
			continue
		}
		c.closeSlot(s, Closing{DPR: DoNotWant, Drain: c.cfg.DrainTimeout})
		if s.state != Unused || s.change.Cause != changeBeyond {
			s.become(Unused, changeBeyond, "", now)
		}
		s.tried, s.retryAt = false, time.Time{}
	}
}

// wants says whether a member is to have a connection: its rank is within the limit, it has the active role, or every
// monitored one is inactive (diameter.md 5.1 rule 5).
func (c *Cluster) wants(s *slot, allDown bool) bool {
	return s.rank <= c.cfg.limit() || s.state == Active || allDown && s.rank <= c.cfg.MaxConnections
}

// allDown says that each monitored member was tried and failed.
func (c *Cluster) allDown() bool {
	monitored := 0
	for _, s := range c.slots {
		if !s.listed || s.rank > c.cfg.limit() {
			continue
		}
		if monitored++; s.conn == connected || !s.tried {
			return false
		}
	}
	return monitored > 0
}

// promote gives the active role away: to the best standby when nobody has it, within the start to a better rank, and
// with Revert to one that has been up for the hold. Nothing else takes it from who has it (diameter.md 5.3).
func (c *Cluster) promote(now time.Time) {
	if c.held {
		if a := c.active(); a != nil {
			a.become(Standby, changeConnected, "", now)
		}
		c.gone = nil // the site has moved the role, and counts it
		return
	}
	a, b := c.active(), c.best()
	if a != nil && !a.listed && b != nil && b.listed {
		c.depart(a, DNSRemoved, changeUnlisted, now)
		c.move(a, b, now)
		return
	}
	switch {
	case b == nil:
	case a == nil:
		c.move(nil, b, now)
	case !b.listed || b.rank > a.rank:
	case now.Before(c.startTo):
		a.become(Standby, a.change.Cause, a.change.Detail, now)
		b.become(Active, b.change.Cause, b.change.Detail, now)
	case c.cfg.Revert && !b.upAt.Add(c.cfg.RevertHold).After(now):
		c.depart(a, Manual, "revert", now)
		c.move(a, b, now)
	}
	if c.active() == nil {
		c.redialAll(now)
		return
	}
	c.none = time.Time{}
	if c.gone != nil {
		c.failedOver(c.active(), now)
	}
}

// move makes b the active one in place of a, which stays connected, or of nobody.
func (c *Cluster) move(a, b *slot, now time.Time) {
	if a != nil {
		a.become(Standby, a.change.Cause, a.change.Detail, now)
	}
	b.become(Active, b.change.Cause, b.change.Detail, now)
	c.none = time.Time{}
	if c.why != "" {
		b.change = Change{Cause: c.why}
		c.why, c.gone = "", nil
	}
	if c.gone != nil {
		c.failedOver(b, now)
	}
}

// redialAll dials everybody at once when the last usable server is lost; the first up is active then, and a better rank
// wins for StartWait (diameter.md 5.3, 5.4).
func (c *Cluster) redialAll(now time.Time) {
	if !c.none.IsZero() || c.cfg.Mode == OutOfService {
		return
	}
	c.none = now
	c.startTo = now.Add(c.cfg.StartWait)
	for _, s := range c.slots {
		if s.conn == none && s.change.Cause != RequestTimeouts.String() && s.change.Cause != STRTimeouts.String() &&
			(s.upAt.IsZero() || now.Sub(s.upAt) >= c.cfg.Reconnect) {
			s.retryAt = now
		}
	}
}

// removeUnlisted closes what DNS no longer lists. The active one goes when another has its role.
func (c *Cluster) removeUnlisted(now time.Time) {
	for _, s := range c.slots {
		if s.listed || s.state == Active && c.cfg.Mode != OutOfService {
			continue
		}
		if c.cfg.KeepRemoved && s.conn == connected {
			continue
		}
		s.become(s.state, changeUnlisted, "", now)
		c.leave(s, Closing{DPR: DoNotWant, Drain: c.cfg.DrainTimeout})
	}
}

// failedOver counts and reports one move of the active role.
func (c *Cluster) failedOver(to *slot, now time.Time) {
	d := c.gone
	c.gone = nil
	if d.from == to {
		return // it was lost and came back: nobody else had the role
	}
	detail := "took over from " + d.from.Address().String()
	if d.detail != "" {
		detail = d.detail + ", " + detail
	}
	if d.cause == Manual && d.detail == "" {
		detail = ""
	}
	to.change = Change{d.cause.String(), detail}
	c.Failovers[d.cause].Add(1)
	c.names.failedAt = d.at
	c.noteFailover(d, to)
}
