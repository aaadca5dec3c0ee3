package http1

// Span is a piece of the received bytes by offset.
type Span struct{ Start, End uint32 }

// Of gives the octets.
func (s Span) Of(b []byte) []byte { return b[s.Start:s.End] }

// Empty says whether the span holds nothing.
func (s Span) Empty() bool { return s.Start == s.End }

// Cut says why a field line does not go on.
type Cut uint8

// The reasons. Rules see what was not cut for want of trust; the other side gets what was not cut at all.
const (
	Keep     Cut = iota
	CutHop       // hop-by-hop, or named by Connection (HH-1)
	CutTwin      // spelled with "_" like a protected name
	CutTrust     // claims what only a trusted peer may claim (HH-3, SS-3)
	CutOwn       // replaced by a field of ours
)

// Field is one field line.
type Field struct {
	Name  Span
	Value Span   // without white space around it
	End   uint32 // behind the CRLF
	ID    ID
	Twin  bool // the name has "_" where the known one has "-"
	Cut   Cut
}

// Limits bound a head. Zero is no limit.
type Limits struct {
	Target int // octets of the request target
	Block  int // octets of the head, start line included
	Fields int // field lines, at most MaxFields
}

// MaxFields is the most field lines a Head can hold.
const MaxFields = 250

// Head is the index of one message head: the received bytes, and offsets into them. The zero value is ready; Reset makes
// a used one ready again and keeps its memory.
type Head struct {
	Buf    []byte // what was handed to the parser last; offsets count from its start
	Line   Span   // start line without CRLF
	Len    int    // octets up to the end of the head, empty lines before it included
	Minor  uint8  // protocol version 1.Minor
	Method Span   // of a request
	Target Span   // of a request, as received
	Status int    // of a response
	Reason Span   // of a response
	Fields []Field

	first [NumIDs]uint8 // 1 + index of the first field with that number, twins left out
	count [NumIDs]uint8

	at, scan  uint32 // start of the next line; where the search for its end goes on
	empty     uint8  // empty lines skipped
	startDone bool

	conn connFlags
}

// Reset forgets the message and keeps the memory for the next one.
func (h *Head) Reset() {
	f := h.Fields[:0]
	*h = Head{Fields: f}
}

// Get gives the index of the first field with that number; -1 when there is none. Twins are not found.
func (h *Head) Get(id ID) int { return int(h.first[id]) - 1 }

// Count says how many lines have that number.
func (h *Head) Count(id ID) int { return int(h.count[id]) }

// Value gives the value of the first field with that number; nil when there is none.
func (h *Head) Value(id ID) []byte {
	if i := h.Get(id); i >= 0 {
		return h.Fields[i].Value.Of(h.Buf)
	}
	return nil
}

// NameOf and ValueOf give the octets of a field of this head.
func (h *Head) NameOf(f *Field) []byte { return f.Name.Of(h.Buf) }

// ValueOf gives the value without white space around it.
func (h *Head) ValueOf(f *Field) []byte { return f.Value.Of(h.Buf) }

// CutAll marks every line with that number.
func (h *Head) CutAll(id ID, why Cut) {
	if h.count[id] == 0 {
		return
	}
	for i := h.Get(id); i < len(h.Fields); i++ {
		if f := &h.Fields[i]; f.ID == id && f.Cut == Keep {
			f.Cut = why
		}
	}
}

// AppendFields writes the lines that nothing cut, as they were received, in their order. Neighbours go in one copy.
func (h *Head) AppendFields(dst []byte) []byte {
	var from, to uint32
	for i := range h.Fields {
		f := &h.Fields[i]
		if f.Cut != Keep {
			continue
		}
		if f.Name.Start != to {
			dst = append(dst, h.Buf[from:to]...)
			from = f.Name.Start
		}
		to = f.End
	}
	return append(dst, h.Buf[from:to]...)
}
