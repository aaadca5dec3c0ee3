package lbtest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/wyegate/wyegate/internal/sip"
)

// Message is a received SIP message with its own copy of the bytes.
type Message struct {
	sip.Msg
	Reply func([]byte) // sends on the way the message came
	Back  *Path        // that way
}

// ReadMessage indexes a copy of raw.
func ReadMessage(raw []byte) (*Message, error) {
	m := &Message{}
	err := m.Parse(bytes.Clone(raw))
	return m, err
}

// MethodName is the method of a request, or of the request that a response answers.
func (m *Message) MethodName() string {
	if m.Request {
		return string(m.Bytes(m.Method))
	}
	_, method, _ := sip.ParseCSeq(m.Value(sip.CSeq))
	return string(method)
}

// All gives the values of all fields of a name, one line each.
func (m *Message) All(id sip.HeaderID) []string {
	var out []string
	for i := range m.Fields {
		if m.Fields[i].ID == id {
			out = append(out, string(m.Bytes(m.Fields[i].Value)))
		}
	}
	return out
}

// Header gives the first field of a name that has no number; empty when there is none.
func (m *Message) Header(name string) string {
	for i := range m.Fields {
		if strings.EqualFold(string(m.Bytes(m.Fields[i].Name)), name) {
			return string(m.Bytes(m.Fields[i].Value))
		}
	}
	return ""
}

// CallIDText is the Call-ID.
func (m *Message) CallIDText() string { return string(m.Value(sip.CallID)) }

// Response builds an answer as a UAS does: Via, Record-Route, From, To, Call-ID and CSeq copied, a To tag added.
func (m *Message) Response(status int, reason, toTag string, extra ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "SIP/2.0 %d %s\r\n", status, reason)
	for i := range m.Fields {
		f := &m.Fields[i]
		switch f.ID {
		case sip.Via, sip.RecordRoute, sip.From, sip.CallID, sip.CSeq:
			fmt.Fprintf(&b, "%s: %s\r\n", m.Bytes(f.Name), m.Bytes(f.Value))
		case sip.To:
			fmt.Fprintf(&b, "%s: %s", m.Bytes(f.Name), m.Bytes(f.Value))
			if m.Tag(sip.To) == nil && status != 100 && toTag != "" {
				fmt.Fprintf(&b, ";tag=%s", toTag)
			}
			b.WriteString("\r\n")
		}
	}
	for _, e := range extra {
		b.WriteString(e + "\r\n")
	}
	b.WriteString("Content-Length: 0\r\n\r\n")
	return []byte(b.String())
}

// routes gives every value of the Record-Route or Route fields, one by one.
func (m *Message) routes(id sip.HeaderID) []string {
	var out []string
	for _, line := range m.All(id) {
		rest := []byte(line)
		for len(rest) > 0 {
			na, r, err := sip.NextNameAddr(rest)
			if err != nil {
				break
			}
			out = append(out, string(na.Value))
			rest = r
		}
	}
	return out
}

// Contact gives the URI of the Contact.
func (m *Message) Contact() string {
	na, _, err := sip.NextNameAddr(m.Value(sip.Contact))
	if err != nil {
		return ""
	}
	return string(na.URI)
}
