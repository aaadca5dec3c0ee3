package dcr

import (
	"fmt"
	"strings"
)

// Graph draws the rules as a tree of text, one element to a line.
func (r *RuleSet) Graph() string {
	var b strings.Builder
	for _, root := range r.tree {
		if root != nil {
			b.WriteString(root.el.name + "\n")
			branches(&b, root, "")
		}
	}
	return b.String()
}

func branches(b *strings.Builder, r *rule, indent string) {
	kids := r.parts()
	for i, k := range kids {
		stem, under := "├─ ", "│  "
		if i == len(kids)-1 {
			stem, under = "└─ ", "   "
		}
		b.WriteString(indent + stem + k.label() + "\n")
		branches(b, k, indent+under)
	}
}

// parts are the children of a rule, else among them.
func (r *rule) parts() []*rule {
	if r.els != nil {
		return append(append([]*rule(nil), r.kids...), r.els)
	}
	return r.kids
}

// label says in a few words what a rule asks for and what it gives.
func (r *rule) label() string {
	switch r.kind {
	case kindOr:
		return "or: the first with a value"
	case kindAnd:
		return "and: the last, if all have a value"
	case kindIf:
		return "if"
	case kindElse:
		return "else → " + r.ret.text
	case kindCase:
		return "session case is " + r.kw.String()
	}
	what := r.el.name + " " + r.name
	if r.kind == kindURI {
		what = "request-uri"
		if r.param != "" {
			what += " parameter " + r.param
		}
	}
	gives := r.ret.text
	switch r.test {
	case testExist:
		what += " is there"
	case testNotExist:
		what += " is absent"
	case testMatch:
		what += " matches " + r.pat.source
		if r.pre != "" && r.ret.origin == fromMatch {
			gives = quoted(r.pre) + " + " + gives
		}
	}
	return what + " → " + gives
}

// DOT draws the rules as a graph for Graphviz. Edges are numbered in the order in which children are tried.
func (r *RuleSet) DOT() string {
	var b strings.Builder
	b.WriteString("digraph rules {\n  node [shape=box, fontname=\"sans-serif\"];\n")
	n := 0
	for _, root := range r.tree {
		if root != nil {
			dot(&b, root, root.el.name, &n)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func dot(b *strings.Builder, r *rule, label string, n *int) int {
	me := *n
	*n++
	fmt.Fprintf(b, "  n%d [label=%s];\n", me, dotQuote(label))
	for i, k := range r.parts() {
		kid := dot(b, k, k.label(), n)
		fmt.Fprintf(b, "  n%d -> n%d [label=\"%d\"];\n", me, kid, i+1)
	}
	return me
}

// dotQuote writes a string as DOT reads it: only quote and backslash need care.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
