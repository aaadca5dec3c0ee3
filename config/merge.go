package config

import "fmt"

// merge puts the keys of an included file behind those of the file that includes it. Maps merge key by key, lists of
// named things by name; anything else that is there twice is a mistake that shows both places (operations.md 3.4).
func (s *source) merge(into, more *node, path string) {
	for _, e := range more.keys {
		old := into.entry(e.name)
		if old == nil {
			into.keys = append(into.keys, e)
			continue
		}
		at := join(path, e.name)
		switch a, b := old.val, e.val; {
		case b.empty():
		case a.empty():
			old.val, old.pos = b, e.pos
		case a.kind == mapNode && b.kind == mapNode:
			s.merge(a, b, at)
		case a.kind == listNode && b.kind == listNode && (e.name == "listeners" || named(a) || named(b)):
			s.mergeList(a, b, at)
		default:
			s.at(e.pos, Error, "WG004", at, fmt.Sprintf("key %q is there already, in %s line %d", at, old.pos.File, old.pos.Line), "")
		}
	}
}

func (s *source) mergeList(into, more *node, path string) {
	before := into.items
	taken := map[string]bool{}
	for _, item := range more.items {
		name := item.name()
		old := find(before, name)
		if old == nil || taken[name] { // twice in one file is no merge: the walk says so (WG101)
			into.items = append(into.items, item)
			continue
		}
		taken[name] = true
		rest := *item
		rest.keys = nil
		for _, e := range item.keys {
			if e.name != "name" {
				rest.keys = append(rest.keys, e)
			}
		}
		s.merge(old, &rest, join(path, name))
	}
}

func find(items []*node, name string) *node {
	if name == "" {
		return nil
	}
	for _, item := range items {
		if item.name() == name {
			return item
		}
	}
	return nil
}

// named says whether a list holds things with names.
func named(list *node) bool {
	for _, item := range list.items {
		if item.name() != "" {
			return true
		}
	}
	return false
}

// join puts a key behind a dotted path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
