package sip

import (
	"bytes"
	"strings"
	"testing"
)

// invite is a request of 900 octets as a phone behind a proxy sends it: what benchmarks and allocation tests run on.
const invite = "INVITE sip:bob@biloxi.example.com;user=phone SIP/2.0\r\n" +
	"Via: SIP/2.0/UDP proxy7.atlanta.example.com:5060;branch=z9hG4bK4b43c2ff8.1\r\n" +
	"Via: SIP/2.0/UDP pc33.atlanta.example.com:5066;branch=z9hG4bK776asdhds;received=192.0.2.101;rport=5066\r\n" +
	"Max-Forwards: 69\r\n" +
	"Record-Route: <sip:proxy7.atlanta.example.com;lr>\r\n" +
	"From: \"Alice\" <sip:alice@atlanta.example.com>;tag=1928301774\r\n" +
	"To: \"Bob\" <sip:bob@biloxi.example.com>\r\n" +
	"Call-ID: a84b4c76e66710@pc33.atlanta.example.com\r\n" +
	"CSeq: 314159 INVITE\r\n" +
	"Contact: <sip:alice@pc33.atlanta.example.com:5066>\r\n" +
	"Allow: INVITE, ACK, CANCEL, BYE, OPTIONS\r\n" +
	"User-Agent: Phone/1.2\r\n" +
	"Content-Type: application/sdp\r\n" +
	"Content-Length: 136\r\n" +
	"\r\n" +
	"v=0\r\no=alice 2890844526 2890844526 IN IP4 192.0.2.101\r\ns=-\r\nc=IN IP4 192.0.2.101\r\nt=0 0\r\nm=audio 49172 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"

func TestParseIndexesEveryOctet(t *testing.T) {
	var m Msg
	if err := m.Parse([]byte(invite)); err != nil {
		t.Fatal(err)
	}
	if got := string(m.Bytes(m.Method)) + "|" + string(m.Bytes(m.URI)) + "|" + string(m.Bytes(m.Version)); got != "INVITE|sip:bob@biloxi.example.com;user=phone|SIP/2.0" {
		t.Errorf("start line %q", got)
	}
	if m.Count(Via) != 2 || m.Count(CallID) != 1 || string(m.Value(MaxForwards)) != "69" {
		t.Errorf("via %d, call-id %d, max-forwards %q", m.Count(Via), m.Count(CallID), m.Value(MaxForwards))
	}
	if got := string(m.Tag(From)); got != "1928301774" {
		t.Errorf("from tag %q", got)
	}
	if m.Tag(To) != nil {
		t.Error("a To tag where there is none")
	}
	if m.Body.Len() != 136 {
		t.Errorf("body of %d octets", m.Body.Len())
	}
	if string(rebuild(&m)) != invite {
		t.Error("the index does not cover every octet")
	}
}

// rebuild writes the message from the pieces of its index.
func rebuild(m *Msg) []byte {
	var b []byte
	next := uint32(0)
	line := func(s Span) {
		b = append(b, m.Bytes(s)...)
		next = s.End
	}
	if len(m.Fields) > 0 {
		line(Span{0, m.Fields[0].Line.Start})
		for _, f := range m.Fields {
			line(f.Line)
		}
	}
	line(Span{next, m.Head.End})
	return append(b, m.Bytes(m.Body)...)
}

// SV-7: one value, whatever its spelling.
func TestParseSpellings(t *testing.T) {
	head := "INVITE sip:b@example.com SIP/2.0\r\n"
	for name, c := range map[string]struct{ line, from, tag string }{
		"plain":       {"From: \"A\" <sip:a@h;tag=no>;tag=x1\r\n", "sip:a@h;tag=no", "x1"},
		"compact":     {"f:<sip:a@h;tag=no>;tag=x1\r\n", "sip:a@h;tag=no", "x1"},
		"case, fold":  {"fRoM  :\r\n <sip:a@h;tag=no>\r\n\t; TAG\r\n = x1\r\n", "sip:a@h;tag=no", "x1"},
		"decoys":      {"From: \";tag=no\\\" <sip:n@n>;tag=no\" <sip:;tag=no@h>;x=\";tag=no\";tag=x1\r\n", "sip:;tag=no@h", "x1"},
		"addr-spec":   {"From: sip:a@h;tag=x1\r\n", "sip:a@h", "x1"},
		"comma":       {"From: Bell, Alexander <sip:a@h>;tag=x1\r\n", "sip:a@h", "x1"},
		"inner blank": {"From: \"W, T\" < sip:a@h >;tag=x1\r\n", "sip:a@h", "x1"},
		"no blank":    {"From: caller<sip:a@h>;tag=x1\r\n", "sip:a@h", "x1"},
	} {
		t.Run(name, func(t *testing.T) {
			var m Msg
			if err := m.Parse([]byte(head + c.line + "\r\n")); err != nil {
				t.Fatal(err)
			}
			na, err := ParseNameAddr(m.Value(From))
			if err != nil {
				t.Fatal(err)
			}
			if string(na.URI) != c.from || string(m.Tag(From)) != c.tag {
				t.Errorf("uri %q tag %q", na.URI, m.Tag(From))
			}
		})
	}
}

// Section 18: bare LF, bare CR, NUL and bad names are refused, and the message is not repaired.
func TestParseRefuses(t *testing.T) {
	const ok = "OPTIONS sip:a@b SIP/2.0\r\n"
	for name, c := range map[string]struct {
		in   string
		want *Error
	}{
		"bare LF in a value":      {ok + "Subject: a\nVia: b\r\n\r\n", errBareLF},
		"bare LF line end":        {ok + "Subject: a\n\r\n", errBareLF},
		"bare LF start line":      {"OPTIONS sip:a@b SIP/2.0\nSubject: a\r\n\r\n", errBareLF},
		"bare CR":                 {ok + "Subject: a\rb\r\n\r\n", errBareCR},
		"CR CR LF":                {ok + "Subject: a\r\r\n\r\n", errBareCR},
		"NUL":                     {ok + "Subject: a\x00b\r\n\r\n", errNUL},
		"NUL pair without quotes": {ok + "Subject: a\\\x00b\r\n\r\n", errNUL},
		"blank in a name":         {ok + "Sub ject: a\r\n\r\n", errFieldName},
		"no colon":                {ok + "Subject\r\n\r\n", errFieldName},
		"empty name":              {ok + ": a\r\n\r\n", errFieldName},
		"fold without a field":    {ok + " a: b\r\n\r\n", errFieldName},
		"cut in a line":           {ok + "Subject: a", errNoEnd},
		"only a start line":       {"OPTIONS sip:a@b SIP/2.0", errNoEnd},
		"nothing":                 {"", errNoEnd},
		"HTTP":                    {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", errNotSIP},
		"SIPfoo":                  {"OPTIONS sip:a@b SIPfoo\r\n\r\n", errNotSIP},
		"lines":                   {ok + strings.Repeat("a: b\r\n", 600) + "\r\n", errLines},
		"folds":                   {ok + "a: b\r\n" + strings.Repeat(" c\r\n", 600) + "\r\n", errLines},
	} {
		t.Run(name, func(t *testing.T) {
			var m Msg
			if err := m.Parse([]byte(c.in)); err != error(c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	var m Msg
	if err := m.Parse([]byte(ok + "To: \"NUL:\\\x00\" <sip:a@b>\r\n\r\n")); err != nil {
		t.Errorf("a NUL in a quoted pair is legal (RFC 4475 3.1.1.2): %v", err)
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	var m Msg
	raw := []byte(invite)
	m.Parse(raw)
	if n := testing.AllocsPerRun(100, func() { m.Parse(raw); FindCallID(raw) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFindCallIDAgreesWithParse(t *testing.T) {
	for _, in := range []string{
		invite,
		"A b SIP/2.0\r\nCALL-ID :\r\n x@y \r\n z\r\n\r\n",
		"A b SIP/2.0\r\nX: 1\r\n i: no\r\ni: yes\r\n\r\n",
		"A b SIP/2.0\r\nContact: a\r\nCall-Info: b\r\ni:\r\nCall-ID: late\r\n\r\n",
		"A b SIP/2.0\r\nContact: a\r\n\r\ni: body\r\n",
		"A b SIP/2.0\r\nX: a\ni: hidden\r\nCall-ID: seen\r\n\r\n",
		"\r\n\r\nA b SIP/2.0\r\ni: a\r\n\r\n",
	} {
		var m Msg
		m.ParseDatagram([]byte(in))
		if got := FindCallID([]byte(in)); !bytes.Equal(got, m.Value(CallID)) {
			t.Errorf("%q: found %q, parsed %q", in, got, m.Value(CallID))
		}
	}
}

func BenchmarkParse(b *testing.B) {
	var m Msg
	raw := []byte(invite)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFindCallID(b *testing.B) {
	raw := []byte(invite)
	b.ReportAllocs()
	for b.Loop() {
		FindCallID(raw)
	}
}
