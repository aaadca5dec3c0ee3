package config

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestProblemForms(t *testing.T) {
	p := Problem{File: "w.yaml", Line: 71, Col: 125, Severity: Error, Code: "WG104", Path: "listeners.wss.certificate",
		Text: `listener "wss" names certificate "publc"; did you mean "public"?`, Suggestion: "public"}
	if got, want := p.String(), `w.yaml:71:125: error: WG104: listener "wss" names certificate "publc"; did you mean "public"?`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	got, err := json.Marshal(p)
	want := `{"file":"w.yaml","line":71,"col":125,"severity":"error","code":"WG104","text":"listener \"wss\" names certificate \"publc\"; did you mean \"public\"?","path":"listeners.wss.certificate","suggestion":"public"}`
	if err != nil || string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Of each file a hundred findings are shown; a list that was cut may be added to and cut again.
func TestSortedCutsEachFile(t *testing.T) {
	var list []Problem
	for i := range 130 {
		list = append(list, Problem{File: "b", Line: 200 - i, Col: 1, Severity: Warning, Code: "X"})
	}
	list[0].Severity = Error // line 200: it is cut off
	list = append(list, Problem{File: "a", Line: 9, Col: 2, Severity: Warning, Code: "Y"}, Problem{File: "a", Line: 9, Col: 1, Severity: Warning, Code: "Y"})
	out := Sorted(list, []string{"b", "a"})
	if len(out) != 103 || out[0].Line != 71 || out[100].String() != "b: and 30 more" || !HasErrors(out) || out[101].Col != 1 {
		t.Errorf("%d findings, %v … %v", len(out), out[0], out[100:])
	}
	again := Sorted(append(slices.Clone(out), Problem{File: "b", Line: 1, Col: 1, Severity: Warning, Code: "X"}), []string{"b", "a"})
	if len(again) != 103 || again[0].Line != 1 || again[100].String() != "b: and 31 more" || again[100].Severity != Error {
		t.Errorf("%d findings, %v … %v", len(again), again[0], again[100:])
	}
	if once := Sorted(slices.Clone(out), []string{"b", "a"}); !slices.Equal(once, out) {
		t.Errorf("sorted again it differs")
	}
}

func TestNearest(t *testing.T) {
	words := []string{"server", "servers", "weight", "when-idle", "sip", "sit", "http"}
	for text, want := range map[string]string{
		"wieght": "weight", "weigth": "weight", "wegiht": "weight", "waits": "", "serve": "server", "serverss": "servers", "servrs": "",
		"si": "", "sid": "", "htp": "http", "x": "", "": "", "HTTP": "", "whenidle": "when-idle", "weight": "weight",
	} {
		if text == "servrs" { // one edit from servers, two from server
			want = "servers"
		}
		if got := nearest(text, words); got != want {
			t.Errorf("%q is near %q, want %q", text, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		n    int
	}{{"", "", 0}, {"a", "", 1}, {"ab", "ba", 1}, {"abc", "xyz", 3}, {"größe", "grösse", 2}, {"kitten", "sitten", 1}} {
		if n := distance(c.a, c.b, 10); n != c.n {
			t.Errorf("%q to %q: %d edits, want %d", c.a, c.b, n, c.n)
		}
	}
}
