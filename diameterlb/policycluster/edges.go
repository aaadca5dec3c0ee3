package policycluster

import (
	"strings"
	"time"
)

// up is told that CER/CEA is done.
func (c *Cluster) up(m *Member, id Identity, now time.Time) {
	s := c.find(m)
	if s == nil || s.conn != dialing {
		return
	}
	s.conn = connected
	id.Host, id.Realm = strings.ToLower(id.Host), strings.ToLower(id.Realm)
	if why := c.wrong(s, id); why != "" {
		c.closeSlot(s, Closing{DPR: noDPR})
		c.lost(s, CERFailed, why, now)
		s.retryAt = now.Add(c.cfg.Reconnect)
		return
	}
	m.identity.Store(&id)
	for k := range m.timeouts {
		m.timeouts[k].Store(0)
	}
	m.busy.Store(0)
	again := s.tried
	s.upAt, s.tried, s.congestedBy = now, false, ""
	cause, detail := changeStart, ""
	switch {
	case s.replaced != "":
		cause, detail, _ = strings.Cut(s.replaced, ": ")
		s.replaced = ""
	case again || c.cfg.FQDN == "" && now.After(c.started.Add(c.cfg.StartWait)):
		cause = changeConnected
	case c.cfg.Selection == Random:
		cause = changePicked
	case now.After(c.started.Add(c.cfg.StartWait)):
		cause = changeConnected
	}
	if c.first == s {
		c.first = nil
	}
	s.become(Standby, cause, detail, now)
	c.serverUp(s)
}

// wrong checks the identity of a CEA: the expected one, and nobody else's (diameter.md 5.3).
func (c *Cluster) wrong(s *slot, id Identity) string {
	want := c.cfg.Expect
	if want.Host != "" && !strings.EqualFold(want.Host, id.Host) || want.Realm != "" && !strings.EqualFold(want.Realm, id.Realm) {
		c.mismatch(s, want.Host, id.Host)
		return "identity " + id.Host + ", expected " + want.Host
	}
	for _, o := range c.slots {
		if c.cfg.OneIdentity {
			break
		}
		if other := o.identity.Load(); o != s && o.conn == connected && other != nil && other.Host == id.Host {
			c.mismatch(s, "an identity of its own", id.Host)
			return "identity " + id.Host + " is that of " + o.Address().String()
		}
	}
	return ""
}

// down is told the end of a connection or of an attempt.
func (c *Cluster) down(m *Member, l Loss, now time.Time) {
	c.leaving = removeIf(c.leaving, func(s *slot) bool { return s.Member == m })
	s := c.find(m)
	if s == nil || s.conn == none {
		return
	}
	was := s.conn
	s.conn, s.fullAt = none, time.Time{}
	switch was {
	case closing: // state and retryAt were set when it was closed, but for what their DPR asks
		if l.Wait > 0 {
			s.retryAt = now.Add(l.Wait)
		}
		s.never = s.never || l.Never
		return
	case dialing:
		if s.alternative++; s.alternative < len(s.addrs) {
			s.retryAt = now
			return
		}
		s.alternative = 0
		s.retryAt = now.Add(c.cfg.Reconnect)
	default:
		s.retryAt = now
		if c.cfg.Selection == Random {
			s.retryAt, s.redial = now.Add(c.cfg.Reconnect), true
		} else if now.Sub(s.upAt) < c.cfg.Reconnect {
			s.retryAt = now.Add(c.cfg.Reconnect) // a server that accepts and closes is not dialled in a loop
		}
	}
	if l.Wait > 0 {
		s.retryAt, s.redial = now.Add(l.Wait), false
	}
	s.never = l.Never
	c.lost(s, l.Cause, l.Detail, now)
}

// fail takes a connected member out because of what it does not answer.
func (c *Cluster) fail(m *Member, cause Cause, detail string, now time.Time) {
	s := c.find(m)
	if s == nil || s.conn != connected {
		return
	}
	c.closeSlot(s, Closing{DPR: noDPR})
	s.retryAt = now.Add(c.cfg.Reconnect)
	c.lost(s, cause, detail, now)
}

// goodbye is told that the server has sent DPR: it gets nothing new, and its connection ends soon.
func (c *Cluster) goodbye(m *Member, detail string, now time.Time) {
	s := c.find(m)
	if s == nil || s.conn != connected {
		return
	}
	s.conn = closing
	s.retryAt = now.Add(c.cfg.Reconnect)
	c.lost(s, Closed, detail, now)
}

// lost makes a member inactive. The active role goes on in settle.
func (c *Cluster) lost(s *slot, cause Cause, detail string, now time.Time) {
	if s.state == Active {
		c.depart(s, cause, detail, now)
	}
	if c.first == s && cause == CERFailed {
		c.first = nil
		c.depart(s, cause, detail, now)
	}
	s.become(Inactive, cause.String(), detail, now)
	c.names.downs = append(c.names.downs, s)
	first := !s.tried
	s.tried = true
	if first && c.cfg.Selection == Random {
		c.ask(now) // later failures of the same member wait for ShortageRetry
	}
}

// depart notes that the active role is free, or that the best rank could not take it at the start.
func (c *Cluster) depart(s *slot, cause Cause, detail string, now time.Time) {
	if c.gone == nil {
		c.gone = &departure{from: s, cause: cause, detail: detail, at: now}
	}
}

func (c *Cluster) suspected(m *Member, now time.Time) {
	s := c.find(m)
	if s == nil || s.conn != connected || s.state == Suspect || s.state == Active && c.cfg.SuspectStays {
		return
	}
	if s.state == Active {
		c.depart(s, DWRTimeouts, "", now)
	}
	s.become(Suspect, DWRTimeouts.String(), "", now)
}

func (c *Cluster) recovered(m *Member, now time.Time) {
	if s := c.find(m); s != nil && s.state == Suspect {
		s.become(Standby, changeConnected, "", now)
	}
}

// congested marks a member for replacement (Random, diameter.md 5.2 rule 4).
func (c *Cluster) congested(m *Member, why string, now time.Time) {
	s := c.find(m)
	if s == nil || s.conn != connected || s.congestedBy != "" {
		return
	}
	s.congestedBy = why
	c.noteCongested(s, why)
	c.ask(now)
}

func (c *Cluster) fullEdge(m *Member, full bool, now time.Time) {
	s := c.find(m)
	if s == nil || c.cfg.Selection != Random {
		return
	}
	s.fullAt = time.Time{}
	if full {
		s.fullAt = now.Add(c.cfg.FullFor)
	}
}

// ask has the name queried at once, and puts off the query that a shortage would cause.
func (c *Cluster) ask(now time.Time) {
	c.askAt = now.Add(c.cfg.ShortageRetry)
	if c.watch == nil {
		c.replaceDefunct(now) // a fixed list is its own answer
		return
	}
	c.query("shortage")
}
