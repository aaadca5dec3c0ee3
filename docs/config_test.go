package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/internal/engine"
	"github.com/wyegate/wyegate/routing"
)

// small fills in the sections that a fragment lacks.
const small = `
listeners:
  - {protocol: sip, transport: udp, bind: ":5060"}
  - {protocol: http, transport: tcp, bind: ":80"}
services:
  - {name: voice, pool: appservers, affinity: {rules: data-centric-rules.xml}}
pools:
  - name: appservers
    servers:
      - {name: as1, sip: "10.20.1.11:5060", http: "10.20.1.11:8080"}
      - {name: as2, sip: "10.20.1.12:5060", http: "10.20.1.12:8080"}
`

const smallRules = `<user-centric-rules>
  <sip-rules><header name="To" return="request.To.uri.user"><exist/></header></sip-rules>
  <http-rules><request-uri parameter="conf" return="parameter.conf"><exist/></request-uri></http-rules>
</user-centric-rules>
`

// TestConfigurationsAreAccepted builds every yaml block as `wyegate check` does; one marked refused must be refused.
func TestConfigurationsAreAccepted(t *testing.T) {
	eachBlock(t, func(t *testing.T, b *block) {
		if b.marker == "other" || isTestFile(b) {
			return
		}
		dir := t.TempDir()
		writeFiles(t, dir, b.doc)
		name := filepath.Join(dir, "block.yaml")
		write(t, name, whole(t, b))
		cfg, problems := engine.LoadFile(name)
		_, problems = engine.Build(cfg, engine.Env{Registry: &routing.Registry{}}, problems)
		switch refused := b.marker == "refused" || strings.HasPrefix(b.file(), "bad"); {
		case refused && !config.HasErrors(problems):
			t.Error("accepted, although the text says that it is refused")
		case refused:
		case len(problems) > 0:
			for _, p := range problems {
				t.Error(p)
			}
		}
	}, "yaml")
}

// isTestFile reports whether the block is a file for `wyegate test`; TestCommandsDoWhatIsShown runs those.
func isTestFile(b *block) bool { return strings.HasSuffix(b.file(), ".test.yaml") }

// whole is the block as a configuration: itself, or with the sections that it lacks.
func whole(t *testing.T, b *block) string {
	t.Helper()
	if strings.Contains("\n"+b.text(), "\nversion: 1\n") || b.file() != "" {
		return b.text()
	}
	var has, filler map[string]any
	if err := yaml.Unmarshal([]byte(b.text()), &has); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(small), &filler); err != nil {
		t.Fatal(err)
	}
	for section := range has {
		delete(filler, section)
	}
	rest, err := yaml.Marshal(filler)
	if err != nil {
		t.Fatal(err)
	}
	return b.text() + "version: 1\n" + string(rest)
}

// writeFiles writes the named blocks of a document into dir, and a rule file where the document has none.
func writeFiles(t *testing.T, dir, doc string) {
	t.Helper()
	write(t, filepath.Join(dir, "data-centric-rules.xml"), smallRules)
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("examples")); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocksOf(t, doc) {
		if name := b.file(); name != "" && !strings.HasPrefix(name, "examples/") {
			write(t, filepath.Join(dir, name), b.text())
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRulesCompile compiles every xml block. One that is no whole file is put into the rules of its protocol, or of both
// when it fits both.
func TestRulesCompile(t *testing.T) {
	eachBlock(t, func(t *testing.T, b *block) {
		if strings.HasPrefix(b.file(), "examples/") {
			if shipped, err := os.ReadFile(b.file()); err != nil || string(shipped) != b.text() {
				t.Errorf("%s is not what is shown (%v)", b.file(), err)
			}
		}
		problems := compile(b)
		switch refused := b.marker == "refused" || strings.HasPrefix(b.file(), "bad"); {
		case refused && !dcr.HasErrors(problems):
			t.Error("accepted, although the text says that it is refused")
		case !refused && dcr.HasErrors(problems):
			for _, p := range problems {
				t.Error(p)
			}
		}
	}, "xml")
}

// compile gives the findings of a block; of a fragment those of the protocol that has fewer.
func compile(b *block) []dcr.Problem {
	text := b.text()
	if strings.Contains(text, "<user-centric-rules>") {
		return dcr.Lint("block.xml", []byte(text), dcr.Options{})
	}
	var best []dcr.Problem
	for i, section := range []string{"sip-rules", "http-rules"} {
		file := "<user-centric-rules><" + section + ">\n" + text + "</" + section + "></user-centric-rules>\n"
		found := slices.DeleteFunc(dcr.Lint("block.xml", []byte(file), dcr.Options{}),
			func(p dcr.Problem) bool { return p.Severity != dcr.Error })
		if i == 0 || len(found) < len(best) {
			best = found
		}
	}
	return best
}

func itoa(n int) string { return strconv.Itoa(n) }
