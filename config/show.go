package config

import (
	"path"
	"reflect"
	"slices"
	"strings"
)

// Show writes the merged configuration as one file without includes. Without defaults it is what the files say,
// variables as written; with them every key is there with the value in force. Read again from the main file's folder it
// gives an equal Config.
func Show(c *Config, defaults bool) []byte {
	w := &writer{out: []byte("version: 1\n")}
	if !defaults {
		w.text = func(n *node) string {
			if text, ok := c.rebased[n]; ok {
				return text
			}
			return n.text
		}
		w.block(c.root, 0, false)
		return w.out
	}
	w.block(c.full(), 0, false)
	return w.out
}

// full makes the tree of everything that is in force.
func (c *Config) full() *node { return structNode(reflect.ValueOf(c).Elem(), "") }

// structNode writes a struct as a map. Keys of parts that are not built, and of what was left out without a default
// that could be written, are not there.
func structNode(v reflect.Value, pattern string) *node {
	out := &node{kind: mapNode}
	for _, f := range fieldsOf(v.Type()) {
		fv := v.FieldByIndex(f.index)
		if f.name == "note" && fv.String() == "" || fv.Kind() == reflect.Pointer && fv.IsNil() || !shown(v, f, join(pattern, f.name)) {
			continue
		}
		out.keys = append(out.keys, entry{name: f.name, val: valueNode(fv, join(pattern, f.name))})
	}
	return out
}

// shown says whether a key may be written: it has a meaning where it stands.
func shown(v reflect.Value, f *field, pattern string) bool {
	for _, r := range refusedHere {
		if r.path == pattern && r.words == nil && r.when == nil {
			return false
		}
	}
	switch at := v.Addr().Interface().(type) {
	case *Listener:
		fit := fits[f.name]
		return fit == nil || fit(at)
	case *Server:
		switch f.name {
		case "sip_transport":
			return !at.SIP.IsZero()
		case "sip_path":
			return at.overWebSocket()
		case "http_transport":
			return !at.HTTP.IsZero()
		}
		return true
	case *Application:
		return f.name != "path_prefix" || at.Kind != "sip"
	default:
		return true
	}
}

func valueNode(v reflect.Value, pattern string) *node {
	if s := scalarOf(v.Type()); s != nil {
		text := s.format(v)
		number := v.Kind() == reflect.Bool || v.Kind() == reflect.Int && v.Type() == reflect.TypeFor[int]() || v.Kind() == reflect.Float64 && v.Type() == reflect.TypeFor[float64]()
		return &node{text: escape(text), plain: number}
	}
	switch v.Kind() {
	case reflect.Pointer:
		return structNode(v.Elem(), pattern)
	case reflect.Struct:
		return structNode(v, pattern)
	case reflect.Map:
		return mapped(v)
	default:
		out := &node{kind: listNode}
		for i := range v.Len() {
			item := valueNode(v.Index(i), pattern+"[]")
			if r, ok := v.Index(i).Interface().(StatusRange); ok {
				item.plain = r.From == r.To
			}
			out.items = append(out.items, item)
		}
		return out
	}
}

// mapped writes a map in the order of its keys.
func mapped(v reflect.Value) *node {
	out := &node{kind: mapNode}
	for _, k := range sortedKeys(v) {
		out.keys = append(out.keys, entry{name: k, val: &node{text: escape(v.MapIndex(reflect.ValueOf(k)).String())}})
	}
	return out
}

func sortedKeys(v reflect.Value) []string {
	var keys []string
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}

// rebase gives the text of a relative path as the main file would write it, with its variables.
func rebase(mainDir string, n *node) string {
	dir := relative(mainDir, path.Join(n.dir, "x"))
	return strings.TrimSuffix(dir, "x") + n.text
}
