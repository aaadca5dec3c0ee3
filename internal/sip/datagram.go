package sip

// ParseDatagram lays the index over a datagram and cuts it by its Content-Length (RFC 3261 section 18.3, SX-4): what
// stands behind the body is no part of the message, a shorter body is an error, without the field the body runs to the
// end. Empty lines before the start line are skipped. A Content-Length that is no number, or is there twice, is left to
// Validate.
func (m *Msg) ParseDatagram(raw []byte) error {
	for len(raw) > 0 && (raw[0] == '\r' || raw[0] == '\n') {
		raw = raw[1:]
	}
	if bad := m.parse(raw); bad != nil {
		return bad
	}
	if bad := m.cut(); bad != nil {
		m.fault = bad
		return bad
	}
	return nil
}

// ParseWebSocket reads a message that a WebSocket frame has cut (RFC 7118 section 5): a Content-Length is not needed, and
// one that is there must fit exactly.
func (m *Msg) ParseWebSocket(raw []byte) error {
	if bad := m.parse(raw); bad != nil {
		return bad
	}
	if m.Count(ContentLength) != 1 {
		return nil
	}
	if n, err := ParseContentLength(m.Value(ContentLength)); err == nil && n != m.Body.Len() {
		m.fault = m.owed(errLengthFits)
		return m.fault
	}
	return nil
}

func (m *Msg) cut() *Error {
	if m.Count(ContentLength) != 1 {
		return nil
	}
	n, err := ParseContentLength(m.Value(ContentLength))
	switch {
	case err != nil || n == m.Body.Len():
		return nil
	case n < m.Body.Len():
		m.Body.End = m.Body.Start + uint32(n)
		m.Raw = m.Raw[:m.Body.End]
		return nil
	}
	return m.owed(errShortBody)
}

// KeepAlive says that a datagram or a WebSocket message holds nothing but CR, LF and NUL, or nothing at all: it is
// ignored, except that CRLF CRLF on a reliable transport is answered (SX-6).
func KeepAlive(b []byte) bool {
	for _, c := range b {
		if c != '\r' && c != '\n' && c != 0 {
			return false
		}
	}
	return true
}
