package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/wyegate/wyegate/admin"
)

// ConfigApplyCmd is `config apply [FILE]`.
type ConfigApplyCmd struct {
	File         string        `arg:"" optional:"" help:"File on the daemon's host; the one it was started with when left out."`
	Confirm      time.Duration `help:"Undone after this time unless confirmed." placeholder:"5m"`
	IfGeneration uint64        `help:"Only if this generation runs." placeholder:"N"`
	Local        bool          `help:"This node only." xor:"nodes"`
	AllNodes     bool          `help:"Refuse when a node cannot be reached." xor:"nodes"`
	MoveConns    bool          `name:"move-connections" help:"Open connections go over to the new rules by ageing."`
}

// Run previews, asks and applies.
func (a *ConfigApplyCmd) Run(g *Globals) error {
	body := map[string]any{}
	if a.File != "" {
		path, err := filepath.Abs(a.File)
		if err != nil {
			return err
		}
		body["path"] = path
	}
	if a.MoveConns {
		body["move_connections"] = true
	}
	return g.apply(http.MethodPost, "/v1/config:apply", body, a.Confirm, a.IfGeneration)
}

// ConfigRollbackCmd is `config rollback [GEN]`.
type ConfigRollbackCmd struct {
	Generation uint64        `arg:"" optional:"" help:"Generation to bring back; the last confirmed before this one when left out."`
	Confirm    time.Duration `help:"Undone after this time unless confirmed." placeholder:"5m"`
}

// Run previews, asks and rolls back.
func (r *ConfigRollbackCmd) Run(g *Globals) error {
	body := map[string]any{}
	if r.Generation != 0 {
		body["generation"] = r.Generation
	}
	return g.apply(http.MethodPost, "/v1/config:rollback", body, r.Confirm, 0)
}

// apply shows what would change, asks, and does it if nothing else was applied in between.
func (g *Globals) apply(method, path string, body map[string]any, confirm time.Duration, current uint64) error {
	g.prepare()
	ctx := context.Background()
	c, err := g.ask(ctx)
	if err != nil {
		return err
	}
	if g.Note != "" {
		body["note"] = g.Note
	}
	if g.Force {
		body["force"] = true
	}
	header := http.Header{}
	if current != 0 {
		header.Set("If-Match", strconv.Quote(strconv.FormatUint(current, 10)))
	}
	q := url.Values{"dry_run": {"1"}}
	if confirm > 0 {
		q.Set("confirm", confirm.String())
	}
	var would admin.Applied
	if g.DryRun || g.terminal && !g.Yes {
		if err := g.refused(c.call(ctx, method, path, q, header, body, &would)); err != nil {
			return err
		}
		if g.DryRun {
			return g.show(would, func(w io.Writer) { appliedText(w, &would, true) })
		}
		var b strings.Builder
		appliedText(&b, &would, true)
		if err := g.agree(b.String(), ""); err != nil {
			return err
		}
	}
	q.Del("dry_run")
	var done admin.Applied
	if err := g.refused(c.call(ctx, method, path, q, header, body, &done)); err != nil {
		return err
	}
	return g.show(done, func(w io.Writer) { appliedText(w, &done, false) })
}

// refused prints the findings of a refusal as `check` does.
func (g *Globals) refused(err error) error {
	p, ok := errors.AsType[*admin.Problem](err)
	if !ok || len(p.Errors) == 0 {
		return err
	}
	if !g.forPeople() {
		if serr := g.show(p.Errors, nil); serr != nil {
			return serr
		}
		return &exitError{exitStatus(err), nil}
	}
	for _, f := range p.Errors {
		fmt.Fprintln(g.errOut, findingText(f))
	}
	return &exitError{exitStatus(err), errors.New("nothing was changed")}
}

func findingText(f admin.Finding) string {
	return fmt.Sprintf("%s:%d:%d: %s: %s: %s", f.File, f.Line, f.Col, f.Severity, f.Code, f.Text)
}

func appliedText(w io.Writer, a *admin.Applied, dry bool) {
	for _, f := range a.Warnings {
		fmt.Fprintln(w, findingText(f))
	}
	if dry {
		if a.Diff == "" {
			fmt.Fprintln(w, "nothing would change")
			return
		}
		io.WriteString(w, a.Diff)
		fmt.Fprintf(w, "%s would move\n", plural(a.Moved, "partition", "partitions"))
		return
	}
	fmt.Fprintf(w, "generation %d %s on %d of %d nodes", a.Generation, strings.ReplaceAll(a.State, "unconfirmed", "active"), a.Nodes, a.Of)
	if a.UndoneAt != nil {
		fmt.Fprintf(w, "; undone at %s unless `wyegate config confirm`", a.UndoneAt.Local().Format("15:04:05"))
	}
	fmt.Fprintln(w)
}

// ConfigConfirmCmd is `config confirm`.
type ConfigConfirmCmd struct{}

// Run keeps the generation that waits.
func (*ConfigConfirmCmd) Run(g *Globals) error {
	g.prepare()
	ctx := context.Background()
	c, err := g.ask(ctx)
	if err != nil {
		return err
	}
	q := url.Values{}
	if g.Note != "" {
		q.Set("note", g.Note)
	}
	var done admin.Applied
	if err := c.call(ctx, http.MethodPost, "/v1/config:confirm", q, nil, nil, &done); err != nil {
		return err
	}
	return g.show(done, func(w io.Writer) { fmt.Fprintf(w, "generation %d confirmed\n", done.Generation) })
}

// ConfigHistoryCmd is `config history`.
type ConfigHistoryCmd struct{}

// Run asks the daemon and prints.
func (*ConfigHistoryCmd) Run(g *Globals) error {
	g.prepare()
	return g.watching(func(ctx context.Context) error {
		c, err := g.ask(ctx)
		if err != nil {
			return err
		}
		var all []admin.Generation
		if err := c.get(ctx, "/v1/config/history", nil, &all); err != nil {
			return err
		}
		return g.show(all, func(w io.Writer) { historyTable(w, all, g.now()) })
	})
}

func historyTable(w io.Writer, all []admin.Generation, now time.Time) {
	var lines [][]string
	for _, e := range all {
		number, state, note := "–", e.State, e.Note
		if e.Generation != 0 {
			number = strconv.FormatUint(e.Generation, 10)
		}
		switch {
		case e.State == "unconfirmed":
			state = "active, unconfirmed"
			if e.UndoneAt != nil {
				state += " " + age(e.UndoneAt.Sub(now))
			}
		case e.State == "refused" && e.Node != "":
			state += " on " + e.Node
		}
		if note == "" && len(e.Findings) > 0 {
			note = e.Findings[0].Code + " " + e.Findings[0].Text
		}
		digest := e.Digest
		if len(digest) > 8 {
			digest = digest[:8]
		}
		lines = append(lines, []string{number, state, dash(e.By), e.When.Local().Format("2006-01-02 15:04"), dash(digest), note})
	}
	rows(w, []string{"GEN", "STATE", "BY", "WHEN", "DIGEST", "NOTE"}, lines)
}
