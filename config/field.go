package config

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// field is what the tags of one struct field say. The tags are the only description of a key: the walk, the defaults,
// Show and the JSON Schema read them.
//
//	yaml     name of the key
//	default  as it would be written in the file; lists with commas
//	doc      one line for people
//	words    the allowed words
//	min,max  bounds, written like a value; both count
//	form     shape of a text: name, token, header, host, path, urlpath, secret, local
//	code     code of a value out of bounds, where it is not WG010
//	need     "yes": the key must be there
type field struct {
	index    []int
	name     string
	def      string
	hasDef   bool
	doc      string
	words    []string
	min, max float64
	form     string
	code     string
	need     bool
	typ      reflect.Type
}

// optional says that an empty text stands for no value.
func (f *field) optional() bool { return !f.need && f.def == "" && f.words == nil }

// fieldsOf gives the fields of a struct type in their order, those of embedded structs at their place.
func fieldsOf(t reflect.Type) []*field {
	var out []*field
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Anonymous {
			for _, f := range fieldsOf(sf.Type) {
				f.index = append([]int{i}, f.index...)
				out = append(out, f)
			}
			continue
		}
		name := sf.Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		out = append(out, fieldOf(sf, i, name))
	}
	return out
}

func fieldOf(sf reflect.StructField, i int, name string) *field {
	f := &field{index: []int{i}, name: name, doc: sf.Tag.Get("doc"), form: sf.Tag.Get("form"), code: sf.Tag.Get("code"),
		need: sf.Tag.Get("need") == "yes", min: math.Inf(-1), max: math.Inf(1), typ: sf.Type}
	f.def, f.hasDef = sf.Tag.Lookup("default")
	if w := sf.Tag.Get("words"); w != "" {
		f.words = strings.Split(w, ",")
	}
	switch elem(sf.Type) {
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[Size](), reflect.TypeFor[Percent](), reflect.TypeFor[Share]():
		f.min = 0
	}
	if b := sf.Tag.Get("min"); b != "" {
		f.min = bound(b, elem(sf.Type))
	}
	if b := sf.Tag.Get("max"); b != "" {
		f.max = bound(b, elem(sf.Type))
	}
	return f
}

// elem is the type of a value, or of the values in a list.
func elem(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		return t.Elem()
	}
	return t
}

// bound reads a bound as the value itself would be read. A percentage is bounded by its number.
func bound(text string, t reflect.Type) float64 {
	if t == reflect.TypeFor[Percent]() || t == reflect.TypeFor[Share]() {
		n, _ := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		return n
	}
	v := reflect.New(t).Elem()
	open := &field{min: math.Inf(-1), max: math.Inf(1)}
	if s := scalarOf(t); s == nil || s.parse(text, open, v) != nil {
		return math.NaN() // a wrong tag: every value is refused, and the tests of the tags fail
	}
	if v.CanFloat() {
		return v.Float()
	}
	return float64(v.Int())
}

// between says the bounds in words.
func (f *field) between() string { return f.betweenOf(formatFloat) }

func (f *field) betweenOf(format func(float64) string) string {
	switch low, high := !math.IsInf(f.min, 0), !math.IsInf(f.max, 0); {
	case low && high:
		return " from " + format(f.min) + " to " + format(f.max)
	case low:
		return " of at least " + format(f.min)
	case high:
		return " of at most " + format(f.max)
	default:
		return ""
	}
}

// shape checks a text by the form of its field.
func (f *field) shape(text string) *fault {
	switch f.form {
	case "name":
		if !isName(text) {
			return expected("WG010", "a name of 1 to 64 letters, digits, dots, dashes and underscores", text)
		}
	case "token", "header":
		if !isToken(text) {
			return expected("WG010", "a token (letters, digits and !#$%&'*+-.^_`|~)", text)
		}
	case "host":
		if !isHostName(strings.TrimPrefix(text, "*.")) && !isIPLiteral(text) {
			return expected("WG109", "a host such as www.example.net or *.example.net, without port,", text)
		}
	case "urlpath":
		if !isURLPath(text) {
			return expected("WG010", "a path that begins with / and has no query", text)
		}
	case "alias":
		if !isAlias(text) {
			return expected("WG109", "a host, with or without port,", text)
		}
	}
	return nil
}

func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && (i == 0 || c != '.' && c != '-' && c != '_') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// isToken follows RFC 9110 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(s[i])) {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

func isURLPath(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '?' || c == '#' {
			return false
		}
	}
	return strings.HasPrefix(s, "/")
}

// isIPLiteral says whether a host is an address as an authority writes it.
func isIPLiteral(s string) bool {
	h, _, ok := splitHostPort(s + ":1")
	return ok && h != "" && (strings.HasPrefix(s, "[") || looksLikeAddress(h))
}

func isAlias(s string) bool {
	host, _, ok := splitHostPort(s)
	if !ok {
		host = strings.Trim(s, "[]")
	}
	return isHostName(host) || strings.Contains(host, ":")
}

// keysOf gives the keys of a struct type in their order.
func keysOf[T any]() []string {
	var out []string
	for _, f := range fieldsOf(reflect.TypeFor[T]()) {
		out = append(out, f.name)
	}
	return out
}
