package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
)

// jsonWord are the texts without quotes that are numbers or booleans of JSON; 0123 stays a text.
var jsonWord = regexp.MustCompile(`^(true|false|-?(0|[1-9][0-9]*)(\.[0-9]+)?)$`)

// JSON writes one YAML document, as Show writes it, in JSON: keys keep their order, quoted values are texts.
func JSON(text []byte) ([]byte, error) {
	var bad error
	r := &reader{report: func(p Problem) {
		if bad == nil {
			bad = fmt.Errorf("config: line %d: %s", p.Line, p.Text)
		}
	}}
	root := r.parse(text)
	if bad != nil {
		return nil, bad
	}
	var b bytes.Buffer
	writeJSON(&b, root)
	return b.Bytes(), nil
}

func writeJSON(b *bytes.Buffer, n *node) {
	switch n.kind {
	case mapNode:
		b.WriteByte('{')
		for i, e := range n.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, e.name)
			b.WriteByte(':')
			writeJSON(b, e.val)
		}
		b.WriteByte('}')
	case listNode:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, item)
		}
		b.WriteByte(']')
	default:
		switch {
		case n.plain && jsonWord.MatchString(n.text):
			b.WriteString(n.text)
		case n.plain && (n.text == "" || n.text == "null" || n.text == "~"):
			b.WriteString("null")
		default:
			writeText(b, n.text)
		}
	}
}

// writeText writes a string, with "&" and "<" as they are.
func writeText(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)         // a string and a buffer cannot fail
	b.Truncate(b.Len() - 1) // the line end
}
