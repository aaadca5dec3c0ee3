package peer

import "testing"

// No pair stands twice, every state is reached, and every state but Closed can be left for Closed in one or two steps.
func TestTableIsWhole(t *testing.T) {
	type pair struct {
		s State
		e Event
	}
	seen, reached := map[pair]bool{}, map[State]bool{Closed: true}
	for _, r := range table {
		if p := (pair{r.from, r.on}); seen[p] {
			t.Errorf("%v, event %d twice", r.from, r.on)
		} else {
			seen[p] = true
		}
		reached[r.to] = true
	}
	for s := Closed; s <= Closing; s++ {
		if !reached[s] {
			t.Errorf("%v is never reached", s)
		}
		_, a, okA := Next(s, Timeout)
		_, b, okB := Next(s, Disconnect)
		if s != Closed && !(okA && a == Closed) && !(okB && b == Closed) {
			t.Errorf("%v does not end with its connection or time", s)
		}
	}
}

// Both dial: the winner of the election keeps what it accepted, the loser what it dialled (RFC 6733 5.6.4).
func TestElectionWays(t *testing.T) {
	for _, c := range []struct {
		last Event
		do   Action
		to   State
	}{{ElectionWon, CloseI | SendCEA, ROpen}, {ICEA, ProcessCEA | CloseR, IOpen}} {
		s, do := Closed, Action(0)
		for _, e := range []Event{Start, IConnected, RConnCER, c.last} {
			var ok bool
			if do, s, ok = Next(s, e); !ok {
				t.Fatalf("event %d is not listed in %v", e, s)
			}
		}
		if s != c.to || do != c.do {
			t.Errorf("ends in %v doing %b, want %v doing %b", s, do, c.to, c.do)
		}
	}
	if _, to, ok := Next(Closed, DPA); ok || to != Closed {
		t.Error("a pair that is not listed changed something")
	}
}
