package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/routing"
)

// Overrides lists what operators changed and nobody cleared.
func (e *Engine) Overrides() []admin.Override {
	g := e.current.Load()
	var out []admin.Override
	for _, o := range e.state.overrides() {
		file := ""
		if p := g.pools[o.Pool]; p != nil {
			for _, s := range p.def.Servers {
				switch {
				case s.Name != o.Server:
				case o.What == "weight":
					file = strconv.Itoa(s.Weight)
				case o.What == "state":
					file = s.AdminState
				}
			}
		}
		out = append(out, admin.Override{
			Pool: o.Pool, Server: o.Server, What: o.What, File: file, Override: o.Value, By: o.By, Since: o.Since, Note: o.Note,
		})
	}
	return out
}

// Change previews a change of a server's admin state or weight and, without DryRun, does it.
func (e *Engine) Change(_ context.Context, c admin.Change) (admin.Preview, error) {
	e.apply.Lock()
	defer e.apply.Unlock()
	g := e.current.Load()
	p := g.pools[c.Pool]
	if p == nil {
		return admin.Preview{}, fmt.Errorf("%w: pool %q", admin.ErrNotFound, c.Pool)
	}
	m := p.Table().ByName(c.Server)
	if m == nil {
		return admin.Preview{}, fmt.Errorf("%w: server %q of pool %q", admin.ErrNotFound, c.Server, c.Pool)
	}
	if _, ok := adminState(c.AdminState); !ok && c.AdminState != "" {
		return admin.Preview{}, fmt.Errorf("%w: admin state %q", admin.ErrInvalid, c.AdminState)
	}
	if c.Weight != nil && (*c.Weight < 0 || *c.Weight > 1_000_000) {
		return admin.Preview{}, fmt.Errorf("%w: weight %d", admin.ErrInvalid, *c.Weight)
	}
	out := preview(p, m, c)
	if out.Guard != "" && !c.Force {
		if c.DryRun {
			return out, nil
		}
		return out, fmt.Errorf("%w: %s", admin.ErrGuard, out.Guard)
	}
	if c.DryRun {
		return out, nil
	}
	return out, e.change(p, m, c)
}

// change does what was previewed, and keeps it in the state folder first: a drain goes on after a restart.
func (e *Engine) change(p *pool, m *routing.Member, c admin.Change) error {
	now := time.Now()
	if c.AdminState != "" {
		if err := e.state.setOverride(override{
			Pool: p.Name, Server: m.Name, What: "state", Value: c.AdminState, By: c.By, Note: c.Note, Since: now,
			drainIntent: intentOf(p, m, c),
		}); err != nil {
			return err
		}
		want, _ := adminState(c.AdminState)
		p.SetAdmin(m.Server, want, c.By, now)
	}
	if c.Weight != nil {
		if err := e.state.setOverride(override{
			Pool: p.Name, Server: m.Name, What: "weight", Value: strconv.Itoa(*c.Weight), By: c.By, Note: c.Note, Since: now,
		}); err != nil {
			return err
		}
		return e.reweight(p)
	}
	return nil
}

// reweight builds the pool's table with the overrides as they are now, in the same generation.
func (e *Engine) reweight(p *pool) error {
	t, err := p.Table().WithWeights(e.state.weights()[p.Name])
	if err != nil {
		return err
	}
	p.SetTable(t)
	return nil
}

// ClearOverrides returns to the file.
func (e *Engine) ClearOverrides(c admin.Caller, pool, server string, dryRun bool) ([]admin.Override, error) {
	e.apply.Lock()
	defer e.apply.Unlock()
	cleared := slices.DeleteFunc(e.Overrides(), func(o admin.Override) bool {
		return pool != "" && o.Pool != pool || server != "" && o.Server != server
	})
	if dryRun {
		return cleared, nil
	}
	if err := e.state.clearOverrides(pool, server); err != nil {
		return nil, err
	}
	g := e.current.Load()
	now := time.Now()
	for _, o := range cleared {
		p := g.pools[o.Pool]
		if p == nil {
			continue
		}
		switch o.What {
		case "weight":
			if err := e.reweight(p); err != nil {
				return nil, err
			}
		case "state":
			for _, s := range p.def.Servers {
				if m := p.Table().ByName(s.Name); s.Name == o.Server && m != nil {
					want, _ := adminState(s.AdminState)
					p.SetAdmin(m.Server, want, c.By, now)
				}
			}
		}
	}
	return cleared, nil
}

// preview says what a change would do: what the server still has, what the others would get, and what a guard says.
func preview(p *pool, m *routing.Member, c admin.Change) admin.Preview {
	out := admin.Preview{
		Pool: p.Name, Server: m.Name, From: m.Admin().String(), To: c.AdminState, Takes: []admin.Share{},
		Dialogs: int(m.Live(routing.Dialogs)), Sessions: int(m.Live(routing.Sessions)), Websockets: int(m.Live(routing.WebSockets)),
	}
	t := p.Table()
	if c.Weight != nil {
		out.From, out.To = fmt.Sprintf("weight %d", m.Weight), fmt.Sprintf("weight %d", *c.Weight)
		over := map[string]int{m.Name: *c.Weight}
		for i := range t.Members {
			if o := &t.Members[i]; o.Name != m.Name && o.Weight != o.FileWeight() {
				over[o.Name] = o.Weight
			}
		}
		if next, err := t.WithWeights(over); err == nil {
			out.PartitionsMove = t.Moved(next)
			out.Takes = shares(p.Name, next)
		}
		return out
	}
	if c.AdminState == "ready" || c.AdminState == "" {
		return out
	}
	others := 0
	for i := range t.Members {
		if o := &t.Members[i]; o.Name != m.Name && p.Usable(o) {
			others++
		}
	}
	out.PartitionsMove = t.Partitions(m.Name)
	if others == 0 && p.Usable(m) {
		out.Guard = fmt.Sprintf("pool %q would have no usable server", p.Name)
	}
	if c.AdminState == "maint" && out.Dialogs+out.Sessions+out.Websockets > 0 {
		out.Loss = fmt.Sprintf("%d dialogs, %d sessions and %d websockets end or move", out.Dialogs, out.Sessions, out.Websockets)
	}
	for i := range t.Members {
		if o := &t.Members[i]; o.Name != m.Name && p.Usable(o) {
			n := t.Partitions(o.Name)
			out.Takes = append(out.Takes, admin.Share{
				Pool: p.Name, Server: o.Name, Partitions: n, Table: float64(n) / float64(t.Hash().Partitions), Weight: t.WeightRatio(o.Name),
			})
		}
	}
	return out
}

func shares(pool string, t *routing.Table) []admin.Share {
	out := make([]admin.Share, 0, len(t.Members))
	for i := range t.Members {
		n := t.Partitions(t.Members[i].Name)
		out = append(out, admin.Share{
			Pool: pool, Server: t.Members[i].Name, Partitions: n, Table: float64(n) / float64(t.Hash().Partitions),
			Weight: t.WeightRatio(t.Members[i].Name),
		})
	}
	return out
}
