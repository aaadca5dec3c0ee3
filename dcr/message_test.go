package dcr

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/internal/sip"
)

// sipMessage gives rules the index of a SIP request, as the proxy does.
type sipMessage struct{ msg sip.Msg }

func (m *sipMessage) Describe(r *Request) {
	raw := m.msg.Raw
	r.Proto, r.Method, r.Target = SIP, m.msg.Method.Of(raw), m.msg.URI.Of(raw)
	r.Fields = r.Fields[:0]
	for i := range m.msg.Fields {
		f := &m.msg.Fields[i]
		r.Fields = append(r.Fields, Field{f.ID, f.Name.Of(raw), f.Value.Of(raw)})
	}
}

// httpMessage is an HTTP request, split by line.
type httpMessage struct {
	method, target []byte
	fields         []Field
	remote         netip.AddrPort
}

func (m *httpMessage) Describe(r *Request) {
	r.Proto, r.Method, r.Target, r.Remote = HTTP, m.method, m.target, m.remote
	r.Fields = append(r.Fields[:0], m.fields...)
}

// sipRequest builds a request out of a start line and fields; what a valid one needs besides is added.
func sipRequest(t testing.TB, method, uri string, fields ...string) Message {
	t.Helper()
	var b strings.Builder
	b.WriteString(method + " " + uri + " SIP/2.0\r\n")
	have := map[sip.HeaderID]bool{}
	for _, f := range fields {
		name, _, _ := strings.Cut(f, ":")
		have[sip.HeaderByName([]byte(name))] = true
	}
	for _, f := range []string{
		"Via: SIP/2.0/UDP 198.51.100.7:5060;branch=z9hG4bK776", `From: "Dave" <sip:dave@ims.ex>;tag=77`,
		"To: <sip:team@ex.com>", "Call-ID: c7@ua", "CSeq: 1 " + method, "Max-Forwards: 70",
	} {
		name, _, _ := strings.Cut(f, ":")
		if !have[sip.HeaderByName([]byte(name))] {
			b.WriteString(f + "\r\n")
		}
	}
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	b.WriteString("Content-Length: 0\r\n\r\n")
	m := &sipMessage{}
	if err := m.msg.Parse([]byte(b.String())); err != nil {
		t.Fatalf("request %s %s: %v", method, uri, err)
	}
	return m
}

func httpRequest(target string, fields ...string) Message {
	m := &httpMessage{method: []byte("GET"), target: []byte(target), remote: netip.MustParseAddrPort("192.0.2.7:51000")}
	for _, f := range append([]string{"Host: phone.example.net"}, fields...) {
		name, value, _ := strings.Cut(f, ":")
		m.fields = append(m.fields, Field{Name: []byte(name), Value: []byte(strings.TrimSpace(value))})
	}
	return m
}

// enumTable is a resolver that knows some numbers; all others have no answer.
type enumTable map[string]string

func (e enumTable) Resolve(number []byte) ([]byte, Answer) {
	if uri, ok := e[string(number)]; ok {
		return []byte(uri), AnswerKnown
	}
	return nil, AnswerNull
}

var testEnum = enumTable{"4687190000": "sip:alice@ims.example.com"}

// compiled compiles a rule file that must be without errors.
func compiled(t testing.TB, file string, o Options) *RuleSet {
	t.Helper()
	rs, problems := Compile("rules.xml", []byte(file), o)
	if rs == nil {
		t.Fatalf("refused: %v\n%s", problems, file)
	}
	return rs
}

// keyOf gives the key, or "" when the default key applies.
func keyOf(rs *RuleSet, m Message) string {
	return string(rs.Key(m, &Scratch{}, nil).Key)
}

// fixedMessage hands over an index that was made by hand.
type fixedMessage struct{ r Request }

func (m *fixedMessage) Describe(r *Request) {
	fields := append(r.Fields[:0], m.r.Fields...)
	*r = m.r
	r.Fields = fields
}

func sipField(name, value string) Field {
	return Field{ID: sip.HeaderByName([]byte(name)), Name: []byte(name), Value: []byte(value)}
}
