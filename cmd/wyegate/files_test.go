package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/wyegate/wyegate/admin"
)

// fileVerbs is the part of the command line that reads files.
type fileVerbs struct {
	Globals
	Check  CheckCmd  `cmd:""`
	Config ConfigCmd `cmd:""`
	Dcr    DcrCmd    `cmd:""`
	Test   TestCmd   `cmd:""`
}

const smallConfig = `version: 1
node: {name: n1}
listeners:
  - {protocol: http, transport: tcp, bind: ":8080"}
services:
  - {name: main, pool: appservers, affinity: {rules: rules.xml}}
pools:
  - name: appservers
    servers:
      - {name: as1, http: "10.0.1.11:8080"}
`

const smallRules = `<user-centric-rules>
  <http-rules>
    <or>
      <request-uri parameter="conf" return="parameter.conf"><exist/></request-uri>
      <cookie name="conf" return="cookie.conf"><exist/></cookie>
    </or>
  </http-rules>
</user-centric-rules>
`

// onFiles runs a verb in a folder with these files.
func onFiles(t *testing.T, files map[string]string, args ...string) answer {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var out, errOut bytes.Buffer
	v := &fileVerbs{Globals: Globals{in: strings.NewReader(""), out: &out, errOut: &errOut}}
	p, err := kong.New(v, kong.Exit(func(int) {}), kong.Writers(&out, &errOut))
	if err != nil {
		t.Fatal(err)
	}
	k, err := p.Parse(args)
	if err != nil {
		return answer{err: err.Error(), status: exitUsage}
	}
	err = k.Run(&v.Globals)
	a := answer{out.String(), errOut.String(), exitStatus(err)}
	if err != nil {
		a.err += err.Error()
	}
	return a
}

// Every code that check can print is explained, also one of a rule file (operations.md 3.5).
func TestCheckExplainsCodes(t *testing.T) {
	for code, part := range map[string]string{"WG104": "certificate", "DCR203": "return variable", "dcr301": "more than one condition"} {
		expect(t, onFiles(t, nil, "check", "--explain", code), 0, part)
	}
	expect(t, onFiles(t, nil, "check", "--explain", "DCR999"), exitUsage, "DCR999")
}

// The version and the commit that the Makefile stamps are what `version`, the API and the metric show.
func TestVersionIsStamped(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "wyegate")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X main.version=v1.2.3 -X main.revision=abc123", "-o", bin, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, status := run(t, t.TempDir(), bin, "version")
	if status != 0 || !strings.HasPrefix(out, "wyegate v1.2.3\nrevision  abc123\ngo        go1.") {
		t.Errorf("status %d: %s", status, out)
	}
}

// A finding is the same object wherever it is printed: all eight fields are there.
func TestFindingsHaveEveryField(t *testing.T) {
	files := map[string]string{"wyegate.yaml": strings.Replace(smallConfig, "pool: appservers", "pool: web", 1), "rules.xml": strings.Replace(smallRules, "<or>", "<or>text", 1)}
	for _, args := range [][]string{{"check", "-o", "json"}, {"dcr", "lint", "rules.xml", "-o", "json"}} {
		a := onFiles(t, files, args...)
		var list []map[string]any
		if err := json.Unmarshal([]byte(a.out), &list); err != nil || len(list) == 0 || a.status != exitWrong {
			t.Fatalf("%v: %v, status %d: %s%s", args, err, a.status, a.out, a.err)
		}
		for _, f := range list {
			for _, field := range []string{"file", "line", "col", "severity", "code", "text", "path", "suggestion"} {
				if _, ok := f[field]; !ok {
					t.Errorf("%v: no %q in %v", args, field, f)
				}
			}
		}
	}
}

func TestConfigShowAsJSON(t *testing.T) {
	files := map[string]string{"wyegate.yaml": smallConfig, "rules.xml": smallRules}
	a := onFiles(t, files, "config", "show", "--defaults", "-o", "json")
	var v struct {
		Pools []struct {
			Failback struct{ Mode string }
			Servers  []struct{ Weight int }
		}
	}
	if err := json.Unmarshal([]byte(a.out), &v); err != nil || len(v.Pools) != 1 || v.Pools[0].Failback.Mode != "when-idle" || v.Pools[0].Servers[0].Weight != 100 {
		t.Errorf("%v: %s", err, a.out)
	}
	expect(t, onFiles(t, files, "config", "show"), 0, "version: 1\n", "name: as1")
}

// A rule file that cannot be formatted is said with file, line and column, as lint says it.
func TestFmtNamesThePlace(t *testing.T) {
	files := map[string]string{"rules.xml": strings.Replace(smallRules, "cookie.conf", "cookie", 1)}
	expect(t, onFiles(t, files, "dcr", "fmt", "rules.xml"), exitWrong, "rules.xml:5:35: error: DCR203: ")
	expect(t, onFiles(t, map[string]string{"w.yaml": "a: [\n"}, "config", "fmt", "w.yaml"), exitWrong, "w.yaml: ")
}

// --min takes its percentage with the sign or without.
func TestCoverageMin(t *testing.T) {
	files := map[string]string{"wyegate.yaml": smallConfig, "rules.xml": smallRules, "a.test.yaml": `version: 1
config: wyegate.yaml
tests:
  - name: half
    messages:
      - {id: a, http: "GET /?conf=1 HTTP/1.1\r\nHost: a\r\n\r\n"}
    expect:
      - {message: a, key: "1"}
`}
	for min, status := range map[string]int{"50%": 0, "50": 0, "51%": exitWrong, "100%": exitWrong, "101%": exitUsage, "x": exitUsage} {
		expect(t, onFiles(t, files, "dcr", "coverage", "--min", min), status)
	}
}

// `config set` is a new generation of what runs, only if nothing else was applied meanwhile; with -c it edits a file.
func TestConfigSet(t *testing.T) {
	n := &cannedNode{status: admin.Status{Generation: 42}}
	say := daemon(t, n, admin.Administrator)
	expect(t, say("", "config", "set", "pools.appservers.slow_start=60s", "--confirm", "5m"), 0, "generation 43 active")
	if a := n.applies[0]; !strings.Contains(a.Text, "slow_start: 60s") || a.IfCurrent != 42 || a.Confirm == 0 || a.DryRun {
		t.Errorf("%+v", a)
	}
	expect(t, say("", "config", "set", "pools.appservers.slow_start=60s", "--dry-run"), 0, "+b")
	if a := n.applies[1]; !a.DryRun {
		t.Errorf("%+v", a)
	}
	expect(t, say("", "config", "set", "pools.nope.slow_start=60s"), exitUsage, "pools.nope")
	expect(t, say("", "config", "set", "slow_start"), exitUsage, "PATH=VALUE")
	expect(t, say("", "config", "diff", "41", "-o", "json"), exitWrong, `"differs": true`, `"from": "41"`)
	if len(n.applies) != 2 {
		t.Errorf("%d applies", len(n.applies))
	}
	files := map[string]string{"wyegate.yaml": smallConfig, "rules.xml": smallRules}
	expect(t, onFiles(t, files, "config", "set", "-c", "wyegate.yaml", "pools.appservers.slow_start=60s"), 0)
	if data, err := os.ReadFile("wyegate.yaml"); err != nil || !strings.Contains(string(data), "slow_start: 60s") {
		t.Errorf("%v: %s", err, data)
	}
}
