package config

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schema gives the JSON Schema (2020-12) of wyegate.yaml, made from the types that read it.
func Schema() []byte {
	g := &generator{defs: map[string]any{}, refused: refusedHere, variables: true}
	root := g.object(reflect.TypeFor[Config](), "")
	props := root["properties"].(map[string]any)
	props["include"] = map[string]any{"type": "array", "items": map[string]any{"type": "string"},
		"description": "Files, or globs of files, whose keys are merged in; relative to this file."}
	return g.document(root, "wyegate-v1.schema.json", "wyegate.yaml", "Configuration of wyegate.")
}

// TestSchema gives the JSON Schema of test files.
func TestSchema() []byte {
	g := &generator{defs: map[string]any{}}
	root := g.object(reflect.TypeFor[TestFile](), "")
	return g.document(root, "wyegate-test-v1.schema.json", "wyegate test file", "Tests of a wyegate configuration or of a rule file.")
}

// generator makes schemas. A struct that stands in several places is defined once.
type generator struct {
	defs      map[string]any
	refused   []refusal
	variables bool // values may be ${NAME}
}

func (g *generator) document(root map[string]any, id, title, about string) []byte {
	root["properties"].(map[string]any)["version"] = map[string]any{"const": version, "description": "Version of the format."}
	required, _ := root["required"].([]string)
	root["required"] = append([]string{"version"}, required...)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"], root["title"], root["description"], root["type"] = id, title, about, "object"
	if g.variables {
		g.defs["variable"] = map[string]any{"type": "string", "pattern": `\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}`, "description": "A value that the environment gives."}
	}
	if len(g.defs) > 0 {
		root["$defs"] = g.defs
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		return nil // maps of strings, numbers and booleans always encode
	}
	return out.Bytes()
}

// object is the schema of a struct. Left out is what this build refuses.
func (g *generator) object(t reflect.Type, path string) map[string]any {
	props := map[string]any{}
	var required []string
	for _, f := range fieldsOf(t) {
		at := join(path, f.name)
		r := g.row(at)
		if r != nil && r.words == nil {
			continue
		}
		props[f.name] = g.key(f, r, at)
		if f.need {
			required = append(required, f.name)
		}
	}
	out := map[string]any{"type": []string{"object", "null"}, "properties": props, "additionalProperties": false}
	if required != nil {
		out["type"], out["required"] = "object", required
	}
	return out
}

func (g *generator) row(path string) *refusal {
	for i := range g.refused {
		if r := &g.refused[i]; r.path == path && r.when == nil {
			return r
		}
	}
	return nil
}

// key is the schema of one key.
func (g *generator) key(f *field, r *refusal, path string) map[string]any {
	if r != nil {
		allowed := *f
		allowed.words = slices.DeleteFunc(slices.Clone(f.words), func(w string) bool { return slices.Contains(r.words, w) })
		f = &allowed
	}
	out := g.value(f, f.typ, path)
	if f.typ == reflect.TypeFor[bool]() && r != nil {
		out["enum"] = []bool{!slices.Contains(r.words, "true")}
	}
	if r != nil && strings.HasPrefix(r.words[0], "*") {
		out["not"] = map[string]any{"pattern": strings.ReplaceAll(r.words[0][1:], ".", `\.`) + "$"}
	}
	out["description"] = f.doc + bounds(f)
	if f.def != "" {
		out["default"] = defaultOf(f)
	}
	return out
}

func (g *generator) value(f *field, t reflect.Type, path string) map[string]any {
	switch s := scalarOf(t); {
	case s != nil:
		return g.orVariable(s.schema(f), t)
	case t.Kind() == reflect.Pointer:
		return g.value(f, t.Elem(), path)
	case t.Kind() == reflect.Struct:
		return g.ref(t, path)
	case t.Kind() == reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": g.value(f, t.Elem(), path)}
	default:
		return map[string]any{"type": []string{"array", "null"}, "items": g.value(f, t.Elem(), path+"[]")}
	}
}

// orVariable lets the environment give a value that is not free text anyway.
func (g *generator) orVariable(s map[string]any, t reflect.Type) map[string]any {
	if _, free := s["pattern"]; !g.variables || t.Kind() == reflect.String && s["enum"] == nil && !free {
		return s
	}
	if s["type"] == "string" && s["enum"] == nil && s["pattern"] == nil {
		return s
	}
	return map[string]any{"anyOf": []any{s, map[string]any{"$ref": "#/$defs/variable"}}}
}

// ref puts a struct among the definitions.
func (g *generator) ref(t reflect.Type, path string) map[string]any {
	if _, there := g.defs[t.Name()]; !there {
		g.defs[t.Name()] = nil
		g.defs[t.Name()] = g.object(t, path)
	}
	return map[string]any{"$ref": "#/$defs/" + t.Name()}
}

// bounds puts bounds into words where JSON Schema has no way to say them.
func bounds(f *field) string {
	var format func(float64) string
	switch elem(f.typ) {
	case reflect.TypeFor[time.Duration]():
		format = func(x float64) string { return formatDuration(time.Duration(x)) }
	case reflect.TypeFor[Size]():
		format = func(x float64) string { return formatSize(int64(x)) }
	case reflect.TypeFor[Percent](), reflect.TypeFor[Share]():
		format = func(x float64) string { return formatFloat(x) + "%" }
	}
	if format == nil || f.min == 0 && math.IsInf(f.max, 1) {
		return ""
	}
	return " Range:" + f.betweenOf(format) + "."
}

// defaultOf is the default as a JSON value.
func defaultOf(f *field) any {
	one := func(text string) any {
		switch elem(f.typ).Kind() {
		case reflect.Bool:
			return text == "true"
		case reflect.Int, reflect.Float64:
			if n, err := strconv.ParseFloat(text, 64); err == nil {
				return n
			}
		}
		return text
	}
	if f.typ.Kind() != reflect.Slice {
		return one(f.def)
	}
	var list []any
	for p := range strings.SplitSeq(f.def, ",") {
		list = append(list, one(p))
	}
	return list
}

// textSchema is free text, or one of some words. Text may be written without quotes, and other readers of YAML then see
// numbers and booleans in it.
func textSchema(f *field) map[string]any {
	if f.words == nil {
		return map[string]any{"type": []string{"string", "number", "boolean"}}
	}
	words := []any{}
	for _, w := range f.words {
		words = append(words, w)
		if w == "off" {
			words = append(words, false)
		}
	}
	return map[string]any{"enum": words}
}

func typed(t string) func(*field) map[string]any {
	return func(*field) map[string]any { return map[string]any{"type": t} }
}

func pattern(p string) func(*field) map[string]any {
	return func(*field) map[string]any { return map[string]any{"type": "string", "pattern": p} }
}

func intSchema(f *field) map[string]any { return numberSchema("integer", f) }

func floatSchema(f *field) map[string]any { return numberSchema("number", f) }

func numberSchema(t string, f *field) map[string]any {
	out := map[string]any{"type": t}
	if !math.IsInf(f.min, 0) {
		out["minimum"] = f.min
	}
	if !math.IsInf(f.max, 0) {
		out["maximum"] = f.max
	}
	return out
}

func modeSchema(*field) map[string]any {
	return map[string]any{"type": []string{"string", "integer"}, "pattern": `^0?[0-7]{3}$`}
}

func statusSchema(*field) map[string]any {
	return map[string]any{"type": []string{"integer", "string"}, "minimum": 100, "maximum": 699, "pattern": `^[1-6][0-9]{2}(-[1-6][0-9]{2})?$`}
}
