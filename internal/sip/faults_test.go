package sip

import (
	"net/netip"
	"strings"
	"testing"
)

// The rows of sip-http.md section 18 that are the wire layer's: what a library did to messages on the forwarding path.
// Each is held here once more by its row, whatever other tests hold of it.

// Fidelity: what no edit names leaves as it came, in its own spelling.
func TestFaultsFidelity(t *testing.T) {
	head := []string{
		"nOtIfY sip:B%6fb@Example.COM;X SIP/2.0",
		"v: SIP/2.0/UDP [2001:db8::9]:5070;branch=z9hG4bK1 , SIP/2.0/TCP 192.0.2.1,SIP/2.0/TLS last.example.com:5061;ttl=1;maddr=\"a,b\"",
		"Record-Route : <sip:r;lr>;x=\"a,b;c\" ;y",
		"REFER-TO: \"Q \\\" x\" <sip:a@b?Replaces=c%3Bto-tag%3D1>;method=INVITE;audio",
		"m:<sip:a@b>;+sip.instance=\"<urn:uuid:0>\" , sip:c@d ;q=0.5",
		"f: \"A,\\\\B\"  <sip:a@h>  ;  tag  =  1",
		"t : sip:b@h",
		"i:\tC@H",
		"CSEQ :\t007\r\n  nOtIfY",
		"x-Odd:",
		"X-odd2: ;;,,\"",
		"mAx-FoRwArDs:  005  ",
	}
	body := "l: 4\r\n\r\nbo\x00\n"
	raw := strings.Join(head, "\r\n") + "\r\n" + body
	var m Msg
	if err := m.ParseDatagram([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	if bad := Validate(&m, &Options{}); bad != nil {
		t.Fatal(bad)
	}
	var e Edits
	got := string(forward(&e, &m, nil, netip.MustParseAddrPort("[2001:db8::9]:5070")))
	want := strings.Replace(raw, "\r\nv:", "\r\nVia: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKcbr4qooy3333bq5gn4zluh7l2fxz5iweug6tygl3\r\nv:", 1)
	want = strings.Replace(want, "Record-Route :", "Record-Route: <sip:192.0.2.1:5060;lr;wg=cdaotyxk2sxz56sk4jgmk25rbe7a5bwwgo5q3e3gkm>\r\nRecord-Route :", 1)
	want = strings.Replace(want, "  005  ", "  4  ", 1)
	if got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	hosts := ""
	for it := m.Vias(); it.Next(); {
		hosts += string(it.Via.Host) + ":" + string(it.Via.Port) + " "
	}
	if hosts != "[2001:db8::9]:5070 192.0.2.1: last.example.com:5061 " {
		t.Errorf("hops %s", hosts)
	}
}

// A Via without parameters does not fuse with the next, and a bad port loses nothing in silence.
func TestFaultsVia(t *testing.T) {
	v, rest, err := NextVia([]byte("SIP/2.0/UDP a, SIP/2.0/UDP b;x"))
	if err != nil || string(v.Value) != "SIP/2.0/UDP a" || string(trim(rest)) != "SIP/2.0/UDP b;x" {
		t.Errorf("value %q, rest %q, %v", v.Value, rest, err)
	}
	if v, _, err = NextVia([]byte("SIP/2.0/UDP a:70000;x")); err == nil || string(v.Host) != "a" {
		t.Errorf("host %q, %v", v.Host, err)
	}
}

// Acceptance: what must be refused; with the status.
func TestFaultsAcceptance(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		status int
	}{
		"bare LF":            {options + "Subject: a\nb\r\n\r\n", 400},
		"NUL":                {options + "Subject: a\x00\r\n\r\n", 400},
		"name with a space":  {options + "Sub ject: a\r\n\r\n", 400},
		"SIPfoo":             {strings.Replace(options, "SIP/2.0\r", "SIPfoo\r", 1) + "\r\n", 400},
		"version 7.0":        {strings.Replace(options, "SIP/2.0\r", "SIP/7.0\r", 1) + "\r\n", 505},
		"CSeq mismatch":      {strings.Replace(options, "1 OPTIONS", "1 INVITE", 1) + "\r\n", 400},
		"status 65000":       {"SIP/2.0 65000 X\r\n" + options[strings.Index(options, "Via"):] + "\r\n", 0},
		"any Max-Forwards":   {options + "Max-Forwards: 1000\r\n\r\n", 400},
		"two Content-Length": {options + "Content-Length: 0\r\nl: 0\r\n\r\n", 400},
		"two Call-ID":        {options + "i: c\r\n\r\n", 400},
		"two From":           {options + "f: <sip:a@h>;tag=1\r\n\r\n", 400},
		"two CSeq":           {options + "CSeq: 1 OPTIONS\r\n\r\n", 400},
	} {
		var m Msg
		_ = m.ParseDatagram([]byte(c.raw)) // Validate repeats it
		if bad := Validate(&m, &Options{}); bad == nil || bad.Status != c.status {
			t.Errorf("%s: %v", name, bad)
		}
	}
}

// Rejection: what is legal, or what nobody here needs, passes.
func TestFaultsRejection(t *testing.T) {
	for name, line := range map[string]string{
		"blank behind the comma in Contact": "Contact: <sip:a@b>, sip:c@d\r\n",
		"comma in a quoted Via parameter":   "Via: SIP/2.0/UDP x;p=\"a,b\"\r\n",
		"schemes with digits":               "Contact: <h323:a>, <soap.beep://b>, <a+b-c:d>\r\n",
		"a bad header nobody needs":         "Contact: <<<\r\nDate: soon\r\nExpires: -1\r\nRefer-To: \"\r\n",
	} {
		if _, bad := validated(t, options+line+"\r\n", &Options{}); bad != nil {
			t.Errorf("%s: %v", name, bad)
		}
	}
	for _, scheme := range []string{"h323", "soap.beep", "a+b-c"} {
		if na, _, err := NextNameAddr([]byte("<" + scheme + ":x>")); err != nil || string(Scheme(na.URI)) != scheme {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// Framing: a line that ends at the end of a read waits for its fold.
func TestFaultsFraming(t *testing.T) {
	f := NewFramer(Limits{})
	f.Feed([]byte("BYE sip:b@h SIP/2.0\r\nSubject: a\r\n"))
	if p, _, bad := f.Next(); p != More || bad != nil {
		t.Fatalf("piece %d, %v", p, bad)
	}
	f.Feed([]byte("\tb\r\nl: 0\r\n\r\n"))
	p, msg, _ := f.Next()
	var m Msg
	if err := m.Parse(msg); p != Message || err != nil || string(AppendUnfolded(nil, m.Value(Subject))) != "a b" {
		t.Errorf("piece %d, %v, subject %q", p, err, m.Value(Subject))
	}
}
