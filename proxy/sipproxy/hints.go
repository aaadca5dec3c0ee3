package sipproxy

import "time"

// hint says which server has a dialog: found by Call-ID and the tag of one side (sip-http.md 4.4). The hint of the
// caller's side also carries the live key that the dialog keeps bound (operations.md 11, trap 3).
type hint struct {
	key          uint64
	hash         uint64 // key hash the dialog is bound under
	target       uint32
	server       uint32
	used         uint32 // seconds of the hints' clock
	chain        uint32 // of the free ones
	older, newer uint32 // by use
	bound        bool
}

// hints is one worker's table of dialog hints: bounded, least recently used goes first, idle ones after four hours. It
// serves what has a To tag but no token (SA-3), what names another dialog (SA-6), and the live keys.
type hints struct {
	chunks [][]hint
	used   uint32
	free   uint32 // chain
	count  int
	max    int
	ix     index
	oldest uint32
	newest uint32
	epoch  time.Time
	now    uint32
}

func newHints(max int) *hints { return &hints{max: max, ix: newIndex(), used: 1} }

func (h *hints) at(slot uint32) *hint { return &h.chunks[slot>>chunkBits][slot&(chunkLen-1)] }

// find gives the hint of a dialog's side and counts as its use; nil when there is none.
func (h *hints) find(key uint64) *hint {
	slot := h.ix.first(key)
	for slot != 0 && h.at(slot).key != key {
		slot = h.ix.next(slot)
	}
	if slot == 0 {
		return nil
	}
	if x := h.at(slot); x.used == h.now {
		return x // its place among those of this second does not matter
	}
	h.unlink(slot)
	h.link(slot)
	return h.at(slot)
}

// set writes a hint. lost is called for a bound hint that has to make room.
func (h *hints) set(key uint64, target, server uint32, lost func(*hint)) *hint {
	x := h.find(key)
	if x == nil {
		slot := h.take(lost)
		if slot == 0 {
			return nil
		}
		x = h.at(slot)
		*x = hint{key: key}
		h.ix.put(key, slot)
		h.link(slot)
	}
	x.target, x.server = target, server
	return x
}

func (h *hints) take(lost func(*hint)) uint32 {
	if h.count >= h.max {
		if h.oldest == 0 {
			return 0
		}
		h.remove(h.oldest, lost)
	}
	h.count++
	if slot := h.free; slot != 0 {
		h.free = h.at(slot).chain
		return slot
	}
	slot := h.used
	if int(slot>>chunkBits) == len(h.chunks) {
		h.chunks = append(h.chunks, make([]hint, chunkLen))
	}
	h.used++
	return slot
}

func (h *hints) remove(slot uint32, lost func(*hint)) {
	x := h.at(slot)
	if x.bound {
		lost(x)
	}
	h.unlink(slot)
	h.ix.drop(x.key, slot)
	*x = hint{chain: h.free}
	h.free = slot
	h.count--
}

func (h *hints) link(slot uint32) {
	x := h.at(slot)
	x.used, x.older, x.newer = h.now, h.newest, 0
	if h.newest != 0 {
		h.at(h.newest).newer = slot
	}
	h.newest = slot
	if h.oldest == 0 {
		h.oldest = slot
	}
}

func (h *hints) unlink(slot uint32) {
	x := h.at(slot)
	if x.older != 0 {
		h.at(x.older).newer = x.newer
	} else {
		h.oldest = x.newer
	}
	if x.newer != 0 {
		h.at(x.newer).older = x.older
	} else {
		h.newest = x.older
	}
}

// tick moves the clock and forgets what was idle for four hours.
func (h *hints) tick(now time.Time, lost func(*hint)) {
	if h.epoch.IsZero() {
		h.epoch = now
	}
	h.now = max(h.now, uint32(now.Sub(h.epoch)/time.Second))
	for h.oldest != 0 && h.now-h.at(h.oldest).used >= seconds(hintIdle) {
		h.remove(h.oldest, lost)
	}
}
