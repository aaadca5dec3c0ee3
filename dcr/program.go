package dcr

import (
	"encoding/binary"
	"sort"
	"strings"

	"github.com/wyegate/wyegate/internal/sip"
)

// op is what an instruction does.
type op uint8

const (
	opHeader    op = iota // presence of a header item
	opNoHeader            // absence
	opParam               // presence of a query or URI parameter
	opNoParam             // absence
	opCookie              // presence of a cookie
	opNoCookie            // absence
	opMatchAll            // pattern on the Request-URI or request target
	opMatchPar            // pattern on a parameter
	opMatchHead           // pattern on a header field
	opElse                // always
	opCase                // session case
	opGuard               // always, without a text
	opNever               // cannot hold in this protocol
)

// Ends of a program: a jump to one of them is the result.
const (
	endKey  int32 = -1 // the value of the last instruction that held
	endNull int32 = -2
)

// instr is one instruction. It holds when its condition does and its value is not null; then it jumps to yes, else to
// no. Connectors leave no trace but jumps.
type instr struct {
	op   op
	kw   sessionCase
	item uint16 // header, parameter or cookie
	val  int16  // variable; -1: none is asked for
	pat  uint16
	rule int32 // index into RuleSet.Rules; -1
	yes  int32
	no   int32
	el   int32 // index into program.steps, for traces
}

// program is the rules of one protocol, flattened.
type program struct {
	proto   Proto
	code    []instr
	entry   int32
	heads   headIndex
	params  nameIndex
	cookies nameIndex
	vars    []accessor
	pats    []matcher
	steps   []stepInfo
	route   int // header item of Route, for the session case; -1
	cookie  int // header item of Cookie; -1
	resolve bool
}

// accessor is a variable with the number of its item.
type accessor struct {
	origin origin
	part   part
	item   uint16
	text   string
	name   string
}

// matcher is a pattern with its prefix.
type matcher struct {
	*pattern
	prefix  []byte
	decoded bool // the subject is a decoded parameter already
}

// stepInfo names the element of an instruction, for traces.
type stepInfo struct {
	path string
	line int
}

// headIndex finds the item of a header field: by the number of a known SIP name, else by length and then eight octets at
// a time without case.
type headIndex struct {
	items []headItem
	byID  [256]uint16         // item plus one
	list  []otherName         // names without a number, the shortest first
	start [maxName + 2]uint16 // where the names of a length begin in list
}

// headItem is one header field that rules read.
type headItem struct {
	name string // as in the rules
	id   sip.HeaderID
}

// otherName is a name without a number: its octets in lower case, eight to a word.
type otherName struct {
	item  uint16
	words []uint64
	tail  uint64 // the last octets, fewer than eight
}

// add gives the item of a field name.
func (h *headIndex) add(name string, proto Proto) uint16 {
	for i, it := range h.items {
		if sameHeader(it.name, name, proto) {
			return uint16(i)
		}
	}
	it := headItem{name: name}
	if proto == SIP {
		it.id = sip.HeaderByName([]byte(name))
	}
	h.items = append(h.items, it)
	return uint16(len(h.items) - 1)
}

// seal prepares the look-ups when all names are known.
func (h *headIndex) seal() {
	for i, it := range h.items {
		if it.id != sip.HeaderOther {
			h.byID[it.id] = uint16(i) + 1
			continue
		}
		n := otherName{item: uint16(i)}
		b := []byte(strings.ToLower(it.name))
		for ; len(b) >= 8; b = b[8:] {
			n.words = append(n.words, binary.LittleEndian.Uint64(b))
		}
		n.tail = tailOf(b)
		h.list = append(h.list, n)
	}
	length := func(n otherName) int { return len(h.items[n.item].name) }
	sort.SliceStable(h.list, func(a, b int) bool { return length(h.list[a]) < length(h.list[b]) })
	at := 0
	for l := range h.start {
		for at < len(h.list) && length(h.list[at]) < l {
			at++
		}
		h.start[l] = uint16(at)
	}
}

// tailOf packs fewer than eight octets into a word.
func tailOf(b []byte) uint64 {
	var w uint64
	for i := len(b) - 1; i >= 0; i-- {
		w = w<<8 | uint64(b[i])
	}
	return w
}

// lower8 puts the ASCII capitals among eight octets into lower case.
func lower8(w uint64) uint64 {
	const ones = 0x0101010101010101
	low := w & (0x7F * ones)
	isCapital := (low + (0x80-'A')*ones) &^ (low + (0x7F-'Z')*ones) &^ w & (0x80 * ones)
	return w | isCapital>>2
}

// find gives the item of a field, plus one; 0 when no rule reads it.
func (h *headIndex) find(f *Field) uint16 {
	if f.ID != sip.HeaderOther {
		return h.byID[f.ID]
	}
	n := len(f.Name)
	if n > maxName {
		return 0
	}
	for i := h.start[n]; i < h.start[n+1]; i++ {
		if h.list[i].is(f.Name) {
			return h.list[i].item + 1
		}
	}
	return 0
}

// is compares a name of the same length.
func (o *otherName) is(name []byte) bool {
	for _, w := range o.words {
		if lower8(binary.LittleEndian.Uint64(name)) != w {
			return false
		}
		name = name[8:]
	}
	return lower8(tailOf(name)) == o.tail
}

// nameIndex is a set of names that are compared with case: parameters and cookies.
type nameIndex struct {
	names   []string
	lengths [5]uint64 // which lengths occur
}

func (n *nameIndex) add(name string) uint16 {
	for i, s := range n.names {
		if s == name {
			return uint16(i)
		}
	}
	n.names = append(n.names, name)
	n.lengths[len(name)>>6] |= 1 << (len(name) & 63)
	return uint16(len(n.names) - 1)
}

// maybe reports whether a name of this length occurs.
func (n *nameIndex) maybe(length int) bool {
	return length <= maxName && n.lengths[length>>6]&(1<<(length&63)) != 0
}
