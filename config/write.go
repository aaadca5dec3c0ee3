package config

import (
	"strconv"
	"strings"
)

// writer puts a tree out as YAML: maps in block form, two spaces a level, lists of single values on one line.
type writer struct {
	out []byte
	// text gives the text of a value; nil: as it stands in the node.
	text func(n *node) string
}

func (w *writer) textOf(n *node) string {
	if w.text != nil {
		return w.text(n)
	}
	return n.text
}

func (w *writer) indent(depth int) {
	for range depth {
		w.out = append(w.out, "  "...)
	}
}

// block writes the keys of a map. first says that the cursor stands behind "- " already.
func (w *writer) block(n *node, depth int, first bool) {
	for _, e := range n.keys {
		if !first {
			w.indent(depth)
		}
		first = false
		w.out = append(w.out, quoted(e.name, true)...)
		w.out = append(w.out, ':')
		w.value(e.val, depth)
	}
}

func (w *writer) value(n *node, depth int) {
	switch {
	case n.kind == mapNode && len(n.keys) > 0:
		w.out = append(w.out, '\n')
		w.block(n, depth+1, false)
	case n.kind == listNode && !flat(n):
		w.out = append(w.out, '\n')
		w.list(n, depth+1)
	default:
		w.out = append(w.out, ' ')
		w.flow(n, false)
		w.out = append(w.out, '\n')
	}
}

func (w *writer) list(n *node, depth int) {
	for _, item := range n.items {
		w.indent(depth)
		w.out = append(w.out, "- "...)
		if item.kind == mapNode && len(item.keys) > 0 {
			w.block(item, depth+1, true)
			continue
		}
		w.flow(item, false)
		w.out = append(w.out, '\n')
	}
}

// flat says that a list goes on one line.
func flat(n *node) bool {
	for _, item := range n.items {
		if item.kind != scalarNode {
			return false
		}
	}
	return true
}

// flow writes a value on one line. inside: within brackets, where more has to be quoted.
func (w *writer) flow(n *node, inside bool) {
	switch n.kind {
	case mapNode:
		w.out = append(w.out, '{')
		for i, e := range n.keys {
			if i > 0 {
				w.out = append(w.out, ", "...)
			}
			w.out = append(w.out, quoted(e.name, true)...)
			w.out = append(w.out, ": "...)
			w.flow(e.val, true)
		}
		w.out = append(w.out, '}')
	case listNode:
		w.out = append(w.out, '[')
		for i, item := range n.items {
			if i > 0 {
				w.out = append(w.out, ", "...)
			}
			w.flow(item, true)
		}
		w.out = append(w.out, ']')
	default:
		text := w.textOf(n)
		if n.plain && (text == "" || !ambiguous(text, inside)) {
			w.out = append(w.out, text...)
			return
		}
		w.out = append(w.out, quoted(text, inside)...)
	}
}

// quoted writes a text so that every YAML reader takes it as text.
func quoted(text string, inside bool) string {
	if !ambiguous(text, inside) && !resolves(text) {
		return text
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20 || c == 0x7f:
			b.WriteString(`\x` + strconv.FormatInt(int64(c)+0x100, 16)[1:])
		case c >= 0x80 && !strconv.IsPrint(c) && c <= 0xffff:
			b.WriteString(`\u` + strconv.FormatInt(int64(c)+0x10000, 16)[1:])
		case c >= 0x80 && !strconv.IsPrint(c):
			b.WriteString(`\U` + strconv.FormatInt(int64(c)+0x100000000, 16)[1:])
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// ambiguous says that a text without quotes would not be read as itself.
func ambiguous(text string, inside bool) bool {
	if text == "" || strings.TrimSpace(text) != text || strings.Contains(text, ": ") || strings.Contains(text, " #") ||
		strings.HasSuffix(text, ":") || strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") {
		return true
	}
	if strings.ContainsRune("!&*|>%@`\"'#,[]{}:", rune(text[0])) {
		return true
	}
	if strings.ContainsRune("-?", rune(text[0])) && (len(text) == 1 || text[1] == ' ' || inside) {
		return true
	}
	if inside && (strings.ContainsAny(text, ",[]{}") || strings.Contains(text, ":")) {
		return true
	}
	for _, c := range text {
		if c < 0x20 || c == 0x7f || c >= 0x80 && !strconv.IsPrint(c) {
			return true
		}
	}
	return false
}

// resolves says that other YAML readers take a text for a number, a boolean, a date or nothing.
func resolves(text string) bool {
	switch strings.ToLower(text) {
	case "null", "~", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "=", ".inf", "-.inf", "+.inf", ".nan":
		return true
	}
	c := text[0]
	return (c >= '0' && c <= '9' || c == '.' || c == '+' || c == '-') && !strings.ContainsAny(text[1:], "/%") && !hasUnit(text)
}

// hasUnit says that a text that begins like a number ends in letters that are no part of one.
func hasUnit(text string) bool {
	for _, unit := range []string{"ms", "s", "m", "h", "KiB", "MiB", "GiB"} {
		if strings.HasSuffix(text, unit) && !strings.Contains(text, ":") {
			return true
		}
	}
	return false
}
