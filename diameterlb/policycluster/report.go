package policycluster

import (
	"time"

	"github.com/wyegate/wyegate/internal/obs"
)

// report raises and clears the conditions of diameter.md 13.2 that follow from the state.
func (c *Cluster) report(now time.Time) {
	if c.cfg.Events == nil {
		c.names.downs = nil
		return
	}
	lacks := c.lacksActive()
	for _, s := range c.names.downs {
		sev := obs.Minor
		if lacks {
			sev = obs.Major
		}
		if s.state == Inactive && !s.forgotten {
			f := c.fields(s)
			f["cause"] = s.change.Cause
			c.cfg.Raise("policy_server_down", c.condition(s), sev, f)
		}
	}
	c.names.downs = nil
	for _, s := range c.slots {
		if s.forgotten {
			c.cfg.Clear("policy_server_down", c.condition(s))
		}
	}
	c.reportActive(lacks, now)
	c.reportShort()
	c.reportDNS(now)
}

// lacksActive says that requests which should find a server here find none. While the first attempts are under way,
// nobody knows yet.
func (c *Cluster) lacksActive() bool {
	if c.active() != nil || c.held || c.cfg.Mode != ModeActive && c.cfg.Mode != ModeAlternate {
		return false
	}
	for _, s := range c.slots {
		if s.conn == dialing && !s.tried {
			return false
		}
	}
	return len(c.slots) > 0 || c.names.failures > 0
}

func (c *Cluster) reportActive(lacks bool, now time.Time) {
	if c.active() != nil || c.held || c.cfg.Mode == OutOfService || c.cfg.Mode == ModeStandby {
		c.cfg.Clear("policy_no_active", c.name)
		return
	}
	if lacks {
		since := c.none
		if since.IsZero() {
			since = now
		}
		c.cfg.Raise("policy_no_active", c.name, obs.Critical, map[string]any{"cluster": c.name, "no_active_since": since})
	}
}

// reportShort is silent while first attempts are under way.
func (c *Cluster) reportShort() {
	up, waits := 0, false
	for _, s := range c.slots {
		if s.conn == connected && !s.forgotten {
			up++
		}
		waits = waits || s.conn == dialing && !s.tried
	}
	switch {
	case up >= c.cfg.limit() || c.cfg.Mode == OutOfService:
		c.cfg.Clear("policy_short", c.name)
	case !waits && (c.names.have || c.watch == nil):
		c.cfg.Raise("policy_short", c.name, obs.Minor,
			map[string]any{"cluster": c.name, "wanted": c.cfg.wanted(), "connected": up})
	}
}

func (c *Cluster) reportDNS(now time.Time) {
	n := &c.names
	sev := obs.Severity("")
	switch {
	case n.failures == 0:
		return
	case !n.majorAt().IsZero() && !n.majorAt().After(now):
		sev = obs.Major
	case n.failures >= dnsMinor && n.raised == "":
		sev = obs.Minor
	}
	if sev == "" || sev == n.raised {
		return
	}
	c.clearDNS()
	n.raised = sev
	f := map[string]any{"cluster": c.name, "result": n.result, "next": n.next}
	if n.have {
		f["cached_age"] = now.Sub(n.at).Seconds()
	}
	c.cfg.Raise("policy_dns_failed", c.name, sev, f)
}

func (c *Cluster) clearDNS() {
	if c.names.raised != "" && c.cfg.Events != nil {
		c.cfg.Clear("policy_dns_failed", c.name)
	}
	c.names.raised = ""
}

func (c *Cluster) condition(s *slot) string { return c.name + "/" + s.Address().String() }

// fields name a server in an event; fqdn is empty for a configured address.
func (c *Cluster) fields(s *slot) map[string]any {
	f := map[string]any{"cluster": c.name, "fqdn": c.cfg.FQDN, "address": s.Address().String(), "realm": "", "identity": ""}
	if id, ok := s.Identity(); ok {
		f["identity"], f["realm"] = id.Host, id.Realm
	}
	return f
}

func (c *Cluster) serverUp(s *slot) {
	if c.cfg.Events != nil {
		c.cfg.Clear("policy_server_down", c.condition(s))
		c.cfg.Note("policy_server_up", obs.Info, c.fields(s))
	}
}

func (c *Cluster) mismatch(s *slot, want, got string) {
	if c.cfg.Events != nil {
		c.cfg.Note("identity_mismatch", obs.Major, map[string]any{
			"cluster": c.name, "address": s.Address().String(), "expected": want, "got": got,
		})
	}
}

func (c *Cluster) noteCongested(s *slot, why string) {
	if c.cfg.Events != nil {
		c.cfg.Note("policy_server_congested", obs.Minor, map[string]any{
			"cluster": c.name, "address": s.Address().String(), "why": why,
		})
	}
}

func (c *Cluster) noteFailover(d *departure, to *slot) {
	if c.cfg.Events != nil {
		c.cfg.Note("policy_failover", obs.Minor, map[string]any{
			"cluster": c.name, "from": d.from.Address().String(), "to": to.Address().String(), "cause": d.cause.String(),
			"pending": d.from.Pending.Load(), "sessions": d.from.Sessions.Load(),
		})
	}
}
