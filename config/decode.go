package config

import (
	"fmt"
	"path"
	"reflect"
	"strings"
)

// decoder walks a merged tree and fills the types. It notes where every key and value stood.
type decoder struct {
	*source
	refused []refusal
	pos     map[string]Pos // of values, by dotted path
	keys    map[string]Pos // of keys
	literal bool           // a dollar is a dollar: messages of tests are taken as they are
	rebased map[*node]string
	items   map[string][]string // dotted paths of the items of a list of things, by the list's
}

func newDecoder(s *source, refused []refusal) *decoder {
	return &decoder{source: s, refused: refused, pos: map[string]Pos{}, keys: map[string]Pos{}, rebased: map[*node]string{}, items: map[string][]string{}}
}

func (d *decoder) top(root *node, into any) {
	d.structure(root, reflect.ValueOf(into).Elem(), "", "")
}

// structure fills a struct from a map. where is the dotted path with names, pattern the one with [] for lists, which
// the table of refused keys knows.
func (d *decoder) structure(n *node, v reflect.Value, where, pattern string) {
	d.pos[where] = n.pos
	if n.kind != mapNode && !n.empty() {
		d.wrongKind(n, where, mapNode)
		return
	}
	fields := fieldsOf(v.Type())
	whole := d.notBuiltWhole(n, pattern)
	for i := range n.keys {
		e := &n.keys[i]
		at, pat := join(where, e.name), join(pattern, e.name)
		d.keys[at] = e.pos
		if r := d.refusal(pat, n); r != nil && r.words == nil {
			d.at(e.pos, Error, "WG014", at, at+": "+r.text(""), "")
			continue
		}
		if whole && e.name != "name" {
			continue
		}
		f := fieldNamed(fields, e.name)
		if f == nil {
			d.unknownKey(e, fields, where, pattern)
			continue
		}
		d.value(e.val, v.FieldByIndex(f.index), f, at, pat)
		d.notBuilt(n, e, at, pat)
	}
	for _, f := range fields {
		if f.need && !whole && n.entry(f.name) == nil {
			d.at(n.pos, Error, "WG013", join(where, f.name), missing(where, f.name), "")
		}
	}
}

func missing(where, name string) string {
	if where == "" {
		return fmt.Sprintf("key %q is required", name)
	}
	return fmt.Sprintf("%s: key %q is required", where, name)
}

func fieldNamed(fields []*field, name string) *field {
	for _, f := range fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// unknownKey reports a key that nothing reads. Where the same key with _file is known, somebody wrote a secret in place.
func (d *decoder) unknownKey(e *entry, fields []*field, where, pattern string) {
	if f := fieldNamed(fields, e.name+"_file"); f != nil && f.form == "secret" {
		d.at(e.pos, Error, "WG012", join(where, e.name), fmt.Sprintf("%s: a secret does not stand in the configuration; put it into a file and name that by %s_file",
			join(where, e.name), e.name), e.name+"_file")
		return
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	for _, r := range d.refused {
		if rest, ok := strings.CutPrefix(r.path, pattern); ok && r.words == nil {
			if rest = strings.TrimPrefix(rest, "."); !strings.ContainsAny(rest, ".[") {
				names = append(names, rest)
			}
		}
	}
	if where == "" {
		names = append(names, "version", "include")
	}
	hint := nearest(e.name, names)
	inside := ""
	if where != "" {
		inside = " in " + where
	}
	d.at(e.pos, Error, "WG005", join(where, e.name), fmt.Sprintf("unknown key %q%s%s", e.name, inside, didYouMean(hint)), hint)
}

func (d *decoder) wrongKind(n *node, where string, want kind) {
	found := n.kind.String()
	if n.empty() {
		found = "nothing"
	}
	d.at(n.pos, Error, "WG006", where, fmt.Sprintf("%s: %s expected, not %s", where, want, found), "")
}

// value fills one field.
func (d *decoder) value(n *node, v reflect.Value, f *field, where, pattern string) {
	d.pos[where] = n.pos
	t := v.Type()
	switch s := scalarOf(t); {
	case s != nil:
		d.scalar(n, v, f, where)
	case t.Kind() == reflect.Pointer && scalarOf(t.Elem()) != nil:
		v.Set(reflect.New(t.Elem()))
		d.scalar(n, v.Elem(), f, where)
	case t.Kind() == reflect.Pointer:
		fresh := reflect.New(t.Elem())
		setDefaults(fresh.Interface())
		d.structure(n, fresh.Elem(), where, pattern)
		v.Set(fresh)
	case t.Kind() == reflect.Struct:
		d.structure(n, v, where, pattern)
	case t.Kind() == reflect.Map:
		d.words(n, v, f, where)
	default:
		d.list(n, v, f, where, pattern)
	}
}

func (d *decoder) scalar(n *node, v reflect.Value, f *field, where string) {
	if n.kind != scalarNode || n.empty() {
		d.wrongKind(n, where, scalarNode)
		return
	}
	text, bad := n.text, ""
	if !d.literal {
		text, bad = d.fill(n.text)
	}
	if bad != "" {
		d.at(n.pos, Error, "WG011", where, where+": "+bad, "")
		return
	}
	if v.Type() == reflect.TypeFor[Path]() {
		d.path(n, v, f, where, text)
		return
	}
	if bad := scalarOf(v.Type()).parse(text, f, v); bad != nil {
		d.at(n.pos, Error, bad.code, where, where+": "+bad.text+didYouMean(bad.suggestion), bad.suggestion)
	}
}

// path resolves a file name against the folder of the file that holds it, and keeps it as the main file would write it.
func (d *decoder) path(n *node, v reflect.Value, f *field, where, text string) {
	switch {
	case text == "":
		if !f.optional() {
			d.at(n.pos, Error, "WG010", where, where+": a file name expected, not \"\"", "")
		}
	case f.form == "secret" && strings.Contains(text, "-----BEGIN"), strings.ContainsAny(text, "\n\r\x00"):
		d.at(n.pos, Error, "WG012", where, where+": a file name expected, not what the file would hold", "")
	default:
		p := Path{Text: text, Abs: "/" + resolve(n.dir, text)}
		if !strings.HasPrefix(text, "/") {
			home := path.Dir(d.main().Path)
			p.Text = relative(home, strings.TrimPrefix(p.Abs, "/"))
			if n.dir != home {
				d.rebased[n] = rebase(home, n)
			}
		}
		v.Set(reflect.ValueOf(p))
	}
}

// relative writes target as seen from a folder; both are paths of the file system.
func relative(dir, target string) string {
	if dir == "." {
		return target
	}
	from, to := strings.Split(dir, "/"), strings.Split(target, "/")
	same := 0
	for same < len(from) && same < len(to)-1 && from[same] == to[same] {
		same++
	}
	return strings.Repeat("../", len(from)-same) + strings.Join(to[same:], "/")
}

// words fills a map from names to words.
func (d *decoder) words(n *node, v reflect.Value, f *field, where string) {
	if n.kind != mapNode {
		if !n.empty() {
			d.wrongKind(n, where, mapNode)
		}
		return
	}
	if len(n.keys) > 0 {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for _, e := range n.keys {
		val := reflect.New(v.Type().Elem()).Elem()
		at := join(where, e.name)
		d.keys[at], d.pos[at] = e.pos, e.val.pos
		d.scalar(e.val, val, f, at)
		v.SetMapIndex(reflect.ValueOf(e.name), val)
	}
}
