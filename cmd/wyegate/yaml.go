package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// yaml writes a JSON value as YAML, in the order of its members. Strings that YAML could read as something else stay in
// quotes.
func yaml(b []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var out bytes.Buffer
	y := &yamlWriter{d: d, out: &out}
	if err := y.value(0, true); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

type yamlWriter struct {
	d   *json.Decoder
	out *bytes.Buffer
}

// value writes one value. What stands at the beginning of a line is written at once; behind a key or a dash the first
// line of an object goes on that line, a list begins a new one.
func (y *yamlWriter) value(indent int, lineStart bool) error {
	tok, err := y.d.Token()
	if err != nil {
		return err
	}
	switch tok {
	case json.Delim('{'):
		return y.object(indent, lineStart)
	case json.Delim('['):
		return y.list(indent, lineStart)
	}
	if !lineStart {
		y.out.WriteByte(' ')
	}
	fmt.Fprintln(y.out, scalar(tok))
	return nil
}

func (y *yamlWriter) object(indent int, lineStart bool) error {
	if !y.d.More() {
		return y.empty("{}", lineStart)
	}
	if !lineStart {
		y.out.WriteByte('\n')
	}
	for first := true; y.d.More(); first = false {
		key, err := y.d.Token()
		if err != nil {
			return err
		}
		if !first || !lineStart {
			y.out.WriteString(strings.Repeat("  ", indent))
		}
		y.out.WriteString(scalar(key) + ":")
		if err := y.value(indent+1, false); err != nil {
			return err
		}
	}
	_, err := y.d.Token()
	return err
}

func (y *yamlWriter) list(indent int, lineStart bool) error {
	if !y.d.More() {
		return y.empty("[]", lineStart)
	}
	if !lineStart {
		y.out.WriteByte('\n')
	}
	for first := true; y.d.More(); first = false {
		if !first || !lineStart {
			y.out.WriteString(strings.Repeat("  ", indent))
		}
		y.out.WriteString("- ")
		if err := y.value(indent+1, true); err != nil {
			return err
		}
	}
	_, err := y.d.Token()
	return err
}

func (y *yamlWriter) empty(text string, lineStart bool) error {
	if !lineStart {
		y.out.WriteByte(' ')
	}
	y.out.WriteString(text + "\n")
	_, err := y.d.Token()
	return err
}

var plainScalar = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)

// notText are words that YAML readers of one age or another take for something else.
var notText = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

func scalar(tok json.Token) string {
	s, isText := tok.(string)
	if !isText {
		if tok == nil {
			return "null"
		}
		return fmt.Sprint(tok)
	}
	if plainScalar.MatchString(s) && !slices.Contains(notText, strings.ToLower(s)) {
		return s
	}
	b, err := json.Marshal(s)
	if err != nil { // a string always has a JSON form
		return fmt.Sprintf("%q", s)
	}
	return string(b)
}
