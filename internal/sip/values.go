package sip

// URI is a parsed SIP, SIPS, TEL or other URI; every part is a piece of the bytes it was read from, nothing decoded.
type URI struct {
	Scheme   []byte
	User     []byte // octets before '@' and before ':password'; nil when there is none
	Password []byte
	Host     []byte // IPv6 with its brackets
	Port     []byte // digits; nil when not written
	Params   []byte // behind the host: ";a=b;c", first ';' included; nil when none
	Headers  []byte // behind '?', without it
	Opaque   []byte // what follows the colon of a scheme that is not sip or sips (tel number with its parameters, urn …)
}

// ParseURI reads one URI that fills b.
func ParseURI(b []byte) (URI, error) { return URI{}, nil }

// Param finds a URI parameter without case; the value is nil for ";lr" and raw (not decoded) for ";a=b".
func (u *URI) Param(name string) (value []byte, present bool) { return nil, false }

// NameAddr is a name-addr or addr-spec of a header field with the parameters that belong to the header.
type NameAddr struct {
	Display []byte // with quotes and escapes as received; nil when none
	URI     []byte // between the brackets; without brackets up to the first ';', ',', '?' or blank
	Params  []byte // header parameters, first ';' included
	Value   []byte // the whole element, trimmed
}

// NextNameAddr reads the first element of a comma-separated list and gives what is left behind the comma. White space
// and folds are as RFC 3261 25.1 allows.
func NextNameAddr(b []byte) (na NameAddr, rest []byte, err error) { return NameAddr{}, nil, nil }

// HeaderParam finds a header parameter in params (first ';' included) without case; quotes stay.
func HeaderParam(params []byte, name string) (value []byte, present bool) { return nil, false }

// ViaValue is one value of a Via field.
type ViaValue struct {
	Transport []byte
	Host      []byte // IPv6 with brackets
	Port      []byte // nil when not written
	Params    []byte // first ';' included
	Branch    []byte // nil when absent
	Value     []byte // the whole value, trimmed
}

// NextVia reads the first value of a Via field and gives what is left behind the comma.
func NextVia(b []byte) (v ViaValue, rest []byte, err error) { return ViaValue{}, nil, nil }

// ParseCSeq reads "number method".
func ParseCSeq(b []byte) (number uint32, method []byte, err error) { return 0, nil, nil }

// FindCallID finds the value of Call-ID in a message that was not indexed yet, folded or compact, without a full
// parse: the readers of sockets name the worker by it. Nil when there is none.
func FindCallID(raw []byte) []byte { return nil }
