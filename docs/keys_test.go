package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/config"
)

// schemaNode is what this page takes from the JSON Schema of wyegate.yaml.
type schemaNode struct {
	Ref         string                 `json:"$ref"`
	Description string                 `json:"description"`
	Default     any                    `json:"default"`
	Enum        []any                  `json:"enum"`
	AnyOf       []*schemaNode          `json:"anyOf"`
	Items       *schemaNode            `json:"items"`
	Properties  map[string]*schemaNode `json:"properties"`
	Defs        map[string]*schemaNode `json:"$defs"`
}

// TestPageOfKeys holds keys.md against the schema, and so against the types that read the file. -update writes it.
func TestPageOfKeys(t *testing.T) {
	var top schemaNode
	if err := json.Unmarshal(config.Schema(), &top); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# All keys\n\n" +
		"Every key of `wyegate.yaml` with its words and its default, made from the schema that `wyegate config schema` prints.\n" +
		"`[]` stands for the items of a list. Every object takes `note`, a free text that is shown and does nothing. What the\n" +
		"keys are for is told by task in [configuration.md](configuration.md).\n")
	for _, section := range sections(&top) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| key | default | what |\n| --- | --- | --- |\n", section, top.Properties[section].Description)
		rows(&b, &top, section, top.Properties[section])
	}
	const page = "keys.md"
	if *update {
		write(t, page, b.String())
		return
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != b.String() {
		t.Errorf("%s is not what the schema gives: go test ./docs -run TestPageOfKeys -update", page)
	}
}

// sections are the top-level keys that are objects or lists of objects, in the order in which a file is read best.
func sections(top *schemaNode) []string {
	order := []string{"listeners", "services", "pools", "sites", "site_policy", "limits", "logging", "admin", "node", "cluster", "certificates"}
	for name, p := range top.Properties {
		if object(top, p) != nil && !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	return order
}

// object is the definition of an object, or of the objects of a list; nil for plain values.
func object(top, p *schemaNode) *schemaNode {
	for _, n := range append([]*schemaNode{p, p.Items}, p.AnyOf...) {
		if n == nil {
			continue
		}
		if name, ok := strings.CutPrefix(n.Ref, "#/$defs/"); ok && name != "variable" {
			return top.Defs[name]
		}
	}
	return nil
}

func rows(b *strings.Builder, top *schemaNode, path string, p *schemaNode) {
	if p.Items != nil {
		path += "[]"
	}
	o := object(top, p)
	if o == nil {
		return
	}
	names := make([]string, 0, len(o.Properties))
	for name := range o.Properties {
		if name != "note" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		child := o.Properties[name]
		if object(top, child) == nil {
			fmt.Fprintf(b, "| `%s.%s` | %s | %s |\n", path, name, shownDefault(child), cell(child.Description+wordsOf(child)))
			continue
		}
		rows(b, top, path+"."+name, child)
	}
}

func shownDefault(p *schemaNode) string {
	switch d := p.Default.(type) {
	case nil:
		return ""
	case []any:
		return "`" + strings.ReplaceAll(fmt.Sprint(d), " ", ", ") + "`"
	default:
		return fmt.Sprintf("`%v`", d)
	}
}

// wordsOf lists the words that a value may be.
func wordsOf(p *schemaNode) string {
	for _, n := range append([]*schemaNode{p, p.Items}, p.AnyOf...) {
		if n == nil || len(n.Enum) < 2 {
			continue
		}
		words := make([]string, len(n.Enum))
		for i, w := range n.Enum {
			words[i] = fmt.Sprintf("`%v`", w)
		}
		return " Words: " + strings.Join(words, ", ") + "."
	}
	return ""
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
