package dcr

import (
	"bytes"
	"os"
	"testing"

	"github.com/wyegate/wyegate/internal/sip"
)

// FuzzCompile: whatever the octets of a file, findings have a place and a code of the list, a rule set and errors
// exclude each other, and what compiles runs and can be formatted without becoming another program.
func FuzzCompile(f *testing.F) {
	for _, dir := range []string{"good", "bad"} {
		for _, x := range loadFixtures(f, dir) {
			if len(x.data) < 3000 {
				f.Add(x.data)
			}
		}
	}
	call := &fixedMessage{Request{Proto: SIP, Method: []byte("INVITE"), Target: []byte("sip:a@b;p=1"), Fields: []Field{
		sipField("From", "<sip:d@e>;tag=1"), sipField("X-A", "<tel:+4687190000>, <sip:z@y>"), sipField("Route", "<sip:f;call=orig>"),
	}}}
	page := &fixedMessage{Request{Proto: HTTP, Method: []byte("GET"), Target: []byte("/x?a=1&to=%3Csip:a@b%3E"), Fields: []Field{
		{Name: []byte("Cookie"), Value: []byte("a=1; b=2")}, {Name: []byte("X-A"), Value: []byte("v")},
	}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := Options{HeaderMatch: true, Resolver: testEnum, Service: &Service{Converged: true, Stripped: []string{"X-A"}}}
		rs, problems := Compile("f.xml", data, o)
		if (rs == nil) != HasErrors(problems) {
			t.Fatalf("rule set %v with %v", rs != nil, problems)
		}
		for _, p := range problems {
			if p.Line < 1 || p.Col < 1 || len(p.Code) != 6 || p.Text == "" || p.Line > bytes.Count(data, []byte("\n"))+1 {
				t.Fatalf("%+v", p)
			}
		}
		if rs == nil {
			return
		}
		var s Scratch
		for _, m := range []Message{call, page} {
			res := rs.Key(m, &s, nil)
			var tr Trace
			again := rs.Key(m, &s, &tr)
			if res.Outcome != again.Outcome || res.Outcome == Matched && (len(res.Key) == 0 || res.Rule < 0 || res.Rule >= len(rs.Rules())) {
				t.Fatalf("%+v %+v", res, again)
			}
		}
		once, _, err := Format("f.xml", data, o)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if twice, _, err := Format("f.xml", once, o); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v: not the same twice\n%s\n%s", err, once, twice)
		}
	})
}

// FuzzNameAddrList: a list variable gives a URI that stands in the list as it is and that the one parser of the project
// reads, on any octets.
func FuzzNameAddrList(f *testing.F) {
	for _, s := range []string{`"a, b" <tel:+46>, <sip:ann@ex.com>`, "broken, sip:a@b;tag=1", `<sip:a@b>;x="y,z",sip:c@d`, "\"\\\"", "<,>,<sip:>"} {
		f.Add([]byte(s))
	}
	data, err := os.ReadFile(fixtures + "/good/every-variable-sip.xml")
	if err != nil {
		f.Fatal(err)
	}
	all := compiled(f, string(data), Options{Resolver: testEnum})
	uri := compiled(f, `<user-centric-rules><sip-rules><header name="X-A" return="request.X-A.uri"><exist/></header></sip-rules></user-centric-rules>`, Options{})
	user := compiled(f, `<user-centric-rules><sip-rules><header name="X-A" return="request.X-A.uri.user"><exist/></header></sip-rules></user-centric-rules>`, Options{})
	f.Fuzz(func(t *testing.T, value []byte) {
		m := &fixedMessage{Request{Proto: SIP, Method: []byte("INVITE"), Target: []byte("sip:a@b"), Fields: []Field{
			{Name: []byte("X-A"), Value: value}, {ID: sip.To, Name: []byte("To"), Value: value},
		}}}
		var s Scratch
		all.Key(m, &s, nil)
		res := uri.Key(m, &s, nil)
		if res.Outcome != Matched {
			if res := user.Key(m, &s, nil); res.Outcome == Matched {
				t.Fatalf("a user %q without a URI in %q", res.Key, value)
			}
			return
		}
		if _, err := sip.ParseURI(res.Key); err != nil || !bytes.Contains(value, res.Key) {
			t.Fatalf("%q of %q: %v", res.Key, value, err)
		}
	})
}
