package dcr

import (
	_ "embed"
	"strings"
)

// pages holds a section for each code.
//
//go:embed pages.md
var pages string

// Page gives the page of a code: what it says, why, and what to do. ok is false for a code that rule files do not have.
func Page(code string) (text string, ok bool) {
	_, rest, ok := strings.Cut(pages, "\n## "+code+"\n")
	if !ok {
		return "", false
	}
	text, _, _ = strings.Cut(rest, "\n## ")
	return strings.TrimSpace(text) + "\n", true
}
