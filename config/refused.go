package config

import (
	"slices"
	"strings"
)

// refusal is one key, or some values of one key, that belong to a part which is not in this build (WG014).
type refusal struct {
	path  string             // dotted, [] for the items of a list
	words []string           // values that are refused; nil: the key itself. "*x" stands for every value that ends in x
	when  func(n *node) bool // asked with the map that holds the key; nil: always
	what  string             // the part in words, where the key does not say it
	why   string             // what to do instead, where there is something
	whole bool               // the keys beside it belong to that part too, and are not looked at
}

// text says what is refused, where neither the key nor the value says it.
func (r *refusal) text(value string) string {
	if r.what != "" {
		value = r.what
	}
	if value != "" {
		value += " is "
	}
	return value + "not in this build" + r.because()
}

func (r *refusal) because() string {
	if r.why == "" {
		return ""
	}
	return "; " + r.why
}

func matches(word, text string) bool {
	if tail, ok := strings.CutPrefix(word, "*"); ok {
		return strings.HasSuffix(text, tail)
	}
	return word == text
}

// refusedHere is the list of what this build lacks. A part that is added takes its rows out; nothing else changes.
var refusedHere = []refusal{
	{path: "virtual_addresses"},
	{path: "director"},
	{path: "diameter"},
	{path: "capture"},
	{path: "tracing"},

	{path: "cluster.nodes", when: func(n *node) bool { return n.get("nodes").kind == listNode && len(n.get("nodes").items) > 1 },
		what: "more than one node"},
	{path: "cluster.engine", words: []string{"external"}},
	{path: "cluster.tls"},
	{path: "cluster.jetstream"},
	{path: "cluster.share"},
	{path: "cluster.urls"},
	{path: "cluster.credentials_file"},
	{path: "cluster.prefix"},
	{path: "cluster.replicas"},

	{path: "admin.http", why: "use the admin socket"},
	{path: "admin.metrics.peers", words: []string{"true"}},
	{path: "certificates[].acme", whole: true},

	{path: "listeners[].protocol", words: []string{"diameter"}},
	{path: "listeners[].transport", words: []string{"sctp"}},
	{path: "listeners[].group"},

	{path: "listeners[].paused", words: []string{"true"}, what: "a paused listener"},

	{path: "services[].affinity.rules", words: []string{"*.wasm"}, what: "a plug-in"},
	{path: "services[].applications[].affinity.rules", words: []string{"*.wasm"}, what: "a plug-in"},

	{path: "pools[].connect.http", words: []string{"h2"}},
	{path: "pools[].servers[].expand", why: "write one server for each address", whole: true},
}

func textOf(n *node) string {
	if n == nil {
		return ""
	}
	return n.text
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
