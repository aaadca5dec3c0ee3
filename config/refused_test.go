package config

import (
	"strings"
	"testing"
)

// Every row of the table refuses something in a fixture, so that a row that nothing meets any more is found.
func TestEveryRefusalIsMet(t *testing.T) {
	fsys := fixtureFS(t)
	met := map[string]bool{}
	for _, name := range badConfigurations(t, fsys) {
		_, problems := Load(fsys, name, fixtureOptions())
		for _, p := range problems {
			if p.Code == "WG014" {
				met[p.Path] = true
			}
		}
	}
	for _, r := range refusedHere {
		found := false
		for path := range met {
			found = found || matchesPattern(path, r.path)
		}
		if !found {
			t.Errorf("no fixture meets the row of %s", r.path)
		}
	}
}

// matchesPattern says whether a dotted path with names is one of a pattern with [].
func matchesPattern(path, pattern string) bool {
	want := strings.Split(strings.ReplaceAll(pattern, "[]", ".[]"), ".")
	got := strings.Split(path, ".")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && want[i] != "[]" {
			return false
		}
	}
	return true
}
