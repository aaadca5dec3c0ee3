package config

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
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

// list fills a slice. It replaces a default.
func (d *decoder) list(n *node, v reflect.Value, f *field, where, pattern string) {
	if n.kind != listNode {
		if !n.empty() {
			d.wrongKind(n, where, listNode)
		}
		return
	}
	if len(n.items) == 0 && !f.hasDef {
		return // as if it were left out
	}
	if scalarOf(v.Type().Elem()) == nil {
		d.things(n, v, where, pattern)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		d.value(item, out.Index(i), f, where+"["+strconv.Itoa(i)+"]", pattern+"[]")
	}
	v.Set(out)
}

// things fills a list of structs. A name that is used already is refused, and what has it a second time left out: what
// it lacks is no mistake of its own.
func (d *decoder) things(n *node, v reflect.Value, where, pattern string) {
	out := reflect.MakeSlice(v.Type(), 0, len(n.items))
	taken := map[string]Pos{}
	d.items[where] = nil
	for i, item := range n.items {
		at := where + "[" + strconv.Itoa(i) + "]"
		name := item.name()
		old, twice := taken[name]
		if name != "" && !twice {
			taken[name] = item.get("name").pos
			at = join(where, name)
		}
		one := reflect.New(v.Type().Elem())
		setDefaults(one.Interface())
		d.structure(item, one.Elem(), at, pattern+"[]")
		if twice {
			d.at(item.get("name").pos, Error, "WG101", join(at, "name"), fmt.Sprintf("%s: name %q is used already, in %s line %d", where, name, old.File, old.Line), "")
			continue
		}
		out = reflect.Append(out, one.Elem())
		d.items[where] = append(d.items[where], at)
	}
	v.Set(out)
}

// refusal finds the row of the table for a key; n is the map that holds it.
func (d *decoder) refusal(pattern string, n *node) *refusal {
	for i := range d.refused {
		if r := &d.refused[i]; r.path == pattern && (r.when == nil || r.when(n)) {
			return r
		}
	}
	return nil
}

// notBuiltWhole says whether a map has a key that takes the whole map into a part that is not in this build.
func (d *decoder) notBuiltWhole(n *node, pattern string) bool {
	return slices.ContainsFunc(n.keys, func(e entry) bool {
		r := d.refusal(join(pattern, e.name), n)
		return r != nil && r.whole
	})
}

// notBuilt refuses values of parts that are not in this build.
func (d *decoder) notBuilt(n *node, e *entry, where, pattern string) {
	r := d.refusal(pattern, n)
	if r == nil {
		r = d.refusal(pattern+"[]", n)
	}
	if r == nil {
		return
	}
	values := []*node{e.val}
	if e.val.kind == listNode {
		values = e.val.items
	}
	for _, v := range values {
		text, _ := d.fill(v.text)
		if v.kind == scalarNode && slices.ContainsFunc(r.words, func(w string) bool { return matches(w, text) }) {
			d.at(v.pos, Error, "WG014", where, where+": "+r.text(text), "")
		}
	}
}

// setDefaults fills a struct with what its tags say.
func setDefaults(into any) {
	v := reflect.ValueOf(into).Elem()
	for _, f := range fieldsOf(v.Type()) {
		fv := v.FieldByIndex(f.index)
		switch {
		case f.hasDef && f.def != "":
			setDefault(fv, f)
		case fv.Kind() == reflect.Struct && scalarOf(fv.Type()) == nil:
			setDefaults(fv.Addr().Interface())
		}
	}
}

func setDefault(v reflect.Value, f *field) {
	if v.Type() == reflect.TypeFor[Path]() {
		v.Set(reflect.ValueOf(Path{Text: f.def, Abs: f.def}))
		return
	}
	if v.Kind() != reflect.Slice {
		scalarOf(v.Type()).parse(f.def, f, v)
		return
	}
	parts := strings.Split(f.def, ",")
	list := reflect.MakeSlice(v.Type(), len(parts), len(parts))
	for i, p := range parts {
		scalarOf(v.Type().Elem()).parse(p, f, list.Index(i))
	}
	v.Set(list)
}
