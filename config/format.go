package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ErrFormat says that a file cannot be formatted or edited; its text says why.
var ErrFormat = errors.New("config: file left as it was")

// Format gives a file one layout: two spaces a level, list items two spaces inside their key, no blanks at line ends,
// no more than one empty line in a row, \n line ends. Comments, order, quotes and what stands on one line are kept. The
// meaning before and after is compared, and a file for which it would differ is left alone with an error.
func Format(data []byte) ([]byte, error) {
	doc, before, err := document(data)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n"), "\n")
	l := &layout{lines: lines, orig: slices.Clone(lines), want: map[int]int{}, raw: map[int]bool{}}
	if len(doc.Content) > 0 {
		l.block(doc.Content[0], 0)
	}
	out := l.write()
	_, after, err := document(out)
	if err != nil || !bytes.Equal(before, after) {
		return nil, fmt.Errorf("%w: it would mean something else", ErrFormat)
	}
	return out, nil
}

// document parses the one document of a file, and gives its meaning in a form that can be compared.
func document(data []byte) (doc yaml.Node, meaning []byte, err error) {
	var bad []Problem
	r := &reader{report: func(p Problem) { bad = append(bad, p) }, file: "file", dir: "."}
	tree := r.parse(data)
	if len(bad) > 0 {
		return doc, nil, fmt.Errorf("%w: line %d: %s", ErrFormat, bad[0].Line, bad[0].Text)
	}
	if err := yaml.Load(data, &doc); err != nil && len(tree.keys) > 0 {
		return doc, nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return doc, canonical(tree), nil
}

// layout finds the indentation that each line should have.
type layout struct {
	lines []string
	orig  []string     // as received: what the nodes' places count in
	want  map[int]int  // by line from 1: its indentation
	raw   map[int]bool // lines within texts of several lines: their ends are kept
}

// block gives the lines of a block map or list their indentation. What is in flow form moves with its first line.
func (l *layout) block(n *yaml.Node, depth int) {
	if n.Style&yaml.FlowStyle != 0 {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			l.place(n.Content[i], depth)
			l.block(n.Content[i+1], depth+1)
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			l.dash(item, depth)
			l.block(item, depth+1)
		}
	case yaml.ScalarNode:
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			for i := range strings.Count(n.Value, "\n") + 1 {
				l.raw[n.Line+1+i] = true
			}
		}
	}
}

// place sets the indentation of a key that is the first thing on its line.
func (l *layout) place(key *yaml.Node, depth int) {
	if indentOf(l.orig[key.Line-1]) == key.Column-1 {
		l.want[key.Line] = 2 * depth
	}
}

// dash sets the indentation of a list item's dash, when the dash is the first thing on its line.
func (l *layout) dash(item *yaml.Node, depth int) {
	line := l.orig[item.Line-1]
	at := indentOf(line)
	if at < item.Column-1 && at < len(line) && line[at] == '-' && strings.Trim(line[at+1:item.Column-1], " ") == "" {
		l.want[item.Line] = 2 * depth
		// Keys behind the dash stand two columns further: blanks between dash and key go.
		l.lines[item.Line-1] = line[:at] + "- " + strings.TrimLeft(line[at+1:], " ")
	}
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func (l *layout) write() []byte {
	var out []byte
	shift, empty := 0, true
	for i, line := range l.lines {
		n := i + 1
		if !l.raw[n] {
			line = strings.TrimRight(line, " \t\r")
		}
		if strings.TrimSpace(line) == "" {
			if l.raw[n] || !empty {
				out = append(out, '\n')
			}
			empty = true
			continue
		}
		empty = false
		at := indentOf(line)
		switch want, known := l.want[n]; {
		case known:
			shift = want - at
		case line[at] == '#' && !l.raw[n]:
			shift = l.ahead(n, at, shift)
		}
		out = append(out, strings.Repeat(" ", max(0, at+shift))...)
		out = append(out, line[at:]...)
		out = append(out, '\n')
	}
	return append(bytes.TrimRight(out, "\n"), '\n')
}

// ahead gives a comment the shift of the line that it stands before. One that stands deeper belongs to what is above.
func (l *layout) ahead(n, at, shift int) int {
	for next := n + 1; next <= len(l.lines); next++ {
		line := strings.TrimSpace(l.lines[next-1])
		if line == "" || line[0] == '#' {
			continue
		}
		if want, known := l.want[next]; known && at <= indentOf(l.lines[next-1]) {
			return want - at
		}
		break
	}
	return shift
}
