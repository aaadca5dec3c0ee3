package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/wyegate/wyegate/config"
)

// property holds what is expected of made keys against their servers before and after the change.
func (t *trial) property(p *pool, e *config.Expectation, before, after []string, down map[string]bool) {
	if e.MovedOnlyFrom != nil {
		t.movedOnlyFrom(e, before, after)
	}
	if e.SpreadWithin != nil {
		t.spread(p, e, before, after, down)
	}
	if c := e.SameMapAfter; c != nil {
		then := maps.Clone(down)
		then[c.Server] = c.State != "up" && c.State != "ready"
		if again := t.owners(p, then); !slices.Equal(again, before) {
			n, first := differ(before, again)
			t.fail(e, "same_map_after", "every key where it was", fmt.Sprintf("%d keys elsewhere, first %s", n, t.key(first)))
		}
	}
}

func (t *trial) fail(e *config.Expectation, what, expected, actual string) {
	t.out = append(t.out, TestFailure{What: what, Expected: expected, Actual: actual, Path: e.Path + "." + what})
}

func differ(a, b []string) (n, first int) {
	first = -1
	for i := range a {
		if a[i] != b[i] {
			if n++; first < 0 {
				first = i
			}
		}
	}
	return n, first
}

func (t *trial) movedOnlyFrom(e *config.Expectation, before, after []string) {
	moved := map[string]int{}
	strangers, first := map[string]int{}, ""
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		moved[before[i]]++
		if !slices.Contains(e.MovedOnlyFrom, before[i]) {
			strangers[before[i]]++
			if first == "" {
				first = t.key(i)
			}
		}
	}
	if len(strangers) == 0 {
		return
	}
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(strangers)) {
		parts = append(parts, fmt.Sprintf("%d keys of %s", strangers[s], s))
	}
	t.fail(e, "moved_only_from", fmt.Sprint(e.MovedOnlyFrom),
		fmt.Sprintf("[%s]: %s, first %s", strings.Join(slices.Sorted(maps.Keys(moved)), ", "), strings.Join(parts, ", "), first))
}

// spread looks at where the keys that moved went; without a change, at where all are. Even means by weight.
func (t *trial) spread(p *pool, e *config.Expectation, before, after []string, down map[string]bool) {
	got := map[string]int{}
	total := 0
	for i := range after {
		if t.test.Change == nil || before[i] != after[i] {
			got[after[i]]++
			total++
		}
	}
	weights, sum := map[string]int{}, 0
	for i := range p.Table().Members {
		if m := &p.Table().Members[i]; !down[m.Name] && m.Weight > 0 {
			weights[m.Name] = m.Weight
			sum += m.Weight
		}
	}
	worst, at := 0.0, ""
	for name, w := range weights {
		want := float64(total) * float64(w) / float64(sum)
		if off := math.Abs(float64(got[name])-want) / max(want, 1); off > worst {
			worst, at = off, name
		}
	}
	if worst > float64(*e.SpreadWithin) {
		t.fail(e, "spread_within", fmt.Sprintf("%g%%", float64(*e.SpreadWithin)*100), fmt.Sprintf("%.1f%% at %s", worst*100, at))
	}
}
