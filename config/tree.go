package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// kind is the shape of a node.
type kind uint8

const (
	scalarNode kind = iota
	listNode
	mapNode
)

func (k kind) String() string { return [...]string{"a single value", "a list", "a map"}[k] }

// node is one value of a file, with its place. Its text is as written: no type is guessed from it.
type node struct {
	kind  kind
	text  string
	plain bool // written without quotes
	pos   Pos
	dir   string // folder of its file, for relative paths
	items []*node
	keys  []entry
}

// entry is one key of a map.
type entry struct {
	name string
	pos  Pos
	val  *node
}

// empty is a value that was left out, as in "servers:".
func (n *node) empty() bool { return n.kind == scalarNode && n.plain && n.text == "" }

// get gives the value of a key, or nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.keys {
		if n.keys[i].name == name {
			return n.keys[i].val
		}
	}
	return nil
}

// name is the value of a map's key `name`; empty when it has none.
func (n *node) name() string {
	if v := n.get("name"); v != nil && v.kind == scalarNode {
		return v.text
	}
	return ""
}

// Bounds of one file: what is larger was not written by a person.
const (
	maxFile  = 4 << 20
	maxNodes = 200_000
	maxDepth = 64
)

// reader turns the bytes of one file into a tree.
type reader struct {
	report func(p Problem)
	file   string
	dir    string
	nodes  int
	full   bool // a bound was met, and said
}

func (r *reader) fail(line, col int, code, text string) {
	r.report(Problem{File: r.file, Line: max(line, 1), Col: max(col, 1), Severity: Error, Code: code, Text: text})
}

// parse gives the tree of the first document; nil after an error that leaves nothing to look at.
func (r *reader) parse(data []byte) *node {
	if len(data) > maxFile {
		r.fail(1, 1, "WG002", fmt.Sprintf("file has %d octets, more than %d", len(data), maxFile))
		return nil
	}
	if line, col, text := badBytes(data); text != "" {
		r.fail(line, col, "WG002", text)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		r.fail(1, 1, "WG002", err.Error())
		return nil
	}
	var doc yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		return &node{kind: mapNode, pos: Pos{r.file, 1, 1}, dir: r.dir}
	case err != nil:
		r.syntax(err)
		return nil
	}
	r.second(loader)
	if len(doc.Content) == 0 {
		return &node{kind: mapNode, pos: Pos{r.file, 1, 1}, dir: r.dir}
	}
	return r.node(doc.Content[0], 0)
}

// second refuses what follows the first document.
func (r *reader) second(loader *yaml.Loader) {
	var doc yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
	case err != nil:
		r.syntax(err)
	default:
		r.fail(doc.Line, doc.Column, "WG003", "second document; a file holds one")
	}
}

func (r *reader) syntax(err error) {
	bad := &yaml.LoadError{}
	if !errors.As(err, &bad) {
		r.fail(1, 1, "WG002", "not YAML: "+err.Error())
		return
	}
	r.fail(bad.Mark.Line, bad.Mark.Column, "WG002", "not YAML: "+bad.Message)
}

// node copies one YAML node. Aliases are followed, and the count of nodes bounds what they unfold to.
func (r *reader) node(y *yaml.Node, depth int) *node {
	out := &node{pos: Pos{r.file, y.Line, y.Column}, dir: r.dir}
	if r.nodes++; r.nodes > maxNodes || depth > maxDepth {
		if !r.full {
			r.full = true
			r.fail(y.Line, y.Column, "WG002", "too many or too deeply nested values")
		}
		return out
	}
	switch y.Kind {
	case yaml.AliasNode:
		if y.Alias == nil {
			return out
		}
		n := r.node(y.Alias, depth+1)
		n.pos = out.pos
		return n
	case yaml.SequenceNode:
		out.kind = listNode
		for _, c := range y.Content {
			out.items = append(out.items, r.node(c, depth+1))
		}
	case yaml.MappingNode:
		out.kind = mapNode
		r.entries(y, out, depth)
	default:
		out.text = y.Value
		out.plain = y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	}
	return out
}

func (r *reader) entries(y *yaml.Node, out *node, depth int) {
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			r.fail(k.Line, k.Column, "WG006", "a key is a single word")
			continue
		}
		if strings.Contains(k.Value, "${") {
			r.fail(k.Line, k.Column, "WG011", fmt.Sprintf("key %q: variables stand in values only", k.Value))
			continue
		}
		if old := out.entry(k.Value); old != nil {
			r.fail(k.Line, k.Column, "WG004", fmt.Sprintf("key %q is there already, in line %d", k.Value, old.pos.Line))
			continue
		}
		out.keys = append(out.keys, entry{k.Value, Pos{r.file, k.Line, k.Column}, r.node(v, depth+1)})
	}
}

func (n *node) entry(name string) *entry {
	for i := range n.keys {
		if n.keys[i].name == name {
			return &n.keys[i]
		}
	}
	return nil
}

// badBytes finds the first place that is not UTF-8, or holds a control character that YAML does not allow. The parser
// would refuse them too, without saying where.
func badBytes(data []byte) (line, col int, text string) {
	line, col = 1, 1
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRune(data[i:])
		switch {
		case c == utf8.RuneError && n <= 1:
			return line, col, fmt.Sprintf("not UTF-8: octet 0x%02x", data[i])
		case c < 0x20 && c != '\t' && c != '\n' && c != '\r', c == 0x7f:
			return line, col, fmt.Sprintf("control character 0x%02x", c)
		case c == '\r' && !bytes.HasPrefix(data[i+n:], []byte("\n")), c == 0x85, c == 0x2028, c == 0x2029:
			return line, col, fmt.Sprintf("line end U+%04X; lines end in a line feed", c) // editors and YAML would count lines apart
		case c == '\n':
			line, col = line+1, 0
		case c == 0xfeff && i == 0:
			col = 0
		}
		i += n
		col++
	}
	return 0, 0, ""
}
