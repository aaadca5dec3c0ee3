package routing

import (
	"sync"
	"time"
)

// bindings are the live keys of a pool: which servers have dialogs or sessions of a key (operations.md 11, trap 3).
// They are soft state: lost, the hash decides. A shard's lock is held for one map operation.
type bindings struct {
	shards [64]bindShard
}

type bindShard struct {
	mu   sync.Mutex
	live map[uint64]binding

	_ [40]byte // its own cache line
}

// maxKeys bounds the live keys of one shard: 2,097,152 in all. Keys beyond are not remembered, so the hash decides alone.
const maxKeys = 1 << 15

// maxHolders is how many servers of one key are remembered; a key that lives on more is rare, and then the one that
// has kept still longest is forgotten.
const maxHolders = 3

// binding is one live key. The holder that took a new dialog last stands first.
type binding struct {
	since   int64 // when the key began to live, Unix nanoseconds
	holders [maxHolders]holder
	stray   bool // counted as living away from its owner
}

type holder struct {
	tag uint32
	n   int32
}

func (b *bindings) shard(hash uint64) *bindShard { return &b.shards[hash>>58] }

// add notes one more on tag. It returns the entry as it was and as it is.
func (b *binding) add(tag uint32) (began bool, dropped uint32) {
	i := 0
	for i < maxHolders-1 && b.holders[i].n > 0 && b.holders[i].tag != tag {
		i++
	}
	h := b.holders[i]
	if h.tag != tag || h.n == 0 {
		if h.n > 0 {
			dropped = h.tag
		}
		h, began = holder{tag: tag}, true
	}
	h.n++
	copy(b.holders[1:i+1], b.holders[:i])
	b.holders[0] = h
	return began, dropped
}

// remove takes one off tag; gone says that it was the last one there.
func (b *binding) remove(tag uint32) (gone bool) {
	for i := range b.holders {
		h := &b.holders[i]
		if h.n == 0 || h.tag != tag {
			continue
		}
		if h.n--; h.n > 0 {
			return false
		}
		copy(b.holders[i:], b.holders[i+1:])
		b.holders[maxHolders-1] = holder{}
		return true
	}
	return false
}

// find gives a copy of what is known about a key.
func (b *bindings) find(hash uint64) (binding, bool) {
	sh := b.shard(hash)
	sh.mu.Lock()
	e, ok := sh.live[hash]
	sh.mu.Unlock()
	return e, ok
}

// Bind notes one more live dialog or session of the key on the member's server (operations.md 11, trap 3), Unbind one
// less. They are called when a session begins and ends, never per message.
func (p *Pool) Bind(hash uint64, tag uint32, now time.Time) {
	if tag == 0 {
		return
	}
	t := p.Table()
	owner := t.owner(hash)
	sh := p.shared.bindings.shard(hash)
	sh.mu.Lock()
	e, known := sh.live[hash]
	if !known {
		if len(sh.live) >= maxKeys {
			sh.mu.Unlock()
			return
		}
		e.since = now.UnixNano()
		if sh.live == nil {
			sh.live = map[uint64]binding{}
		}
	}
	before := e.holders[0].tag
	began, dropped := e.add(tag)
	stray := tag != owner
	moved := began && (known && before != tag || !known && stray)
	turned := stray != e.stray
	e.stray = stray
	sh.live[hash] = e
	sh.mu.Unlock()

	if moved {
		p.shared.keysMov.Add(1)
	}
	if turned {
		p.shared.stray(stray)
	}
	if began {
		t.keys(tag, 1)
	}
	if dropped != 0 {
		t.keys(dropped, -1)
	}
}

// Unbind ends what Bind began. Of what was never begun nothing is taken.
func (p *Pool) Unbind(hash uint64, tag uint32, now time.Time) {
	t := p.Table()
	owner := t.owner(hash)
	sh := p.shared.bindings.shard(hash)
	sh.mu.Lock()
	e, known := sh.live[hash]
	if !known {
		sh.mu.Unlock()
		return
	}
	gone := e.remove(tag)
	was := e.stray
	if e.holders[0].n == 0 {
		e.stray = false
		delete(sh.live, hash)
	} else {
		e.stray = e.holders[0].tag != owner
		sh.live[hash] = e
	}
	sh.mu.Unlock()

	if e.stray != was {
		p.shared.stray(e.stray)
	}
	if gone {
		t.keys(tag, -1)
	}
}

// stray counts keys that live away from their owner: while there are none, a choice of the owner needs no look-up.
func (s *shared) stray(more bool) {
	if more {
		s.strays.Add(1)
		return
	}
	s.strays.Add(-1)
}

// recount settles which live keys are away from their owner by a new table.
func (s *shared) recount(t *Table) {
	for i := range s.bindings.shards {
		sh := &s.bindings.shards[i]
		sh.mu.Lock()
		for hash, e := range sh.live {
			stray := e.holders[0].tag != t.owner(hash)
			if stray == e.stray {
				continue
			}
			e.stray = stray
			sh.live[hash] = e
			s.stray(stray)
			if stray {
				s.keysMov.Add(1)
			}
		}
		sh.mu.Unlock()
	}
}

// LiveKey is what is known about a live key.
type LiveKey struct {
	Since   time.Time
	Servers []string // the one that took the last new dialog first
	Counts  []int    // dialogs and sessions there
}

// Live tells where a key lives; ok is false when it has no dialog and no session.
func (p *Pool) Live(hash uint64) (k LiveKey, ok bool) {
	e, ok := p.shared.bindings.find(hash)
	if !ok {
		return LiveKey{}, false
	}
	k.Since = time.Unix(0, e.since)
	t := p.Table()
	for _, h := range e.holders {
		if h.n == 0 {
			break
		}
		name := "?"
		if m := t.ByTag(h.tag); m != nil {
			name = m.Name
		}
		k.Servers = append(k.Servers, name)
		k.Counts = append(k.Counts, int(h.n))
	}
	return k, true
}

// LiveKeys is the number of live keys of the pool (wyegate_cluster_bindings of kind "key").
func (p *Pool) LiveKeys() int {
	n := 0
	for i := range p.shared.bindings.shards {
		sh := &p.shared.bindings.shards[i]
		sh.mu.Lock()
		n += len(sh.live)
		sh.mu.Unlock()
	}
	return n
}

// KeysMoved counts live keys that changed servers: bound to another one than before, or to another one than the owner
// of their partition, or left with another owner by a new table (wyegate_pool_keys_moved_total).
func (p *Pool) KeysMoved() int64 { return p.shared.keysMov.Load() }

// owner is the tag of the server that the key belongs to while all are usable; 0: there is none.
func (t *Table) owner(hash uint64) uint32 {
	if t == nil || len(t.ranks) == 0 {
		return 0
	}
	rt := &t.ranks[0]
	if rt.row == 0 {
		return 0
	}
	return t.Members[rt.stored[t.Partition(hash)*rt.row]].Tag
}

func (t *Table) keys(tag uint32, delta int64) {
	if t == nil {
		return
	}
	if m := t.ByTag(tag); m != nil {
		m.liveKeys.Add(delta)
	}
}
