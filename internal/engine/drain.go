package engine

import (
	"fmt"
	"sync"
	"time"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/proxy/httpproxy/h1"
	"github.com/wyegate/wyegate/routing"
)

// drainIntent is what a drain was begun with, kept in the state folder beside its override so that it goes on after a
// restart.
type drainIntent struct {
	Deadline   time.Time `json:"deadline,omitzero"`
	AtDeadline string    `json:"at_deadline,omitempty"`
	Dialogs    int64     `json:"dialogs,omitempty"` // when it began
	Sessions   int64     `json:"sessions,omitempty"`
	Websockets int64     `json:"websockets,omitempty"`
}

func intentOf(p *pool, m *routing.Member, c admin.Change) drainIntent {
	if c.AdminState != "drain" {
		return drainIntent{}
	}
	d := drainIntent{
		AtDeadline: p.def.Drain.AtDeadline, Dialogs: m.Live(routing.Dialogs), Sessions: m.Live(routing.Sessions),
		Websockets: m.Live(routing.WebSockets),
	}
	limit := p.def.Drain.Deadline
	if c.Deadline != nil {
		limit = *c.Deadline
	}
	if limit > 0 {
		d.Deadline = time.Now().Add(limit)
	}
	if c.AtDeadline != "" {
		d.AtDeadline = c.AtDeadline
	}
	return d
}

// Drain is the progress of a server's drain.
func (e *Engine) Drain(pool, server string) (admin.Drain, error) {
	g := e.current.Load()
	p := g.pools[pool]
	if p == nil {
		return admin.Drain{}, fmt.Errorf("%w: pool %q", admin.ErrNotFound, pool)
	}
	m := p.Table().ByName(server)
	if m == nil || m.Admin() != routing.Drain {
		return admin.Drain{}, fmt.Errorf("%w: server %q of pool %q does not drain", admin.ErrNotFound, server, pool)
	}
	_, since, by := m.Intent()
	o, _ := e.state.override(pool, server, "state")
	d := admin.Drain{
		Pool: pool, Server: server, By: by, Since: since, Note: o.Note, AtDeadline: o.AtDeadline, NewKeysTo: []string{},
		Dialogs:    remaining(o.Dialogs, m.Live(routing.Dialogs), since),
		Sessions:   remaining(o.Sessions, m.Live(routing.Sessions), since),
		Websockets: remaining(o.Websockets, m.Live(routing.WebSockets), since),
		CloseCode:  p.def.Drain.WSSCloseCode,
	}
	if d.AtDeadline == "" {
		d.AtDeadline = p.def.Drain.AtDeadline
	}
	if !o.Deadline.IsZero() {
		d.Deadline = &o.Deadline
		d.Overdue = time.Now().After(o.Deadline)
	}
	for i := range p.Table().Members {
		if other := &p.Table().Members[i]; other.Name != server && p.Usable(other) {
			d.NewKeysTo = append(d.NewKeysTo, other.Name)
		}
	}
	d.Done = m.Active() == 0 && d.Dialogs.Left+d.Sessions.Left+d.Websockets.Left == 0
	d.Overdue = d.Overdue && !d.Done
	return d, nil
}

// remaining estimates from the mean rate since the drain began when the last one will have ended.
func remaining(total, left int64, since time.Time) admin.Remaining {
	r := admin.Remaining{Total: int(max(total, left)), Left: int(left)}
	minutes := time.Since(since).Minutes()
	if gone := r.Total - r.Left; gone > 0 && minutes > 0 {
		r.PerMinute = float64(gone) / minutes
		if left > 0 {
			end := time.Now().Add(time.Duration(float64(left) / r.PerMinute * float64(time.Minute)))
			r.Expected = &end
		}
	}
	return r
}

// overdue remembers which drains have been acted on at their deadline, so that it happens once.
type overdue struct {
	mu   sync.Mutex
	done map[*routing.Server]time.Time // the deadline that was acted on
}

// deadlines does what a drain's at_deadline says when its time has come: wait leaves it, move and cancel treat the
// server like one that is down for what is left.
func (e *Engine) deadlines(g *Generation, now time.Time) {
	for _, p := range g.pools {
		for i := range p.Table().Members {
			m := &p.Table().Members[i]
			if m.Admin() != routing.Drain {
				continue
			}
			o, ok := e.state.override(p.Name, m.Name, "state")
			if !ok || o.Deadline.IsZero() || now.Before(o.Deadline) || o.AtDeadline == "wait" || o.AtDeadline == "" {
				continue
			}
			if e.overdue.first(m.Server, o.Deadline) {
				p.MoveDrained(m.Server, "drain deadline", now)
				e.closeTunnels(p, m.Name)
			}
		}
	}
}

// closeTunnels closes the WebSockets on a server whose drain is over, within a second.
func (e *Engine) closeTunnels(p *pool, server string) {
	e.closers.Go(func() {
		e.front.CloseTunnels(e.closeCtx, func(k h1.TunnelKey) bool { return k.Pool == p.Name && k.Server == server },
			uint16(p.def.Drain.WSSCloseCode), time.Second)
	})
}

func (o *overdue) first(s *routing.Server, deadline time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done == nil {
		o.done = map[*routing.Server]time.Time{}
	}
	if o.done[s].Equal(deadline) {
		return false
	}
	o.done[s] = deadline
	return true
}
