package limit

import (
	"net/netip"
	"sync"
)

// Caps bounds the open connections of one listener: in all and per source. It is asked when a connection is accepted
// and when it ends, never per message, so one lock does.
type Caps struct {
	mu        sync.Mutex
	total     int // most connections; 0: no bound
	perSource int // the same for one source
	exempt    Exempt
	open      int
	sources   map[netip.Addr]int // as many as there are sources with an open connection
}

// NewCaps makes the caps of a listener: at most total connections (exempt sources count here too, they use memory like
// any other), at most perSource from one IPv4 address or one IPv6 /64. 0 is no bound.
func NewCaps(total, perSource int, exempt Exempt) *Caps {
	return &Caps{total: total, perSource: perSource, exempt: exempt, sources: map[netip.Addr]int{}}
}

// Change sets other bounds. Connections that are open stay, whatever the new bounds say.
func (c *Caps) Change(total, perSource int, exempt Exempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total, c.perSource, c.exempt = total, perSource, exempt
}

// Acquire counts one more connection of a source, or says that it must not be.
func (c *Caps) Acquire(source netip.Addr) bool {
	k := bySource(source)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total > 0 && c.open >= c.total {
		return false
	}
	if c.perSource > 0 && c.sources[k] >= c.perSource && !c.exempt.Has(source) {
		return false
	}
	c.open++
	c.sources[k]++
	return true
}

// Release gives back what one Acquire took.
func (c *Caps) Release(source netip.Addr) {
	k := bySource(source)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.sources[k]--; c.sources[k] <= 0 {
		delete(c.sources, k)
	}
}

// Open is the number of connections that are open now.
func (c *Caps) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// bySource is the unit in which sources are counted: an IPv4 address, or an IPv6 /64.
func bySource(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(64) // 64 is a legal length for any IPv6 address
		return p.Addr()
	}
	return a
}
