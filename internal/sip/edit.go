package sip

// Edit replaces the Cut octets of the received message at At by Put.
type Edit struct {
	At, Cut uint32
	Put     []byte
}

// Splice writes src with the edits applied, which are sorted by At and do not overlap. What no edit names leaves as it
// came.
func Splice(dst, src []byte, edits []Edit) []byte {
	return splice(dst, src, Span{0, uint32(len(src))}, edits)
}

// splice writes a piece of src; the edits lie inside it.
func splice(dst, src []byte, part Span, edits []Edit) []byte {
	from := part.Start
	for i := range edits {
		e := &edits[i]
		dst = append(dst, src[from:e.At]...)
		dst = append(dst, e.Put...)
		from = e.At + e.Cut
	}
	return append(dst, src[from:part.End]...)
}

// Edits collects what is changed in one message, and writes it once. A worker owns one and uses it for message after
// message; in steady state nothing is allocated. The order of calls does not matter and a call repeated changes nothing
// (SR-11), so a second attempt towards another server starts with Reset and the received bytes. Nothing it was given is
// kept: every text is copied.
type Edits struct {
	m      *Msg
	ops    []op
	texts  []byte // what is put in
	work   []op   // ops and those of the routes, sorted
	out    []Edit
	routes routeEdit
}

// op is one edit before they are sorted. Where several stand at one place, rank orders them.
type op struct {
	at, cut uint32
	rank    rank
	put     Span // in texts
}

// rank orders edits at one place; insertions come before what is cut or replaced there.
type rank uint8

const (
	putVia rank = iota
	putRecordRoute
	putPath
	putRoute
	putField
	putEnd
	putReceived
	replace
	cutOut
)

// Reset begins the edits of m, which was parsed.
func (e *Edits) Reset(m *Msg) {
	e.m = m
	e.ops, e.texts = e.ops[:0], e.texts[:0]
	e.routes = routeEdit{}
}

// Append writes the message with its edits. It may be called again, with further edits in between.
func (e *Edits) Append(dst []byte) []byte {
	text := len(e.texts)
	e.work = append(e.work[:0], e.ops...)
	e.resolveRoutes()
	sortOps(e.work)
	e.merge()
	e.texts = e.texts[:text]
	return Splice(dst, e.m.Raw, e.out)
}

// sortOps sorts by place and rank; equal ones keep the order of the calls. There are few, and most come in order.
func sortOps(ops []op) {
	for i := 1; i < len(ops); i++ {
		for j := i; j > 0 && ops[j].before(ops[j-1]); j-- {
			ops[j], ops[j-1] = ops[j-1], ops[j]
		}
	}
}

func (o op) before(p op) bool { return o.at < p.at || o.at == p.at && o.rank < p.rank }

// merge makes the list for Splice: cuts that overlap become one, and what would be put inside a piece that was cut out
// goes with it.
func (e *Edits) merge() {
	e.out = e.out[:0]
	from := uint32(0)
	for _, o := range e.work {
		put := e.texts[o.put.Start:o.put.End]
		end := o.at + o.cut
		if o.at < from {
			if end <= from {
				continue
			}
			o.at, o.cut, put = from, end-from, nil
		}
		e.out = append(e.out, Edit{o.at, o.cut, put})
		from = max(from, end)
	}
}

// text keeps copies of the pieces, one behind the other.
func (e *Edits) text(pieces ...[]byte) Span {
	start := uint32(len(e.texts))
	for _, p := range pieces {
		e.texts = append(e.texts, p...)
	}
	return Span{start, uint32(len(e.texts))}
}

// set puts one edit of a rank at a place, in place of the one that was there.
func (e *Edits) set(o op) {
	for i := range e.ops {
		if p := &e.ops[i]; p.at == o.at && p.cut == o.cut && p.rank == o.rank {
			p.put = o.put
			return
		}
	}
	e.ops = append(e.ops, o)
}

// add puts one edit beside others of its rank and place, unless one with the same text is there.
func (e *Edits) add(o op) {
	text := o.put.Of(e.texts)
	for i := range e.ops {
		if p := &e.ops[i]; p.at == o.at && p.rank == o.rank && string(p.put.Of(e.texts)) == string(text) {
			return
		}
	}
	e.ops = append(e.ops, o)
}

// cut takes a piece out.
func (e *Edits) cut(s Span) { e.set(op{at: s.Start, cut: s.End - s.Start, rank: cutOut}) }

// at gives the place of a piece of the message in it. Readers of values slice Raw and nothing else, and a slice of a
// slice keeps the end of its memory, which tells where it begins.
func (m *Msg) at(piece []byte) uint32 { return uint32(cap(m.Raw) - cap(piece)) }
