package config

import (
	"fmt"
	"strings"
)

// fill replaces ${NAME} and ${NAME:-default} by the environment's values, and $$ by a dollar. An empty bad is no
// mistake.
func (s *source) fill(text string) (out, bad string) {
	if !strings.Contains(text, "$") {
		return text, ""
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i+1 == len(text) {
			b.WriteString(text)
			return b.String(), ""
		}
		b.WriteString(text[:i])
		text = text[i+1:]
		switch text[0] {
		case '$':
			b.WriteByte('$')
			text = text[1:]
		case '{':
			end := strings.IndexByte(text, '}')
			if end < 0 {
				return "", "variable without its closing brace; write $$ for a dollar"
			}
			value, bad := s.variable(text[1:end])
			if bad != "" {
				return "", bad
			}
			b.WriteString(value)
			text = text[end+1:]
		default:
			b.WriteByte('$')
		}
	}
}

func (s *source) variable(ref string) (value, bad string) {
	name, def, hasDefault := strings.Cut(ref, ":-")
	if !isVariable(name) {
		return "", fmt.Sprintf("%q is no name of a variable", name)
	}
	if s.opts.Env != nil {
		if v, ok := s.opts.Env(name); ok && (v != "" || !hasDefault) {
			return v, ""
		}
	}
	if !hasDefault {
		return "", fmt.Sprintf("variable %s is not set; ${%s:-…} would give it a default", name, name)
	}
	return def, ""
}

func isVariable(name string) bool {
	for i, c := range name {
		letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// escape writes text so that fill gives it back.
func escape(text string) string { return strings.ReplaceAll(text, "$", "$$") }
