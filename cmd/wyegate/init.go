package main

import (
	"fmt"
	"strings"

	"github.com/wyegate/wyegate/config"
)

// InitCmd is `wyegate init`.
type InitCmd struct {
	Profile string `help:"converged or sip." default:"converged"`
}

// Run prints a commented starter file that passes check.
func (c *InitCmd) Run(g *Globals) error {
	g.prepare()
	text, ok := config.Profile(c.Profile)
	if !ok {
		return &exitError{exitUsage, fmt.Errorf("no profile %q in this build; there are %s", c.Profile, strings.Join(config.Profiles(), ", "))}
	}
	_, err := g.out.Write(text)
	return err
}
