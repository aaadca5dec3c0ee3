package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/engine"
)

// ConfigCmd is `wyegate config`.
type ConfigCmd struct {
	Show     ConfigShowCmd     `cmd:"" help:"The merged configuration."`
	Fmt      ConfigFmtCmd      `cmd:"" help:"Format a file; comments stay."`
	Schema   ConfigSchemaCmd   `cmd:"" help:"JSON Schema of the configuration, or of test files."`
	Diff     ConfigDiffCmd     `cmd:"" help:"Compare; exit status 1 when there is a difference."`
	Set      ConfigSetCmd      `cmd:"" help:"Change one value as a new generation: pools.appservers.slow_start=60s."`
	Apply    ConfigApplyCmd    `cmd:"" help:"Put a configuration in force."`
	Confirm  ConfigConfirmCmd  `cmd:"" help:"Keep the generation that waits for it."`
	History  ConfigHistoryCmd  `cmd:"" help:"Generations that were in force."`
	Rollback ConfigRollbackCmd `cmd:"" help:"Bring an old generation back."`
}

// ConfigShowCmd is `config show`: of a file, or with --effective or --generation of the daemon.
type ConfigShowCmd struct {
	File       string `arg:"" optional:"" help:"Configuration."`
	Defaults   bool   `help:"Every key written out."`
	Effective  bool   `help:"What the daemon runs, with overrides."`
	Generation uint64 `help:"A generation that the daemon has kept." placeholder:"N"`
}

// Run prints YAML, or JSON.
func (c *ConfigShowCmd) Run(g *Globals) error {
	g.prepare()
	if c.Effective || c.Generation != 0 {
		ctx := context.Background()
		cl, err := g.ask(ctx)
		if err != nil {
			return err
		}
		text, err := cl.config(ctx, admin.ConfigView{Generation: c.Generation, Defaults: c.Defaults, Effective: c.Effective})
		if err != nil {
			return err
		}
		return c.print(g, []byte(text.Text))
	}
	cfg, err := load(g, configFile(c.File))
	if err != nil {
		return err
	}
	return c.print(g, config.Show(cfg, c.Defaults))
}

// print writes the YAML, or the same as JSON.
func (c *ConfigShowCmd) print(g *Globals, text []byte) error {
	if g.Output == "json" || g.Output == "jsonl" {
		object, err := config.JSON(text)
		if err != nil {
			return err
		}
		return g.show(json.RawMessage(object), nil)
	}
	_, err := g.out.Write(text)
	return err
}

// load reads a file that must be right; findings go to standard error.
func load(g *Globals, file string) (*config.Config, error) {
	cfg, problems := engine.LoadFile(file)
	if cfg == nil || config.HasErrors(problems) {
		for _, p := range problems {
			fmt.Fprintln(g.errOut, p)
		}
		return nil, &exitError{exitWrong, errors.New("the configuration is refused")}
	}
	return cfg, nil
}

// ConfigFmtCmd is `config fmt`.
type ConfigFmtCmd struct {
	Files []string `arg:"" optional:"" help:"Files; wyegate.yaml here unless named."`
	Diff  bool     `help:"Show what would change; exit status 1 when something would."`
	Write bool     `short:"w" help:"Write the files."`
}

// Run formats.
func (c *ConfigFmtCmd) Run(g *Globals) error {
	g.prepare()
	if len(c.Files) == 0 {
		c.Files = []string{configFile("")}
	}
	return formatFiles(g, c.Files, c.Diff, false, c.Write, func(name string, data []byte) ([]byte, error) {
		out, err := config.Format(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return out, nil
	})
}

// formatFiles serves `config fmt` and `dcr fmt`.
func formatFiles(g *Globals, files []string, diff, check, write bool, format func(name string, data []byte) ([]byte, error)) error {
	changed := false
	for _, name := range files {
		old, err := os.ReadFile(name)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		formatted, err := format(name, old)
		if err != nil {
			return &exitError{exitWrong, err}
		}
		same := string(old) == string(formatted)
		changed = changed || !same
		switch {
		case write && !same:
			if err := os.WriteFile(name, formatted, 0o644); err != nil {
				return &exitError{exitWrong, err}
			}
		case write:
		case diff:
			_, _ = g.out.Write(config.Unified(old, formatted, name, name+" (formatted)")) // standard output
		case check:
			if !same {
				fmt.Fprintln(g.out, name)
			}
		default:
			_, _ = g.out.Write(formatted) // standard output
		}
	}
	if changed && (diff || check) {
		return &exitError{exitWrong, nil}
	}
	return nil
}

// ConfigSchemaCmd is `config schema`.
type ConfigSchemaCmd struct {
	Test bool `help:"Of test files."`
}

// Run prints JSON Schema 2020-12.
func (c *ConfigSchemaCmd) Run(g *Globals) error {
	g.prepare()
	schema := config.Schema()
	if c.Test {
		schema = config.TestSchema()
	}
	_, err := g.out.Write(schema)
	return err
}

// ConfigDiffCmd is `config diff`.
type ConfigDiffCmd struct {
	What    string `arg:"" optional:"" help:"A file or a generation; compared with what runs."`
	Running bool   `help:"Compare the file that the daemon was started with, with what runs."`
}

// Run compares; without a daemon's word there is nothing to compare with.
func (c *ConfigDiffCmd) Run(g *Globals) error {
	g.prepare()
	ctx := context.Background()
	cl, err := g.ask(ctx)
	if err != nil {
		return err
	}
	var d configDiff
	switch {
	case c.What == "" || c.Running:
		d, err = cl.diff(ctx, "running", "file")
	case number(c.What):
		d, err = cl.diff(ctx, c.What, "running")
	default:
		d.From, d.To = "running", c.What
		d.Diff, err = c.file(ctx, g, cl)
		d.Differs = d.Diff != ""
	}
	if err != nil {
		return err
	}
	if err := g.show(d, func(w io.Writer) { io.WriteString(w, d.Diff) }); err != nil {
		return err
	}
	if d.Differs {
		return &exitError{exitWrong, nil}
	}
	return nil
}

// configDiff is what /v1/config/diff answers.
type configDiff struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Differs bool   `json:"differs"`
	Diff    string `json:"diff"`
}

func number(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

func (c *ConfigDiffCmd) file(ctx context.Context, g *Globals, cl *client) (string, error) {
	cfg, err := load(g, c.What)
	if err != nil {
		return "", err
	}
	running, err := cl.config(ctx, admin.ConfigView{Defaults: true})
	if err != nil {
		return "", err
	}
	return string(config.Unified([]byte(running.Text), config.Show(cfg, true), "running", c.What)), nil
}

// ConfigSetCmd is `config set PATH=VALUE`: of what runs, or with -c of a file.
type ConfigSetCmd struct {
	Assignment string        `arg:"" help:"PATH=VALUE; items of lists by name."`
	File       string        `short:"c" help:"Edit this file, and put nothing in force." placeholder:"FILE"`
	Confirm    time.Duration `help:"Undone after this time unless confirmed." placeholder:"5m"`
}

// Run makes a new generation of what runs with one value changed (operations.md 4.2), or edits a file.
func (c *ConfigSetCmd) Run(g *Globals) error {
	g.prepare()
	path, value, ok := cut(c.Assignment)
	if !ok {
		return &exitError{exitUsage, fmt.Errorf("%q: PATH=VALUE expected", c.Assignment)}
	}
	if c.File != "" {
		return c.edit(g, path, value)
	}
	ctx := context.Background()
	cl, err := g.ask(ctx)
	if err != nil {
		return err
	}
	running, err := cl.config(ctx, admin.ConfigView{})
	if err != nil {
		return err
	}
	f, err := config.Set([]config.File{{Path: "running", Shown: "running", Data: []byte(running.Text)}}, path, value)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if g.Note == "" {
		g.Note = "set " + c.Assignment
	}
	return g.apply(http.MethodPost, "/v1/config:apply", map[string]any{"text": string(f.Data)}, c.Confirm, running.Generation)
}

// edit changes the text of the file in which the key stands; comments stay.
func (c *ConfigSetCmd) edit(g *Globals, path, value string) error {
	cfg, err := load(g, configFile(c.File))
	if err != nil {
		return err
	}
	f, err := config.Set(cfg.Files, path, value)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	name := "/" + f.Path
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if g.DryRun {
		_, err = g.out.Write(config.Unified(old, f.Data, f.Shown, f.Shown+" (new)"))
		return err
	}
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, f.Data, st.Mode().Perm()); err != nil {
		return err
	}
	if _, problems := engine.LoadFile(configFile(c.File)); config.HasErrors(problems) {
		for _, p := range problems {
			fmt.Fprintln(g.errOut, p)
		}
		return errors.Join(&exitError{exitWrong, errors.New("refused; the file is as it was")}, os.WriteFile(name, old, st.Mode().Perm()))
	}
	return nil
}

func cut(s string) (path, value string, ok bool) {
	for i := range len(s) {
		if s[i] == '=' {
			return s[:i], s[i+1:], i > 0
		}
	}
	return "", "", false
}
