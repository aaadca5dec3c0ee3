package dcr

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// needProgram skips where a program is missing. In CI a skip is a failure: a test that CI does not run does not exist.
func needProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("WYEGATE_CI") != "":
		t.Fatalf("needs %s, and CI must have it", name)
	default:
		t.Skipf("needs %s", name)
	}
	return path
}

var doctypeText = regexp.MustCompile(`(?s)<!DOCTYPE[^\[>]*(\[.*?\])?[^\[>]*>`)

// notXML are the codes of files that no checker gets to look at: they are refused as XML already.
var notXML = []string{"DCR101", "DCR102", "DCR103", "DCR109"}

// checkedFiles writes every fixture that is well-formed for outside checkers into a folder, without its DOCTYPE: a
// checker would try to fetch it. It tells which of them lint accepts.
func checkedFiles(t *testing.T) (dir string, accepted map[string]bool) {
	dir, accepted = t.TempDir(), map[string]bool{}
	for _, set := range []string{"good", "bad"} {
		for _, f := range loadFixtures(t, set) {
			if f.opt.HeaderMatch {
				continue // the schemas describe the language without it
			}
			rs, problems := Compile(f.name, f.data, f.opt)
			if slices.ContainsFunc(problems, func(p Problem) bool { return slices.Contains(notXML, p.Code) }) {
				continue
			}
			name := set + "-" + f.name
			accepted[name] = rs != nil
			bare := doctypeText.ReplaceAllFunc(f.data, func(m []byte) []byte { // keep the lines
				return bytes.Repeat([]byte("\n"), bytes.Count(m, []byte("\n")))
			})
			if err := os.WriteFile(filepath.Join(dir, name), bare, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir, accepted
}

// hold compares what an outside checker refuses with lint: what lint accepts the schema must accept.
func hold(t *testing.T, schema string, accepted map[string]bool, refused func(name string) bool) {
	t.Helper()
	agreed := 0
	for name, ok := range accepted {
		switch no := refused(name); {
		case ok && no:
			t.Errorf("%s refuses %s, which lint accepts", schema, name)
		case !ok && no:
			agreed++
		}
	}
	if agreed < 20 {
		t.Errorf("%s refuses only %d of the bad files: the check does not work", schema, agreed)
	}
}

func TestXMLLintAgrees(t *testing.T) {
	xmllint := needProgram(t, "xmllint")
	dir, accepted := checkedFiles(t)
	dtd, _ := filepath.Abs("schema/dcr.dtd")
	xsd, _ := filepath.Abs("schema/dcr.xsd")
	for schema, args := range map[string][]string{"dcr.dtd": {"--dtdvalid", dtd}, "dcr.xsd": {"--schema", xsd}} {
		args = append([]string{"--noout", "--nonet"}, args...)
		for name := range accepted {
			args = append(args, name)
		}
		cmd := exec.Command(xmllint, args...)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		refused := func(name string) bool { return strings.Contains("\n"+string(out), "\n"+name+":") }
		hold(t, schema, accepted, refused)
	}
}

func TestJingAgrees(t *testing.T) {
	jing := needProgram(t, "jing")
	dir, accepted := checkedFiles(t)
	for _, schema := range []string{"dcr.rng", "dcr.rnc"} {
		path, _ := filepath.Abs("schema/" + schema)
		args := []string{path}
		if schema == "dcr.rnc" {
			args = []string{"-c", path}
		}
		for name := range accepted { // one start of the Java machine for all files
			args = append(args, name)
		}
		cmd := exec.Command(jing, args...)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		refused := func(name string) bool { return strings.Contains(string(out), "/"+name+":") }
		hold(t, schema, accepted, refused)
	}
}

// TestSchemasAreShipped: the copies that packages install are those that are printed.
func TestSchemasAreShipped(t *testing.T) {
	for name, text := range map[string]string{"dcr.dtd": DTD(), "dcr.rng": RNG(), "dcr.rnc": RNC(), "dcr.xsd": XSD()} {
		data, err := os.ReadFile(filepath.Join("../deploy/schema", name))
		if err != nil || string(data) != text {
			t.Errorf("deploy/schema/%s differs from the one in the program (%v)", name, err)
		}
	}
}
