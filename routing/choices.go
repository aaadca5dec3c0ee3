package routing

import "math"

// score is a server's lot for a partition: the least of as many draws as it has virtual members, so that the order of
// the lots respects weights, in whole numbers that are the same on every machine. The lowest goes first. The second
// return value breaks ties.
func (rt *rankTable) score(partition uint64, place int) uint64 {
	best := uint64(math.MaxUint64)
	seed := rt.seeds[place] + partition*0x9e3779b97f4a7c15
	for k := range rt.virtual[place] {
		best = min(best, mix(seed^uint64(k)*0xd6e8feb86659fd93))
	}
	return best
}

// mix spreads all bits of its argument over all bits of its result.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xe9846af9b1a615d5
	x ^= x >> 32
	x *= 0x9e6c63d0876a9a47
	x ^= x >> 28
	return x
}

// order fills row with the owner and the first of the others in rendezvous order.
func (rt *rankTable) order(partition uint64, owner int, row []uint16) {
	row[0] = rt.members[owner]
	var lots [maxStored]uint64
	n := 1
	for place := range rt.members {
		if place == owner || rt.virtual[place] == 0 {
			continue
		}
		s := rt.score(partition, place)
		if n == len(row) && (n == 1 || s >= lots[n-1]) {
			continue
		}
		if n < len(row) {
			n++
		}
		i := n - 1
		for ; i > 1 && lots[i-1] > s; i-- {
			lots[i], row[i] = lots[i-1], row[i-1]
		}
		lots[i], row[i] = s, rt.members[place]
	}
}

// walk goes through the choices of one partition in one rank: those stored, then the rest as it is asked for.
type walk struct {
	rt        *rankTable
	partition uint64
	at        int // choices given so far
	lot       uint64
	place     int
}

// next gives the index of the next choice.
func (w *walk) next() (member uint16, ok bool) {
	if w.at < w.rt.row {
		member = w.rt.stored[int(w.partition)*w.rt.row+w.at]
		w.at++
		return member, true
	}
	if w.rt.row < maxStored {
		return 0, false
	}
	return w.further()
}

// further finds the lowest lot above the last one given. It costs one look at every member, for each choice beyond the
// stored ones: only a pool that has lost eight servers in one partition pays it.
func (w *walk) further() (uint16, bool) {
	rt := w.rt
	owner := rt.stored[int(w.partition)*rt.row]
	if w.at == rt.row {
		last := rt.stored[int(w.partition)*rt.row+rt.row-1]
		for place, m := range rt.members {
			if m == last {
				w.lot, w.place = rt.score(w.partition, place), place
			}
		}
	}
	found, lot := -1, uint64(0)
	for place, m := range rt.members {
		if m == owner || rt.virtual[place] == 0 {
			continue
		}
		s := rt.score(w.partition, place)
		after := s > w.lot || s == w.lot && place > w.place
		if after && (found < 0 || s < lot) {
			found, lot = place, s
		}
	}
	if found < 0 {
		return 0, false
	}
	w.at++
	w.lot, w.place = lot, found
	return rt.members[found], true
}
