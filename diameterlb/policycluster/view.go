package policycluster

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// view is what the message path sees of a cluster. It is never changed.
type view struct {
	active, further []*Member // further: for retries, by rank
	byHost          map[string]*Member
	pinning         bool
	share           LoadShare
	mode            Mode
	up              bool     // a server is active or standby, whoever has the role
	out             bool     // none is, and none is in its first attempt
	identity        Identity // the first one known
	failedAt        time.Time
	fresh           atomic.Bool // no request has been sent since the failover at failedAt
}

// publish makes a view of the slots.
func (c *Cluster) publish() {
	v := &view{byHost: map[string]*Member{}, pinning: c.cfg.Pinning, share: c.cfg.Share, mode: c.cfg.Mode}
	slots, first := slices.Clone(c.slots), false
	slices.SortStableFunc(slots, func(a, b *slot) int { return cmp.Compare(uint(a.rank-1), uint(b.rank-1)) })
	for _, s := range slots {
		s.Member.state.Store(uint32(s.state))
		if id, ok := s.Identity(); ok && v.identity.Host == "" {
			v.identity = id
		}
		v.up = v.up || s.state == Active || s.state == Standby
		first = first || !s.tried && (s.conn == none || s.conn == dialing) && s.listed && s.rank <= c.cfg.limit()
		if c.cfg.Mode == OutOfService {
			continue
		}
		switch {
		case s.state == Active, s.state == Standby && c.cfg.Selection == Random && !c.held:
			v.active = append(v.active, s.Member)
		case s.state == Standby && !c.held:
			v.further = append(v.further, s.Member)
		}
		if id := s.identity.Load(); id != nil && s.state.usable() {
			if had := v.byHost[id.Host]; had == nil || s.state == Active {
				v.byHost[id.Host] = s.Member
			}
		}
	}
	v.out = !v.up && !first && (len(slots) > 0 || c.names.failures > 0)
	old := c.view.Load()
	if at := c.names.failedAt; !at.IsZero() && len(v.active) > 0 {
		v.failedAt = at
		v.fresh.Store(true)
		c.names.failedAt = time.Time{}
	} else if old.fresh.Load() {
		v.failedAt = old.failedAt
		v.fresh.Store(true)
	}
	c.view.Store(v)
	if c.Changed != nil {
		c.Changed()
	}
}

// Candidates appends to dst where a request may go, best first. host names the server that the session is pinned to, in
// lower case, or is empty: a pinned server is the only candidate while it is not inactive, even when it is merely
// standby, for no other one knows the session (diameter.md 4 rule 3). Else the active ones come first; what follows is
// for retries.
func (c *Cluster) Candidates(dst []*Member, host string) []*Member {
	v := c.view.Load()
	if host != "" && v.pinning {
		if m := v.byHost[host]; m != nil {
			return append(dst, m)
		}
	}
	n := len(v.active)
	if n > 1 && v.share != ShareNone {
		first := int(c.turn.Add(1) % uint32(n))
		if v.share == LeastPending {
			first = least(v.active, first)
		}
		dst = append(dst, v.active[first:]...)
		dst = append(dst, v.active[:first]...)
	} else {
		dst = append(dst, v.active...)
	}
	if n > 0 && v.fresh.Load() && v.fresh.CompareAndSwap(true, false) && c.Took != nil {
		c.Took(time.Since(v.failedAt))
	}
	return append(dst, v.further...)
}

// least is the active member with the fewest pending requests; from turns through those that have equally many.
func least(list []*Member, from int) int {
	at, fewest := from, list[from].Pending.Load()
	for i := 1; i < len(list); i++ {
		k := (from + i) % len(list)
		if n := list[k].Pending.Load(); n < fewest {
			at, fewest = k, n
		}
	}
	return at
}

// Usable says whether new requests find a server here.
func (c *Cluster) Usable() bool { return len(c.view.Load().active) > 0 }

// Up says that a server is connected and not suspect, also while a site keeps the active role away. Out says that none
// is, and that each has been tried. At the start neither is true.
func (c *Cluster) Up() bool { return c.view.Load().up }

// Out is explained at Up.
func (c *Cluster) Out() bool { return c.view.Load().out }

// Identity is that of the first server that has shown one.
func (c *Cluster) Identity() (Identity, bool) {
	id := c.view.Load().identity
	return id, id.Host != ""
}

// Has says whether the member is one of this cluster.
func (c *Cluster) Has(m *Member) bool { return m.cluster == c }

// Mode is the mode of the last view.
func (c *Cluster) Mode() Mode { return c.view.Load().mode }

// Pinned is the usable server with that identity, in lower case, or nil.
func (c *Cluster) Pinned(host string) *Member { return c.view.Load().byHost[host] }
