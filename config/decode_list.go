package config

import (
	"fmt"
	"reflect"
	"strconv"
)

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
