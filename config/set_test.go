package config

import (
	"errors"
	"strings"
	"testing"
)

const editable = `# front
version: 1
node: {name: a}   # ours
pools:
  - name: app        # the servers
    drain:
      deadline: 1h   # enough
    servers:
      - {name: as1, weight: 100, sip: "10.0.1.11:5060"}  # first
      - name: as.2
        sip: '10.0.1.12:5060'
  - hash: {load: 1.10}
    name: web
trusted: [a, "b]", c] # three
empty:
`

func TestSetKeepsTheRest(t *testing.T) {
	for _, c := range []struct{ path, value, old, new string }{
		{"pools.app.servers.as1.weight", "50", "weight: 100", "weight: 50"},
		{"pools.app.drain.deadline", "2h", "deadline: 1h ", "deadline: 2h "},
		{"pools.app.servers.as1.sip", "10.0.1.99:5060", `"10.0.1.11:5060"`, `"10.0.1.99:5060"`},
		{"pools.app.servers.as.2.sip", "10.0.1.99:5060", `'10.0.1.12:5060'`, `"10.0.1.99:5060"`},
		{"pools.app.slow_start", "60s", "- name: app        # the servers\n", "- name: app        # the servers\n    slow_start: 60s\n"},
		{"pools.app.servers.as1.max_concurrent", "9", "{name: as1,", "{name: as1, max_concurrent: 9,"},
		{"pools.app.servers.as.2.weight", "9", "- name: as.2\n", "- name: as.2\n        weight: 9\n"},
		{"pools.app.drain.at_deadline", "move", "deadline: 1h   # enough\n", "deadline: 1h   # enough\n      at_deadline: move\n"},
		{"pools.app.panic.min_usable", "30%", "- name: app        # the servers\n", "- name: app        # the servers\n    panic: {min_usable: 30%}\n"},
		{"pools.web.slow_start", "1s", "  - hash: {load", "  - slow_start: 1s\n    hash: {load"},
		{"pools.web.hash.load", "1.20", "load: 1.10", "load: 1.20"},
		{"node.note", "a: b, {c} #1", "{name: a}", `{name: a, note: "a: b, {c} #1"}`},
		{"trusted", "[x, y]", `[a, "b]", c]`, "[x, y]"},
		{"empty", "full", "empty:\n", "empty: full\n"},
		{"logging.level", "debug", "empty:\n", "empty:\nlogging: {level: debug}\n"},
		{"logging.sample.status_2xx", "0.5", "empty:\n", "empty:\nlogging: {sample: {status_2xx: 0.5}}\n"},
		{"limits", "{sip: {burst: 3}}", "empty:\n", "empty:\nlimits: {sip: {burst: 3}}\n"},
	} {
		f, err := Set([]File{{Path: "w.yaml", Data: []byte(editable)}}, c.path, c.value)
		want := strings.Replace(editable, c.old, c.new, 1)
		if err != nil || string(f.Data) != want {
			t.Errorf("%s=%s: %v\n%s\nwant\n%s", c.path, c.value, err, f.Data, want)
		}
	}
	for _, c := range [][2]string{{"pools.app", "x"}, {"pools.nobody.slow_start", "1s"}, {"pools.app.servers", "[]"}, {"node.name.deep", "x"}} {
		if f, err := Set([]File{{Data: []byte(editable)}}, c[0], c[1]); !errors.Is(err, ErrPath) {
			t.Errorf("%s=%s gives %v\n%s", c[0], c[1], err, f.Data)
		}
	}
}

// The key is set in the file that has it, and a loaded edit shows its effect before anything is written.
func TestSetFindsTheFile(t *testing.T) {
	fsys := fixtureFS(t)
	cfg, _ := Load(fsys, "good/included.yaml", fixtureOptions())
	for path, want := range map[string]string{
		"pools.app.servers.as1.weight":         "good/conf.d/20-servers.yaml",
		"pools.app.servers.as1.sip":            "good/included.yaml",
		"pools.app.servers.as2.weight":         "good/conf.d/more/servers.yaml",
		"pools.app.slow_start":                 "good/conf.d/20-servers.yaml",
		"limits.connections.per_source":        "good/included.yaml",
		"services.main.affinity.match.mode":    "good/conf.d/10-listeners.yaml",
		"pools.app.servers.as1.max_concurrent": "good/included.yaml",
	} {
		f, err := Set(cfg.Files, path, "7")
		if err != nil || f.Path != want {
			t.Errorf("%s goes to %s (%v), want %s", path, f.Path, err, want)
		}
	}
	f, err := Set(cfg.Files, "pools.app.servers.as1.weight", "7")
	if err != nil {
		t.Fatal(err)
	}
	edited, problems := Load(Overlay{FS: fsys, Files: map[string][]byte{f.Path: f.Data}}, "good/included.yaml", fixtureOptions())
	if len(problems) > 0 || edited.Pools[0].Servers[0].Weight != 7 {
		t.Fatalf("%v, weight %d", problems, edited.Pools[0].Servers[0].Weight)
	}
	diff := Diff(cfg, edited)
	want := "--- running\n+++ new\n"
	if !strings.HasPrefix(diff, want) || !strings.Contains(diff, "pools.app.servers.as1\n") ||
		!strings.Contains(diff, "\n-        weight: 50\n+        weight: 7\n") || strings.Count(diff, "\n@@ -") != 1 {
		t.Errorf("diff is\n%s", diff)
	}
	if d := Diff(cfg, cfg); d != "" {
		t.Errorf("equal configurations differ:\n%s", d)
	}
}

func TestUnified(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "a\n", "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+a\n"},
		{"a\n", "", "--- a\n+++ b\n@@ -1,1 +0,0 @@\n-a\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n", "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "x\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\ny\n",
			"--- a\n+++ b\n@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+y\n"},
	} {
		if got := string(Unified([]byte(c.a), []byte(c.b), "a", "b")); got != c.want {
			t.Errorf("%q to %q:\n%s\nwant\n%s", c.a, c.b, got, c.want)
		}
	}
}
