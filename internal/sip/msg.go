package sip

// Span is a piece of a message: offsets of its first octet and of the one behind its last.
type Span struct{ Start, End uint32 }

// Of gives the piece of b that the span names.
func (s Span) Of(b []byte) []byte { return b[s.Start:s.End] }

// Len is the number of octets in the span.
func (s Span) Len() int { return int(s.End - s.Start) }

// Field is one header field as it stands in the message.
type Field struct {
	ID     HeaderID // HeaderOther for a name we have no number for
	Folded bool     // the value runs over several lines
	Line   Span     // the whole field: name to the CRLF behind the value, folds included
	Name   Span     // empty in a line that has no field name
	Value  Span     // without the white space around it; folds are still inside
}

// Msg is the index of one message over its received bytes. A worker owns one and uses it for message after message;
// nothing in it outlives the bytes it was made from.
type Msg struct {
	Raw     []byte // start line to the last octet of the body
	Request bool
	Method  Span // request only
	URI     Span // request only
	Version Span
	Status  int  // response only; 0 when the status line has no number from 100 to 699
	Reason  Span // response only
	Fields  []Field
	Head    Span // start line to the empty line, that one included
	Unended bool // a datagram ended with its last field, without the empty line
	Body    Span

	// Values is what Validate read on its way; it is whole only after Validate found nothing wrong.
	Values Values

	start Span              // start line without its CRLF
	first [numHeaders]int16 // index of the first field of a known name, plus one; 0: none
	count [numHeaders]int16 //
	fault *Error            // what Parse found, for Validate
	line  *Error            // what is wrong with the start line alone, for Validate
}

// Values are the single values that every request and response has, read once by Validate. They are pieces of Raw.
type Values struct {
	Via         ViaValue // the top value
	From, To    NameAddr
	FromTag     []byte // nil when there is none (RFC 2543)
	ToTag       []byte
	CallID      []byte
	CSeq        uint32
	Target      URI // the Request-URI; request only
	MaxForwards int // -1 when absent; request only
}

// First gives the first field of a known name; nil when there is none.
func (m *Msg) First(id HeaderID) *Field {
	if i := m.first[id]; i > 0 {
		return &m.Fields[i-1]
	}
	return nil
}

// Count says how many fields (lines, not values) of a known name there are.
func (m *Msg) Count(id HeaderID) int { return int(m.count[id]) }

// Bytes gives the octets of a span of this message.
func (m *Msg) Bytes(s Span) []byte { return m.Raw[s.Start:s.End] }

// Value gives the value of the first field of a known name; nil when there is none.
func (m *Msg) Value(id HeaderID) []byte {
	if f := m.First(id); f != nil {
		return m.Bytes(f.Value)
	}
	return nil
}

// Tag gives the tag of From or To, read by the one parser; nil when there is none or the field cannot be read.
func (m *Msg) Tag(id HeaderID) []byte {
	na, err := ParseNameAddr(m.Value(id))
	if err != nil {
		return nil
	}
	tag, _ := HeaderParam(na.Params, "tag")
	return tag
}
