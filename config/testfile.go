package config

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// TestFile is tests of a configuration, or of a rule file (operations.md 3.7).
type TestFile struct {
	Noted
	Config Path              `yaml:"config" doc:"Configuration under test."`
	Rules  Path              `yaml:"rules" doc:"Rule file under test, in place of a configuration; servers cannot be asked for then."`
	Enum   map[string]string `yaml:"enum" doc:"Answers of ENUM by number; all other numbers have none."`
	Tests  []Test            `yaml:"tests" need:"yes" doc:"The tests."`

	Version int
	File    File // the test file itself, for Set

	where map[string]Pos
}

// Test is one test: messages and where they go, or keys and how they move.
type Test struct {
	Noted
	Name     string        `yaml:"name" need:"yes" doc:"Name of the test, as it is printed."`
	Messages []TestMessage `yaml:"messages" doc:"Messages, each on its own."`
	Keys     *TestKeys     `yaml:"keys" doc:"Made keys, for properties of the table."`
	Change   *TestChange   `yaml:"change" doc:"What happens to a server between two looks at the keys."`
	Expect   []Expectation `yaml:"expect" need:"yes" doc:"What must hold."`

	Path string // dotted, for At and Set: "tests.NAME"
}

// TestMessage is one request.
type TestMessage struct {
	Noted
	ID       string   `yaml:"id" form:"name" need:"yes" doc:"Name by which expectations speak of it."`
	Listener string   `yaml:"listener" doc:"Listener that it comes in on; default: the first of its protocol."`
	Source   HostPort `yaml:"source" form:"local" doc:"Address and port that it comes from; default: 192.0.2.1:5060 or 192.0.2.1:40000."`
	SIP      string   `yaml:"sip" doc:"Text of a SIP request; bare line feeds and a missing empty line are made good."`
	HTTP     string   `yaml:"http" doc:"Text of an HTTP request."`
}

// TestKeys is a set of made keys.
type TestKeys struct {
	Noted
	Count   int    `yaml:"count" default:"10000" min:"1" max:"10000000" doc:"How many."`
	Pattern string `yaml:"pattern" default:"key-%d" doc:"Their text; %d is the number, from 0."`
	Pool    string `yaml:"pool" doc:"Pool that they are looked up in; default: the only one."`
}

// TestChange is what happens to a server.
type TestChange struct {
	Noted
	Server string `yaml:"server" need:"yes" doc:"The server."`
	State  string `yaml:"state" need:"yes" words:"up,down,ready,drain,maint" doc:"What becomes of it."`
}

// Expectation is what must hold of a message, of several, or of the keys. What is nil is not asked.
type Expectation struct {
	Noted
	Message         string      `yaml:"message" doc:"Message that the next keys are about."`
	Application     *string     `yaml:"application" doc:"Application that it belongs to: service/application."`
	Key             *string     `yaml:"key" doc:"Key that was found."`
	Source          *string     `yaml:"source" words:"rule,default,token,stale_token,round_robin,none" doc:"Where the key came from."`
	Rule            *string     `yaml:"rule" doc:"Path of the rule that gave it."`
	Server          *string     `yaml:"server" doc:"Server that it goes to."`
	Error           *string     `yaml:"error" doc:"Part of the error, or the status, that it ends with."`
	SameServer      []string    `yaml:"same_server" doc:"Messages that go to one server."`
	DifferentServer []string    `yaml:"different_server" doc:"Messages of which no two go to one server."`
	MovedOnlyFrom   []string    `yaml:"moved_only_from" default:"" doc:"Servers that keys may have left after the change; [] is none."`
	SpreadWithin    *Percent    `yaml:"spread_within" max:"1000%" doc:"How far the keys that moved, or all where nothing changed, may be off an even spread by weight."`
	SameMapAfter    *TestChange `yaml:"same_map_after" doc:"A further change after which every key is where it was at first."`

	Path string // dotted, for At and Set: "tests.NAME.expect[0]"
}

// At gives the place of the value at a dotted path, as Config.At does.
func (f *TestFile) At(path string) Pos {
	c := Config{where: f.where}
	return c.At(path)
}

// LoadTests reads a test file, and says all that is wrong with its form. Variables are not filled in: a message is taken
// as it stands.
func LoadTests(fsys fs.FS, name string, opts Options) (*TestFile, []Problem) {
	s := &source{fsys: fsys, opts: opts, seen: map[string]bool{}}
	name = path.Clean(name)
	root := s.readOne(name, nil)
	if root == nil {
		return nil, Sorted(s.problems, s.shown())
	}
	f := &TestFile{Version: version, File: s.main()}
	d := newDecoder(s, nil)
	d.literal = true
	setDefaults(f)
	d.top(root, f)
	f.where = d.pos
	c := &testChecker{source: s, file: f, items: d.items}
	c.all()
	return f, Sorted(s.problems, s.shown())
}

// testChecker looks at what a single key of a test file cannot show.
type testChecker struct {
	*source
	file  *TestFile
	items map[string][]string
}

func (c *testChecker) error(path, code, text, suggestion string) {
	c.at(c.file.At(path), Error, code, path, text+didYouMean(suggestion), suggestion)
}

func (c *testChecker) all() {
	switch f := c.file; {
	case f.Config.IsZero() && f.Rules.IsZero():
		if _, written := f.where["config"]; !written {
			c.error("", "WG013", "key \"config\" or \"rules\" is required", "")
		}
	case !f.Config.IsZero() && !f.Rules.IsZero():
		c.error("rules", "WG111", "rules stands in place of config, not beside it", "")
	}
	for i := range c.file.Tests {
		t := &c.file.Tests[i]
		t.Path = c.items["tests"][i]
		c.messages(t)
		if t.Keys != nil && strings.Count(t.Keys.Pattern, "%") != 1 || t.Keys != nil && !strings.Contains(t.Keys.Pattern, "%d") {
			c.error(t.Path+".keys.pattern", "WG010", fmt.Sprintf("%s.keys.pattern: a text with %%d once expected, not %q", t.Path, t.Keys.Pattern), "")
		}
		for j := range t.Expect {
			t.Expect[j].Path = c.items[t.Path+".expect"][j]
			c.expectation(t, &t.Expect[j])
		}
	}
}

func (c *testChecker) messages(t *Test) {
	seen := map[string]bool{}
	for i := range t.Messages {
		m := &t.Messages[i]
		at := c.items[t.Path+".messages"][i]
		switch {
		case m.SIP == "" && m.HTTP == "":
			c.error(at, "WG013", at+": key \"sip\" or \"http\" is required", "")
		case m.SIP != "" && m.HTTP != "":
			c.error(at+".http", "WG111", fmt.Sprintf("message %q is SIP or HTTP, not both", m.ID), "")
		}
		if seen[m.ID] && m.ID != "" {
			c.error(at+".id", "WG101", fmt.Sprintf("message %q is there twice", m.ID), "")
		}
		seen[m.ID] = true
	}
}

func (c *testChecker) expectation(t *Test, e *Expectation) {
	var ids []string
	for i := range t.Messages {
		ids = append(ids, t.Messages[i].ID)
	}
	known := func(path, id string) {
		if !slices.Contains(ids, id) {
			hint := nearest(id, ids)
			c.error(path, "WG009", fmt.Sprintf("test %q has no message %q", t.Name, id), hint)
		}
	}
	if e.Message != "" {
		known(e.Path+".message", e.Message)
	}
	for i, id := range e.SameServer {
		known(fmt.Sprintf("%s.same_server[%d]", e.Path, i), id)
	}
	for i, id := range e.DifferentServer {
		known(fmt.Sprintf("%s.different_server[%d]", e.Path, i), id)
	}
	single := e.Application != nil || e.Key != nil || e.Source != nil || e.Rule != nil || e.Server != nil || e.Error != nil
	keys := e.MovedOnlyFrom != nil || e.SpreadWithin != nil || e.SameMapAfter != nil
	switch {
	case single && e.Message == "":
		c.error(e.Path, "WG013", e.Path+": key \"message\" is required", "")
	case !single && !keys && e.SameServer == nil && e.DifferentServer == nil:
		c.error(e.Path, "WG013", e.Path+": nothing is expected", "")
	case keys && t.Keys == nil:
		c.error(e.Path, "WG013", fmt.Sprintf("test %q asks about keys and has none; key \"keys\" is required", t.Name), "")
	}
	if c.file.Config.IsZero() && !c.file.Rules.IsZero() && (keys || e.Server != nil || e.SameServer != nil || e.DifferentServer != nil) {
		c.error(e.Path, "WG111", e.Path+": servers can be asked for only with config, not with rules", "")
	}
}
