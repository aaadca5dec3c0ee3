package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/wyegate/wyegate/admin"
)

// server finds a server by its name, "pool/server", or a prefix that only one has (operations.md 5.1).
func (c *client) server(ctx context.Context, name string) (admin.Server, error) {
	var all []admin.Server
	if err := c.get(ctx, "/v1/servers", nil, &all); err != nil {
		return admin.Server{}, err
	}
	return pick(all, name)
}

func pick(all []admin.Server, name string) (admin.Server, error) {
	full := func(s admin.Server) string { return s.Pool + "/" + s.Server }
	by := func(fits func(admin.Server) bool) []admin.Server {
		return slices.DeleteFunc(slices.Clone(all), func(s admin.Server) bool { return !fits(s) })
	}
	found := by(func(s admin.Server) bool { return s.Server == name || full(s) == name })
	if len(found) == 0 {
		found = by(func(s admin.Server) bool {
			return name != "" && (strings.HasPrefix(s.Server, name) || strings.HasPrefix(full(s), name) && strings.Contains(name, "/"))
		})
	}
	if len(found) == 1 {
		return found[0], nil
	}
	text := "server %q is unknown; there are %s"
	if len(found) > 1 {
		text = "server %q may be %s"
		all = found
	}
	var names []string
	for _, s := range all {
		n := s.Server
		if len(by(func(o admin.Server) bool { return o.Server == s.Server })) > 1 {
			n = full(s)
		}
		names = append(names, n)
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	return admin.Server{}, &exitError{exitUsage, fmt.Errorf(text, name, strings.Join(names, ", "))}
}

// serverPath is the resource of a server.
func serverPath(s admin.Server) string {
	return "/v1/pools/" + url.PathEscape(s.Pool) + "/servers/" + url.PathEscape(s.Server)
}

// ask gives the client of the node that --node names. A node knows itself only.
func (g *Globals) ask(ctx context.Context) (*client, error) {
	c, err := g.client()
	if err != nil || g.Node == "" || g.Node == "all" {
		return c, err
	}
	var st admin.Status
	if err := c.get(ctx, "/v1/status", nil, &st); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(st.Node, g.Node) {
		return nil, &exitError{exitUsage, fmt.Errorf("node %q is unknown; this is %s", g.Node, st.Node)}
	}
	return c, nil
}
