package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// TestResult is what came of one test of a file.
type TestResult struct {
	File     string        `json:"file"`
	Name     string        `json:"name"`
	OK       bool          `json:"ok"`
	Failures []TestFailure `json:"failures"`
}

// TestFailure is one expectation that did not hold.
type TestFailure struct {
	What     string       `json:"what"` // "page: key", "moved_only_from"
	Expected string       `json:"expected"`
	Actual   string       `json:"actual"`
	Rules    []dcr.Step   `json:"rules,omitempty"` // how the message was decided
	Steps    []proxy.Step `json:"steps,omitempty"`
	Path     string       `json:"path"` // of the expectation, for an update
}

// TestRun is a test file that has been run.
type TestRun struct {
	File    *config.TestFile
	Results []TestResult
	Cover   *dcr.Coverage // nil when there are no rules
	Rules   string        // file of the rules
}

// RunTests runs a test file by the deciding code of the proxies, without a daemon and without a network. The findings
// are those of the test file and of what it names; then there is no run.
func RunTests(name string) (*TestRun, []config.Problem) {
	abs, err := filepath.Abs(name)
	if err != nil {
		abs = name
	}
	wd, err := os.Getwd()
	if err != nil {
		wd = "/"
	}
	f, problems := config.LoadTests(disk{}, abs[1:], config.Options{WorkDir: wd})
	if f == nil || config.HasErrors(problems) {
		return nil, problems
	}
	s, problems := sceneOf(f)
	if s == nil {
		return nil, problems
	}
	r := &TestRun{File: f}
	if rules := s.anyRules(); rules != nil {
		r.Cover, r.Rules = dcr.NewCoverage(rules), rules.File()
	}
	for i := range f.Tests {
		t := &trial{scene: &s.scene, file: f, test: &f.Tests[i], run: r}
		r.Results = append(r.Results, t.result(name))
	}
	return r, nil
}

func (s *Offline) anyRules() *dcr.RuleSet {
	for _, t := range s.targets {
		if t.rules != nil {
			return t.rules
		}
	}
	return nil
}

// sceneOf builds what a test file names: a configuration, or a rule file within the smallest configuration.
func sceneOf(f *config.TestFile) (*Offline, []config.Problem) {
	var cfg *config.Config
	var problems []config.Problem
	if !f.Config.IsZero() {
		cfg, problems = LoadFile(f.Config.Abs)
	} else {
		cfg, problems = loadOverlay("/wyegate-test.yaml", map[string][]byte{"wyegate-test.yaml": []byte(rulesOnly(f))})
	}
	draft, problems := Build(cfg, Env{Registry: &routing.Registry{}, Resolver: FixedNumbers(f.Enum).For}, problems)
	if draft == nil {
		return nil, problems
	}
	off, err := draft.Offline(SecretsFor(cfg))
	if err != nil {
		return nil, []config.Problem{{File: f.File.Shown, Severity: config.Error, Text: err.Error()}}
	}
	return off, nil
}

// rulesOnly is the configuration around a rule file that is tested by itself.
func rulesOnly(f *config.TestFile) string {
	enum := ""
	if f.Enum != nil {
		enum = ", enum: {}"
	}
	return "version: 1\n" +
		"listeners:\n" +
		"  - {protocol: sip, transport: udp, bind: \"127.0.0.1:5060\"}\n" +
		"  - {protocol: http, transport: tcp, bind: \"127.0.0.1:80\"}\n" +
		"services:\n" +
		"  - {name: main, pool: servers, affinity: {rules: " + strconv.Quote(f.Rules.Abs) + enum + "}, trust_headers_from: [0.0.0.0/0, \"::/0\"]}\n" +
		"pools:\n" +
		"  - {name: servers, servers: [{name: s1, sip: \"127.0.0.2:5060\", http: \"127.0.0.2:80\"}]}\n"
}

// trial is one test under way.
type trial struct {
	*scene
	file *config.TestFile
	test *config.Test
	run  *TestRun
	seen map[string]*proxy.Explanation
	out  []TestFailure
}

func (t *trial) result(file string) TestResult {
	t.seen = map[string]*proxy.Explanation{}
	for _, m := range t.test.Messages {
		x, err := t.explain(context.Background(), admin.ExplainRequest{
			Listener: m.Listener, Source: m.Source.String(), SIP: m.SIP, HTTP: m.HTTP,
		})
		if err != nil {
			x = &proxy.Explanation{Error: err.Error()}
		}
		t.seen[m.ID] = x
		if t.run.Cover != nil {
			t.run.Cover.Add(&dcr.Trace{Steps: x.Rules})
		}
	}
	if t.test.Keys != nil {
		t.keys()
	}
	for i := range t.test.Expect {
		t.expect(&t.test.Expect[i])
	}
	return TestResult{File: file, Name: t.test.Name, OK: len(t.out) == 0, Failures: t.out}
}

func (t *trial) expect(e *config.Expectation) {
	if x := t.seen[e.Message]; x != nil {
		about := func(what string, want *string, is string) {
			if want != nil && *want != is {
				t.out = append(t.out, TestFailure{
					What: e.Message + ": " + what, Expected: *want, Actual: is, Rules: x.Rules, Steps: x.Steps, Path: e.Path + "." + what,
				})
			}
		}
		about("application", e.Application, x.Application)
		about("key", e.Key, x.Key)
		about("source", e.Source, x.Source)
		about("rule", e.Rule, x.Rule)
		about("server", e.Server, x.Server)
		if status := strconv.Itoa(x.Status); e.Error != nil && *e.Error != status && !strings.Contains(x.Error, *e.Error) {
			about("error", e.Error, strings.TrimSpace(status+" "+x.Error))
		}
	}
	t.together("same_server", e.SameServer, e.Path, func(servers map[string][]string) bool { return len(servers) == 1 })
	t.together("different_server", e.DifferentServer, e.Path, func(servers map[string][]string) bool {
		return len(servers) == len(e.DifferentServer)
	})
}

func (t *trial) together(what string, ids []string, path string, ok func(map[string][]string) bool) {
	if len(ids) == 0 {
		return
	}
	servers := map[string][]string{}
	var is []string
	for _, id := range ids {
		server := ""
		if x := t.seen[id]; x != nil {
			server = x.Server
		}
		servers[server] = append(servers[server], id)
		is = append(is, id+" → "+server)
	}
	if servers[""] != nil || !ok(servers) {
		t.out = append(t.out, TestFailure{What: what, Expected: fmt.Sprint(ids), Actual: strings.Join(is, ", "), Path: path})
	}
}

// keys looks up made keys before and after a change, and holds the properties against both.
func (t *trial) keys() {
	k := t.test.Keys
	p, err := (&Generation{Draft: t.Draft}).keyPool(k.Pool, "")
	if err != nil {
		t.out = append(t.out, TestFailure{What: "keys", Expected: k.Pool, Actual: err.Error(), Path: t.test.Path})
		return
	}
	before := t.owners(p, nil)
	after := before
	down := map[string]bool{}
	if c := t.test.Change; c != nil {
		down[c.Server] = c.State != "up" && c.State != "ready"
		after = t.owners(p, down)
	}
	for i := range t.test.Expect {
		t.property(p, &t.test.Expect[i], before, after, down)
	}
}

// owners gives the server of each made key, the named servers taken for down.
func (t *trial) owners(p *pool, down map[string]bool) []string {
	var names []string
	for n, is := range down {
		if is {
			names = append(names, n)
		}
	}
	out := make([]string, t.test.Keys.Count)
	for i := range out {
		hash := xxhash.Sum64String(strings.ReplaceAll(t.test.Keys.Pattern, "%d", strconv.Itoa(i)))
		out[i] = p.Explain(routing.Request{Policy: routing.HashPolicy, Hash: hash, HasKey: true}, names).Server
	}
	return out
}

func (t *trial) key(i int) string {
	return strings.ReplaceAll(t.test.Keys.Pattern, "%d", strconv.Itoa(i))
}
