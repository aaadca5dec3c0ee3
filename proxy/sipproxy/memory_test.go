package sipproxy

import (
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// Section 4, items 1 and 5: 64 octets or less per entry.
func TestMemoryEntryIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(entry{}); n > 64 {
		t.Errorf("an entry has %d octets", n)
	}
	if n := unsafe.Sizeof(hint{}); n > 64 {
		t.Errorf("a hint has %d octets", n)
	}
}

// The memory against a map and a list of deadlines, over random work.
func TestMemoryFindsWhatLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMemory(1 << 20)
		now := time.Unix(1000, 0)
		m.tick(now, nil)
		type want struct{ until time.Time }
		live := map[uint64]want{}
		seconds := map[uint64]uint64{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "do") {
			case 0, 1:
				key := rapid.Uint64Range(1, 500).Draw(t, "key")
				if m.find(key) != 0 {
					continue
				}
				m.add(key, key+1000)
				live[key] = want{now.Add(life)}
				seconds[key+1000] = key
			case 2:
				key := rapid.Uint64Range(1, 500).Draw(t, "touched")
				if slot := m.find(key); slot != 0 {
					m.touch(slot, ringing)
					live[key] = want{now.Add(ringing)}
				}
			case 3:
				now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "pass")) * time.Second)
				m.tick(now, func(uint32) {})
				for k, w := range live {
					if !w.until.After(now) {
						delete(live, k)
					}
				}
			}
			if m.count != len(live) {
				t.Fatalf("%d entries, want %d", m.count, len(live))
			}
			for k := range live {
				if slot := m.find(k); slot == 0 || m.at(slot).key != k {
					t.Fatalf("key %d is not found", k)
				}
				if slot := m.findSecond(k + 1000); slot == 0 || m.at(slot).key != k {
					t.Fatalf("second key of %d is not found", k)
				}
			}
		}
	})
}

// The index grows bucket by bucket and loses nobody on the way.
func TestMemoryGrows(t *testing.T) {
	m := newMemory(200_000)
	now := time.Unix(1000, 0)
	m.tick(now, nil)
	const n = 100_000
	for i := range uint64(n) {
		m.add(i*0x9e3779b97f4a7c15+1, 0)
	}
	longest := 0
	for i := range uint64(n) {
		slot := m.find(i*0x9e3779b97f4a7c15 + 1)
		if slot == 0 {
			t.Fatalf("key %d is lost", i)
		}
		chain := 0
		for s := *m.byKey.bucket(mix(m.at(slot).key)); s != 0; s = m.byKey.link(s).next {
			chain++
		}
		longest = max(longest, chain)
	}
	if longest > 16 {
		t.Errorf("a chain has %d entries", longest)
	}
	m.tick(now.Add(2*life), func(uint32) {})
	if m.count != 0 {
		t.Errorf("%d entries are left", m.count)
	}
}

// Two keys of one hash are told apart by what their slots say, whichever of them came or went first.
func TestMemoryTellsEqualHashesApart(t *testing.T) {
	const one, other = uint64(0x1234), uint64(1<<56 | 0x1234 ^ 1<<24) // folded they differ in the highest octet alone, which mix cuts off
	if mix(one) != mix(other) {
		t.Fatal("the two have not one hash")
	}
	for _, order := range [][2]uint64{{one, other}, {other, one}} {
		m := newMemory(10)
		m.tick(time.Unix(1000, 0), nil)
		first := m.add(order[0], 7)
		if m.find(order[1]) != 0 {
			t.Error("a key finds the slot of another one")
		}
		second := m.add(order[1], 7)
		if m.find(order[0]) != first || m.find(order[1]) != second {
			t.Errorf("%d and %d are found for %d and %d", m.find(order[0]), m.find(order[1]), first, second)
		}
		m.remove(second)
		if m.find(order[0]) != first || m.find(order[1]) != 0 || m.findSecond(7) != first {
			t.Error("one is not found without the other")
		}
	}
}

// Section 4, item 5: full, entries with a final response go first; then new ones are not remembered, and counted.
func TestMemoryFull(t *testing.T) {
	m := newMemory(8)
	now := time.Unix(1000, 0)
	m.tick(now, nil)
	for k := range uint64(8) {
		m.add(k+1, 0)
	}
	if m.add(9, 0) != 0 || m.full != 1 {
		t.Fatalf("a ninth transaction is remembered, or not counted: %d", m.full)
	}
	m.at(m.find(3)).phase = final
	if m.add(10, 0) == 0 || m.find(3) != 0 || m.find(10) == 0 || m.count != 8 {
		t.Fatal("the entry with the final response did not make room")
	}
	m.tick(now.Add(life+time.Second), func(uint32) {})
	m.tick(now.Add(2*life+2*time.Second), func(uint32) {})
	if m.count != 0 {
		t.Errorf("%d entries are left", m.count)
	}
}

// Section 4, item 4: least recently used goes first, idle ones after four hours, and a live key is given back.
func TestHintsForgetTheOldest(t *testing.T) {
	h := newHints(3)
	now := time.Unix(1000, 0)
	lost := 0
	count := func(*hint) { lost++ }
	h.tick(now, count)
	for k := range uint64(3) {
		h.set(k+1, 1, uint32(k), count)
	}
	h.find(2).bound = true
	now = now.Add(time.Second)
	h.tick(now, count)
	h.find(2)
	h.find(1)
	h.set(4, 1, 4, count) // 3 was used longest ago
	if h.find(3) != nil || h.find(1) == nil || h.find(2) == nil || h.find(4) == nil {
		t.Fatal("the wrong hint made room")
	}
	if lost != 0 {
		t.Fatal("a hint without a key gave one back")
	}
	h.tick(now.Add(hintIdle-time.Second), count)
	if h.count != 3 {
		t.Fatalf("%d hints before four hours", h.count)
	}
	h.find(4)
	h.tick(now.Add(hintIdle), count)
	if h.count != 1 || h.find(4) == nil || lost != 1 {
		t.Fatalf("%d hints after four hours, %d keys given back", h.count, lost)
	}
}

func TestArenaIsBounded(t *testing.T) {
	a := newArena(arenaChunk)
	big := make([]byte, 60<<10)
	one, two := a.keep(big), a.keep(big)
	if len(one) != len(big) || len(two) != len(big) {
		t.Fatal("blocks within the bound are refused")
	}
	if a.keep(big) != nil || a.keep(make([]byte, 10)) != nil || a.refused != 2 {
		t.Fatal("more is kept than the bound allows")
	}
	a.give(one)
	if a.keep(big) == nil {
		t.Fatal("a block that was given back is not used again")
	}
	if newArena(1<<30).keep(make([]byte, 200<<10)) != nil {
		t.Fatal("a message larger than the largest class is kept")
	}
}
