package sip

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// seed gives the corpus and what is odd beside it to a fuzz target.
func seed(f *testing.F, add func(raw []byte)) {
	for _, v := range vectors(f) {
		if len(v.raw) < 4096 {
			add(v.raw)
		}
	}
	add([]byte(invite))
	add([]byte("A b SIP/2.0\r\nv:\r\n\r\n"))
	add([]byte("SIP/2.0 200\r\n:\r\n \r\n\r\n"))
}

// Section 21.5: write(index(b)) = b, no panic; and the reader of sockets finds the Call-ID that the parser finds.
func FuzzIndex(f *testing.F) {
	seed(f, func(raw []byte) { f.Add(raw) })
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m Msg
		err := m.Parse(raw)
		if err == nil && !bytes.Equal(rebuild(&m), raw) {
			t.Error("the index does not cover every octet")
		}
		var e Edits
		e.Reset(&m)
		if got := e.Append(nil); !bytes.Equal(got, raw) {
			t.Error("no edit changed the message")
		}
		for i := range m.Fields {
			l, n, v := m.Fields[i].Line, m.Fields[i].Name, m.Fields[i].Value
			if l.Start > n.Start || n.End > v.Start || v.Start > v.End || v.End > l.End {
				t.Errorf("field %d: line %v, name %v, value %v", i, l, n, v)
			}
		}
		if err == nil && (len(raw) == 0 || raw[0] != '\r' && raw[0] != '\n') {
			if got := FindCallID(raw); !bytes.Equal(got, m.Value(CallID)) {
				t.Errorf("found %q, parsed %q", got, m.Value(CallID))
			}
		}
		Validate(&m, &Options{})
		checkAnswer(t, &m)
		var d Msg
		if d.ParseDatagram(raw) == nil && Validate(&d, &Options{}) == nil {
			checkAnswer(t, &d)
		}
	})
}

// Section 21.5: any cutting gives the same messages and errors as the whole.
func FuzzFramer(f *testing.F) {
	seed(f, func(raw []byte) { f.Add(raw, uint16(1), uint16(7), uint16(len(raw)/2)) })
	f.Fuzz(func(t *testing.T, raw []byte, a, b, c uint16) {
		whole := play(raw)
		cuts := []int{0, int(a), int(b), int(c), len(raw)}
		for i := range cuts {
			cuts[i] = min(cuts[i], len(raw))
		}
		slices.Sort(cuts)
		var chunks [][]byte
		for i := 1; i < len(cuts); i++ {
			chunks = append(chunks, raw[cuts[i-1]:cuts[i]])
		}
		if got := play(chunks...); !slices.Equal(got, whole) {
			t.Errorf("cut at %v: %q, whole: %q", cuts, got, whole)
		}
	})
}

// Section 21.5: pop(push(m)) = m, and a push is exactly one Via value more. A message that the index takes and that is
// cut out of a stream never has the framer and the parser disagree about its length.
func FuzzViaPushPop(f *testing.F) {
	seed(f, func(raw []byte) { f.Add(raw) })
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m Msg
		if m.Parse(raw) != nil || m.Count(Via) == 0 {
			return
		}
		count := func(m *Msg) (n int) {
			for it := m.Vias(); it.Next(); n++ {
			}
			return n
		}
		var e Edits
		e.Reset(&m)
		e.PushVia([]byte("SIP/2.0/UDP us;branch=z9hG4bKx"))
		pushed := e.Append(nil)
		var p Msg
		if err := p.Parse(pushed); err != nil {
			t.Fatalf("pushed: %v", err)
		}
		if count(&p) != count(&m)+1 {
			t.Errorf("%d values became %d", count(&m), count(&p))
		}
		e.Reset(&p)
		if !e.PopVia() {
			t.Fatal("our own Via cannot be read")
		}
		if got := e.Append(nil); !bytes.Equal(got, raw) {
			t.Errorf("got\n%q, want\n%q", got, raw)
		}
		// And popping what others pushed takes one value.
		e.Reset(&m)
		if !e.PopVia() {
			return
		}
		if err := p.Parse(e.Append(nil)); err != nil && len(m.Fields) > 1 || count(&p) != count(&m)-1 {
			t.Errorf("%d values became %d, %v", count(&m), count(&p), err)
		}
	})
}

// editsOf are edits that a forwarded request gets; any order and any repetition gives the same message.
var editsOf = []func(e *Edits){
	func(e *Edits) { e.PushVia([]byte("SIP/2.0/UDP us;branch=z9hG4bKx")) },
	func(e *Edits) { e.StampVia(netip.MustParseAddrPort("[2001:db8::7]:4444"), false) },
	func(e *Edits) { e.DecrementHops() },
	func(e *Edits) { e.PopRoutes(1) },
	func(e *Edits) { e.DropLastRoute() },
	func(e *Edits) { e.AppendRoute([]byte("sip:strict@h")) },
	func(e *Edits) { e.AddRecordRoute([]byte("<sip:us;lr>")) },
	func(e *Edits) { e.SetRequestURI([]byte("sip:other@h")) },
	func(e *Edits) { e.Remove(PAssertedIdentity) },
	func(e *Edits) { e.RemoveName("Subject") },
}

func FuzzEdits(f *testing.F) {
	seed(f, func(raw []byte) { f.Add(raw, []byte{3, 1, 4, 1, 5, 9, 2, 6, 5, 8}) })
	f.Fuzz(func(t *testing.T, raw, order []byte) {
		var m, p Msg
		if m.Parse(raw) != nil || !m.Request || len(order) > 64 {
			return
		}
		var used [16]bool
		var once, many, sorted Edits
		once.Reset(&m)
		many.Reset(&m)
		sorted.Reset(&m)
		for _, o := range order {
			n := int(o) % len(editsOf)
			editsOf[n](&many)
			if !used[n] {
				editsOf[n](&once)
			}
			used[n] = true
		}
		for n, edit := range editsOf {
			if used[n] {
				edit(&sorted)
			}
		}
		got, a, b := many.Append(nil), once.Append(nil), sorted.Append(nil)
		if !bytes.Equal(got, a) || !bytes.Equal(got, b) {
			t.Fatalf("order or repetition matters:\n%q\n%q\n%q", got, a, b)
		}
		if !bytes.Equal(many.Append(nil), got) {
			t.Error("written twice, and not alike")
		}
		if err := p.Parse(got); err != nil && err != error(errLines) && len(m.Fields) > 0 && p.Count(Via) > 0 {
			t.Errorf("the edited message cannot be read: %v\n%q", err, got)
		}
		if !bytes.Equal(m.Bytes(m.Body), p.Bytes(p.Body)) && p.Count(Via) > 0 {
			t.Error("the body changed")
		}
		for i := range p.Fields { // touch nothing else: every field is a received one, or one of the names edited
			switch f := &p.Fields[i]; f.ID {
			case Via, Route, RecordRoute, MaxForwards:
			default:
				if !bytes.Contains(raw, p.Bytes(f.Line)) {
					t.Errorf("field %q is nobody's", p.Bytes(f.Line))
				}
			}
		}
	})
}

// Section 21.5, SV-7: folding, compact names, case of names, white space and order of fields do not change the key.
func FuzzKeySpelling(f *testing.F) {
	f.Add("77", "c7@ua", "\"A, \\\"B\\\" <sip:x>;tag=no\"", []byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add("aB-_.", "1", "", []byte{255, 127, 63})
	f.Fuzz(func(t *testing.T, tag, callID, display string, spell []byte) {
		if tag == "" || callID == "" || !all([]byte(tag), isToken) || !all([]byte(callID), isWord) {
			return
		}
		if display != "" && (display[0] != '"' || quotedEnd([]byte(display), 0) != len(display) || strings.ContainsAny(display, "\r\n\x00")) {
			return
		}
		n := 0
		pick := func(of ...string) string {
			if n >= len(spell) {
				return of[0]
			}
			n++
			return of[int(spell[n-1])%len(of)]
		}
		space := func() string { return pick("", " ", "\t", "\r\n ", " \r\n\t ") }
		fields := []string{
			pick("From", "f", "FROM", "fRoM", "F") + pick("", " ", "\t") + ":" + space() + display + space() + "<sip:a;tag=no@h;tag=no>" +
				space() + pick("", ";x", ";x=\";tag=no\"") + space() + ";" + space() + pick("tag", "TAG", "Tag") + space() + "=" + space() + tag + space(),
			pick("Call-ID", "i", "CALL-ID", "I", "call-id") + pick("", " ") + ":" + space() + callID + space(),
			"CSeq: 1 BYE", "Via: SIP/2.0/UDP h", "To: <sip:b@h>", "Content-Length: 0",
		}
		for i := range fields {
			if n < len(spell) {
				j := int(spell[n]) % len(fields)
				fields[i], fields[j] = fields[j], fields[i]
				n++
			}
		}
		raw := []byte("BYE sip:b@h SIP/2.0\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n")
		var m Msg
		if err := m.ParseDatagram(raw); err != nil {
			t.Fatalf("%v\n%q", err, raw)
		}
		if bad := Validate(&m, &Options{}); bad != nil {
			t.Fatalf("%v\n%q", bad, raw)
		}
		if string(m.Values.FromTag) != tag || string(m.Tag(From)) != tag || string(m.Values.CallID) != callID || string(FindCallID(raw)) != callID {
			t.Errorf("tag %q, Call-ID %q, found %q\n%q", m.Values.FromTag, m.Values.CallID, FindCallID(raw), raw)
		}
	})
}

// The grammar of RFC 3261 section 25.1 (3986 for other schemes), with what ParseURI says that it takes beyond it.
var sipURI = func() *regexp.Regexp {
	const (
		unreserved = `A-Za-z0-9\-_.!~*'()%`
		host       = `(?:[A-Za-z0-9\-._]+|\[[0-9A-Fa-f:.]+\])`
		param      = `[` + unreserved + `\[\]/:&+$]`
	)
	return regexp.MustCompile(`^(?i:sips?):(?:[` + unreserved + `&=+$,;?/#]+(?::[` + unreserved + `&=+$,#]*)?@)?` + host + `(?::[0-9]+)?` +
		`(?:;` + param + `+(?:=` + param + `*)?)*(?:\?[` + unreserved + `\[\]/?:+$=&]+)?$`)
}()

var otherURI = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+\-.]*:[A-Za-z0-9\-_.!~*'()%;/?:@&=+$,\[\]#]+$`)

func FuzzURI(f *testing.F) {
	for _, s := range []string{
		"sip:alice:pw@example.com:5061;lr;a=b?Subject=x", "sip:[2001:db8:::192.0.2.1]", "tel:+1;phone-context=a", "urn:service:sos",
		"sip:1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*:&it+has=1,weird!*pas$wo~d_too.(doesn't-it)@example.com", "sip:a@h;;", "SIP:h",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseURI([]byte(s))
		if err != nil {
			return
		}
		if u.SIP() && !sipURI.MatchString(s) || !u.SIP() && !otherURI.MatchString(s) {
			t.Errorf("%q is taken", s)
		}
		if got := printURI(&u); got != s {
			t.Errorf("%q prints as %q", s, got)
		}
		ParseHost(u.Host)
		u.Param("lr")
		// In brackets, with parameters of the header behind, it is the same URI.
		na, rest, err := NextNameAddr([]byte("\"d\" <" + s + ">;tag=1, x"))
		if err != nil || string(na.URI) != s || string(rest) != " x" {
			t.Errorf("in brackets %q is %q, %v", s, na.URI, err)
		}
	})
}

func printURI(u *URI) string {
	s := string(u.Scheme) + ":" + string(u.Opaque) + string(u.User)
	if u.Password != nil {
		s += ":" + string(u.Password)
	}
	if u.User != nil {
		s += "@"
	}
	s += string(u.Host)
	if u.Port != nil {
		s += ":" + string(u.Port)
	}
	s += string(u.Params)
	if u.Headers != nil {
		s += "?" + string(u.Headers)
	}
	return s
}

// Parse, print, parse: equal. What is taken consists of whole elements: every octet is in one, or separates two.
func FuzzValues(f *testing.F) {
	for _, s := range []string{
		"\"A\" <sip:a@h;lr>;tag=1 , sip:b@h;x", "SIP / 2.0/UDP h : 5 ;branch=x,SIP/2.0/TCP [::1]", "0009\r\n INVITE", "5 (x(y)) ;duration=6", "150",
		"Bell, A <sip:a@h>;tag", "a, b,c",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := []byte(s)
		if na, rest, err := NextNameAddr(b); err == nil {
			again := printAddr(&na)
			na2, _, err := NextNameAddr([]byte(again))
			if err != nil || printAddr(&na2) != again || string(na2.URI) != string(na.URI) || string(na2.Params) != string(na.Params) {
				t.Errorf("%q prints as %q, %v", s, again, err)
			}
			if !strings.HasPrefix(string(trim(b)), string(na.Value)) || rest != nil && !strings.HasSuffix(s, ","+string(rest)) {
				t.Errorf("%q: value %q, rest %q", s, na.Value, rest)
			}
			HeaderParam(na.Params, "tag")
		} else if len(rest) >= len(b) && len(b) > 0 {
			t.Errorf("%q: no step behind a broken element", s)
		}
		if v, rest, err := NextVia(b); err == nil {
			v2, _, err := NextVia(v.Value)
			if err != nil || string(v2.Host) != string(v.Host) || string(v2.Branch) != string(v.Branch) || string(v2.Value) != string(v.Value) {
				t.Errorf("%q: value %q, %v", s, v.Value, err)
			}
			if rest != nil && !strings.HasSuffix(s, ","+string(rest)) {
				t.Errorf("%q: rest %q", s, rest)
			}
		}
		ParseNameAddr(b)
		if n, method, err := ParseCSeq(b); err == nil {
			n2, method2, err := ParseCSeq(fmt.Appendf(nil, "%d %s", n, method))
			if err != nil || n2 != n || string(method2) != string(method) || !cseqForm.MatchString(s) {
				t.Errorf("CSeq %q is %d %q", s, n, method)
			}
		}
		if r, err := ParseRetryAfter(b); err == nil {
			r2, err := ParseRetryAfter(fmt.Appendf(nil, "%d;duration=%d", r.Delta, r.Duration))
			if err != nil || r2 != r || r.Delta < 0 || r.Duration < 0 {
				t.Errorf("Retry-After %q is %v, %v", s, r, r2)
			}
		}
		if n, err := ParseContentLength(b); err == nil {
			n2, err := ParseContentLength(fmt.Append(nil, n))
			if err != nil || n != n2 || n < 0 || !lengthForm.MatchString(s) {
				t.Errorf("Content-Length %q is %d", s, n)
			}
		}
	})
}

var (
	cseqForm   = regexp.MustCompile("^[ \t\r\n]*[0-9]+[ \t\r\n]+[A-Za-z0-9\\-.!%*_+`'~]+[ \t\r\n]*$")
	lengthForm = regexp.MustCompile("^[ \t\r\n]*[0-9]+[ \t\r\n]*$")
)

func printAddr(na *NameAddr) string {
	return string(na.Display) + "<" + string(na.URI) + ">" + string(na.Params)
}

// The self test rests on it: one address, however it is written. netip is the judge.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"192.0.2.1", "2001:db8::1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8", "::", "1::", "fe80::1%eth0", "01.2.3.4", "::1.2.3.4:5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.HasPrefix(s, "[") {
			return
		}
		got, ok := ParseHost([]byte(s))
		want, err := netip.ParseAddr(s)
		if ok != (err == nil && want.Zone() == "") || ok && got != want.Unmap() {
			t.Errorf("%q is %v, %v; netip says %v, %v", s, got, ok, want, err)
		}
		if !strings.Contains(s, ":") {
			return
		}
		if in, bracketOK := ParseHost([]byte("[" + s + "]")); bracketOK != ok || in != got {
			t.Errorf("%q in brackets is %v, %v", s, in, bracketOK)
		}
	})
}
