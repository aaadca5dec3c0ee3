package policycluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/wyegate/wyegate/internal/resolver"
)

// ErrGuard refuses a command because of the state (exit 4 of the CLI); ErrUnknown says that what it names is not there.
var (
	ErrGuard   = errors.New("policycluster: refused")
	ErrUnknown = errors.New("policycluster: unknown server")
	ErrNoName  = errors.New("policycluster: literal addresses, there is no name to ask for")
)

// Refused is a guard's text for the operator; errors.Is finds ErrGuard.
type Refused struct{ Text string }

// Error is the text alone.
func (r *Refused) Error() string { return r.Text }

// Is makes it an ErrGuard.
func (r *Refused) Is(target error) bool { return target == ErrGuard }

// Moved is what a failover by hand did.
type Moved struct {
	From, To netip.AddrPort
	Sessions int64 // they stay pinned to From
}

// Failover gives the active role to a standby, the best one or the one at that address; no connection closes. The error
// is a Refused when the server is not standby, ErrUnknown when it is no member.
func (c *Cluster) Failover(ctx context.Context, to netip.AddrPort) (Moved, error) {
	var m Moved
	var bad error
	err := c.do(ctx, func(now time.Time) { m, bad = c.failoverTo(to, now) })
	return m, cmpErr(err, bad)
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (c *Cluster) failoverTo(to netip.AddrPort, now time.Time) (Moved, error) {
	if c.cfg.Selection == Random {
		return Moved{}, &Refused{c.name + " has selection random: all its servers are active"}
	}
	b, a := c.best(), c.active()
	if to.IsValid() {
		at := slices.IndexFunc(c.slots, func(s *slot) bool { return s.Address() == to })
		if at < 0 {
			return Moved{}, fmt.Errorf("%w: %s", ErrUnknown, to)
		}
		if b = c.slots[at]; b.state != Standby {
			return Moved{}, &Refused{fmt.Sprintf("%s is %s; only a standby server can take over", to, b.state)}
		}
	}
	switch {
	case b == nil:
		return Moved{}, &Refused{"no server is standby; only a standby server can take over"}
	case c.held:
		return Moved{}, &Refused{c.name + " does not serve: its other site does"}
	case a == nil:
		return Moved{}, &Refused{c.name + " has no active server; the first that connects takes over"}
	}
	c.depart(a, Manual, "", now)
	c.startTo = time.Time{}
	m := Moved{From: a.Address(), To: b.Address(), Sessions: a.Sessions.Load()}
	c.move(a, b, now)
	a.change = Change{Cause: Manual.String()}
	return m, nil
}

// Refresh asks DNS now and waits for the outcome; ErrNoName when there is no name.
func (c *Cluster) Refresh(ctx context.Context) (Answer, error) {
	if c.watch == nil {
		return Answer{}, ErrNoName
	}
	heard := make(chan Answer, 1)
	if err := c.do(ctx, func(time.Time) {
		c.names.waiting = append(c.names.waiting, heard)
		c.query("refresh")
	}); err != nil {
		return Answer{}, err
	}
	select {
	case a := <-heard:
		return a, nil
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	case <-c.done:
		return Answer{}, ErrStopped
	}
}

// Activate has the name asked for at once, because this node became active (document [HA], refresh, third case).
func (c *Cluster) Activate() { c.post(func(time.Time) { c.query("refresh") }) }

// SetMode changes the mode. With force what is pending is dropped at once: it fails over or is answered 3002; else it
// runs to its end, for at most DryUpTimeout. It gives the mode before and how many requests are pending.
func (c *Cluster) SetMode(ctx context.Context, to Mode, force bool) (from Mode, pending int64, err error) {
	err = c.do(ctx, func(now time.Time) {
		from = c.cfg.Mode
		for _, s := range c.slots {
			pending += s.Pending.Load()
		}
		if from != to {
			c.setMode(to, force, now)
		}
	})
	return from, pending, err
}

func (c *Cluster) setMode(to Mode, force bool, now time.Time) {
	from := c.cfg.Mode
	c.cfg.Mode = to
	for _, s := range c.slots {
		switch {
		case to == OutOfService && force:
			c.closeSlot(s, Closing{DPR: DoNotWant})
		case to == ModeStandby && force:
			c.peers.Release(s.Member)
		case from == OutOfService:
			s.retryAt, s.never = time.Time{}, false
			if s.conn == none {
				s.become(Unused, Manual.String(), "", now)
			}
		}
	}
	if from == OutOfService {
		c.startTo = now.Add(c.cfg.StartWait)
		c.none = now
		c.query("refresh")
	}
	c.gone = nil
}

// Update takes a changed configuration over without closing what is still wanted. Name, FQDN, Selection and Seed are
// those of New: a change of them is another cluster. Literals and MaxConnections may change.
func (c *Cluster) Update(ctx context.Context, cfg Config) error {
	return c.do(ctx, func(now time.Time) {
		resized, mode := cfg.MaxConnections != c.cfg.MaxConnections, c.cfg.Mode
		literals := !slices.Equal(cfg.Addresses, c.cfg.Addresses)
		to := cfg.Mode
		cfg.Mode = mode
		c.take(cfg)
		if to != mode {
			c.setMode(to, false, now)
		}
		if literals && c.watch == nil {
			c.names.servers = c.cfg.literals()
			if c.cfg.Selection == Failover {
				c.adopt(c.names.servers, now)
			}
		}
		if resized && c.cfg.Selection == Random {
			c.query("refresh")
		}
	})
}

// Hold keeps the active role away from the cluster, or lets it have it again; why is the LAST CHANGE of who gets it. A
// site that has the role elsewhere uses it.
func (c *Cluster) Hold(held bool, why string) {
	c.post(func(time.Time) {
		c.held = held
		if !held {
			c.why = why
		}
	})
}

// SetExpect sets the identity that a CEA must carry from now on.
func (c *Cluster) SetExpect(id Identity) { c.post(func(time.Time) { c.cfg.Expect = id }) }

// WhatIf tells what an answer would change. seed is the draw's, for selection Random.
func (c *Cluster) WhatIf(ctx context.Context, set resolver.Set, seed uint64) (WhatIf, error) {
	var w WhatIf
	err := c.do(ctx, func(time.Time) {
		if c.cfg.Selection == Random {
			w = c.whatIfRandom(c.cfg.servers(set), seed)
		} else {
			w = c.whatIf(c.cfg.servers(set))
		}
	})
	return w, err
}

// PostMode is SetMode without force for who must not wait.
func (c *Cluster) PostMode(to Mode) {
	c.post(func(now time.Time) {
		if c.cfg.Mode != to {
			c.setMode(to, false, now)
		}
	})
}
