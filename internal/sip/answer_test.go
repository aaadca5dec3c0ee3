package sip

import (
	"net/netip"
	"strings"
	"testing"
)

var from7 = netip.MustParseAddrPort("192.0.2.77:4444")

// checkAnswer makes sure that an answer to m, whatever is wrong with it, is a whole response (ST-6).
func checkAnswer(t *testing.T, m *Msg) {
	t.Helper()
	raw, ok := AppendAnswer(nil, m, &Answer{Status: 400, Tag: []byte("ourtag"), Source: from7})
	if !ok {
		if m.Request && m.Values.Via.Host != nil && string(m.Bytes(m.Method)) != "ACK" && m.cleanLine(m.First(Via)) {
			t.Error("no answer, but a Via can be read")
		}
		return
	}
	var a Msg
	if err := a.Parse(raw); err != nil {
		t.Fatalf("answer cannot be read: %v\n%s", err, raw)
	}
	for _, id := range []HeaderID{From, To, CallID, CSeq, ContentLength} {
		if a.Count(id) != 1 {
			t.Errorf("answer has %d %v\n%s", a.Count(id), id, raw)
		}
	}
	if m.Values.Via.Value != nil { // readable as a whole
		if to, ok := viaOf(&a); !ok || to.Addr() != from7.Addr() {
			t.Errorf("answer does not say where the request came from\n%s", raw)
		}
	}
}

func viaOf(m *Msg) (netip.AddrPort, bool) {
	v, _, err := NextVia(m.Value(Via))
	to, ok := v.ReplyTo()
	return to, err == nil && ok
}

func TestAnswer(t *testing.T) {
	const req = "INVITE sip:b@h SIP/2.0\r\nVIA: SIP/2.0/UDP h;branch=z9hG4bK1;rport, SIP/2.0/UDP g\r\nX: 1\r\n" +
		"v: SIP/2.0/TCP\r\n f;x=y\r\nt: \"B\" <sip:b@h>;x=1\r\nFrom : A <sip:a@h>;tag=9\r\ni:c\r\nCSeq:  0007 INVITE\r\n\r\n"
	var m Msg
	if err := m.Parse([]byte(req)); err != nil {
		t.Fatal(err)
	}
	got, ok := AppendAnswer([]byte("before"), &m, &Answer{
		Status: 503, Tag: []byte("us"), Source: from7, Extra: []byte("Retry-After: 7\r\n"),
	})
	want := "beforeSIP/2.0 503 Service Unavailable\r\n" +
		"VIA: SIP/2.0/UDP h;branch=z9hG4bK1;rport=4444;received=192.0.2.77, SIP/2.0/UDP g\r\nv: SIP/2.0/TCP\r\n f;x=y\r\n" +
		"From : A <sip:a@h>;tag=9\r\nt: \"B\" <sip:b@h>;x=1;tag=us\r\ni:c\r\nCSeq:  0007 INVITE\r\n" +
		"Retry-After: 7\r\nContent-Length: 0\r\n\r\n"
	if !ok || string(got) != want {
		t.Errorf("got %v\n%s", ok, got)
	}
	// A To tag that is there stays, and alone.
	m.Parse([]byte(strings.Replace(req, ";x=1", "; TAG = 1", 1)))
	if got, _ = AppendAnswer(nil, &m, &Answer{Status: 400, Tag: []byte("us"), Source: from7}); strings.Contains(string(got), "us") {
		t.Errorf("two tags\n%s", got)
	}
}

func TestNoAnswer(t *testing.T) {
	const via = "Via: SIP/2.0/UDP h;branch=z9hG4bK1\r\n"
	for name, raw := range map[string]string{
		"ACK (ST-5)":      "ACK sip:b@h SIP/2.0\r\n" + via + "\r\n",
		"response":        "SIP/2.0 200 OK\r\n" + via + "\r\n",
		"no Via":          "BYE sip:b@h SIP/2.0\r\nX: 1\r\n\r\n",
		"no sent-by":      "BYE sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP ;branch=x\r\n\r\n",
		"line feed in it": "BYE sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP h;x\ny\r\n\r\n",
		"HTTP":            "GET / HTTP/1.1\r\nVia: 1.1 p\r\n\r\n",
		"nothing":         "",
	} {
		var m Msg
		m.Parse([]byte(raw))
		if got, ok := AppendAnswer(nil, &m, &Answer{Status: 400, Source: from7}); ok || got != nil {
			t.Errorf("%s: answered\n%s", name, got)
		}
	}
}

// RFC 4475 3.3.1, badinv01: what is missing is filled, what is broken goes back as it came.
func TestAnswerToWhatIsBroken(t *testing.T) {
	var m Msg
	m.Parse([]byte("INVITE sip:u@h SIP/2.0\r\nCSeq: 193942 INVITE\r\nVia: SIP/2.0/UDP 192.0.2.95;;,;,,\r\nSubject: a\nb\r\n\r\n"))
	got, ok := AppendAnswer(nil, &m, &Answer{Status: 400, Tag: []byte("us"), Source: from7})
	want := "SIP/2.0 400 Bad Request\r\nVia: SIP/2.0/UDP 192.0.2.95;received=192.0.2.77;;,;,,\r\n" +
		"From: <sip:anonymous@anonymous.invalid>\r\nTo: <sip:anonymous@anonymous.invalid>;tag=us\r\n" +
		"Call-ID: none@anonymous.invalid\r\nCSeq: 193942 INVITE\r\nContent-Length: 0\r\n\r\n"
	if !ok || string(got) != want {
		t.Errorf("got %v\n%s", ok, got)
	}
}
