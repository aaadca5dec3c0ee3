package sip

import (
	"bytes"
	"net/netip"
	"strconv"
)

// Answer is a response that we make ourselves and forget (ST-6, RFC 3261 section 8.2.7).
type Answer struct {
	Status     int
	Reason     string         // empty: that of RFC 3261
	Tag        []byte         // To tag, added when the request has none; empty: none is added
	Source     netip.AddrPort // where the request came from, for received and rport; not valid: the Via stays
	ForceRport bool           // the listener's force_rport
	Overload   []byte         // answer to the oc of the sender, from AppendOverload; nil: it is left alone
	Extra      []byte         // further fields, whole lines with CRLF: Retry-After, Unsupported, Allow, Accept
}

// A request may lack what every response must have (RFC 4475 3.3.1). What its sender did not say is filled with these,
// so that the answer is well formed.
const (
	nobody   = "<sip:anonymous@anonymous.invalid>"
	noCallID = "none@anonymous.invalid"
)

// AppendAnswer appends the answer to a request: all Via lines, From, To, Call-ID and CSeq as received, even where the
// request is one that Parse or Validate refused. It is false, and nothing is appended, when nothing may be sent: the
// message is no request, it is an ACK, or its top Via cannot be read.
func AppendAnswer(dst []byte, m *Msg, a *Answer) ([]byte, bool) {
	if !m.Request || string(m.Bytes(m.Method)) == "ACK" {
		return dst, false
	}
	top := m.First(Via)
	if top == nil || !m.cleanLine(top) {
		return dst, false
	}
	var s stamp
	if !s.make(m, a.Source, a.ForceRport) {
		return dst, false
	}
	if !a.Source.IsValid() {
		s.n = 0
	}
	edits, n := m.topViaEdits(&s, a.Overload)
	reason := a.Reason
	if reason == "" {
		reason = Reason(a.Status)
	}
	dst = append(dst, "SIP/2.0 "...)
	dst = append(strconv.AppendInt(dst, int64(a.Status), 10), ' ')
	dst = append(append(dst, reason...), lineEnd...)
	for i := range m.Fields {
		f := &m.Fields[i]
		switch {
		case f.ID != Via:
		case f == top:
			dst = splice(dst, m.Raw, f.Line, edits[:n])
		case m.cleanLine(f):
			dst = append(dst, m.Bytes(f.Line)...)
		}
	}
	dst = m.appendCopied(dst, From, nobody)
	dst = m.appendTo(dst, a.Tag)
	dst = m.appendCopied(dst, CallID, noCallID)
	dst = m.appendCSeq(dst)
	dst = append(dst, a.Extra...)
	return append(dst, "Content-Length: 0\r\n\r\n"...), true
}

// topViaEdits joins the stamp of the top Via with the answer to its oc, by place.
func (m *Msg) topViaEdits(s *stamp, overload []byte) (list [6]Edit, n int) {
	var o overloadEdits
	if overload != nil {
		v := m.Values.Via
		if v.Value == nil { // Validate has not read it
			_, _ = v.parse(m.Bytes(m.First(Via).Value))
		}
		o.make(m, &v, overload)
	}
	stamps := s.edits()
	i, j := 0, 0
	for ; i < s.n || j < o.n; n++ {
		if j == o.n || i < s.n && stamps[i].At < o.ops[j].At {
			list[n] = stamps[i]
			i++
		} else {
			list[n] = o.ops[j]
			j++
		}
	}
	return list, n
}

// appendCopied appends the first field of a name as received, or one with a value that stands for none.
func (m *Msg) appendCopied(dst []byte, id HeaderID, none string) []byte {
	if f := m.First(id); f != nil && m.cleanLine(f) {
		return append(dst, m.Bytes(f.Line)...)
	}
	return append(append(append(append(dst, id.String()...), ": "...), none...), lineEnd...)
}

func (m *Msg) appendTo(dst, tag []byte) []byte {
	f := m.First(To)
	if f == nil || !m.cleanLine(f) {
		dst = append(append(dst, "To: "...), nobody...)
	} else if len(m.Tag(To)) > 0 {
		return append(dst, m.Bytes(f.Line)...)
	} else {
		dst = append(dst, m.Raw[f.Line.Start:f.Value.End]...)
	}
	if len(tag) > 0 {
		dst = append(append(dst, ";tag="...), tag...)
	}
	return append(dst, lineEnd...)
}

func (m *Msg) appendCSeq(dst []byte) []byte {
	if f := m.First(CSeq); f != nil && m.cleanLine(f) {
		return append(dst, m.Bytes(f.Line)...)
	}
	dst = append(dst, "CSeq: 0 "...)
	if method := m.Bytes(m.Method); len(method) > 0 && all(method, isToken) {
		dst = append(dst, method...)
	} else {
		dst = append(dst, "UNKNOWN"...)
	}
	return append(dst, lineEnd...)
}

// cleanLine says that a field can be copied into a message of ours: it ends with CRLF, every other CR and LF in it is a
// fold, and NULs are quoted pairs. Parse refuses messages with others, but an answer to such a one is owed.
func (m *Msg) cleanLine(f *Field) bool {
	b := m.Bytes(f.Line)
	if !bytes.HasSuffix(b, lineEnd) {
		return false
	}
	b = b[:len(b)-2]
	for i, c := range b {
		switch c {
		case '\r':
			if i+2 >= len(b) || b[i+1] != '\n' || !blank(b[i+2]) {
				return false
			}
		case '\n':
			if i == 0 || b[i-1] != '\r' {
				return false
			}
		}
	}
	return bytes.Count(b, []byte{0}) == pairsOfNUL(b)
}
