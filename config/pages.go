package config

import (
	_ "embed"
	"strings"
)

// pages holds a section for each code.
//
//go:embed pages.md
var pages string

// Page gives the page of a code: what it says, why, and what to do. ok is false for a code that this package does
// not give.
func Page(code string) (text string, ok bool) {
	_, rest, ok := strings.Cut(pages, "\n## "+code+"\n")
	if !ok {
		return "", false
	}
	text, _, _ = strings.Cut(rest, "\n## ")
	return strings.TrimSpace(text) + "\n", true
}

// Codes lists the codes that have a page, in order.
func Codes() []string {
	var out []string
	for line := range strings.Lines(pages) {
		if code, ok := strings.CutPrefix(line, "## "); ok {
			out = append(out, strings.TrimSpace(code))
		}
	}
	return out
}
