package config

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestGoodTestFiles(t *testing.T) {
	fsys := fixtureFS(t)
	f, problems := LoadTests(fsys, "tests/good/calls.test.yaml", Options{})
	if len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	if f.Config.Abs != "/good/complete.yaml" || len(f.Tests) != 2 {
		t.Errorf("config %v, %d tests", f.Config, len(f.Tests))
	}
	a, b := f.Tests[0], f.Tests[1]
	if m := a.Messages[0]; !strings.HasPrefix(m.SIP, "INVITE sip:room-4711@") || !strings.Contains(m.SIP, "c1${NOT_A_VARIABLE}$$@") {
		t.Errorf("message is %q", m.SIP)
	}
	if m := a.Messages[1]; m.Source.String() != "198.51.100.9:51515" || !strings.HasSuffix(m.HTTP, "\r\n\r\n") {
		t.Errorf("message is %+v", m)
	}
	if e := a.Expect[0]; *e.Key != "room-4711" || *e.Source != "rule" || e.Server != nil || e.MovedOnlyFrom != nil || e.Path != "tests."+a.Name+".expect[0]" {
		t.Errorf("expectation is %+v", e)
	}
	if e := a.Expect[5]; e.Key == nil || *e.Key != "" || *e.Error != "404" {
		t.Errorf("an empty key is expected, not none: %+v", e)
	}
	if b.Keys.Count != 20000 || b.Change.State != "down" || *b.Expect[2].SpreadWithin != 0.1 || b.Expect[3].SameMapAfter.State != "up" {
		t.Errorf("test is %+v", b)
	}
	if e := b.Expect[1].MovedOnlyFrom; e == nil || len(e) != 0 {
		t.Errorf("[] is no expectation: %v", e)
	}
	if at := f.At(a.Expect[1].Path + ".key"); at.Line != 26 || at.Col != 30 {
		t.Errorf("key of the second expectation is at %+v", at)
	}
	r, problems := LoadTests(fsys, "tests/good/rules.test.yaml", Options{})
	if len(problems) > 0 || r.Enum["+4687190000"] != "sip:alice@ims.example.com" || r.Enum["+4687190001"] != "0123" || r.Tests[0].Name != "0123" {
		t.Errorf("%s %+v", lines(problems), r)
	}
}

// What was found can be written into an expectation (test --update).
func TestUpdateOfExpectation(t *testing.T) {
	fsys := fixtureFS(t)
	f, _ := LoadTests(fsys, "tests/good/calls.test.yaml", Options{})
	out, err := Set([]File{f.File}, f.Tests[0].Expect[1].Path+".key", "room: 1")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(string(f.File.Data), "{message: page, key: room-4711,", `{message: page, key: "room: 1",`, 1)
	if string(out.Data) != want || want == string(f.File.Data) {
		t.Errorf("%s", out.Data)
	}
}

func TestBrokenTestFiles(t *testing.T) {
	fsys := fixtureFS(t)
	all, _ := fs.Glob(fsys, "tests/bad/*.yaml")
	if len(all) < 4 {
		t.Fatal("fixtures are gone")
	}
	for _, name := range all {
		_, problems := LoadTests(fsys, name, Options{})
		got, want := found(problems), wanted(name, fsys[name].Data)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("got\n  %s\nwant\n  %s", lines(problems), strings.Join(want, "\n  "))
		}
	}
}

// The examples of the documents are test files in form.
func TestExamplesAreTestFiles(t *testing.T) {
	docs := os.DirFS("../docs/examples")
	all, _ := fs.Glob(docs, "*/*.test.yaml")
	for _, name := range all {
		if _, problems := LoadTests(docs, name, Options{}); len(problems) > 0 {
			t.Errorf("%s", lines(problems))
		}
	}
}
