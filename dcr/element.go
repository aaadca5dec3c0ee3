package dcr

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"
)

// element is one element of the file: what etree read, and where it stands.
type element struct {
	xml    *etree.Element
	name   string // as written, with a prefix if there is one
	start  int    // offset of the '<'
	attrs  []attribute
	text   []chunk // pieces of character data directly inside
	closed bool    // its end tag is in the file
	parent *element
	kids   []*element
	path   string
	ignore []string // codes of a dcr:ignore comment right before it
}

// attribute is one attribute with its places.
type attribute struct {
	name, value       string
	nameAt, valueAt   int // offsets of the first octet
	repeated, foreign bool
}

// chunk is a piece of the text.
type chunk struct{ from, to int }

// startTag finds the places of a start tag's name and attributes. The tag was read by encoding/xml already, so it is
// well-formed.
func startTag(text []byte, at int) *element {
	el := &element{start: at}
	i := at + 1
	for i < len(text) && !isSpace(text[i]) && text[i] != '>' && text[i] != '/' {
		i++
	}
	el.name = string(text[at+1 : i])
	for i < len(text) {
		switch c := text[i]; {
		case isSpace(c) || c == '/':
			i++
			continue
		case c == '>':
			return el
		}
		a := attribute{nameAt: i}
		for i < len(text) && text[i] != '=' && !isSpace(text[i]) {
			i++
		}
		a.name = string(text[a.nameAt:i])
		for i < len(text) && text[i] != '"' && text[i] != '\'' {
			i++
		}
		if i >= len(text) {
			return el
		}
		a.valueAt = i + 1
		i++
		if n := bytes.IndexByte(text[i:], text[a.valueAt-1]); n >= 0 {
			i += n + 1
		} else {
			i = len(text)
		}
		a.repeated = slices.ContainsFunc(el.attrs, func(b attribute) bool { return b.name == a.name })
		a.foreign = a.name == "xmlns" || strings.Contains(a.name, ":")
		el.attrs = append(el.attrs, a)
	}
	return el
}

// join walks the tree of etree and the places side by side: both are in document order.
func join(x *etree.Element, parent *element, rest *[]*element) *element {
	el := (*rest)[0]
	*rest = (*rest)[1:]
	el.xml, el.parent = x, parent
	for i := range min(len(el.attrs), len(x.Attr)) {
		el.attrs[i].value = x.Attr[i].Value
	}
	el.path = pathOf(el)
	var ignore []string
	for _, t := range x.Child {
		switch c := t.(type) {
		case *etree.Comment:
			ignore = append(ignore, ignoredCodes(c.Data)...)
		case *etree.CharData:
			if !c.IsWhitespace() {
				ignore = nil
			}
		case *etree.Element:
			if len(*rest) == 0 {
				return el
			}
			before := len(el.kids)
			el.kids = append(el.kids, (*rest)[0])
			el.kids[before].ignore = ignore
			join(c, el, rest)
			ignore = nil
		}
	}
	return el
}

// ignoredCodes reads a comment of the form "dcr:ignore DCR312"; several codes may follow.
func ignoredCodes(comment string) []string {
	words := strings.FieldsFunc(comment, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == ',' })
	if len(words) < 2 || words[0] != "dcr:ignore" {
		return nil
	}
	return words[1:]
}

// ignores looks at the comment before the element itself; the parts of a condition share the comment of the condition.
func (el *element) ignores(code string) bool {
	switch el.name {
	case "exist", "notexist", "match", "equal":
		if el.parent != nil && el.parent.ignores(code) {
			return true
		}
	}
	return slices.Contains(el.ignore, code)
}

// pathOf is XPath-like: a position stands behind the name of whatever can repeat (section 11).
func pathOf(el *element) string {
	if el.parent == nil {
		return "/"
	}
	path := el.name
	switch el.name {
	case "sip-rules", "http-rules", "else", "exist", "notexist", "match", "equal":
	default:
		n := 0
		for _, k := range el.parent.kids {
			if k.name == el.name {
				n++
			}
			if k == el {
				break
			}
		}
		path += "[" + strconv.Itoa(n) + "]"
	}
	if el.parent.parent == nil {
		return "/" + path
	}
	return el.parent.path + "/" + path
}

// attr finds an attribute by name; the first when it is repeated.
func (el *element) attr(name string) *attribute {
	for i := range el.attrs {
		if el.attrs[i].name == name {
			return &el.attrs[i]
		}
	}
	return nil
}

// letter is one character of a text with its place in the file.
type letter struct {
	r  rune
	at int
}

// literal gives the text of an element, references resolved and trimmed, with the place of each character: a mistake in
// a pattern is shown at the character itself.
func (s *source) literal(el *element) []letter {
	var out []letter
	for _, c := range el.text {
		raw := s.text[c.from:c.to]
		if bytes.HasPrefix(raw, []byte("<![CDATA[")) {
			out = appendLetters(out, raw[9:max(9, len(raw)-3)], c.from+9, false)
			continue
		}
		out = appendLetters(out, raw, c.from, true)
	}
	for len(out) > 0 && out[0].r < 0x80 && isSpace(byte(out[0].r)) {
		out = out[1:]
	}
	for len(out) > 0 && out[len(out)-1].r < 0x80 && isSpace(byte(out[len(out)-1].r)) {
		out = out[:len(out)-1]
	}
	return out
}

func appendLetters(out []letter, raw []byte, at int, references bool) []letter {
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		switch {
		case r == '\r': // XML reads every end of line as one line feed
			r = '\n'
			if i+1 < len(raw) && raw[i+1] == '\n' {
				n = 2
			}
		case r == '&' && references:
			if end := bytes.IndexByte(raw[i:], ';'); end > 0 {
				var known bool
				if r, known = reference(string(raw[i+1 : i+end])); !known {
					i += end + 1
					continue
				}
				n = end + 1
			}
		}
		out = append(out, letter{r, at + i})
		i += n
	}
	return out
}

// reference resolves what stands between '&' and ';'.
func reference(name string) (rune, bool) {
	switch name {
	case "lt":
		return '<', true
	case "gt":
		return '>', true
	case "amp":
		return '&', true
	case "quot":
		return '"', true
	case "apos":
		return '\'', true
	}
	digits, base := strings.CutPrefix(name, "#x")
	if base {
		n, err := strconv.ParseUint(digits, 16, 32)
		return rune(n), err == nil
	}
	if digits, ok := strings.CutPrefix(name, "#"); ok {
		n, err := strconv.ParseUint(digits, 10, 32)
		return rune(n), err == nil
	}
	return 0, false
}

func text(l []letter) string {
	var b strings.Builder
	for _, c := range l {
		b.WriteRune(c.r)
	}
	return b.String()
}

// list joins words as a sentence does: "a, b or c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return fmt.Sprintf("%s or %s", strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}
