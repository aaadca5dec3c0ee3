package policycluster

import (
	"net/netip"
	"slices"
	"time"
)

// conn is what is known of a member's connection. After Open there is exactly one way back to none: the Down.
type conn uint8

const (
	none conn = iota
	dialing
	connected
	closing
)

// slot is a member as its cluster keeps it.
type slot struct {
	*Member
	server
	rank   int // from 1; 0: not listed
	listed bool
	conn   conn
	state  State
	since  time.Time
	change Change

	alternative int       // which of the addresses
	retryAt     time.Time // not dialled before; zero: at once
	never       bool      // not dialled again
	tried       bool      // an attempt or a connection has failed since it was last up
	upAt        time.Time
	fullAt      time.Time // when a full pending table becomes congestion; zero: it is not full
	congestedBy string    // Random: replaced when there is somebody else
	redial      bool      // Random: once at the next answer, if nobody takes its place
	replaced    string    // the member whose place it took, for LAST CHANGE
	forgotten   bool
}

func (c *Cluster) newSlot(s server, now time.Time) *slot {
	m := &Member{cluster: c}
	at := s.addrs[0]
	m.address.Store(&at)
	return &slot{Member: m, server: s, listed: true, state: Unused, since: now}
}

// become sets state and reason. The time stands while the state does.
func (s *slot) become(to State, cause, detail string, now time.Time) {
	if s.state != to {
		s.since = now
	}
	s.state = to
	s.change = Change{cause, detail}
}

// matches says whether a server of an answer is this member: the address in use is what counts, and for a member
// without connection any of them.
func (s *slot) matches(n server) bool {
	if s.conn == connected || s.conn == closing {
		return slices.Contains(n.addrs, s.Address())
	}
	return slices.ContainsFunc(s.addrs, func(a netip.AddrPort) bool { return slices.Contains(n.addrs, a) })
}

// update takes over what an answer says, and keeps the address in use.
func (s *slot) update(n server, rank int) {
	at := s.Address()
	s.server, s.rank, s.listed = n, rank, true
	if s.alternative = slices.Index(n.addrs, at); s.alternative < 0 {
		s.alternative = 0
		s.Member.address.Store(&n.addrs[0])
	}
}

func (c *Cluster) find(m *Member) *slot {
	for _, s := range c.slots {
		if s.Member == m {
			return s
		}
	}
	return nil
}

// active is the member with the active role, or nil; of selection Random the first one.
func (c *Cluster) active() *slot {
	for _, s := range c.slots {
		if s.state == Active && !s.forgotten {
			return s
		}
	}
	return nil
}

// best is the standby of the lowest rank; those that DNS no longer lists come last.
func (c *Cluster) best() *slot {
	var best *slot
	for _, s := range c.slots {
		if s.state == Standby && (best == nil || s.listed && (!best.listed || s.rank < best.rank)) {
			best = s
		}
	}
	return best
}

// dial opens the connection of a member that has none.
func (c *Cluster) dial(s *slot, now time.Time) {
	at := s.addrs[s.alternative]
	s.Member.address.Store(&at)
	s.conn, s.retryAt, s.redial = dialing, time.Time{}, false
	if s.state == Unused {
		s.become(Inactive, changeStart, "", now)
	}
	c.peers.Open(s.Member, at)
}

// closeSlot asks for the end of a connection; its Down follows.
func (c *Cluster) closeSlot(s *slot, how Closing) {
	if s.conn == dialing || s.conn == connected {
		s.conn = closing
		c.peers.Close(s.Member, how)
	}
}

// leave closes a member for good and takes it off the list.
func (c *Cluster) leave(s *slot, how Closing) {
	s.forgotten = true
	if s.conn == none {
		return
	}
	c.closeSlot(s, how)
	c.leaving = append(c.leaving, s)
}

func removeIf(list []*slot, f func(*slot) bool) []*slot { return slices.DeleteFunc(list, f) }
