package dcr

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every code that this package can give has a page (operations.md 3.5), and a page says what is wrong and what to do.
func TestEveryCodeHasAPage(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{"DCR601": true, "DCR604": true}
	quoted := regexp.MustCompile(`"(DCR\d{3})"`)
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quoted.FindAllSubmatch(data, -1) {
			codes[string(m[1])] = true
		}
	}
	if len(codes) < 40 {
		t.Fatalf("only %d codes found in the sources", len(codes))
	}
	for c := range codes {
		text, ok := Page(c)
		if !ok || strings.Count(text, "\n\n") < 1 || strings.Contains(text, "##") {
			t.Errorf("%s: %q", c, text)
		}
	}
	for _, c := range []string{"", "DCR999", "DCR20", "WG001"} {
		if text, ok := Page(c); ok {
			t.Errorf("%q has a page: %q", c, text)
		}
	}
}
