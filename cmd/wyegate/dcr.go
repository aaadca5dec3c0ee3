package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/internal/engine"
)

// DcrCmd is `wyegate dcr`.
type DcrCmd struct {
	Lint     DcrLintCmd     `cmd:"" help:"Check rule files."`
	Fmt      DcrFmtCmd      `cmd:"" help:"Format rule files; comments stay."`
	Test     TestCmd        `cmd:"" help:"Run test files of rules."`
	Coverage DcrCoverageCmd `cmd:"" help:"Which rules the test files reach."`
	Graph    DcrGraphCmd    `cmd:"" help:"Picture of the rules."`
	Dtd      DcrDtdCmd      `cmd:"" help:"Schemas for editors: DTD, RELAX NG, XSD."`
}

const defaultRules = "data-centric-rules.xml"

func orDefault(files []string) []string {
	if len(files) == 0 {
		return []string{defaultRules}
	}
	return files
}

// DcrLintCmd is `dcr lint`.
type DcrLintCmd struct {
	Files  []string `arg:"" optional:"" help:"Rule files; data-centric-rules.xml here unless named."`
	Strict bool     `help:"Warnings are errors."`
	Config string   `help:"Configuration that names the files: its settings count, and findings that need the service are made." placeholder:"FILE"`
}

// Run prints all findings of all files.
func (c *DcrLintCmd) Run(g *Globals) error {
	g.prepare()
	options, err := c.options(g)
	if err != nil {
		return err
	}
	var all []dcr.Problem
	more, files := 0, map[string]bool{}
	wrong := false
	for _, name := range orDefault(c.Files) {
		list := lintFile(name, options)
		shown, hidden := dcr.Shown(list)
		all, more = append(all, shown...), more+hidden
		files[name] = true
		for _, p := range list {
			wrong = wrong || p.Severity == dcr.Error || c.Strict && p.Severity == dcr.Warning
		}
	}
	if g.Output != "table" && g.Output != "text" && g.Output != "wide" {
		if all == nil {
			all = []dcr.Problem{}
		}
		err = g.show(all, func(io.Writer) {})
	} else {
		lintText(g.out, all, more, len(files))
	}
	if err == nil && wrong {
		err = &exitError{exitWrong, nil}
	}
	return err
}

// options are those of the service that names a file; without a configuration the language as documented.
func (c *DcrLintCmd) options(g *Globals) (func(name string) dcr.Options, error) {
	if c.Config == "" {
		return func(string) dcr.Options { return dcr.Options{} }, nil
	}
	cfg, err := load(g, c.Config)
	if err != nil {
		return nil, err
	}
	return func(name string) dcr.Options {
		for _, f := range cfg.RuleFiles {
			if same(name, "/"+f.Path) {
				return engine.RuleOptions(cfg, f)
			}
		}
		return dcr.Options{}
	}, nil
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func lintFile(name string, options func(string) dcr.Options) []dcr.Problem {
	data, err := os.ReadFile(name)
	if err != nil {
		return []dcr.Problem{{File: name, Line: 1, Col: 1, Severity: dcr.Error, Code: "DCR100", Text: err.Error()}}
	}
	return dcr.Lint(name, data, options(name))
}

func lintText(w io.Writer, all []dcr.Problem, more, files int) {
	var list []config.Problem
	for _, p := range all {
		fmt.Fprintln(w, p)
		list = append(list, config.Problem{File: p.File, Severity: config.Severity(p.Severity)})
	}
	if more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	if len(list) == 0 {
		fmt.Fprintf(w, "no findings in %s\n", plural(files, "file", "files"))
		return
	}
	fmt.Fprintln(w, summary(list))
}

// DcrFmtCmd is `dcr fmt`.
type DcrFmtCmd struct {
	Files []string `arg:"" optional:"" help:"Rule files; data-centric-rules.xml here unless named."`
	Check bool     `help:"Name the files that would change; exit status 1 when one would."`
	Diff  bool     `help:"Show what would change; exit status 1 when something would."`
	Write bool     `short:"w" help:"Write the files."`
}

// Run formats; a file with errors is left alone.
func (c *DcrFmtCmd) Run(g *Globals) error {
	g.prepare()
	return formatFiles(g, orDefault(c.Files), c.Diff, c.Check, c.Write, func(name string, data []byte) ([]byte, error) {
		out, problems, err := dcr.Format(name, data, dcr.Options{HeaderMatch: true})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if out == nil {
			lintText(g.errOut, problems, 0, 1)
			return nil, errors.New("a file with errors is left as it was")
		}
		return out, nil
	})
}

// DcrGraphCmd is `dcr graph`.
type DcrGraphCmd struct {
	File string `arg:"" optional:"" help:"Rule file; data-centric-rules.xml here unless named."`
	Dot  bool   `help:"For Graphviz."`
}

// Run draws.
func (c *DcrGraphCmd) Run(g *Globals) error {
	g.prepare()
	name := orDefault([]string{c.File}[:min(1, len(c.File))])[0]
	data, err := os.ReadFile(name)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	set, problems := dcr.Compile(name, data, dcr.Options{HeaderMatch: true})
	if set == nil || dcr.HasErrors(problems) {
		lintText(g.errOut, problems, 0, 1)
		return &exitError{exitWrong, nil}
	}
	text := set.Graph()
	if c.Dot {
		text = set.DOT()
	}
	_, err = io.WriteString(g.out, text)
	return err
}

// DcrDtdCmd is `dcr dtd`.
type DcrDtdCmd struct {
	RNG bool `name:"rng" help:"RELAX NG, XML syntax." xor:"kind"`
	RNC bool `name:"rnc" help:"RELAX NG, compact syntax." xor:"kind"`
	XSD bool `name:"xsd" help:"XML Schema." xor:"kind"`
}

// Run prints a schema.
func (c *DcrDtdCmd) Run(g *Globals) error {
	g.prepare()
	text := dcr.DTD()
	switch {
	case c.RNG:
		text = dcr.RNG()
	case c.RNC:
		text = dcr.RNC()
	case c.XSD:
		text = dcr.XSD()
	}
	_, err := io.WriteString(g.out, text)
	return err
}
