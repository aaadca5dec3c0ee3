package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/internal/engine"
	"github.com/wyegate/wyegate/routing"
)

// CheckCmd is `wyegate check`.
type CheckCmd struct {
	File        string `arg:"" optional:"" help:"Configuration; wyegate.yaml here, else /etc/wyegate/wyegate.yaml."`
	Offline     bool   `help:"Resolve no name."`
	Strict      bool   `help:"Warnings are errors."`
	ExplainCode string `name:"explain" help:"Say what a code means, and how to mend it." placeholder:"CODE"`
}

// Run loads and builds, and throws away what was built.
func (c *CheckCmd) Run(g *Globals) error {
	g.prepare()
	if c.ExplainCode != "" {
		return explainCode(g, c.ExplainCode)
	}
	file := configFile(c.File)
	cfg, problems := engine.LoadFile(file)
	env := engine.Env{Registry: &routing.Registry{}}
	if !c.Offline {
		env.Lookup = engine.LookupOnce
	}
	_, problems = engine.Build(cfg, env, problems)
	wrong := config.HasErrors(problems) || c.Strict && len(problems) > 0
	if g.Output == "json" || g.Output == "jsonl" {
		if err := printFindings(g, problems); err != nil {
			return err
		}
	} else {
		c.text(g, file, problems, wrong)
	}
	if wrong {
		return &exitError{exitWrong, nil}
	}
	return nil
}

// text prints findings and their sum; of a valid file one line, with the warnings on standard error.
func (c *CheckCmd) text(g *Globals, file string, problems []config.Problem, wrong bool) {
	to := g.errOut
	if wrong {
		to = g.out
	}
	for _, p := range problems {
		fmt.Fprintln(to, p)
	}
	if wrong {
		fmt.Fprintln(g.out, summary(problems))
		return
	}
	if len(problems) > 0 {
		fmt.Fprintf(g.out, "%s: valid, %s\n", file, summary(problems))
		return
	}
	fmt.Fprintf(g.out, "%s: valid\n", file)
}

// summary is "2 errors, 1 warning in 2 files".
func summary(problems []config.Problem) string {
	count := map[config.Severity]int{}
	files := map[string]bool{}
	for _, p := range problems {
		count[p.Severity]++
		files[p.File] = true
	}
	var parts []string
	for _, s := range []config.Severity{config.Error, config.Warning, "info"} {
		if n := count[s]; n > 0 {
			one := string(s)
			many := one + "s"
			if one == "info" {
				many = one
			}
			parts = append(parts, plural(n, one, many))
		}
	}
	return strings.Join(parts, ", ") + " in " + plural(len(files), "file", "files")
}

// printFindings is the list of operations.md 3.5 as JSON.
func printFindings(g *Globals, problems []config.Problem) error {
	findings := engine.Findings(problems)
	if g.Output == "jsonl" {
		enc := json.NewEncoder(g.out)
		for _, f := range findings {
			if err := enc.Encode(f); err != nil {
				return err
			}
		}
		return nil
	}
	return g.show(findings, func(io.Writer) {})
}

func explainCode(g *Globals, code string) error {
	code = strings.ToUpper(code)
	text, ok := config.Page(code)
	if !ok {
		text, ok = dcr.Page(code)
	}
	if !ok {
		return &exitError{exitUsage, fmt.Errorf("no code %q", code)}
	}
	return g.show(map[string]string{"code": code, "text": text}, func(w io.Writer) { fmt.Fprintln(w, text) })
}
