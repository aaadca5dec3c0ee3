package routing

// Rebuild is NewTable for the next generation of a pool whose table is t; t may be nil. When names, weights, sites'
// ranks and hash settings are what they were, the map of keys is taken over and not built again: most reloads change
// something else, and a map over many servers takes a tenth of a second to build. Errors are those of NewTable.
func (t *Table) Rebuild(members []Member, h HashSettings) (*Table, error) {
	return build(fromFile(members), h, t)
}

// sameMap says that t's map of keys is the one that next needs. Both have their members sorted by name, so an index
// means the same server in both.
func (t *Table) sameMap(next *Table) bool {
	if t == nil || t.hash != next.hash || len(t.Members) != len(next.Members) {
		return false
	}
	for i := range t.Members {
		a, b := &t.Members[i], &next.Members[i]
		if a.Name != b.Name || a.Weight != b.Weight || a.SiteRank != b.SiteRank {
			return false
		}
	}
	return true
}
