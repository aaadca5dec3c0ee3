package site

import "testing"

// A state and an event have at most one row, and no row leads where it came from.
func TestTableIsAFunction(t *testing.T) {
	seen := map[[2]uint8]bool{}
	for _, r := range table {
		k := [2]uint8{uint8(r.from), uint8(r.on)}
		if seen[k] {
			t.Errorf("%s has two rows for event %d", r.from, r.on)
		}
		seen[k] = true
		if r.from == r.to {
			t.Errorf("%s leads to itself", r.from)
		}
	}
}
