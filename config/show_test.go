package config

import (
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// settings strips what belongs to the files, not to the settings.
func settings(c *Config) Config {
	out := *c
	out.Digest, out.Files, out.RuleFiles, out.where, out.keyAt, out.root, out.rebased = "", nil, nil, nil, nil, nil, nil
	return out
}

// again reads what Show wrote, in the folder of the first main file.
func again(t *testing.T, fsys fstest.MapFS, name string, text []byte) *Config {
	t.Helper()
	more := fstest.MapFS{}
	for n, f := range fsys {
		more[n] = f
	}
	shown := path.Join(path.Dir(name), "shown.yaml")
	more[shown] = &fstest.MapFile{Data: text, Mode: 0o640}
	cfg, problems := Load(more, shown, fixtureOptions())
	if len(problems) > 0 {
		t.Fatalf("%s\nof\n%s", lines(problems), text)
	}
	return cfg
}

// Reading what Show wrote gives an equal configuration, with and without defaults.
func TestShowRoundTrip(t *testing.T) {
	fsys := fixtureFS(t)
	all, _ := fs.Glob(fsys, "good/*.yaml")
	for _, name := range all {
		for _, defaults := range []bool{false, true} {
			cfg, _ := Load(fsys, name, fixtureOptions())
			text := Show(cfg, defaults)
			back := again(t, fsys, name, text)
			if a, b := settings(cfg), settings(back); !reflect.DeepEqual(a, b) {
				t.Errorf("%s (defaults %v) is another one after Show:\n%s", name, defaults, firstDifference(fmt.Sprintf("%#v", a), fmt.Sprintf("%#v", b)))
			}
			if twice := Show(back, defaults); string(twice) != string(text) {
				t.Errorf("%s (defaults %v): shown twice is shown differently\n%s\n%s", name, defaults, text, twice)
			}
		}
	}
}

func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return "…" + a[max(0, i-80):min(len(a), i+80)] + "\n…" + b[max(0, i-80):min(len(b), i+80)]
}

// Every key that a file may have and that has a meaning there is written with --defaults.
func TestShowDefaultsHasEveryKey(t *testing.T) {
	fsys := fixtureFS(t)
	cfg, _ := Load(fsys, "good/complete.yaml", fixtureOptions())
	text := string(Show(cfg, true))
	var walk func(t reflect.Type, in string)
	seen := 0
	walk = func(typ reflect.Type, in string) {
		for _, f := range fieldsOf(typ) {
			switch f.name {
			case "note", "group", "sip_websocket", "sip_path", "tls", "certificate", "path", "origins", "http2", "client_certificates", "client_ca_file", "strict_sni", "cert_file", "key_file": // no value, or TLS and WebSocket
				continue
			}
			if e := elem(f.typ); e.Kind() == reflect.Struct && scalarOf(e) == nil && f.name != "affinity" {
				walk(e, join(in, f.name))
				continue
			}
			seen++
			if !strings.Contains(text, f.name+":") {
				t.Errorf("%s is not written", join(in, f.name))
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
	if seen < 90 {
		t.Errorf("only %d keys looked at", seen)
	}
}

func TestShowKeepsDigest(t *testing.T) {
	fsys := fixtureFS(t)
	for _, name := range []string{"good/complete.yaml", "good/smallest.yaml"} {
		cfg, _ := Load(fsys, name, fixtureOptions())
		if back := again(t, fsys, name, Show(cfg, false)); back.Digest != cfg.Digest {
			t.Errorf("%s: digest %s, after Show %s", name, cfg.Digest, back.Digest)
		}
	}
}

// The digest is one over meaning and rule files: comments, layout and the environment do not count (operations.md 3.4).
func TestDigest(t *testing.T) {
	load := func(text, rules string, env string) string {
		opts := options()
		opts.Env = func(string) (string, bool) { return env, true }
		return mustLoad(t, files("wyegate.yaml", text, "data-centric-rules.xml", rules), "wyegate.yaml", opts).Digest
	}
	text := strings.Replace(smallest, "services:", "node: {name: \"${N:-a}\"}\nservices:", 1)
	base := load(text, "<a/>", "x")
	if load("# note\n"+strings.ReplaceAll(text, ", bind", ",   bind"), "<a/>", "y") != base {
		t.Error("a comment, spaces or a variable's value changed the digest")
	}
	for what, other := range map[string]string{
		"a rule file":    load(text, "<b/>", "x"),
		"a weight":       load(strings.Replace(text, "name: as1,", "name: as1, weight: 50,", 1), "<a/>", "x"),
		"a default name": load(strings.Replace(text, "N:-a", "N:-b", 1), "<a/>", "x"),
	} {
		if other == base {
			t.Errorf("%s changed, the digest did not", what)
		}
	}
}

func TestVariables(t *testing.T) {
	opts := options()
	opts.Env = func(name string) (string, bool) {
		v, ok := map[string]string{"A": "one", "EMPTY": ""}[name]
		return v, ok
	}
	s := &source{opts: opts}
	for text, want := range map[string]string{
		"":                   "",
		"plain":              "plain",
		"${A}":               "one",
		"x${A}y${A}":         "xoney" + "one",
		"${B:-two}":          "two",
		"${B:-}":             "",
		"${EMPTY}":           "",
		"${EMPTY:-def}":      "def",
		"$$":                 "$",
		"$${A}":              "${A}",
		"$$$${A}":            "$${A}",
		"$A":                 "$A",
		"5$":                 "5$",
		"${B:-a:-b}":         "a:-b",
		"é${A}é":             "éoneé",
		"sip:$${A}@${A}:506": "sip:${A}@one:506",
	} {
		if got, bad := s.fill(text); got != want || bad != "" {
			t.Errorf("%q gives %q (%s), want %q", text, got, bad, want)
		}
	}
	for _, text := range []string{"${B}", "${", "${A", "${}", "${a b}", "${1A:-x}", "${:-x}"} {
		if got, bad := s.fill(text); bad == "" {
			t.Errorf("%q gives %q", text, got)
		}
	}
	for _, text := range []string{"$", "$$", "${A}", "a$b"} {
		if got, bad := s.fill(escape(text)); got != text || bad != "" {
			t.Errorf("%q, escaped, gives %q (%s)", text, got, bad)
		}
	}
}

// Values that every key takes, as they stand and as they are written again.
func TestValuesAsWritten(t *testing.T) {
	fsys := fixtureFS(t)
	cfg, problems := Load(fsys, "good/as-written.yaml", fixtureOptions())
	if len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	p := cfg.Pools[0]
	got := []string{cfg.Node.Name, cfg.Node.Note, cfg.Listeners[0].Name, cfg.Services[0].Name, cfg.Services[0].Pool,
		cfg.Services[0].Applications[0].Name, cfg.Services[0].Applications[0].Note, p.Servers[0].Name, p.Servers[1].Name}
	want := []string{"0123", "value costs $5 and 1.10", "1.10", "no", "0x10", "on", "yes", "1e3", "null"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPathsBelongToTheirFile(t *testing.T) {
	fsys := fixtureFS(t)
	cfg, problems := Load(fsys, "good/included.yaml", fixtureOptions())
	if len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	if p := cfg.Services[0].Affinity.Rules; p.Abs != "/files/rules.xml" || p.Text != "../files/rules.xml" {
		t.Errorf("rules are %+v", p)
	}
	if p := cfg.Logging.Access; p.Abs != "/good/conf.d/logs/access.log" || p.Text != "conf.d/logs/access.log" {
		t.Errorf("access log is %+v", p)
	}
	if text := string(Show(cfg, false)); !strings.Contains(text, "access: conf.d/${WYEGATE_LOGS:-logs}/access.log") {
		t.Errorf("shown without its variable:\n%s", text)
	}
	var read []string
	for _, f := range cfg.Files {
		read = append(read, f.Path)
	}
	if want := "good/included.yaml good/conf.d/10-listeners.yaml good/conf.d/20-servers.yaml good/conf.d/more/servers.yaml"; strings.Join(read, " ") != want {
		t.Errorf("read %v", read)
	}
	if s := cfg.Pools[0].Servers; len(s) != 2 || s[0].Weight != 50 || s[0].HTTP.Port != 8080 || s[0].SIP.Port != 5060 {
		t.Errorf("servers are %+v", s)
	}
	if at := cfg.At("pools.app.servers.as1.weight"); at.File != "good/conf.d/20-servers.yaml" || at.Line != 7 {
		t.Errorf("weight is at %+v", at)
	}
}

func TestNamesForPeople(t *testing.T) {
	for workDir, want := range map[string]string{"": "etc/w/wyegate.yaml", "/": "/etc/w/wyegate.yaml", "etc/w": "wyegate.yaml", "/etc": "w/wyegate.yaml", "home/x": "/etc/w/wyegate.yaml"} {
		opts := options()
		opts.WorkDir = workDir
		_, problems := Load(files("etc/w/wyegate.yaml", "x: 1"), "etc/w/wyegate.yaml", opts)
		if len(problems) == 0 || problems[0].File != want {
			t.Errorf("from %q: %v, want %s", workDir, problems, want)
		}
	}
}
