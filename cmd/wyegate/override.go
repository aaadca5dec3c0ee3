package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/wyegate/wyegate/admin"
)

// OverrideCmd is `servers override`.
type OverrideCmd struct {
	List  OverrideListCmd  `cmd:"" help:"All overrides with author, time and note."`
	Clear OverrideClearCmd `cmd:"" help:"Return to the file."`
}

// OverrideListCmd is `servers override list`.
type OverrideListCmd struct{}

// Run asks the daemon and prints.
func (*OverrideListCmd) Run(g *Globals) error {
	g.prepare()
	return g.watching(func(ctx context.Context) error {
		c, err := g.ask(ctx)
		if err != nil {
			return err
		}
		var all []admin.Override
		if err := c.get(ctx, "/v1/overrides", nil, &all); err != nil {
			return err
		}
		return g.show(all, func(w io.Writer) { g.overrides(w, all) })
	})
}

func (g *Globals) overrides(w io.Writer, all []admin.Override) {
	now := g.now()
	var lines [][]string
	for _, o := range all {
		since := age(now.Sub(o.Since))
		if now.Sub(o.Since) < 12*time.Hour {
			since = clock(o.Since, now, "15:04:05")
		}
		lines = append(lines, []string{o.Pool, o.Server, o.What, o.File, o.Override, dash(o.By), since, dash(o.Note)})
	}
	rows(w, []string{"POOL", "SERVER", "WHAT", "FILE", "OVERRIDE", "BY", "SINCE", "NOTE"}, lines)
}

// OverrideClearCmd is `servers override clear [S]`.
type OverrideClearCmd struct {
	Server string `arg:"" optional:"" help:"Name, pool/name or a prefix; all when left out."`
}

// Run previews, asks and clears.
func (o *OverrideClearCmd) Run(g *Globals) error {
	g.prepare()
	ctx := context.Background()
	c, err := g.ask(ctx)
	if err != nil {
		return err
	}
	q := url.Values{}
	if o.Server != "" {
		one, err := c.server(ctx, o.Server)
		if err != nil {
			return err
		}
		q.Set("pool", one.Pool)
		q.Set("server", one.Server)
	}
	if g.Note != "" {
		q.Set("note", g.Note)
	}
	clear := func(dry bool) (gone []admin.Override, err error) {
		if q.Del("dry_run"); dry {
			q.Set("dry_run", "1")
		}
		return gone, c.call(ctx, http.MethodDelete, "/v1/overrides", q, nil, nil, &gone)
	}
	gone, err := clear(true)
	if err != nil {
		return err
	}
	if !g.DryRun {
		if err := g.agree(fmt.Sprintf("%s would return to the file\n", plural(len(gone), "override", "overrides")), ""); err != nil {
			return err
		}
		if gone, err = clear(false); err != nil {
			return err
		}
	}
	return g.show(gone, func(w io.Writer) { g.overrides(w, gone) })
}
