package dcr

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const examples = "../docs/examples/dcr"

// exampleFile is the part of a test file that rules alone can answer.
type exampleFile struct {
	Rules string
	Enum  map[string]string
	Tests []struct {
		Name     string
		Messages []struct{ ID, SIP, HTTP string }
		Expect   []struct{ Message, Key, Source, Rule string }
	}
}

// TestExamples runs every row of section 6 from the shipped files.
func TestExamples(t *testing.T) {
	want := map[string]int{"a": 10, "b": 11, "c": 7, "d": 4, "e": 7}
	for name, rows := range want {
		data, err := os.ReadFile(filepath.Join(examples, name+".test.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var f exampleFile
		if err := yaml.Unmarshal(data, &f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(f.Tests) != rows {
			t.Errorf("%s has %d rows, the specification %d", name, len(f.Tests), rows)
		}
		rules, err := os.ReadFile(filepath.Join(examples, f.Rules))
		if err != nil {
			t.Fatal(err)
		}
		enum := enumTable{}
		for number, uri := range f.Enum {
			enum[strings.TrimPrefix(number, "+")] = uri
		}
		rs := compiled(t, string(rules), Options{Resolver: enum})
		var s Scratch // one for all rows: nothing of one request may show in the next
		for _, test := range f.Tests {
			t.Run(test.Name, func(t *testing.T) {
				m := test.Messages[0]
				res := rs.Key(exampleMessage(t, m.SIP, m.HTTP), &s, nil)
				e := test.Expect[0]
				rule := ""
				if res.Outcome == Matched {
					rule = rs.Rules()[res.Rule].Path
				}
				if rule != e.Rule || e.Rule != "" && string(res.Key) != e.Key || (e.Source == "default") != (res.Outcome == NoKey) {
					var tr Trace
					rs.Key(exampleMessage(t, m.SIP, m.HTTP), &s, &tr)
					t.Errorf("key %q of rule %q, want %q of %q\n%+v", res.Key, rule, e.Key, e.Rule, tr.Steps)
				}
			})
		}
	}
}

func exampleMessage(t *testing.T, sipText, httpText string) Message {
	t.Helper()
	if sipText != "" {
		m := &sipMessage{}
		if err := m.msg.Parse([]byte(strings.ReplaceAll(sipText, "\n", "\r\n") + "\r\n")); err != nil {
			t.Fatal(err)
		}
		return m
	}
	lines := strings.Split(strings.TrimSuffix(httpText, "\r\n\r\n"), "\r\n")
	start := strings.Split(lines[0], " ")
	if len(start) != 3 {
		t.Fatalf("request line %q", lines[0])
	}
	return httpRequest(start[1], lines[2:]...)
}
