package sip

import "bytes"

// maxLines bounds the lines of a head, the start line and folds included (sip-http.md section 19).
const maxLines = 512

// Parse lays the index over raw, which is one whole message as a framer cut it; a datagram goes to ParseDatagram. It
// keeps the memory of the message before. The error is a *Error; what could be read is in m all the same, so that an
// answer can be built from it. Parse judges only what makes a head unreadable; what a proxy need not understand it lets
// pass, and what it found beside is Validate's to judge.
func (m *Msg) Parse(raw []byte) error {
	if bad := m.parse(raw); bad != nil {
		return bad // not returned directly: a nil *Error must not become an error
	}
	return nil
}

func (m *Msg) parse(raw []byte) *Error {
	m.reset(raw)
	at := m.startLine()
	for at < len(raw) || m.fault == nil {
		if at >= len(raw) {
			// RFC 4475 3.1.2.15 is a good request whose datagram ends with its last field.
			if m.Unended = len(m.Fields) > 0; !m.Unended {
				m.find(errNoEnd)
			}
			break
		}
		if raw[at] == '\r' && at+1 < len(raw) && raw[at+1] == '\n' {
			at += 2
			break
		}
		if len(m.Fields) >= maxLines {
			m.find(errLines)
			break
		}
		at = m.field(at)
	}
	m.Head.End = uint32(at)
	m.Body = Span{uint32(at), uint32(len(raw))}
	m.checkHead(raw[:at])
	m.fault = m.owed(m.fault)
	return m.fault
}

// reset forgets the message before, but not its memory.
func (m *Msg) reset(raw []byte) {
	m.Raw = raw
	m.Request, m.Unended, m.Status = false, false, 0
	m.Method, m.URI, m.Version, m.Reason, m.Head, m.start = Span{}, Span{}, Span{}, Span{}, Span{}, Span{}
	m.Fields = m.Fields[:0]
	m.first, m.count = [numHeaders]int16{}, [numHeaders]int16{}
	m.fault, m.line = nil, nil
	m.Values = Values{}
}

// find keeps the first fault: later ones are often its echo.
func (m *Msg) find(bad *Error) {
	if m.fault == nil {
		m.fault = bad
	}
}

// field indexes the header field at at and gives the offset behind it.
func (m *Msg) field(at int) int {
	n := len(m.Fields)
	if n < cap(m.Fields) {
		m.Fields = m.Fields[:n+1]
	} else {
		m.Fields = append(m.Fields, Field{})
	}
	f := &m.Fields[n]
	next, bad := scanField(m.Raw, at, f)
	if bad != nil {
		m.find(bad)
	}
	if f.ID != HeaderOther {
		if m.count[f.ID] == 0 {
			m.first[f.ID] = int16(n + 1)
		}
		m.count[f.ID]++
	}
	return next
}

// scanField reads the field whose line begins at at, folds included, and gives the offset behind it. Every reader of
// heads goes through it: what counts as a name and where a value ends is decided once. A line without a name is a field
// without one, so that the index still covers every octet.
func scanField(b []byte, at int, f *Field) (next int, bad *Error) {
	*f = Field{}
	i := at
	if n := bytes.IndexByte(b[at:min(at+longestName+1, len(b))], ':'); n > 0 {
		// A known name right before its colon is nearly every line; it needs no look at its octets.
		if f.ID = HeaderByName(b[at : at+n]); f.ID != HeaderOther {
			f.Name = Span{uint32(at), uint32(at + n)}
			i = at + n + 1
		}
	}
	if f.ID == HeaderOther {
		i, bad = scanName(b, at, f)
	}
	from := i
	for {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			if bad == nil {
				bad = errNoEnd
			}
			next = len(b)
			break
		}
		next = i + n + 1
		if next-2 < at || b[next-2] != '\r' {
			// No line end for us, whatever others take it for: it stays inside the value, and the message is refused.
			bad = errBareLF
		} else if next == len(b) || !blank(b[next]) {
			break
		} else {
			f.Folded = true
		}
		i = next
	}
	f.Line = Span{uint32(at), uint32(next)}
	start, end := from, next
	for start < end && space(b[start]) {
		start++
	}
	for end > start && space(b[end-1]) {
		end--
	}
	if start == end {
		start, end = from, from // an empty value stands behind its colon, not in the next line
	}
	f.Value = Span{uint32(start), uint32(end)}
	return next, bad
}

// scanName reads any other name, and white space before the colon; it gives the offset behind that, or at itself when
// there is no name.
func scanName(b []byte, at int, f *Field) (next int, bad *Error) {
	end := run(b, at, isToken)
	colon := end
	for colon < len(b) && blank(b[colon]) {
		colon++
	}
	if end == at || colon == len(b) || b[colon] != ':' {
		f.Name = Span{uint32(at), uint32(at)}
		return at, errFieldName
	}
	f.Name = Span{uint32(at), uint32(end)}
	f.ID = HeaderByName(b[at:end])
	return colon + 1, nil
}

// checkHead looks for what must not stand anywhere in a head. Line feeds were judged one by one; so as many carriage
// returns as line feeds means that none is alone.
func (m *Msg) checkHead(head []byte) {
	lines := bytes.Count(head, crlf[1:])
	switch {
	case lines > maxLines+1:
		m.find(errLines)
	case bytes.Count(head, crlf[:1]) != lines:
		m.find(errBareCR)
	}
	if i := bytes.IndexByte(head, 0); i >= 0 && !m.quotedNULs(i) {
		m.find(errNUL)
	}
}

// quotedNULs says that every NUL of the head, the first of which is at i, is the second octet of a quoted pair, the only
// place where RFC 3261 allows one (RFC 4475 3.1.1.2 has it).
func (m *Msg) quotedNULs(i int) bool {
	nuls := 0
	for _, c := range m.Raw[i:m.Head.End] {
		if c == 0 {
			nuls++
		}
	}
	for n := range m.Fields {
		nuls -= pairsOfNUL(m.Bytes(m.Fields[n].Value))
	}
	return nuls == 0
}

// pairsOfNUL counts the quoted pairs with a NUL in the quoted strings of a value.
func pairsOfNUL(b []byte) (n int) {
	quoted := false
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '"':
			quoted = !quoted
		case b[i] == '\\' && quoted:
			i++
			if i < len(b) && b[i] == 0 {
				n++
			}
		}
	}
	return n
}

var crlf = []byte("\r\n")
