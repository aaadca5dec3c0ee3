package sip

import "bytes"

// startLine reads the first line and gives the offset behind it. A line that is not SIP at all is a fault of the
// message; a line that is SIP with a wrong shape is left to Validate, which knows what its sender is owed.
func (m *Msg) startLine() int {
	n := bytes.IndexByte(m.Raw, '\n')
	next, end := n+1, n-1
	switch {
	case n < 0:
		m.find(errNoEnd)
		next, end = len(m.Raw), len(m.Raw)
	case n == 0 || m.Raw[n-1] != '\r':
		m.find(errBareLF)
		end = n
	}
	m.start = Span{0, uint32(end)}
	line := m.Raw[:end]
	for len(line) > 0 && blank(line[len(line)-1]) {
		line = line[:len(line)-1]
	}
	if sipVersion(line) {
		m.statusLine(m.Raw[:end])
		return next
	}
	if len(line) < end {
		m.line = errStartBlank
	}
	m.requestLine(line)
	return next
}

// sipVersion says that b begins as a SIP-Version does.
func sipVersion(b []byte) bool { return len(b) >= 4 && EqualFold(b[:4], "SIP/") }

// requestLine takes the method before the first space, the version behind the last, and whatever stands between as the
// Request-URI: spaces that do not belong there end up in the URI, where Validate finds them.
func (m *Msg) requestLine(line []byte) {
	first, last := bytes.IndexByte(line, ' '), bytes.LastIndexByte(line, ' ')
	if !sipVersion(line[last+1:]) {
		m.find(errNotSIP) // indexed all the same: with a Via below there is somebody to tell
	}
	if first <= 0 {
		m.find(errNotSIP)
		return
	}
	m.Request = true
	m.Method = Span{0, uint32(first)}
	m.Version = Span{uint32(last + 1), uint32(len(line))}
	if first == last {
		m.line = errStartLine
		return
	}
	if !all(line[:first], isToken) {
		m.line = errMethod
	}
	m.URI = Span{uint32(first + 1), uint32(last)}
}

// statusLine reads "SIP/2.0 200 OK". The reason may be empty, and the space before it missing.
func (m *Msg) statusLine(line []byte) {
	sp := bytes.IndexByte(line, ' ')
	if sp < 0 {
		m.Version = Span{0, uint32(len(line))}
		m.line = errStatusLine
		return
	}
	m.Version = Span{0, uint32(sp)}
	code := line[sp+1:]
	if len(code) < 3 || len(code) > 3 && code[3] != ' ' || !all(code[:3], isDigit) {
		m.line = errStatusLine
		return
	}
	m.Status = int(code[0]-'0')*100 + int(code[1]-'0')*10 + int(code[2]-'0')
	if m.Status < 100 || m.Status > 699 {
		m.Status, m.line = 0, errStatusLine
	}
	m.Reason = Span{uint32(min(sp+5, len(line))), uint32(len(line))}
}

// version2 says that the message is of the version that this program speaks.
func (m *Msg) version2() bool { return EqualFold(m.Bytes(m.Version), "SIP/2.0") }

// versionShape says that b is "SIP/" digits "." digits.
func versionShape(b []byte) bool {
	if !sipVersion(b) {
		return false
	}
	dot := run(b, 4, isDigit)
	return dot > 4 && dot < len(b) && b[dot] == '.' && run(b, dot+1, isDigit) == len(b) && dot+1 < len(b)
}
