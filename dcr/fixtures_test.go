package dcr

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const fixtures = "../testdata/dcr"

var (
	wantLine = regexp.MustCompile(`(?m)^want: (\d+:\d+: DCR\d+)\r?$`)
	optLine  = regexp.MustCompile(`(?m)^options: (.*?)\r?$`)
)

// fixture is a rule file with the findings it must give: in a comment at its end, or in a file .want beside it where
// nothing can stand behind the error.
type fixture struct {
	name string
	data []byte
	want []string
	opt  Options
}

func loadFixtures(t testing.TB, dir string) []fixture {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(fixtures, dir, "*.xml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures in %s: %v", dir, err)
	}
	var out []fixture
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		about := data
		if side, err := os.ReadFile(strings.TrimSuffix(name, ".xml") + ".want"); err == nil {
			about = side
		}
		f := fixture{name: filepath.Base(name), data: data}
		for _, m := range wantLine.FindAllSubmatch(about, -1) {
			f.want = append(f.want, string(m[1]))
		}
		if m := optLine.FindSubmatch(about); m != nil {
			f.opt = fixtureOptions(string(m[1]))
		}
		out = append(out, f)
	}
	return out
}

func fixtureOptions(words string) (o Options) {
	for _, w := range strings.Fields(words) {
		if w != "header_match" && o.Service == nil {
			o.Service = &Service{}
		}
		switch name, value, _ := strings.Cut(w, "="); name {
		case "header_match":
			o.HeaderMatch = true
		case "enum":
			o.Service.Enum = true
		case "converged":
			o.Service.Converged = true
		case "stripped":
			o.Service.Stripped = strings.Split(value, ",")
		}
	}
	return o
}

// TestBadFiles demands exactly the findings that each file names, with line and column.
func TestBadFiles(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range loadFixtures(t, "bad") {
		t.Run(f.name, func(t *testing.T) {
			rs, problems := Compile(f.name, f.data, f.opt)
			var got []string
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%d:%d: %s", p.Line, p.Col, p.Code))
				seen[p.Code] = true
			}
			want := slices.Clone(f.want)
			slices.Sort(want)
			sorted := slices.Clone(got)
			slices.Sort(sorted)
			if !slices.Equal(sorted, want) {
				t.Errorf("found\n  %v\nwant\n  %v", asLines(problems), strings.Join(f.want, "\n  "))
			}
			if (rs == nil) != HasErrors(problems) {
				t.Error("a rule set and errors exclude each other")
			}
			if len(f.want) == 0 {
				t.Error("the file names no findings")
			}
		})
	}
	for _, code := range strings.Fields("101 102 103 104 105 106 107 108 109 110 111 112 113 114 201 202 203 204 205 207 208 209 211 " +
		"301 302 303 304 305 306 307 310 311 312 313 314 315 401 402 403 405 406 407 408 409") {
		if !seen["DCR"+code] {
			t.Errorf("no file gives DCR%s", code)
		}
	}
}

func asLines(list []Problem) string {
	var out []string
	for _, p := range list {
		out = append(out, p.String())
	}
	return strings.Join(out, "\n  ")
}

// TestGoodFiles demands that each file loads, with the warnings it names and no others; infos are free.
func TestGoodFiles(t *testing.T) {
	for _, f := range loadFixtures(t, "good") {
		t.Run(f.name, func(t *testing.T) {
			rs, problems := Compile(f.name, f.data, f.opt)
			var got []string
			for _, p := range problems {
				if p.Severity != Info {
					got = append(got, fmt.Sprintf("%d:%d: %s", p.Line, p.Col, p.Code))
				}
			}
			if rs == nil || !slices.Equal(got, f.want) {
				t.Errorf("found\n  %v\nwant %v", asLines(problems), f.want)
			}
		})
	}
}

// TestFindingsAreSorted: by place, whatever pass found them.
func TestFindingsAreSorted(t *testing.T) {
	for _, f := range loadFixtures(t, "bad") {
		problems := Lint(f.name, f.data, f.opt)
		if !slices.IsSortedFunc(problems, func(a, b Problem) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Col - b.Col
		}) {
			t.Errorf("%s: %v", f.name, asLines(problems))
		}
	}
}
