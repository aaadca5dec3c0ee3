package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ErrPath says that a dotted path leads nowhere, or to something that one value cannot replace.
var ErrPath = errors.New("config: cannot set")

// Set writes value at a dotted path ("pools.appservers.slow_start", items of lists by name) into the text of the file
// that has the key, or into the one that has the map around it. Everything else of the text stays as it is, comments
// included. It returns that file with its new text. The result is YAML again and has the value there; whether the
// configuration is right says Load with an Overlay.
func Set(files []File, path, value string) (File, error) {
	best, depth := -1, -1
	for i := range files {
		e := editor{text: string(files[i].Data)}
		if err := e.parse(); err != nil {
			return File{}, fmt.Errorf("%s: %w", files[i].Shown, err)
		}
		if d := e.find(path); d > depth {
			best, depth = i, d
		}
	}
	if best < 0 {
		return File{}, fmt.Errorf("%w %s: no file", ErrPath, path)
	}
	e := editor{text: string(files[best].Data)}
	if err := e.parse(); err != nil {
		return File{}, err
	}
	e.find(path)
	if err := e.put(value); err != nil {
		return File{}, fmt.Errorf("%w %s: %w", ErrPath, path, err)
	}
	after := editor{text: e.text}
	if err := after.parse(); err != nil {
		return File{}, fmt.Errorf("%w %s: %w", ErrPath, path, err)
	}
	after.find(path)
	if len(after.rest) > 0 || after.node.Kind == yaml.ScalarNode && after.node.Value != strings.TrimSpace(value) {
		return File{}, fmt.Errorf("%w %s: the text around it is too unusual; edit the file", ErrPath, path)
	}
	out := files[best]
	out.Data = []byte(e.text)
	return out, nil
}

// editor changes one value of a text.
type editor struct {
	text string
	root *yaml.Node
	node *yaml.Node // the deepest node of the path that is there
	rest []string   // keys that are not
}

func (e *editor) parse() error {
	doc, _, err := document([]byte(e.text))
	if err != nil {
		return err
	}
	e.root = &yaml.Node{Kind: yaml.MappingNode}
	if len(doc.Content) > 0 {
		e.root = doc.Content[0]
	}
	return nil
}

// find goes down a path and says how many keys it found. Names may hold dots: the longest that fits is taken.
func (e *editor) find(path string) int {
	keys := strings.Split(strings.ReplaceAll(path, "[", ".["), ".")
	e.node = e.root
	for i := 0; i < len(keys); {
		next, used := child(e.node, keys[i:])
		if next == nil {
			e.rest = keys[i:]
			return i
		}
		e.node, i = next, i+used
	}
	e.rest = nil
	return len(keys)
}

// child gives the value that the first keys name, and how many of them it took.
func child(n *yaml.Node, keys []string) (*yaml.Node, int) {
	for used := len(keys); used > 0; used-- {
		name := strings.Join(keys[:used], ".")
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == name {
					return n.Content[i+1], used
				}
			}
		case yaml.SequenceNode:
			for i, item := range n.Content {
				if nameOf(item) == name || name == "["+strconv.Itoa(i)+"]" {
					return item, used
				}
			}
		}
	}
	return nil, 0
}

func nameOf(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "name" {
			return n.Content[i+1].Value
		}
	}
	return ""
}

// put replaces the value that was found, or adds the keys that were not.
func (e *editor) put(value string) error {
	text := written(value)
	if len(e.rest) == 0 {
		return e.replace(text)
	}
	if e.node.Kind != yaml.MappingNode {
		return fmt.Errorf("there is no %q", strings.Join(e.rest, "."))
	}
	add := quoted(e.rest[len(e.rest)-1], true) + ": " + text
	for _, k := range slices.Backward(e.rest[:len(e.rest)-1]) {
		add = quoted(k, true) + ": {" + add + "}"
	}
	if e.node == e.root && e.node.Style&yaml.FlowStyle == 0 {
		e.text = strings.TrimRight(e.text, "\n") + "\n" + add + "\n"
		return nil
	}
	return e.insert(add)
}

// insert adds a key to a map, behind its first entry when that is a single value, else before it.
func (e *editor) insert(add string) error {
	flow := e.node.Style&yaml.FlowStyle != 0
	if len(e.node.Content) == 0 {
		at := e.offset(e.node.Line, e.node.Column)
		e.text = e.text[:at+1] + add + e.text[at+1:]
		return nil
	}
	key, val := e.node.Content[0], e.node.Content[1]
	start := e.offset(key.Line, key.Column)
	end, single := e.end(val)
	pad := "\n" + strings.Repeat(" ", key.Column-1)
	switch {
	case flow && single:
		e.text = e.text[:end] + ", " + add + e.text[end:]
	case flow:
		e.text = e.text[:start] + add + ", " + e.text[start:]
	case single:
		if i := strings.IndexByte(e.text[end:], '\n'); i >= 0 {
			end += i
		} else {
			end = len(e.text)
		}
		e.text = e.text[:end] + pad + add + e.text[end:]
	default:
		e.text = e.text[:start] + add + pad + e.text[start:]
	}
	return nil
}

// replace puts text in the place of the node that was found.
func (e *editor) replace(text string) error {
	n := e.node
	at := e.offset(n.Line, n.Column)
	if n.Kind == yaml.ScalarNode && n.Value == "" && n.Style == 0 { // "key:" with nothing behind it
		i := strings.LastIndexByte(e.text[:at], ':')
		if i < 0 {
			return errors.New("it has no place in the text")
		}
		e.text = e.text[:i+1] + " " + text + e.text[i+1:]
		return nil
	}
	end, ok := e.end(n)
	if !ok && n.Style&yaml.FlowStyle != 0 && n.Kind == yaml.SequenceNode {
		end, ok = e.closing(at)
	}
	if !ok {
		return errors.New("it is more than one value; set the keys in it")
	}
	e.text = e.text[:at] + text + e.text[end:]
	return nil
}

// offset gives the octet at a place of the text.
func (e *editor) offset(line, col int) int {
	at := len(e.text) - len(strings.TrimPrefix(e.text, "\ufeff"))
	for ; line > 1; line-- {
		at += strings.IndexByte(e.text[at:], '\n') + 1
	}
	for i := range e.text[at:] {
		if col--; col == 0 {
			return at + i
		}
	}
	return len(e.text)
}

// end gives the octet behind a value that stands on one line.
func (e *editor) end(n *yaml.Node) (int, bool) {
	at := e.offset(n.Line, n.Column)
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 {
		return at, false
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		return e.quote(at)
	}
	return at + len(n.Value), n.Value != "" && strings.HasPrefix(e.text[at:], n.Value)
}

// quote gives the octet behind the quoted text that begins at an octet.
func (e *editor) quote(at int) (int, bool) {
	q := e.text[at]
	for i := at + 1; i < len(e.text); i++ {
		switch c := e.text[i]; {
		case c == '\\' && q == '"':
			i++
		case c == q && q == '\'' && i+1 < len(e.text) && e.text[i+1] == q:
			i++
		case c == q:
			return i + 1, true
		}
	}
	return at, false
}

// closing gives the octet behind the bracket that closes the one at an octet.
func (e *editor) closing(at int) (int, bool) {
	depth := 0
	for i := at; i < len(e.text); i++ {
		switch e.text[i] {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1, true
			}
		case '"', '\'':
			next, ok := e.quote(i)
			if !ok {
				return at, false
			}
			i = next - 1
		case '#':
			if e.text[i-1] == ' ' {
				return at, false // a comment within the list would be lost
			}
		}
	}
	return at, false
}

// written gives the text of a value for a file: lists and maps in flow form as they were given, all else as one value.
func written(value string) string {
	value = strings.TrimSpace(value)
	if strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{") {
		var n yaml.Node
		if yaml.Load([]byte(value), &n) == nil {
			return value
		}
	}
	if ambiguous(value, true) {
		return quoted(value, true)
	}
	return value
}
