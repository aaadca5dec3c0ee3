package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/engine"
	"github.com/wyegate/wyegate/routing"
)

// ExplainCmd is `wyegate explain`.
type ExplainCmd struct {
	SIP        string   `name:"sip" help:"File with a SIP message; - for standard input." placeholder:"FILE|-" xor:"what"`
	HTTP       string   `name:"http" help:"Request: 'GET https://host/path', or a whole one." placeholder:"'GET …'" xor:"what"`
	Key        string   `help:"A key, without a message." xor:"what"`
	Service    string   `help:"Service of the key." placeholder:"S"`
	Listener   string   `help:"Listener that the message comes in on; the first of its protocol unless written." placeholder:"L"`
	Source     string   `help:"Where it comes from." placeholder:"IP:PORT"`
	Live       bool     `help:"Ask the running daemon; without it the files decide."`
	Config     string   `short:"c" help:"Configuration, without --live." placeholder:"FILE"`
	IfDown     []string `help:"And where if these servers were down?" placeholder:"S"`
	IfSiteDown string   `help:"And where if this site were down?" placeholder:"SITE"`
	IfRules    string   `help:"And where by this rule file?" placeholder:"FILE"`
}

// Run asks the daemon, or decides by the files with the code that traffic meets.
func (c *ExplainCmd) Run(g *Globals) error {
	g.prepare()
	req := admin.ExplainRequest{
		Listener: c.Listener, Source: c.Source, HTTP: c.HTTP, Key: c.Key, Service: c.Service, IfDown: c.IfDown, IfSiteDown: c.IfSiteDown,
	}
	if c.SIP != "" {
		data, err := readText(g, c.SIP)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		req.SIP = string(data)
	}
	if req.SIP == "" && req.HTTP == "" && req.Key == "" {
		return &exitError{exitUsage, errors.New("one of --sip, --http and --key is wanted")}
	}
	var rules []byte
	if c.IfRules != "" {
		data, err := os.ReadFile(c.IfRules)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		rules, req.Rules = data, string(data)
	}
	x, err := c.ask(g, req, rules)
	if err != nil {
		return err
	}
	if err := g.show(x, func(w io.Writer) { explanationText(w, x) }); err != nil {
		return err
	}
	if x.Error != "" && x.Server == "" && x.Decided != "local" {
		return &exitError{exitWrong, nil}
	}
	return nil
}

func readText(g *Globals, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(g.in, 1<<20))
	}
	return os.ReadFile(name)
}

func (c *ExplainCmd) ask(g *Globals, req admin.ExplainRequest, rules []byte) (*admin.Explanation, error) {
	if c.Live {
		ctx := context.Background()
		cl, err := g.ask(ctx)
		if err != nil {
			return nil, err
		}
		return cl.explain(ctx, req)
	}
	cfg, problems := engine.LoadFile(configFile(c.Config))
	env := engine.Env{Registry: &routing.Registry{}, Lookup: nil, Resolver: engine.FixedNumbers{}.For}
	if rules != nil && cfg != nil {
		env.Rules = map[string][]byte{}
		for _, f := range cfg.RuleFiles {
			if c.Service == "" || c.Service == f.Service {
				env.Rules[f.Service] = rules
			}
		}
	}
	draft, problems := engine.Build(cfg, env, problems)
	if draft == nil {
		for _, p := range problems {
			if p.Severity == config.Error {
				fmt.Fprintln(g.errOut, p)
			}
		}
		return nil, &exitError{exitWrong, errors.New("the configuration is refused")}
	}
	off, err := draft.Offline(engine.SecretsFor(cfg))
	if err != nil {
		return nil, err
	}
	x, err := off.Explain(context.Background(), req)
	if err != nil {
		code := exitWrong
		if errors.Is(err, admin.ErrInvalid) || errors.Is(err, admin.ErrNotFound) {
			code = exitUsage
		}
		return nil, &exitError{code, err}
	}
	return x, nil
}

// explanationText prints a decision for people, in the order in which it was made.
func explanationText(w io.Writer, x *admin.Explanation) {
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "%-13s%s\n", label, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
	if x.Listener != "" {
		line("listener", "%s", x.Listener)
	}
	if x.Application != "" {
		line("application", "%s (%s)", x.Application, dash(x.Kind))
	}
	if x.Method != "" {
		known := "belongs to somebody already"
		if x.Initial {
			known = "a new key is wanted"
		}
		line("method", "%s %s   %s", x.Method, x.Target, known)
	}
	if x.RuleFile != "" || len(x.Rules) > 0 {
		line("rules", "%s generation %d", x.RuleFile, x.Generation)
	}
	for _, s := range x.Rules {
		mark := "✗"
		if s.Matched {
			mark = "✓"
		}
		fmt.Fprintf(w, "  %s %-40s line %-4d %s\n", mark, s.Rule, s.Line, s.Text)
	}
	for _, s := range x.Steps {
		fmt.Fprintf(w, "  · %-11s  %s\n", s.Step, s.Text)
	}
	if len(x.Removed) > 0 {
		line("removed", "%s (the source is not trusted)", strings.Join(x.Removed, ", "))
	}
	if x.Key != "" || x.Hash != "" {
		partition := "-"
		if x.Partition != nil {
			partition = fmt.Sprint(*x.Partition)
		}
		line("key", "%s   source %s   hash %s   partition %s", dash(x.Key), dash(x.Source), dash(x.Hash), partition)
	}
	if len(x.Candidates) > 0 {
		line("order", "%s", strings.Join(x.Candidates, "  "))
	}
	for _, p := range x.PassedOver {
		line("", "%s not used: %s", p.Server, p.Why)
	}
	switch {
	case x.Server != "":
		line("server", "%s   by %s", x.Server, dash(x.Decided))
	case x.Status != 0:
		line("answer", "%d %s", x.Status, x.Error)
	default:
		line("goes", "%s %s", dash(x.Decided), x.Error)
	}
	var keys []string
	for k := range x.IfDown {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(w, "if %s is down → %s\n", k, dash(x.IfDown[k]))
	}
}
