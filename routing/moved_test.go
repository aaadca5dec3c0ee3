package routing

import "testing"

// A server that leaves takes its own partitions along and, for the balance of the rest, at most 0.5 % of the others.
func TestMovedCountsPartitions(t *testing.T) {
	r := &Registry{}
	table := func(names ...string) *Table {
		var members []Member
		for _, n := range names {
			members = append(members, Member{Server: r.Server("p", n), Weight: 100})
		}
		tab, err := NewTable(members, DefaultHash)
		if err != nil {
			t.Fatal(err)
		}
		return tab
	}
	four := table("as1", "as2", "as3", "as4")
	if n := four.Moved(table("as4", "as3", "as2", "as1")); n != 0 {
		t.Errorf("another order of lines moves %d partitions", n)
	}
	own := four.Partitions("as2")
	if n := four.Moved(table("as1", "as3", "as4")); n < own || n > own+DefaultHash.Partitions/200 {
		t.Errorf("%d partitions move, as2 had %d", n, own)
	}
}
