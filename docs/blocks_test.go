package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// block is one fenced block of a document.
type block struct {
	doc    string // path of the document, from this folder
	line   int    // of the opening fence
	lang   string
	marker string // what the comment before it says, without <!-- and -->
	lines  []string
}

func (b *block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// file is the name that the block has as a file; empty when it is none.
func (b *block) file() string {
	name, ok := strings.CutPrefix(b.marker, "file: ")
	if !ok {
		return ""
	}
	return name
}

var (
	fenceLine  = regexp.MustCompile("^```([a-z]*)$")
	markerLine = regexp.MustCompile(`^<!-- (.+) -->$`)
)

// documents are the pages that a reader is given.
func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	adrs, err := filepath.Glob("adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat([]string{"../README.md"}, docs, adrs)
}

// blocksOf cuts the fenced blocks out of a document.
func blocksOf(t *testing.T, doc string) []*block {
	t.Helper()
	var all []*block
	var open *block
	marker := ""
	for i, line := range readLines(t, doc) {
		fence := fenceLine.FindStringSubmatch(line)
		switch {
		case open != nil && line == "```":
			all, open = append(all, open), nil
		case open != nil:
			open.lines = append(open.lines, line)
		case fence != nil:
			open = &block{doc: doc, line: i + 1, lang: fence[1], marker: marker}
			marker = ""
		case markerLine.MatchString(line):
			marker = markerLine.FindStringSubmatch(line)[1]
		case line != "":
			marker = ""
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block is never closed", doc, open.line)
	}
	return all
}

func readLines(t *testing.T, doc string) []string {
	t.Helper()
	data, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// eachBlock runs f for every block in one of the languages, as a subtest named by its place.
func eachBlock(t *testing.T, f func(t *testing.T, b *block), langs ...string) {
	t.Helper()
	n := 0
	for _, doc := range documents(t) {
		for _, b := range blocksOf(t, doc) {
			if slices.Contains(langs, b.lang) {
				n++
				t.Run(place(b), func(t *testing.T) { f(t, b) })
			}
		}
	}
	if n == 0 {
		t.Fatalf("no block in %v: the documents or this test are wrong", langs)
	}
}

// place names a block in the output of go test.
func place(b *block) string {
	return strings.ReplaceAll(strings.TrimPrefix(b.doc, "../"), "/", "-") + ":" + itoa(b.line)
}
