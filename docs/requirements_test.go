package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// required is how many requirements each group has; they are numbered from 1.
var required = map[string]int{
	"ST": 10, "SV": 7, "SR": 11, "SA": 10, "SX": 15, "SH": 7, "SS": 7,
	"HF": 7, "HH": 4, "HB": 9, "HS": 4, "H2": 3,
}

var (
	requirementRow = regexp.MustCompile(`^\| ([A-Z][A-Z2])-(\d+) \| [^|]+ \| (.+) \|$`)
	scenarioRow    = regexp.MustCompile(`^\| [a-zA-Z][^|]+ \| (.+) \|$`)
	packageTests   = regexp.MustCompile("`([a-z0-9/]+)`: ((?:`(?:Test|Fuzz)\\w+`(?:, )?)+)")
	testName       = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
)

// TestRequirementsHaveTests: every requirement has its row, every test that a row names is in the package that it names,
// and a row without a test says why.
func TestRequirementsHaveTests(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range readLines(t, "requirements.md") {
		m := requirementRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		id := m[1] + "-" + m[2]
		if n, err := strconv.Atoi(m[2]); err != nil || n < 1 || n > required[m[1]] || seen[id] {
			t.Errorf("%s is no requirement, or stands twice", id)
		}
		seen[id] = true
		named := 0
		for _, g := range packageTests.FindAllStringSubmatch(m[3], -1) {
			tests := testsOf(t, g[1])
			for _, name := range testName.FindAllStringSubmatch(g[2], -1) {
				named++
				if !slices.Contains(tests, name[1]) {
					t.Errorf("%s: %s has no %s", id, g[1], name[1])
				}
			}
		}
		if named == 0 && !strings.Contains(m[3], "no test: not built") {
			t.Errorf("%s: neither a test nor a reason", id)
		}
		if all := len(testName.FindAllString(m[3], -1)); all != named {
			t.Errorf("%s: %d tests are named, %d with their package", id, all, named)
		}
	}
	for group, n := range required {
		for i := range n {
			if id := group + "-" + itoa(i+1); !seen[id] {
				t.Errorf("%s is missing", id)
			}
		}
	}
}

// TestScenariosHaveTests: every scenario names tests that are there.
func TestScenariosHaveTests(t *testing.T) {
	_, section, found := strings.Cut(strings.Join(readLines(t, "requirements.md"), "\n"), "\n## Calls with other programs, and scenarios\n")
	rows := 0
	for _, line := range strings.Split(section, "\n") {
		m := scenarioRow.FindStringSubmatch(line)
		if m == nil || m[1] == "tests" {
			continue
		}
		rows++
		named := 0
		for _, g := range packageTests.FindAllStringSubmatch(m[1], -1) {
			tests := testsOf(t, g[1])
			for _, name := range testName.FindAllStringSubmatch(g[2], -1) {
				if named++; !slices.Contains(tests, name[1]) {
					t.Errorf("%s has no %s", g[1], name[1])
				}
			}
		}
		if named == 0 || named != len(testName.FindAllString(m[1], -1)) {
			t.Errorf("%s: no test, or one without its package", line)
		}
	}
	if !found || rows < 15 {
		t.Errorf("%d scenarios", rows)
	}
}

var parsed = map[string][]string{}

// testsOf lists the tests and fuzz targets of a package. The files are parsed here, not asked of `go list`: the test
// cache must notice when one changes.
func testsOf(t *testing.T, pkg string) []string {
	t.Helper()
	if names, ok := parsed[pkg]; ok {
		return names
	}
	files, err := filepath.Glob("../" + pkg + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, data, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	parsed[pkg] = names
	return names
}
