package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/wyegate/wyegate/admin"
)

// KeysCmd is `wyegate keys`.
type KeysCmd struct {
	Where  KeysWhereCmd  `cmd:"" help:"Owner and further choices of a key."`
	Spread KeysSpreadCmd `cmd:"" help:"Share of the table and of traffic."`
	Live   KeysLiveCmd   `cmd:"" help:"Keys with live dialogs or sessions."`
}

// KeysWhereCmd is `keys where KEY`.
type KeysWhereCmd struct {
	Key     string `arg:"" help:"The key, as a rule gives it."`
	Pool    string `help:"In this pool." placeholder:"POOL"`
	Service string `help:"In the pool of this service." placeholder:"SERVICE"`
}

// Run asks the daemon and prints.
func (k *KeysWhereCmd) Run(g *Globals) error {
	g.prepare()
	return g.watching(func(ctx context.Context) error {
		c, err := g.ask(ctx)
		if err != nil {
			return err
		}
		q := url.Values{}
		if k.Pool != "" {
			q.Set("pool", k.Pool)
		}
		if k.Service != "" {
			q.Set("service", k.Service)
		}
		var p admin.KeyPlace
		if err := c.get(ctx, "/v1/keys/"+segment(k.Key), q, &p); err != nil {
			return err
		}
		return g.show(p, func(w io.Writer) { g.place(w, &p) })
	})
}

// segment writes any text as one segment of a path; "." and ".." would be taken for steps.
func segment(s string) string {
	return strings.ReplaceAll(url.PathEscape(s), ".", "%2E")
}

func (g *Globals) place(w io.Writer, p *admin.KeyPlace) {
	fmt.Fprintf(w, "%s  partition %d  owner %s (%s)", p.Key, p.Partition, p.Owner, p.State)
	if len(p.Then) > 0 {
		fmt.Fprintf(w, "  then %s", strings.Join(p.Then, ", "))
	}
	if p.Server != "" && p.Server != p.Owner {
		fmt.Fprintf(w, "  now %s", p.Server)
	}
	if l := p.Live; l != nil {
		fmt.Fprintf(w, "   live: %s, %s, on %s since %s", plural(l.Dialogs, "dialog", "dialogs"),
			plural(l.Sessions, "HTTP session", "HTTP sessions"), l.Server, clock(l.Since, g.now(), "15:04"))
	}
	fmt.Fprintln(w)
}

// KeysSpreadCmd is `keys spread`.
type KeysSpreadCmd struct {
	Sample int `help:"Count this many invented keys beside." placeholder:"N"`
}

// Run asks the daemon and prints.
func (k *KeysSpreadCmd) Run(g *Globals) error {
	g.prepare()
	return g.watching(func(ctx context.Context) error {
		c, err := g.ask(ctx)
		if err != nil {
			return err
		}
		q := url.Values{}
		if k.Sample != 0 {
			q.Set("sample", strconv.Itoa(k.Sample))
		}
		var all []admin.Share
		if err := c.get(ctx, "/v1/keys:spread", q, &all); err != nil {
			return err
		}
		return g.show(all, func(w io.Writer) { spreadTable(w, all, k.Sample > 0) })
	})
}

func spreadTable(w io.Writer, all []admin.Share, sampled bool) {
	head := []string{"POOL", "SERVER", "PARTITIONS", "TABLE", "WEIGHT", "TRAFFIC"}
	if sampled {
		head = append(head, "SAMPLED")
	}
	var lines [][]string
	for _, s := range all {
		traffic := "-"
		if s.Traffic != nil {
			traffic = percent(*s.Traffic)
		}
		line := []string{s.Pool, s.Server, thousands(s.Partitions), percent(s.Table), percent(s.Weight), traffic}
		if sampled {
			line = append(line, thousands(s.Sampled))
		}
		lines = append(lines, line)
	}
	rows(w, head, lines)
}

// KeysLiveCmd is `keys live`.
type KeysLiveCmd struct {
	Server string `help:"Only on this server." placeholder:"S"`
	Limit  int    `help:"At most so many." default:"1000" placeholder:"N"`
}

// Run asks the daemon and prints.
func (k *KeysLiveCmd) Run(g *Globals) error {
	g.prepare()
	return g.watching(func(ctx context.Context) error {
		c, err := g.ask(ctx)
		if err != nil {
			return err
		}
		q := url.Values{"limit": {strconv.Itoa(k.Limit)}}
		if k.Server != "" {
			one, err := c.server(ctx, k.Server)
			if err != nil {
				return err
			}
			q.Set("server", one.Server)
		}
		var all []admin.LiveKey
		if err := c.get(ctx, "/v1/keys:live", q, &all); err != nil {
			return err
		}
		return g.show(all, func(w io.Writer) {
			var lines [][]string
			for _, l := range all {
				lines = append(lines, []string{l.Hash, l.Pool, l.Server, thousands(l.Dialogs), thousands(l.Sessions), sinceText(l.Since, g.now())})
			}
			rows(w, []string{"KEY HASH", "POOL", "SERVER", "DIALOGS", "SESSIONS", "SINCE"}, lines)
		})
	})
}
