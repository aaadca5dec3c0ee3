package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wyegate/wyegate/admin"
)

// StatusCmd is `wyegate status`: one screen.
type StatusCmd struct{}

// Run asks the daemon and prints.
func (*StatusCmd) Run(g *Globals) error {
	g.prepare()
	return g.watching(func(ctx context.Context) error {
		c, err := g.ask(ctx)
		if err != nil {
			return err
		}
		var st admin.Status
		if err := c.get(ctx, "/v1/status", nil, &st); err != nil {
			return err
		}
		return g.show(st, func(w io.Writer) { statusText(w, &st, g.now()) })
	})
}

func statusText(w io.Writer, st *admin.Status, now time.Time) {
	state := st.GenerationState
	if st.UndoneAt != nil {
		state += ", undone in " + age(st.UndoneAt.Sub(now))
	}
	fmt.Fprintf(w, "%s  %s  up %s  generation %d (%s)", st.Node, st.Version, spaced(time.Duration(st.UptimeSeconds*float64(time.Second))), st.Generation, state)
	if len(st.Digest) >= 8 {
		fmt.Fprintf(w, "   digest %s", st.Digest[:8])
	}
	fmt.Fprintln(w)
	var sites []string
	for _, s := range st.Sites {
		if s.Serving {
			sites = append(sites, fmt.Sprintf("site %s serving (rank %d)   ", s.Site, s.Rank))
		}
	}
	fmt.Fprintf(w, "%sSIP %.0f req/s   HTTP %.0f req/s   WSS %s   keys by rule %s, default %s\n", strings.Join(sites, ""),
		st.SIPPerSecond, st.HTTPPerSecond, thousands(st.Websockets), percent(st.KeysByRule), percent(st.KeysByDefault))
	var pools []string
	for _, p := range st.Pools {
		text := fmt.Sprintf("%s %d of %d usable", p.Pool, p.Usable, p.Servers)
		if p.Panic {
			text += ", PANIC: health is ignored"
		}
		pools = append(pools, text)
	}
	if len(pools) > 0 {
		fmt.Fprintf(w, "pools  %s\n", strings.Join(pools, "   "))
	}
	if !st.Ready {
		fmt.Fprintf(w, "not ready: %s\n", st.NotReady)
	}
	if st.FileDiffers {
		fmt.Fprintf(w, "file differs from running generation %d\n", st.Generation)
	}
	for _, o := range st.HiddenByFile {
		fmt.Fprintf(w, "override hides the file: %s %s is %s, the file says %s\n", o.Server, o.What, o.Override, o.File)
	}
	if len(st.Warnings) > 0 {
		fmt.Fprintln(w, "warnings")
		for _, v := range st.Warnings {
			fmt.Fprintf(w, "  %s", v.Text)
			if v.Since != nil {
				fmt.Fprintf(w, "   %s", age(now.Sub(*v.Since)))
			}
			fmt.Fprintln(w)
		}
	}
}
