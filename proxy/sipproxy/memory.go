package sipproxy

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/sip/transport"
)

// phase is what a transaction has seen.
type phase uint8

const (
	sent     phase = iota // no response yet
	answered              // a provisional
	final
)

// place says where the requests of a transaction go.
type place uint8

const (
	toServer place = iota
	toAddress
	toFlow
	toNobody // answered here: nothing was forwarded
)

// Flags of an entry.
const (
	flagInvite   = 1 << iota // method class
	flagKey                  // hash is that of a key
	flagPinned               // the token it was sent with is pinned
	flagReliable             // the client came over a reliable transport
	flagRetag                // SA-3: a 481 is tried once more with the other tag
	flagOK                   // the final response was a 2xx
)

// entry is one transaction: 64 octets without a pointer, so that the collector never looks at them (sip-http.md
// section 4). What only a transaction that waits for its final response has is in its pending.
type entry struct {
	key    uint64   // d, with the method's class
	second uint64   // INVITE: Call-ID, From tag, CSeq number; 0: none
	dest   [16]byte // server: key hash, target tag, server tag; address: IPv6 or v4-mapped; flow: number
	gen    uint32   // chain of the entries that are looked at in one second
	expiry uint32   // seconds of the memory's clock
	open   uint32   // pending; 0: none
	port   uint16   // of an address
	out    uint16   // tag of the listener it leaves by
	kind   transport.Kind
	place  place
	phase  phase
	flags  uint8
	_      [8]byte // an entry never lies in two lines of the cache
}

func (e *entry) setServer(hash uint64, target, server uint32) {
	e.place = toServer
	binary.BigEndian.PutUint64(e.dest[:], hash)
	binary.BigEndian.PutUint32(e.dest[8:], target)
	binary.BigEndian.PutUint32(e.dest[12:], server)
}

func (e *entry) hash() uint64      { return binary.BigEndian.Uint64(e.dest[:]) }
func (e *entry) target() uint32    { return binary.BigEndian.Uint32(e.dest[8:]) }
func (e *entry) server() uint32    { return binary.BigEndian.Uint32(e.dest[12:]) }
func (e *entry) flow() uint64      { return binary.BigEndian.Uint64(e.dest[:]) }
func (e *entry) has(f uint8) bool  { return e.flags&f != 0 }
func (e *entry) setFlow(id uint64) { e.place = toFlow; binary.BigEndian.PutUint64(e.dest[:], id) }
func (e *entry) addr() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(e.dest).Unmap(), e.port)
}

func (e *entry) setAddr(a netip.AddrPort) {
	e.place = toAddress
	e.dest = a.Addr().As16()
	e.port = a.Port()
}

// memory is one worker's transaction memory (sip-http.md section 4): soft state, found by d, an INVITE also by Call-ID,
// From tag and CSeq number. Nothing in it has a timer of its own: entries hang in lists by the second they are looked
// at, and a list is gone through whole when its second has come.
type memory struct {
	chunks [][]entry
	used   uint32 // slots handed out so far; slot 0 is none
	free   uint32 // chain of free slots, by gen
	hand   uint32 // where steal stopped
	count  int
	max    int
	full   uint64 // transactions that were not remembered
	open   int    // entries with a pending
	over   int    // of these: such that have had their final response

	byKey    index
	bySecond index

	epoch time.Time
	now   uint32        // seconds since epoch
	lists [looks]uint32 // by expiry, modulo looks
	done  uint32        // entries up to this second were looked at
}

// looks is longer than the longest life of an entry, so that a list holds entries of one second only.
const looks = 256

func newMemory(max int) *memory {
	return &memory{max: max, byKey: newIndex(), bySecond: newIndex(), used: 1}
}

func (m *memory) at(slot uint32) *entry { return &m.chunks[slot>>chunkBits][slot&(chunkLen-1)] }

// find gives the slot of a transaction; 0 when it is not known.
func (m *memory) find(key uint64) uint32 {
	slot := m.byKey.first(key)
	for slot != 0 && m.at(slot).key != key {
		slot = m.byKey.next(slot)
	}
	return slot
}

// findSecond gives the slot of an INVITE by its second key.
func (m *memory) findSecond(second uint64) uint32 {
	slot := m.bySecond.first(second)
	for slot != 0 && m.at(slot).second != second {
		slot = m.bySecond.next(slot)
	}
	return slot
}

// add takes a slot for a transaction. When the memory is full an entry with a final response makes room; 0: there is
// none at hand, and the transaction goes on without being remembered.
func (m *memory) add(key, second uint64) uint32 {
	slot, listed := m.take(), false
	if slot == 0 {
		if slot = m.steal(); slot == 0 {
			m.full++
			return 0
		}
		listed = true
	}
	m.count++
	e := m.at(slot)
	*e = entry{key: key, second: second, gen: e.gen, expiry: m.now + seconds(life)}
	m.byKey.put(key, slot)
	if second != 0 {
		m.bySecond.put(second, slot)
	}
	if !listed {
		m.list(slot)
	}
	return slot
}

// take gives a slot that is in no list.
func (m *memory) take() uint32 {
	slot := m.free
	switch {
	case slot != 0:
		m.free = m.at(slot).gen
	case m.count < m.max:
		slot = m.used
		if int(slot>>chunkBits) == len(m.chunks) {
			m.chunks = append(m.chunks, make([]entry, chunkLen))
		}
		m.used++
	}
	return slot
}

// steal takes the slot of an entry that has its final response, looking at a few from where it stopped last time. The
// slot stays in the list it hangs in.
func (m *memory) steal() uint32 {
	for range 32 {
		if m.hand++; m.hand >= m.used {
			m.hand = 1
		}
		if e := m.at(m.hand); e.phase == final && e.open == 0 && e.key != 0 {
			m.unindex(m.hand)
			m.count--
			return m.hand
		}
	}
	return 0
}

func seconds(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }

func (m *memory) list(slot uint32) {
	e := m.at(slot)
	p := &m.lists[e.expiry%looks]
	e.gen = *p
	*p = slot
}

// touch lets an entry live that much longer from now on.
func (m *memory) touch(slot uint32, d time.Duration) {
	if until := m.now + seconds(d); until > m.at(slot).expiry {
		m.at(slot).expiry = until
	}
}

// shorten lets an entry end that long from now even if it was to live longer: the list it hangs in is the limit.
func (m *memory) shorten(slot uint32, d time.Duration) { m.at(slot).expiry = m.now + seconds(d) }

// tick moves the clock and takes out what has ended; gone is called for each before its slot is free.
func (m *memory) tick(now time.Time, gone func(slot uint32)) {
	if m.epoch.IsZero() {
		m.epoch = now.Add(-time.Second)
		m.now = 1
		m.done = 1
		return
	}
	m.now = max(m.now, uint32(now.Sub(m.epoch)/time.Second))
	if m.now-m.done > looks {
		m.done = m.now - looks
	}
	for m.done < m.now {
		m.done++
		slot := m.lists[m.done%looks]
		m.lists[m.done%looks] = 0
		for slot != 0 {
			e := m.at(slot)
			next := e.gen
			if e.expiry > m.now {
				m.list(slot)
			} else {
				gone(slot)
				m.remove(slot)
			}
			slot = next
		}
	}
}

func (m *memory) unindex(slot uint32) {
	e := m.at(slot)
	m.byKey.drop(e.key, slot)
	if e.second != 0 {
		m.bySecond.drop(e.second, slot)
	}
}

func (m *memory) remove(slot uint32) {
	m.unindex(slot)
	*m.at(slot) = entry{gen: m.free}
	m.free = slot
	m.count--
}
