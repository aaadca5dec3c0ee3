package config

import (
	"io/fs"
	"path"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// FuzzLoad: no text makes the reader panic; every finding has a place within its file; what is accepted is equal after
// Show, with and without defaults.
func FuzzLoad(f *testing.F) {
	fsys := fixtureFS(f)
	for _, glob := range []string{"good/*.yaml", "bad/*.yaml"} {
		all, _ := fs.Glob(fsys, glob)
		for _, name := range all {
			f.Add(string(fsys[name].Data))
		}
	}
	for _, text := range []string{"a: &a [*a]", "&a {b: *a}", "- - - -", "? ? ?", "{{{{", "a: !!binary x", "%TAG ! x", "listeners: [{bind: \"[::1%eth0]:1\"}]",
		"version: 1\nnode: {name: \"${A:-${B}}\"}", "version: 1\nservices: [{name: a, pool: b, applications: [{name: x}, x, [y]]}]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		files := fstest.MapFS{
			"etc/wyegate.yaml":  {Data: []byte(text), Mode: 0o640},
			"files/rules.xml":   {Data: []byte("<x/>"), Mode: 0o640},
			"files/secrets":     {Data: []byte("1 x"), Mode: 0o640},
			"etc/conf.d/a.yaml": {Data: []byte("logging: {level: warn}\npools: [{name: app, slow_start: 3s}]"), Mode: 0o640},
		}
		cfg, problems := Load(files, "etc/wyegate.yaml", fixtureOptions())
		for _, p := range problems {
			if p.Line < 1 && p.Text != "and "+strings.TrimSuffix(strings.TrimPrefix(p.Text, "and "), " more")+" more" || p.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+9 || p.Col < 0 {
				t.Fatalf("no such place: %v", p)
			}
		}
		if cfg == nil || HasErrors(problems) {
			return
		}
		for _, defaults := range []bool{false, true} {
			shown := Show(cfg, defaults)
			files["etc/shown.yaml"] = &fstest.MapFile{Data: shown, Mode: 0o640}
			back, problems := Load(files, "etc/shown.yaml", fixtureOptions())
			if HasErrors(problems) {
				t.Fatalf("defaults %v: %s\n%s", defaults, lines(problems), shown)
			}
			if !reflect.DeepEqual(settings(cfg), settings(back)) {
				t.Fatalf("defaults %v: another one after Show\n%s", defaults, shown)
			}
		}
	})
}

// FuzzFormat: what is formatted means the same, and formatted again it does not change.
func FuzzFormat(f *testing.F) {
	fsys := fixtureFS(f)
	all, _ := fs.Glob(fsys, "good/*.yaml")
	for _, name := range all {
		f.Add(string(fsys[name].Data))
	}
	f.Add("a:\n- b\n-  - c\n   - d # x\n\n\n#y\n")
	f.Fuzz(func(t *testing.T, text string) {
		out, err := Format([]byte(text))
		if err != nil {
			return
		}
		_, before, _ := document([]byte(text))
		_, after, err := document(out)
		if err != nil || string(before) != string(after) {
			t.Fatalf("%q means something else: %q", text, out)
		}
		if twice, err := Format(out); err != nil || string(twice) != string(out) {
			t.Fatalf("%q, then %q (%v)", out, twice, err)
		}
	})
}

// FuzzSet: an edit that is not refused leaves YAML with that value at that path.
func FuzzSet(f *testing.F) {
	for _, path := range []string{"pools.app.servers.as1.weight", "node.name", "logging.level", "trusted", "a.b.c", "empty", "pools.[1].x", ""} {
		f.Add(editable, path, "x: [y]")
	}
	f.Add("a: {b: [1, 2], c: 'x''y'}", "a.c", "é")
	f.Fuzz(func(t *testing.T, text, where, value string) {
		out, err := Set([]File{{Data: []byte(text)}}, where, value)
		if err != nil {
			return
		}
		e := editor{text: string(out.Data)}
		if err := e.parse(); err != nil {
			t.Fatalf("%q is no YAML any more: %v", out.Data, err)
		}
		e.find(where)
		if len(e.rest) > 0 {
			t.Fatalf("%q has no %q", out.Data, where)
		}
	})
}

// FuzzTests: test files of any form are read or refused, never more.
func FuzzTests(f *testing.F) {
	fsys := fixtureFS(f)
	for _, glob := range []string{"tests/good/*.yaml", "tests/bad/*.yaml"} {
		all, _ := fs.Glob(fsys, glob)
		for _, name := range all {
			f.Add(string(fsys[name].Data))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		name := path.Join("t", "a.test.yaml")
		tf, problems := LoadTests(fstest.MapFS{name: {Data: []byte(text)}}, name, Options{})
		if tf == nil && !HasErrors(problems) {
			t.Fatal("neither a file nor an error")
		}
	})
}
