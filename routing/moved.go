package routing

// Moved counts the partitions whose owner is another one in next, site rank by site rank: the preview of a change
// (operations.md 4.2). Tables of different sizes share nothing, so all of next counts.
func (t *Table) Moved(next *Table) int {
	n := 0
	for i := range next.ranks {
		now := &next.ranks[i]
		was := t.rankTable(now.rank)
		if was == nil || was.row == 0 || now.row == 0 || t.hash.Partitions != next.hash.Partitions {
			n += next.hash.Partitions
			continue
		}
		for p := range next.hash.Partitions {
			if t.Members[was.stored[p*was.row]].Name != next.Members[now.stored[p*now.row]].Name {
				n++
			}
		}
	}
	return n
}

func (t *Table) rankTable(rank int) *rankTable {
	for i := range t.ranks {
		if t.ranks[i].rank == rank {
			return &t.ranks[i]
		}
	}
	return nil
}
