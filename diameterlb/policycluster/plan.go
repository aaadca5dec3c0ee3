package policycluster

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Step is what an answer of DNS means for one server. The refresh carries out what `policy dns --what-if` prints.
type Step struct {
	Do      string `json:"do"` // keep, close, open, skip
	Address string `json:"address"`
	State   string `json:"state"` // "-": not known before
	Note    string `json:"note"`

	slot   *slot
	server server
	rank   int
}

// plan compares the members with a list of servers by rank (diameter.md 5.1, table Refresh). The members come first, by
// their old order, then what is new.
func (c *Cluster) plan(list []server) []Step {
	var steps []Step
	known := make([]bool, len(list))
	for _, s := range c.slots {
		at := slices.IndexFunc(list, s.matches)
		step := Step{Address: s.Address().String(), State: s.state.String(), slot: s}
		if at < 0 || known[at] {
			step.Do, step.Note = "close", changeUnlisted
			if c.cfg.KeepRemoved && s.conn == connected {
				step.Do, step.Note = "keep", changeUnlisted
			}
			steps = append(steps, step)
			continue
		}
		known[at] = true
		step.server, step.rank = list[at], at+1
		step.Do, step.Note = c.keepNote(s, list[at], at+1)
		steps = append(steps, step)
	}
	for i, n := range list {
		if known[i] {
			continue
		}
		step := Step{Do: "open", Address: n.addrs[0].String(), State: "-", server: n, rank: i + 1}
		step.Note = fmt.Sprintf("new, priority %d weight %d, rank %d", n.priority, n.weight, i+1)
		if i+1 > c.cfg.limit() {
			step.Do, step.Note = "skip", fmt.Sprintf("rank %d, %s %d", i+1, changeBeyond, c.cfg.MaxConnections)
		}
		steps = append(steps, step)
	}
	return steps
}

func (c *Cluster) keepNote(s *slot, n server, rank int) (do, note string) {
	switch {
	case s.state == Active && n.priority != s.priority:
		return "keep", fmt.Sprintf("priority %d → %d, stays active", s.priority, n.priority)
	case s.state == Active:
		return "keep", "stays active"
	case rank > c.cfg.limit():
		return "skip", fmt.Sprintf("rank %d, %s %d", rank, changeBeyond, c.cfg.MaxConnections)
	case s.conn == none && s.state == Unused:
		return "open", fmt.Sprintf("rank %d", rank)
	case n.priority != s.priority:
		return "keep", fmt.Sprintf("priority %d → %d", s.priority, n.priority)
	case n.weight != s.weight:
		return "keep", fmt.Sprintf("weight %d → %d", s.weight, n.weight)
	}
	return "keep", "unchanged"
}

// adopt carries a plan out as far as the list goes; settle opens, closes and promotes.
func (c *Cluster) adopt(list []server, now time.Time) {
	began := len(c.slots) == 0
	var removed []string
	for _, st := range c.plan(list) {
		switch {
		case st.slot == nil:
			s := c.newSlot(st.server, now)
			s.rank = st.rank
			if len(removed) > 0 && st.rank <= c.cfg.limit() {
				s.replaced = changeReplaced + removed[0] + ": " + changeUnlisted
				removed = removed[1:]
			}
			c.slots = append(c.slots, s)
		case st.rank == 0:
			st.slot.listed, st.slot.rank = false, 0
			if st.slot.state != Unused {
				removed = append(removed, st.slot.Address().Addr().String())
			}
		default:
			st.slot.update(st.server, st.rank)
		}
	}
	if began && len(c.slots) > 0 {
		c.first = c.slots[0]
		c.startTo = now.Add(c.cfg.StartWait) // the first dial is now
		c.started = now
	}
	slices.SortStableFunc(c.slots, func(a, b *slot) int { return int(uint16(a.rank-1)) - int(uint16(b.rank-1)) })
}

// WhatIf is the outcome of an answer that nobody gave.
type WhatIf struct {
	Steps    []Step         `json:"steps"`
	From     netip.AddrPort `json:"active"`
	To       netip.AddrPort `json:"active_then"`
	Sessions int64          `json:"sessions_moved"`
	Left     int            `json:"servers_left"`
}
