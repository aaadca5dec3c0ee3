package routing

import "testing"

// A reload that leaves names, weights and ranks alone takes the map over; any of them changed builds it as NewTable does.
func TestRebuild(t *testing.T) {
	was := table(t, mems(&Registry{}, 100, 100, 50))
	for name, c := range map[string]struct {
		change func(m []Member) []Member
		h      HashSettings
		shared bool
	}{
		"nothing":    {func(m []Member) []Member { return m }, HashSettings{}, true},
		"lines":      {func(m []Member) []Member { m[0], m[2] = m[2], m[0]; return m }, HashSettings{}, true},
		"limit":      {func(m []Member) []Member { m[1].MaxConcurrent = 7; return m }, HashSettings{}, true},
		"weight":     {func(m []Member) []Member { m[1].Weight = 50; return m }, HashSettings{}, false},
		"rank":       {func(m []Member) []Member { m[1].SiteRank = 1; return m }, HashSettings{}, false},
		"one less":   {func(m []Member) []Member { return m[:2] }, HashSettings{}, false},
		"partitions": {func(m []Member) []Member { return m }, HashSettings{Partitions: 1009}, false},
	} {
		t.Run(name, func(t *testing.T) {
			members := c.change(mems(&Registry{}, 100, 100, 50))
			want, err := NewTable(members, c.h)
			if err != nil {
				t.Fatal(err)
			}
			got, err := was.Rebuild(members, c.h)
			if err != nil {
				t.Fatal(err)
			}
			if got.Digest() != want.Digest() {
				t.Error("not the map of NewTable")
			}
			if shared := &got.ranks[0] == &was.ranks[0]; shared != c.shared {
				t.Errorf("map taken over: %v, want %v", shared, c.shared)
			}
			for i := range got.Members {
				a, b := &got.Members[i], &want.Members[i]
				if a.Server != b.Server || a.MaxConcurrent != b.MaxConcurrent || a.fileWeight != b.fileWeight {
					t.Errorf("%s is not the member of the new file", a.Name)
				}
			}
		})
	}
	var none *Table
	if tb, err := none.Rebuild(mems(&Registry{}, 100, 100, 50), HashSettings{}); err != nil || tb.Digest() != was.Digest() {
		t.Errorf("first table: %v", err)
	}
}

func BenchmarkRebuild(b *testing.B) {
	var weights []int
	for range 50 {
		weights = append(weights, 100)
	}
	m := mems(&Registry{}, weights...)
	was := table(b, m)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := was.Rebuild(m, HashSettings{}); err != nil {
			b.Fatal(err)
		}
	}
}
