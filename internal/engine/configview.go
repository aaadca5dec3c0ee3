package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
)

// Config gives a generation's text.
func (e *Engine) Config(v admin.ConfigView) (admin.ConfigText, error) {
	g := e.current.Load()
	cfg, digest, number := g.Config, g.digest, g.Number
	if v.Generation != 0 && v.Generation != g.Number {
		old, err := e.state.generation(v.Generation)
		if err != nil {
			return admin.ConfigText{}, err
		}
		var problems []config.Problem
		cfg, problems = loadOverlay(old.Main, old.Files)
		if cfg == nil || config.HasErrors(problems) {
			return admin.ConfigText{}, fmt.Errorf("%w: generation %d cannot be read any more", admin.ErrNotFound, v.Generation)
		}
		digest, number = old.Digest, v.Generation
	}
	out := admin.ConfigText{Generation: number, Digest: digest, ETag: digest}
	if v.Service != "" {
		for _, f := range cfg.RuleFiles {
			if f.Service == v.Service {
				out.Text = string(f.Data)
				return out, nil
			}
		}
		return out, fmt.Errorf("%w: service %q has no rule file", admin.ErrNotFound, v.Service)
	}
	out.Text = string(config.Show(cfg, v.Defaults))
	return out, nil
}

// Diff compares two configurations: a generation's number, "running" or "file".
func (e *Engine) Diff(from, to string) (string, error) {
	a, err := e.named(from)
	if err != nil {
		return "", err
	}
	b, err := e.named(to)
	if err != nil {
		return "", err
	}
	return config.Diff(a, b), nil
}

func (e *Engine) named(what string) (*config.Config, error) {
	switch what {
	case "", "running":
		return e.current.Load().Config, nil
	case "file":
		cfg, problems := loadFrom(disk{regular: true}, e.opts.File)
		if cfg == nil || config.HasErrors(problems) {
			return nil, &admin.Refused{Findings: Findings(problems)}
		}
		return cfg, nil
	}
	n, err := strconv.ParseUint(what, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is no generation", admin.ErrInvalid, what)
	}
	if g := e.current.Load(); g.Number == n {
		return g.Config, nil
	}
	old, err := e.state.generation(n)
	if err != nil {
		return nil, err
	}
	cfg, problems := loadOverlay(old.Main, old.Files)
	if cfg == nil || config.HasErrors(problems) {
		return nil, &admin.Refused{Findings: Findings(problems)}
	}
	return cfg, nil
}

// Apply offers a configuration: a file, a text, rules of one service, or an old generation once more.
func (e *Engine) Apply(_ context.Context, a admin.Apply) (admin.Applied, error) {
	c := change{
		by: a.By, note: a.Note, confirm: a.Confirm, current: a.IfCurrent, force: a.Force, dryRun: a.DryRun,
	}
	g := e.current.Load()
	switch {
	case a.Rollback:
		old, err := e.state.before(g.Number, a.Generation)
		if err != nil {
			return admin.Applied{}, err
		}
		if c.note == "" {
			c.note = fmt.Sprintf("rollback to generation %d", old.Number)
		}
		c.load = func() (*config.Config, []config.Problem) { return loadOverlay(old.Main, old.Files) }
	case a.Rules != "":
		files := texts(g.Config, true)
		at := ruleFileOf(g.Config, a.Service)
		if at == "" {
			return admin.Applied{}, fmt.Errorf("%w: service %q has no rule file", admin.ErrNotFound, a.Service)
		}
		files[at] = []byte(a.Rules)
		c.load = func() (*config.Config, []config.Problem) { return loadOverlay(g.Config.Files[0].Path, files) }
	case a.Text != "":
		files := map[string][]byte{strings.TrimPrefix(e.opts.File, "/"): []byte(a.Text)}
		c.load = func() (*config.Config, []config.Problem) { return loadOverlay(e.opts.File, files) }
	default:
		path := a.Path
		if path == "" {
			path = e.opts.File
		}
		c.load = func() (*config.Config, []config.Problem) { return loadFrom(disk{regular: true}, path) }
	}
	out, err := e.offer(c)
	return out, err
}

func ruleFileOf(cfg *config.Config, service string) string {
	for _, f := range cfg.RuleFiles {
		if f.Service == service {
			return f.Path
		}
	}
	return ""
}

// Confirm keeps the generation that waits for it.
func (e *Engine) Confirm(c admin.Caller) (admin.Applied, error) {
	e.apply.Lock()
	defer e.apply.Unlock()
	g := e.current.Load()
	if g.confirmed {
		return admin.Applied{}, fmt.Errorf("%w: nothing waits for a confirmation", admin.ErrInvalid)
	}
	next := *g
	next.confirmed, next.undo = true, nil
	g.undo.Stop()
	e.current.Store(&next)
	return admin.Applied{Generation: g.Number, Digest: g.digest, State: "active", Nodes: 1, Of: 1}, e.state.confirmed(g.Number)
}

// History lists the generations kept, newest first, and what was refused.
func (e *Engine) History() []admin.Generation { return e.state.history(e.current.Load()) }
