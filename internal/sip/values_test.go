package sip

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParseURI(t *testing.T) {
	for in, want := range map[string]string{
		"sip:alice@example.com":                           "sip|alice||example.com||||",
		"SIPS:alice:pw@Example.COM:5061;lr;a=b?Subject=x": "SIPS|alice|pw|Example.COM|5061|;lr;a=b|Subject=x|",
		"sip:example.com":                                 "sip|||example.com||||",
		"sip:user;par=u%40example.net@example.com":        "sip|user;par=u%40example.net||example.com||||",
		"sip:[2001:db8::1]:5070;transport=tcp":            "sip|||[2001:db8::1]|5070|;transport=tcp||",
		"sip:[2001:db8:::192.0.2.1]":                      "sip|||[2001:db8:::192.0.2.1]||||",
		"sip:+1-212-555-1212:1234@gateway.com;user=phone": "sip|+1-212-555-1212|1234|gateway.com||;user=phone||",
		"sip:*21#@h":                   "sip|*21#||h||||",
		"sip:a@h;transport=":           "sip|a||h||;transport=||",
		"sip:a%zz@h":                   "sip|a%zz||h||||",
		"sip:a:@h":                     "sip|a||h||||",
		"tel:+358-555-1234567;ext=1":   "tel||||||" + "|+358-555-1234567;ext=1",
		"urn:service:sos":              "urn|||||||service:sos",
		"soap.beep://192.0.2.103:3002": "soap.beep|||||||//192.0.2.103:3002",
	} {
		u, err := ParseURI([]byte(in))
		got := strings.Join([]string{string(u.Scheme), string(u.User), string(u.Password), string(u.Host), string(u.Port),
			string(u.Params), string(u.Headers), string(u.Opaque)}, "|")
		if err != nil || got != want {
			t.Errorf("%q: %v %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "sip", "sip:", ":a", "1a:b", "sip:@h", "sip:a@", "sip:a@b@c", "sip:a b@h", "sip:a@h:", "sip:a@h:65536", "sip:a@h:x",
		"sip:2001:db8::10", "sip:[::1", "sip:[]", "sip:[::1%25eth0]", "sip:[1:2:3:4:5:6:7:8:9]", "sip:a@h;", "sip:a@h;;lr",
		"sip:a@h;=x", "sip:a@h?", "sip:a@h?x y", "<sip:a@h>", "sip:a@h>", "sip:\"a\"@h", "tel:", "tel:1 2", "foo:a<b", "sip:a@h\r\n",
		"sip:a@h;lr ", " sip:a@h", "sip:a@[h]", "s:[::1]\x00",
	} {
		if u, err := ParseURI([]byte(in)); err == nil {
			t.Errorf("%q is taken: %+v", in, u)
		}
	}
}

func TestURIParam(t *testing.T) {
	u, err := ParseURI([]byte("sip:a;wg=no@h;transport=TCP;LR;wgx=1;%6C%72x;WG=tok;empty="))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"transport": "TCP", "wg": "tok", "empty": ""} {
		if v, ok := u.Param(name); !ok || v == nil || string(v) != want {
			t.Errorf("%s is %q, %v", name, v, ok)
		}
	}
	if v, ok := u.Param("lr"); !ok || v != nil {
		t.Errorf("lr is %q, %v", v, ok)
	}
	for _, name := range []string{"w", "trans", "lrx", "a", ""} {
		if v, ok := u.Param(name); ok {
			t.Errorf("%q is there: %q", name, v)
		}
	}
}

func TestNextNameAddr(t *testing.T) {
	list := "\"A, \\\"B\" <sip:a;x=,@h;lr>;p=\",;\" ;q , sip:b@h;lr,<tel:+1>, C  D\r\n <sip:d@h> ,\r\n \"\" <sip:e@h>;f"
	want := []string{
		"\"A, \\\"B\"|sip:a;x=,@h;lr|;p=\",;\" ;q", "|sip:b@h|;lr", "|tel:+1|", "C  D|sip:d@h|", "\"\"|sip:e@h|;f",
	}
	rest := []byte(list)
	for i, w := range want {
		na, r, err := NextNameAddr(rest)
		if got := string(na.Display) + "|" + string(na.URI) + "|" + string(na.Params); err != nil || got != w {
			t.Errorf("element %d is %q, %v, want %q", i, got, err, w)
		}
		if (r == nil) != (i == len(want)-1) {
			t.Errorf("behind element %d is %q", i, r)
		}
		rest = r
	}
	// dcr.md 3.6: behind an element that cannot be read the walk goes on.
	for _, in := range []string{"x y z, <sip:b@h>", "\"open <sip:a@h>\" , <sip:b@h>", "<sip:a@h>;;, <sip:b@h>", "<>, <sip:b@h>", ", <sip:b@h>", "*, <sip:b@h>", "sip:a\"b\",<sip:b@h>"} {
		_, rest, err := NextNameAddr([]byte(in))
		if err == nil {
			t.Errorf("%q is taken", in)
			continue
		}
		if na, _, err := NextNameAddr(rest); err != nil || string(na.URI) != "sip:b@h" {
			t.Errorf("%q: behind the broken element is %q, %v", in, na.URI, err)
		}
	}
	for _, in := range []string{"", " ", "\"Mr. J. User <sip:j.user@example.com>", "<sip:a@h", "sip:a@h b", "\"a\" sip:b@h", "<sip:a@h> x", "<sip:a@h>;x=\"", "a", "<sip:a@h>;", "<a b:c>", "<\"a\":b>"} {
		if na, rest, err := NextNameAddr([]byte(in)); err == nil || rest != nil {
			t.Errorf("%q is taken: %+v, rest %q", in, na, rest)
		}
	}
}

func TestParseNameAddr(t *testing.T) {
	for in, want := range map[string]string{
		"Bell, Alexander <sip:a@h>;tag=43": "Bell, Alexander|sip:a@h|43",
		"sip:a@h?x=y;tag=1":                "|sip:a@h|1",
		"<sip:a@h;tag=2>;TAG=1":            "|sip:a@h;tag=2|1",
		"<sip:a@h>;tag":                    "|sip:a@h|",
		"isbn:2983792873":                  "|isbn:2983792873|",
	} {
		na, err := ParseNameAddr([]byte(in))
		tag, _ := HeaderParam(na.Params, "tag")
		if got := string(na.Display) + "|" + string(na.URI) + "|" + string(tag); err != nil || got != want {
			t.Errorf("%q is %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"<sip:a@h>, <sip:b@h>", "sip:a,b@h", "sip:a@h,"} {
		if na, err := ParseNameAddr([]byte(in)); err == nil {
			t.Errorf("%q is taken: %+v", in, na)
		}
	}
}

func TestHeaderParam(t *testing.T) {
	const params = ";a ;\r\n b = 1; c=\"x;d=2\\\"\";D=;e"
	for name, want := range map[string]string{"b": "1", "c": "\"x;d=2\\\"\"", "d": ""} {
		if v, ok := HeaderParam([]byte(params), name); !ok || v == nil || string(v) != want {
			t.Errorf("%s is %q, %v", name, v, ok)
		}
	}
	for _, name := range []string{"a", "e"} {
		if v, ok := HeaderParam([]byte(params), name); !ok || v != nil {
			t.Errorf("%s is %q, %v", name, v, ok)
		}
	}
	for _, name := range []string{"x", "", "ab"} {
		if _, ok := HeaderParam([]byte(params), name); ok {
			t.Errorf("%q is there", name)
		}
	}
}

func TestNextVia(t *testing.T) {
	const list = "SIP  /   2.0\r\n /UDP\r\n    192.0.2.2;rport;branch=390skdjuw , sip/2.0/tcp [::1] : 5070 ; x=\",\" ; BRANCH = z9hG4bK\r\n,SIP/2.0/X h_1"
	want := []string{"UDP|192.0.2.2||;rport;branch=390skdjuw|390skdjuw", "tcp|[::1]|5070|; x=\",\" ; BRANCH = z9hG4bK|z9hG4bK", "X|h_1|||"}
	rest := []byte(list)
	for i, w := range want {
		v, r, err := NextVia(rest)
		got := strings.Join([]string{string(v.Transport), string(v.Host), string(v.Port), string(v.Params), string(v.Branch)}, "|")
		if err != nil || got != w {
			t.Errorf("value %d is %q, %v, want %q", i, got, err, w)
		}
		rest = r
	}
	if rest != nil {
		t.Errorf("%q is left", rest)
	}
	for _, in := range []string{"", "SIP/2.0/UDP", "SIP/2.0/UDP ", "SIP/2.0 h", "SIP/2.0/ h", "SIP/2.0/UDPh", "SIP/2.0/UDP h:", "SIP/2.0/UDP h:99999",
		"SIP/2.0/UDP 2001:db8::1", "SIP/2.0/UDP h;;", "SIP/2.0/UDP h;branch=x y", "SIP/2.0/UDP h i", "SIP/2.0/UDP [::1", "SIP/2.0/UDP h;x=\""} {
		if v, _, err := NextVia([]byte(in)); err == nil {
			t.Errorf("%q is taken: %+v", in, v)
		}
	}
	if v, _, err := NextVia([]byte("SIP/2.0/UDP h;branch=;x")); err != nil || v.Branch == nil || len(v.Branch) != 0 {
		t.Errorf("an empty branch is %q, %v", v.Branch, err)
	}
	if v, _, err := NextVia([]byte("SIP/2.0/UDP h")); err != nil || v.Branch != nil {
		t.Errorf("no branch is %q, %v", v.Branch, err)
	}
}

func TestNumbers(t *testing.T) {
	for in, want := range map[string]uint32{"1 INVITE": 1, " 0009\r\n  INVITE ": 9, "4294967295 INVITE": 4294967295, "0\tINVITE": 0} {
		if n, method, err := ParseCSeq([]byte(in)); err != nil || n != want || string(method) != "INVITE" {
			t.Errorf("CSeq %q is %d %q, %v", in, n, method, err)
		}
	}
	for _, in := range []string{"", "1", "1 ", "INVITE", "1INVITE", "x INVITE", "4294967296 INVITE", "36893488147419103232 R", "1 A B", "-1 A"} {
		if n, method, err := ParseCSeq([]byte(in)); err == nil {
			t.Errorf("CSeq %q is taken: %d %q", in, n, method)
		}
	}
	for in, want := range map[string]int{"0": 0, "150": 150, " 007 ": 7, "2147483648": 2147483647, "1" + strings.Repeat("0", 30): 2147483647} {
		if n, err := ParseContentLength([]byte(in)); err != nil || n != want {
			t.Errorf("Content-Length %q is %d, %v", in, n, err)
		}
	}
	for _, in := range []string{"", "-1", "+1", "1 2", "1,1", "0x5", "1.0", strings.Repeat("9", 30) + "x"} {
		if n, err := ParseContentLength([]byte(in)); err == nil {
			t.Errorf("Content-Length %q is taken: %d", in, n)
		}
	}
}

func TestParseRetryAfter(t *testing.T) {
	for in, want := range map[string]RetryDelay{
		"18000;duration=3600":                             {18000, 3600},
		"120 (I'm in a (long \\) ) meeting)":              {120, 0},
		"5 ( x ) ; a=\"b\" ; DURATION = 0060;c":           {5, 60},
		"949302838503028349304023988;duration=9999999999": {2147483647, 2147483647},
		"0": {},
	} {
		if r, err := ParseRetryAfter([]byte(in)); err != nil || r != want {
			t.Errorf("%q is %v, %v", in, r, err)
		}
	}
	for _, in := range []string{"", "x", "-1", "5 (open", "5 6", "5;", "5;duration=x", "5;duration", "5, 6", "5;a,b"} {
		if r, err := ParseRetryAfter([]byte(in)); err == nil {
			t.Errorf("%q is taken: %v", in, r)
		}
	}
}

func TestParseHost(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "[2001:DB8:0:0:0:0:0:1]": "2001:db8::1", "2001:db8::1": "2001:db8::1",
		"[::ffff:192.0.2.1]": "192.0.2.1", "[::FFFF:C000:201]": "192.0.2.1", "[::]": "::", "1::": "1::", "[::1.2.3.4]": "::102:304",
		"[2001:db8::10:5070]": "2001:db8::10:5070", "1:2:3:4:5:6:7::": "1:2:3:4:5:6:7:0", "::2:3:4:5:6:7:8": "0:2:3:4:5:6:7:8",
	} {
		if a, ok := ParseHost([]byte(in)); !ok || a.String() != want {
			t.Errorf("%q is %v, %v, want %s", in, a, ok, want)
		}
	}
	for _, in := range []string{"", "[", "]", "[]", "h", "example.com", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.", ".1.2.3", "[1.2.3.4]",
		"[::1", "::1]", "[::1]:5060", "[fe80::1%eth0]", "fe80::1%1", "[1:2:3:4:5:6:7:8:5061]", "1::2::3", ":::", "1:", ":1", "12345::", "1:2:3:4:5:6:7",
		"[2001:db8:::192.0.2.1]", "::1.2.3.4:5", "1.2.3.4::"} {
		if a, ok := ParseHost([]byte(in)); ok {
			t.Errorf("%q is taken for %v", in, a)
		}
	}
}

// SX-2, in the spelling of a response that comes back.
func TestReplyTo(t *testing.T) {
	for in, want := range map[string]string{
		"SIP/2.0/UDP h:5070;received=192.0.2.7;rport=4444":   "192.0.2.7:4444",
		"SIP/2.0/UDP h:5070;received=192.0.2.7":              "192.0.2.7:5070",
		"SIP/2.0/UDP h;received=192.0.2.7;rport":             "192.0.2.7:5060",
		"SIP/2.0/UDP 192.0.2.8:5070;rport=4444":              "192.0.2.8:5070",
		"SIP/2.0/TLS h;received=[2001:db8::7]":               "[2001:db8::7]:5061",
		"SIP/2.0/WS h;received=2001:db8::7":                  "[2001:db8::7]:80",
		"SIP/2.0/WSS h;received=::ffff:192.0.2.7":            "192.0.2.7:443",
		"SIP/2.0/UDP 192.0.2.8;maddr=203.0.113.1;received=x": "192.0.2.8:5060",
	} {
		v, _, err := NextVia([]byte(in))
		if err != nil {
			t.Fatal(in, err)
		}
		if to, ok := v.ReplyTo(); !ok || to != netip.MustParseAddrPort(want) {
			t.Errorf("%q goes to %v, %v, want %s", in, to, ok, want)
		}
	}
	v, _, _ := NextVia([]byte("SIP/2.0/UDP h;rport=1"))
	if to, ok := v.ReplyTo(); ok {
		t.Errorf("a name goes to %v", to)
	}
}

// dcr.md 3.4, SS-4.
func TestTexts(t *testing.T) {
	for in, want := range map[string]string{
		"a%40b": "a@b", "%zz%4": "%zz%4", "%": "%", "%41%4a%4A": "AJJ", "a+b": "a+b", "%2541": "%41",
	} {
		if got, clean := AppendUnescaped(nil, []byte(in)); !clean || string(got) != want {
			t.Errorf("%q decodes to %q, %v", in, got, clean)
		}
	}
	for _, in := range []string{"%0d", "a%0Ab", "%00", "\r"} {
		if got, clean := AppendUnescaped(nil, []byte(in)); clean {
			t.Errorf("%q decodes to %q and counts as clean", in, got)
		}
	}
	for in, want := range map[string]string{"a \r\n\t b": "a b", "a  b": "a  b", "\r\n a\r\n b": " a b", "a": "a", "": ""} {
		if got := AppendUnfolded(nil, []byte(in)); string(got) != want {
			t.Errorf("%q unfolds to %q", in, got)
		}
	}
	for in, want := range map[string]string{"\"A \\\"B\\\\\"": "A \"B\\", "A  B\r\n C": "A B C", "\"a\r\n  b\"": "a b", "\"\"": "", "\"": "\""} {
		if got := AppendDisplay(nil, []byte(in)); string(got) != want {
			t.Errorf("%q shows as %q", in, got)
		}
	}
	if got := AppendEscaped(nil, []byte("a\r\n\x00\\é~"), 99); string(got) != `a\x0d\x0a\x00\x5c\xc3\xa9~` {
		t.Errorf("escaped: %s", got)
	}
	if got := AppendEscaped(nil, []byte("abcdef"), 3); string(got) != "abc..." {
		t.Errorf("escaped and cut: %s", got)
	}
	if got := AppendLower(nil, []byte("Ex.COM[É")); string(got) != "ex.com[É" {
		t.Errorf("lower: %s", got)
	}
}
