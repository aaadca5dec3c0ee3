package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wyegate/wyegate/admin"
)

// ServersCmd is `wyegate servers`.
type ServersCmd struct {
	List     ServersListCmd   `cmd:"" help:"States with origin, load, latency."`
	Show     ServersShowCmd   `cmd:"" help:"All about one server."`
	Drain    ServersDrainCmd  `cmd:"" help:"New keys go elsewhere; what is there stays until it ends."`
	Ready    ServersReadyCmd  `cmd:"" help:"Take new traffic again."`
	Maint    ServersMaintCmd  `cmd:"" help:"No traffic at all."`
	Weight   ServersWeightCmd `cmd:"" help:"Override the weight of the file."`
	Override OverrideCmd      `cmd:"" help:"What operators put over the file."`
}

// ServersListCmd is `servers list`.
type ServersListCmd struct {
	Pool string `help:"Only this pool." placeholder:"POOL"`
}

// Run asks the daemon and prints.
func (s *ServersListCmd) Run(g *Globals) error {
	g.prepare()
	return g.watching(func(ctx context.Context) error {
		c, err := g.ask(ctx)
		if err != nil {
			return err
		}
		path := "/v1/servers"
		if s.Pool != "" {
			path = "/v1/pools/" + url.PathEscape(s.Pool) + "/servers"
		}
		var all []admin.Server
		if err := c.get(ctx, path, nil, &all); err != nil {
			return err
		}
		return g.show(all, func(w io.Writer) { serversTable(w, all, g.Output == "wide", g.now()) })
	})
}

func serversTable(w io.Writer, all []admin.Server, wide bool, now time.Time) {
	head := []string{"POOL", "SERVER", "SITE", "STATE", "HEALTH sip/http", "WEIGHT", "KEYS/s", "DIALOGS", "WSS", "P95 ms", "SINCE"}
	if wide {
		head = append(head, "SESSIONS", "PARTITIONS", "SLOW START", "SIP", "HTTP", "NOTE")
	}
	var lines [][]string
	for i := range all {
		s := &all[i]
		p95 := "-"
		if s.P95 != nil {
			p95 = strconv.FormatFloat(*s.P95, 'f', 0, 64)
		}
		line := []string{
			s.Pool, s.Server, dash(s.Site), s.State, healthText(s), weightText(s), strconv.FormatFloat(s.KeysPerSecond, 'f', 1, 64),
			thousands(s.Dialogs), thousands(s.Websockets), p95, sinceText(s.Since, now),
		}
		if wide {
			line = append(line, thousands(s.Sessions), thousands(s.Partitions), percent(s.SlowStart),
				dash(s.Addresses["sip"].Address), dash(s.Addresses["http"].Address), dash(s.Note))
		}
		lines = append(lines, line)
	}
	rows(w, head, lines)
}

func sinceText(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return age(now.Sub(t))
}

func healthText(s *admin.Server) string {
	var parts []string
	for _, proto := range []string{"sip", "http"} {
		h, ok := s.Health[proto]
		if !ok {
			parts = append(parts, "-")
			continue
		}
		parts = append(parts, strings.TrimSpace(h.State+" "+h.Cause))
	}
	return strings.Join(parts, " / ")
}

func weightText(s *admin.Server) string {
	if s.Weight.Override == nil {
		return strconv.Itoa(s.Weight.Effective)
	}
	return fmt.Sprintf("%d (file %d)", s.Weight.Effective, s.Weight.File)
}

// ServersShowCmd is `servers show S`.
type ServersShowCmd struct {
	Server string `arg:"" help:"Name, pool/name or a prefix."`
}

// Run asks the daemon and prints.
func (s *ServersShowCmd) Run(g *Globals) error {
	g.prepare()
	return g.watching(func(ctx context.Context) error {
		c, err := g.ask(ctx)
		if err != nil {
			return err
		}
		one, err := c.server(ctx, s.Server)
		if err != nil {
			return err
		}
		return g.show(one, func(w io.Writer) { serverText(w, &one, g.now()) })
	})
}

func serverText(w io.Writer, s *admin.Server, now time.Time) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s "+format+"\n", append([]any{name}, args...)...)
	}
	line("server", "%s   pool %s", s.Server, s.Pool)
	if s.Site != "" {
		line("site", "%s", s.Site)
	}
	line("state", "%s   since %s   new traffic: %s", s.State, sinceText(s.Since, now), map[bool]string{true: "yes", false: "no"}[s.Usable])
	line("admin", "%s", settingText(s.AdminState.File, s.AdminState.Override))
	line("weight", "%s", settingText(strconv.Itoa(s.Weight.File), numberText(s.Weight.Override)))
	for _, proto := range []string{"sip", "http"} {
		a, ok := s.Addresses[proto]
		if !ok {
			continue
		}
		h := s.Health[proto]
		stale := ""
		if a.Stale {
			stale = "  (stale answer)"
		}
		line(proto, "%s %s%s   %s   since %s   %s", a.Transport, a.Address, stale, strings.TrimSpace(h.State+" "+h.Cause), sinceText(h.Since, now), h.Last)
	}
	line("load", "%s keys/s   %s   %s   %s", strconv.FormatFloat(s.KeysPerSecond, 'f', 1, 64),
		plural(s.Dialogs, "dialog", "dialogs"), plural(s.Sessions, "HTTP session", "HTTP sessions"), plural(s.Websockets, "websocket", "websockets"))
	line("table", "%s partitions   slow start %s", thousands(s.Partitions), percent(s.SlowStart))
	if s.Note != "" {
		line("note", "%s", s.Note)
	}
	if s.Drain != nil {
		drainText(w, s.Drain, now, false)
	}
}

func settingText(file string, override *string) string {
	if override == nil {
		return file
	}
	return fmt.Sprintf("%s   (override; the file says %s)", *override, file)
}

func numberText(n *int) *string {
	if n == nil {
		return nil
	}
	s := strconv.Itoa(*n)
	return &s
}

// ServersReadyCmd is `servers ready S`.
type ServersReadyCmd struct {
	Server string `arg:"" help:"Name, pool/name or a prefix."`
}

// Run does it.
func (s *ServersReadyCmd) Run(g *Globals) error {
	return g.changeServer(s.Server, map[string]any{"admin_state": "ready"})
}

// ServersMaintCmd is `servers maint S`.
type ServersMaintCmd struct {
	Server string `arg:"" help:"Name, pool/name or a prefix."`
}

// Run does it.
func (s *ServersMaintCmd) Run(g *Globals) error {
	return g.changeServer(s.Server, map[string]any{"admin_state": "maint"})
}

// ServersWeightCmd is `servers weight S N`.
type ServersWeightCmd struct {
	Server string `arg:"" help:"Name, pool/name or a prefix."`
	Weight int    `arg:"" help:"New weight; 0 takes new keys away."`
}

// Run does it.
func (s *ServersWeightCmd) Run(g *Globals) error {
	return g.changeServer(s.Server, map[string]any{"weight": s.Weight})
}

// changeServer previews, asks, changes and prints what the server is then.
func (g *Globals) changeServer(name string, want map[string]any) error {
	g.prepare()
	ctx := context.Background()
	c, err := g.ask(ctx)
	if err != nil {
		return err
	}
	one, err := c.server(ctx, name)
	if err != nil {
		return err
	}
	changed, err := g.patch(ctx, c, one, want)
	if err != nil || changed == nil {
		return err
	}
	return g.show(changed, func(w io.Writer) {
		fmt.Fprintf(w, "%s  %s   weight %s\n", changed.Server, changed.State, weightText(changed))
	})
}

// patch changes a server after its preview; nil without an error when it was a dry run.
func (g *Globals) patch(ctx context.Context, c *client, one admin.Server, want map[string]any) (*admin.Server, error) {
	if g.Note != "" {
		want["note"] = g.Note
	}
	if g.Force {
		want["force"] = true
	}
	path, ifMatch := serverPath(one), http.Header{"If-Match": {`"` + one.ETag + `"`}}
	var p admin.Preview
	if err := c.call(ctx, http.MethodPatch, path, url.Values{"dry_run": {"1"}}, ifMatch, want, &p); err != nil {
		return nil, err
	}
	if g.DryRun {
		return nil, g.show(p, func(w io.Writer) { io.WriteString(w, previewText(&p)) })
	}
	if p.Guard != "" && !g.Force {
		return nil, &exitError{exitRefused, fmt.Errorf("refused by a guard: %s; --force does it", p.Guard)}
	}
	if err := g.agree(previewText(&p), p.Loss); err != nil {
		return nil, err
	}
	var changed admin.Server
	return &changed, c.call(ctx, http.MethodPatch, path, nil, ifMatch, want, &changed)
}

func previewText(p *admin.Preview) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s → %s\n", p.Server, p.From, p.To)
	if p.Dialogs+p.Sessions+p.Websockets > 0 {
		fmt.Fprintf(&b, "  there now: %s, %s, %s", plural(p.Dialogs, "dialog", "dialogs"),
			plural(p.Sessions, "HTTP session", "HTTP sessions"), plural(p.Websockets, "websocket", "websockets"))
		if p.Longest > 0 {
			fmt.Fprintf(&b, "; longest dialog %s", age(time.Duration(p.Longest*float64(time.Second))))
		}
		b.WriteByte('\n')
	}
	if p.PartitionsMove > 0 {
		fmt.Fprintf(&b, "  %s move", plural(p.PartitionsMove, "partition", "partitions"))
		for i, t := range p.Takes {
			sep := ", "
			if i == 0 {
				sep = ": "
			}
			fmt.Fprintf(&b, "%s%s would have %s", sep, t.Server, percent(t.Table))
		}
		b.WriteByte('\n')
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "  warning: %s\n", w)
	}
	if p.Loss != "" {
		fmt.Fprintf(&b, "  loss: %s\n", p.Loss)
	}
	if p.Guard != "" {
		fmt.Fprintf(&b, "  guard: %s\n", p.Guard)
	}
	return b.String()
}
