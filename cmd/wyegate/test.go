package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/internal/engine"
)

// TestCmd is `wyegate test` and `wyegate dcr test`.
type TestCmd struct {
	Files    []string `arg:"" optional:"" help:"Test files; every *.test.yaml here unless named."`
	JUnit    string   `name:"junit" help:"Write a JUnit report." placeholder:"FILE"`
	TAP      bool     `name:"tap" help:"Print TAP."`
	Coverage bool     `help:"Say which rules no message reached."`
	Update   bool     `help:"Write what was found into the expectations, and show the change."`
}

// Run runs the files; exit status 1 when a test fails.
func (c *TestCmd) Run(g *Globals) error {
	g.prepare()
	runs, err := runTests(g, c.Files)
	if err != nil {
		return err
	}
	if c.Update {
		return update(g, runs)
	}
	var results []engine.TestResult
	for _, r := range runs {
		results = append(results, r.Results...)
	}
	if c.JUnit != "" {
		if err := junit(c.JUnit, results); err != nil {
			return err
		}
	}
	switch {
	case c.TAP:
		tap(g.out, results)
	case g.forPeople():
		resultText(g.out, results)
		if c.Coverage {
			coverageText(g.out, runs)
		}
		fmt.Fprintln(g.out, verdict(results))
	default:
		if err := g.show(results, func(io.Writer) {}); err != nil {
			return err
		}
	}
	if failed(results) > 0 {
		return &exitError{exitWrong, nil}
	}
	return nil
}

// runTests runs every file that is named, or every *.test.yaml of this folder.
func runTests(g *Globals, files []string) ([]*engine.TestRun, error) {
	if len(files) == 0 {
		found, err := filepath.Glob("*.test.yaml")
		if err != nil {
			return nil, err
		}
		files = found
	}
	if len(files) == 0 {
		return nil, &exitError{exitUsage, fmt.Errorf("no test file here; name one, or end its name in .test.yaml")}
	}
	var runs []*engine.TestRun
	wrong := false
	for _, name := range files {
		r, problems := engine.RunTests(name)
		for _, p := range problems {
			fmt.Fprintln(g.errOut, p)
		}
		if r == nil {
			wrong = true
			continue
		}
		runs = append(runs, r)
	}
	if wrong {
		return nil, &exitError{exitWrong, nil}
	}
	return runs, nil
}

func failed(results []engine.TestResult) int {
	n := 0
	for _, r := range results {
		if !r.OK {
			n++
		}
	}
	return n
}

// verdict is the last line: "1 of 2 tests failed", or how many passed.
func verdict(results []engine.TestResult) string {
	if n := failed(results); n > 0 {
		return fmt.Sprintf("%d of %d tests failed", n, len(results))
	}
	return plural(len(results), "test", "tests") + " passed"
}

func resultText(w io.Writer, results []engine.TestResult) {
	for _, r := range results {
		if r.OK {
			fmt.Fprintf(w, "ok    %s\n", r.Name)
			continue
		}
		fmt.Fprintf(w, "FAIL  %s\n", r.Name)
		for _, f := range r.Failures {
			fmt.Fprintf(w, "      %s: expected %s, actual %s\n", f.What, dash(f.Expected), dash(f.Actual))
			for _, s := range f.Rules {
				mark := "✗"
				if s.Matched {
					mark = "✓"
				}
				fmt.Fprintf(w, "        %s %s  line %d  %s\n", mark, s.Rule, s.Line, s.Text)
			}
		}
	}
}

func tap(w io.Writer, results []engine.TestResult) {
	fmt.Fprintf(w, "TAP version 13\n1..%d\n", len(results))
	for i, r := range results {
		word := "ok"
		if !r.OK {
			word = "not ok"
		}
		fmt.Fprintf(w, "%s %d - %s\n", word, i+1, strings.ReplaceAll(r.Name, "#", "\\#"))
		for _, f := range r.Failures {
			fmt.Fprintf(w, "# %s: expected %s, actual %s\n", f.What, f.Expected, f.Actual)
		}
	}
}

// junit writes the report that build servers read.
func junit(name string, results []engine.TestResult) error {
	type failure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Name    string    `xml:"name,attr"`
		Class   string    `xml:"classname,attr"`
		Failure []failure `xml:"failure,omitempty"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testcase `xml:"testcase"`
	}{Name: "wyegate", Tests: len(results), Failures: failed(results)}
	for _, r := range results {
		c := testcase{Name: r.Name, Class: r.File}
		for _, f := range r.Failures {
			c.Failure = append(c.Failure, failure{f.What, "expected " + f.Expected + ", actual " + f.Actual})
		}
		suite.Cases = append(suite.Cases, c)
	}
	out, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append([]byte(xml.Header), append(out, '\n')...), 0o644)
}

// update writes what was found into the expectations of each file and shows the change.
func update(g *Globals, runs []*engine.TestRun) error {
	for _, r := range runs {
		files := []config.File{r.File.File}
		old := files[0].Data
		for _, res := range r.Results {
			for _, f := range res.Failures {
				changed, err := config.Set(files, f.Path, f.Actual)
				if err != nil {
					return &exitError{exitWrong, fmt.Errorf("%s: %s: %w", res.Name, f.What, err)}
				}
				files[0] = changed
			}
		}
		if string(old) == string(files[0].Data) {
			continue
		}
		name := "/" + files[0].Path
		if _, err := g.out.Write(config.Unified(old, files[0].Data, files[0].Shown, files[0].Shown+" (updated)")); err != nil {
			return err
		}
		if g.DryRun {
			continue
		}
		if err := os.WriteFile(name, files[0].Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// DcrCoverageCmd is `dcr coverage`.
type DcrCoverageCmd struct {
	Files []string `arg:"" optional:"" help:"Test files; every *.test.yaml here unless named."`
	Min   atLeast  `help:"Exit status 1 below this share of rules." placeholder:"N%"`
}

// atLeast is a share as people write it: 80%, or 80.
type atLeast int

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *atLeast) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(strings.TrimSuffix(string(text), "%"))
	if err != nil || n < 0 || n > 100 {
		return fmt.Errorf("%q: 0%% to 100%% expected", text)
	}
	*p = atLeast(n)
	return nil
}

// coverageRow is one rule with what happened to it.
type coverageRow struct {
	Rules string `json:"rules"`
	dcr.Count
}

// Run counts what the messages of the test files reach.
func (c *DcrCoverageCmd) Run(g *Globals) error {
	g.prepare()
	runs, err := runTests(g, c.Files)
	if err != nil {
		return err
	}
	rows, reached, all := []coverageRow{}, 0, 0
	for _, r := range runs {
		if r.Cover == nil {
			continue
		}
		n, of, _ := r.Cover.Reached()
		reached, all = reached+n, all+of
		for _, k := range r.Cover.Counts() {
			rows = append(rows, coverageRow{r.Rules, k})
		}
	}
	if err := g.show(rows, func(w io.Writer) { coverageText(w, runs) }); err != nil {
		return err
	}
	if all > 0 && reached*100 < int(c.Min)*all {
		return &exitError{exitWrong, nil}
	}
	return nil
}

// coverageText is one line per rule file: how many rules were reached, and which were not.
func coverageText(w io.Writer, runs []*engine.TestRun) {
	for _, r := range runs {
		if r.Cover == nil {
			continue
		}
		reached, rules, missed := r.Cover.Reached()
		fmt.Fprintf(w, "rules reached %d of %d", reached, rules)
		var names []string
		for _, m := range missed {
			names = append(names, m.Path)
		}
		slices.Sort(names)
		if len(names) > 0 {
			fmt.Fprintf(w, "; not reached: %s", strings.Join(names, " "))
		}
		fmt.Fprintln(w)
	}
}
