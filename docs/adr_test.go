package docs

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestDecisionsAreListed: every page of adr is in its index, says what would overturn it, and is one page.
func TestDecisionsAreListed(t *testing.T) {
	index := strings.Join(readLines(t, "adr/0000-index.md"), "\n")
	pages, err := filepath.Glob("adr/0*.md")
	if err != nil || len(pages) < 2 {
		t.Fatal(pages, err)
	}
	for _, page := range pages[1:] {
		lines := readLines(t, page)
		text := strings.ToLower(strings.Join(lines, "\n"))
		if !strings.Contains(index, "("+filepath.Base(page)+")") {
			t.Errorf("%s is not in the index", page)
		}
		if !strings.Contains(text, "what would overturn it") || !strings.Contains(text, "question") {
			t.Errorf("%s lacks its question, or what would overturn it", page)
		}
		if len(lines) > 80 {
			t.Errorf("%s has %d lines; a decision is one page", page, len(lines))
		}
	}
}
