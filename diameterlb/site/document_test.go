package site

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every scenario stands in docs/policy-scenarios.md, and every name there is a scenario.
func TestDocumentNamesAllScenarios(t *testing.T) {
	page, err := os.ReadFile("../../docs/policy-scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:ha|psx|sites)-[0-9][a-z0-9-]*)`").FindAllStringSubmatch(string(page), -1) {
		named[m[1]] = true
	}
	files, err := filepath.Glob("../../testdata/diameter/policy/*.scenario")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".scenario")
		if !named[name] {
			t.Errorf("%s is not in the document", name)
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("the document names %s, which is no file", name)
	}
}
