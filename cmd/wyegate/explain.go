package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

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
	if err := g.show(x, func(w io.Writer) { explanationText(w, x, g.now()) }); err != nil {
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
func explanationText(w io.Writer, x *admin.Explanation, now time.Time) {
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", label, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
	if x.Listener != "" {
		line("listener", "%s", aside(x.Listener, x.Address))
	}
	if x.Application != "" {
		host := hostOf(x.Target)
		if host != "" {
			host = "      host " + host
		}
		line("application", "%s%s", aside(x.Application, x.Kind), host)
	}
	if x.Method != "" {
		line("method", "%s %s   %s", x.Method, x.Target, whose(x))
	}
	rulesText(w, x, line)
	for _, s := range x.Steps {
		line("· "+s.Step, "%s", s.Text)
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
	if len(x.Candidates) > 0 || len(x.PassedOver) > 0 {
		line("order", "%s", orderText(x))
	}
	switch {
	case x.Server != "":
		since := ""
		if x.UsableSince != nil {
			since = "   usable since " + spaced(now.Sub(*x.UsableSince))
		}
		line("server", "%s   by %s%s", x.Server, dash(x.Decided), since)
	case x.Status != 0:
		line("answer", "%d %s", x.Status, x.Error)
	default:
		line("goes", "%s %s", dash(x.Decided), x.Error)
	}
	var others []string
	for _, k := range slices.Sorted(maps.Keys(x.IfDown)) {
		others = append(others, fmt.Sprintf("if %s is down → %s", k, dash(x.IfDown[k])))
	}
	if len(others) > 0 {
		fmt.Fprintln(w, strings.Join(others, "      "))
	}
}

// aside puts what is known beside a name into brackets.
func aside(name, more string) string {
	if more == "" {
		return name
	}
	return name + " (" + more + ")"
}

// hostOf is the host that applications were matched by: of a Request-URI or of a request target.
func hostOf(target string) string {
	if _, rest, ok := strings.Cut(target, "://"); ok {
		target = rest
	} else if scheme, rest, ok := strings.Cut(target, ":"); ok && (scheme == "sip" || scheme == "sips") {
		target = rest[strings.LastIndexByte(rest, '@')+1:]
	} else {
		return ""
	}
	if strings.HasPrefix(target, "[") {
		return target[:strings.IndexByte(target, ']')+1]
	}
	if i := strings.IndexAny(target, "/?#;:>"); i >= 0 {
		target = target[:i]
	}
	return target
}

// whose says whether the message begins something.
func whose(x *admin.Explanation) string {
	switch {
	case x.Server == "" && x.Status != 0:
		return ""
	case !x.Initial:
		return "belongs to somebody already"
	case x.Kind == "web" || x.Source == "round_robin":
		return "no token: a new session"
	case strings.Contains(x.Target, "://"):
		return "no token: a new key is wanted"
	default:
		return "no To tag, no token: a new key is wanted"
	}
}

// rulesText prints every rule that was asked; the paths are in one column.
func rulesText(w io.Writer, x *admin.Explanation, line func(label, format string, args ...any)) {
	if x.RuleFile == "" && len(x.Rules) == 0 {
		return
	}
	generation := ""
	if x.Generation != 0 {
		generation = fmt.Sprintf(" generation %d", x.Generation)
	}
	line("rules", "%s%s", x.RuleFile, generation)
	width := 0
	for _, s := range x.Rules {
		width = max(width, len(s.Rule))
	}
	for _, s := range x.Rules {
		mark := "✗"
		if s.Matched {
			mark = "✓"
		}
		fmt.Fprintf(w, "  %s %-*s  line %-4d %s\n", mark, width, s.Rule, s.Line, s.Text)
	}
}

// orderText is the candidates with their weights, then who is not used and why.
func orderText(x *admin.Explanation) string {
	var names []string
	for _, c := range x.Candidates {
		if n, ok := x.Weights[c]; ok {
			c = fmt.Sprintf("%s (weight %d)", c, n)
		}
		names = append(names, c)
	}
	text := strings.Join(names, "  ")
	for _, p := range x.PassedOver {
		text += fmt.Sprintf("   | %s not used: %s", p.Server, p.Why)
	}
	return strings.TrimLeft(text, " |")
}
