package httpproxy

import (
	"time"

	"github.com/wyegate/wyegate/routing"
)

// TunnelBegins counts an upgraded connection on the leased server, and its key as live where it has one. TunnelEnds is
// owed. The lease is kept for as long.
func (c *Choice) TunnelBegins(now time.Time) {
	m := c.Lease.Member
	m.AddLive(routing.WebSockets, 1)
	if c.Request.HasKey {
		c.App.Target.Pool.Bind(c.Request.Hash, m.Tag, now)
	}
}

// TunnelEnds takes back what TunnelBegins counted, and gives the lease back.
func (c *Choice) TunnelEnds(now time.Time) {
	m := c.Lease.Member
	m.AddLive(routing.WebSockets, -1)
	if c.Request.HasKey {
		c.App.Target.Pool.Unbind(c.Request.Hash, m.Tag, now)
	}
	c.Done(routing.OutcomeOK)
}
