package main

import (
	"context"
	"io"
	"strings"

	"github.com/wyegate/wyegate/admin"
)

// ListenersCmd is `wyegate listeners`.
type ListenersCmd struct {
	List ListenersListCmd `cmd:"" help:"Listeners with address and connections."`
}

// ListenersListCmd is `listeners list`.
type ListenersListCmd struct{}

// Run asks the daemon and prints.
func (*ListenersListCmd) Run(g *Globals) error {
	g.prepare()
	return g.watching(func(ctx context.Context) error {
		c, err := g.ask(ctx)
		if err != nil {
			return err
		}
		var all []admin.Listener
		if err := c.get(ctx, "/v1/listeners", nil, &all); err != nil {
			return err
		}
		return g.show(all, func(w io.Writer) {
			var lines [][]string
			for _, l := range all {
				state := "open"
				if l.Paused {
					state = "paused"
				}
				lines = append(lines, []string{l.Listener, l.Protocol, l.Transport, l.Address, state, thousands(l.Connections),
					thousands(int(l.Accepted)), dash(strings.Join(l.Services, ","))})
			}
			rows(w, []string{"LISTENER", "PROTOCOL", "TRANSPORT", "ADDRESS", "STATE", "CONNECTIONS", "ACCEPTED", "SERVICES"}, lines)
		})
	})
}
