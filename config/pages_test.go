package config

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// Every code of operations.md 3.5 has a page, and every page says what, why and what to do.
func TestEveryCodeHasAPage(t *testing.T) {
	var want []string
	for _, r := range [][2]int{{1, 14}, {101, 124}, {301, 309}} {
		for n := r[0]; n <= r[1]; n++ {
			want = append(want, "WG"+string(rune('0'+n/100))+string(rune('0'+n/10%10))+string(rune('0'+n%10)))
		}
	}
	if got := Codes(); !slices.Equal(got, want) {
		t.Errorf("pages are %v", got)
	}
	for _, c := range want {
		text, ok := Page(c)
		if !ok || strings.Count(text, "\n\n") < 1 || strings.Contains(text, "##") {
			t.Errorf("%s: %q", c, text)
		}
	}
	for _, c := range []string{"", "WG999", "WG00", "DCR101"} {
		if text, ok := Page(c); ok {
			t.Errorf("%q has a page: %q", c, text)
		}
	}
}

func TestProfilesPassCheck(t *testing.T) {
	if got := Profiles(); !slices.Equal(got, []string{"converged", "sip"}) {
		t.Fatalf("profiles %v", got)
	}
	for _, name := range Profiles() {
		text, _ := Profile(name)
		cfg, problems := Load(files("etc/wyegate.yaml", string(text)), "etc/wyegate.yaml", options())
		if HasErrors(problems) || name == "sip" && len(problems) > 0 || name == "converged" && (len(problems) != 1 || problems[0].Code != "WG301") {
			t.Errorf("%s: %v", name, problems)
		}
		formatted, err := Format(text)
		if err != nil || string(formatted) != string(text) {
			t.Errorf("%s is not in the layout of fmt: %v", name, err)
		}
		if cfg == nil || !strings.HasPrefix(string(text), "# yaml-language-server: $schema=") {
			t.Errorf("%s has no modeline", name)
		}
		// With its rules in place the file is right without a warning.
		with := strings.Replace(string(text), "#    affinity", "    affinity", 1)
		if _, problems := Load(files("wyegate.yaml", with, "data-centric-rules.xml", "<x/>"), "wyegate.yaml", options()); with == string(text) || len(problems) > 0 {
			t.Errorf("%s with rules: %v", name, problems)
		}
	}
	if _, ok := Profile(path.Join("..", "pages")); ok {
		t.Error("a path gives a profile")
	}
}
