package dcr

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"
)

// valueOf evaluates one variable on a request.
func valueOf(t testing.TB, variable string, m Message, o Options) string {
	t.Helper()
	list := "sip-rules"
	if _, isHTTP := m.(*httpMessage); isHTTP {
		list = "http-rules"
	}
	return keyOf(compiled(t, fmt.Sprintf(`<user-centric-rules><%s><if><else return="%s"/></if></%s></user-centric-rules>`,
		list, html.EscapeString(variable), list), o), m)
}

// TestHeaderForms is section 3.4 on SIP fields: folds, compact names, decoys in quotes, escapes, lists.
func TestHeaderForms(t *testing.T) {
	for _, c := range []struct{ field, variable, want string }{
		{"To: <sip:%64esk@ex.com>", "request.To.uri.user", "desk"},
		{"To: <sip:Desk@EX.com>", "request.To.uri.user", "Desk"},
		{"To: <sip:Desk@EX.com>", "request.To.uri.host", "ex.com"},
		{"To: <SIP:Desk@EX.com>", "request.To.uri.scheme", "sip"},
		{"To: <sip:Desk@EX.com;lr>;tag=1", "request.To.uri", "sip:Desk@EX.com;lr"},
		{"To: sip:desk@ex.com;tag=1", "request.To.uri", "sip:desk@ex.com"},
		{"To: sip:desk@ex.com;tag=1", "request.To", "sip:desk@ex.com;tag=1"},
		{"t: <sip:desk@ex.com>", "request.To.uri.user", "desk"},
		{"To: <sip:desk@ex.com>", "request.t.uri.user", "desk"},
		{"TO:<sip:desk@ex.com>", "request.to.uri.user", "desk"},
		{"To: \"a <sip:decoy@x>, \\\"tag=9\" <sip:desk@ex.com> ; TAG = x", "request.To.uri.user", "desk"},
		{"To: \"a \\\"b\\\" c\" <sip:desk@ex.com>", "request.To.uri.display-name", `a "b" c`},
		{"To: Big   Desk <sip:desk@ex.com>", "request.To.uri.display-name", "Big Desk"},
		{"To: <sip:desk@ex.com>", "request.To.uri.display-name", ""},
		{"To: <sip:desk:secret@ex.com>", "request.To.uri.user", "desk"},
		{"To: <sip:+46;phone-context=x@ex.com>", "request.To.uri.user", "+46;phone-context=x"},
		{"To: <sip:a%zzb%4@ex.com>", "request.To.uri.user", "a%zzb%4"},
		{"To: <sip:a%2500@ex.com>", "request.To.uri.user", "a%00"},
		{"To: <sip:a%00%0d%0ab@ex.com>", "request.To.uri.user", "a\x00\r\nb"},
		{"To: <sip:ex.com>", "request.To.uri.user", ""},
		{"To: <sip:desk@[2001:DB8::1]:5070>", "request.To.uri.host", "[2001:db8::1]"},
		{"To: <sip:desk@[2001:DB8::1]:5070>", "request.To.uri.port", "5070"},
		{"To: <sip:desk@ex.com>", "request.To.uri.port", "5060"},
		{"To: <sips:desk@ex.com>", "request.To.uri.port", "5061"},
		{"To: <sip:desk@ex.com;transport=TLS>", "request.To.uri.port", "5061"},
		{"To: <tel:+46>", "request.To.uri.port", ""},
		{"To: <tel:+46>", "request.To.uri.host", ""},
		{"To: <tel:+46>", "request.To.uri.scheme", "tel"},
		{"P-Asserted-Identity: \"a, b\" <tel:+46>, <sip:ann@ex.com>", "request.P-Asserted-Identity.uri.user", "ann"},
		{"P-Asserted-Identity: broken, <sip:ann@ex.com>", "request.P-Asserted-Identity.uri.user", "ann"},
		{"P-Asserted-Identity: <tel:+46>\r\nP-Asserted-Identity: <sip:ann@ex.com>", "request.p-asserted-identity.uri.user", "ann"},
		{"X-A: one\r\n two\r\n\t three", "request.X-A", "one two three"},
		{"X-A: first\r\nX-A: second", "request.X-A", "first"},
		{"X-A: \r\nX-A: second", "request.X-A", ""},
		{"X-A: a%20b", "request.X-A", "a%20b"},
		{"X-Long-Name-Of-A-Header: v", "request.x-lONG-name-of-a-HEADER", "v"},
		{"X.Dotted.Name: <sip:ann@ex.com>", "request.X.Dotted.Name.uri.user", "ann"},
		{"X-A: " + strings.Repeat("<tel:+1>,", 31) + "<sip:ann@ex.com>", "request.X-A.uri.user", "ann"},
		{"X-A: " + strings.Repeat("<tel:+1>,", 32) + "<sip:ann@ex.com>", "request.X-A.uri.user", ""},
	} {
		if got := valueOf(t, c.variable, sipRequest(t, "INVITE", "sip:x@y", c.field), Options{}); got != c.want {
			t.Errorf("%s of %q = %q, want %q", c.variable, c.field, got, c.want)
		}
	}
}

// TestListLimitIsCounted: 32 elements are walked, over all fields of a name together.
func TestListLimitIsCounted(t *testing.T) {
	rs := compiled(t, `<user-centric-rules><sip-rules><header name="X-A" return="request.X-A.uri.user"><exist/></header></sip-rules></user-centric-rules>`, Options{})
	for elements, want := range map[int]int{31: 0, 32: 0, 33: 1} {
		for _, fields := range [][]string{
			{"X-A: " + strings.TrimSuffix(strings.Repeat("<tel:+1>,", elements), ",")}, slices.Repeat([]string{"X-A: <tel:+1>"}, elements),
		} {
			var s Scratch
			if res := rs.Key(sipRequest(t, "INVITE", "sip:x@y", fields...), &s, nil); res.Outcome != NoKey || s.Limits() != (Limits{List: want}) {
				t.Errorf("%d elements in %d fields: %+v", elements, len(fields), s.Limits())
			}
		}
	}
}

// TestRequestURIForms is section 3.1 on the Request-URI.
func TestRequestURIForms(t *testing.T) {
	for _, c := range []struct{ uri, variable, want string }{
		{"sip:Bob@EX.com;a=%41", "request.uri", "sip:Bob@EX.com;a=%41"}, {"SIPS:Bob@EX.com", "request.uri.scheme", "sips"},
		{"SIPS:Bob@EX.com", "request.uri.port", "5061"}, {"sip:Bob@EX.com", "request.uri.host", "ex.com"},
		{"sip:b%6fb@EX.com", "request.uri.resolve.user", "bob"}, {"tel:+46", "request.uri.user", ""},
		{"tel:+46", "request.uri.host", ""}, {"urn:service:sos", "request.uri.scheme", "urn"},
		{"urn:service:sos", "request.uri.resolve", ""}, {"urn:service:sos", "request.uri", "urn:service:sos"},
	} {
		if got := valueOf(t, c.variable, sipRequest(t, "INVITE", c.uri), Options{}); got != c.want {
			t.Errorf("%s of %s = %q, want %q", c.variable, c.uri, got, c.want)
		}
	}
}

// TestResolve is section 3.5.
func TestResolve(t *testing.T) {
	for _, c := range []struct {
		uri, part, with, without string // with ENUM, and without an enum block
	}{
		{"tel:+46-8-719.00(00)", "user", "alice", "+4687190000"},
		{"tel:+46-8-719.00(00)", "", "sip:alice@ims.example.com", "tel:+4687190000"},
		{"tel:+46-8-719.00(00)", "host", "ims.example.com", ""},
		{"TEL:+4687190000;ext=1", "user", "alice", "+4687190000"},
		{"tel:87190000;phone-context=+46", "user", "alice", "+4687190000"},
		{"tel:8-719-0000;isub=1;Phone-Context=+4-6", "user", "alice", "+4687190000"},
		{"tel:87190000;phone-context=ex.com", "user", "", ""},
		{"tel:87190000", "user", "", ""},
		{"tel:+", "user", "", ""},
		{"tel:+1234567890123456", "user", "", ""},
		{"tel:+46a", "user", "", ""},
		{"tel:+15550009999", "user", "", "+15550009999"},
		{"sip:+4687190000@gw.ex;user=phone", "user", "alice", "+4687190000"},
		{"sip:%2B4687190000@gw.ex;USER=Phone", "user", "alice", "+4687190000"},
		{"sip:87190000;phone-context=+46@gw.ex;user=phone", "user", "alice", "+4687190000"},
		{"sip:bob@GW.ex;user=ip", "user", "bob", "bob"},
		{"sip:b%6Fb@GW.ex", "", "sip:b%6Fb@GW.ex", "sip:b%6Fb@GW.ex"},
		{"sip:b%6Fb@GW.ex", "host", "gw.ex", "gw.ex"},
		{"mailto:bob@ex.com", "user", "", ""},
		{"tel:+49111", "user", "", "+49111"}, // ENUM gives no SIP URI
		{"tel:+49222", "user", "Bob Q", "+49222"},
	} {
		variable := "request.X-A.uri.resolve"
		if c.part != "" {
			variable += "." + c.part
		}
		enum := enumTable{"4687190000": "sip:alice@IMS.example.com", "49111": "mailto:bob@ex.com", "49222": "sips:Bob%20Q@ex.com"}
		if c.part == "" {
			enum = testEnum
		}
		m := sipRequest(t, "INVITE", "sip:x@y", "X-A: <"+c.uri+">")
		if got := valueOf(t, variable, m, Options{Resolver: enum}); got != c.with {
			t.Errorf("%s of %s with ENUM = %q, want %q", variable, c.uri, got, c.with)
		}
		if got := valueOf(t, variable, m, Options{}); got != c.without {
			t.Errorf("%s of %s without ENUM = %q, want %q", variable, c.uri, got, c.without)
		}
	}
}

// TestNeedsNumber: rules that match before a resolve never cause a query, and a list stops at the number that is missing.
func TestNeedsNumber(t *testing.T) {
	rs := compiled(t, `<user-centric-rules><sip-rules>
		<header name="X-A" return="request.X-A"><exist/></header>
		<header name="X-B" return="request.X-B.uri.resolve.user"><exist/></header></sip-rules></user-centric-rules>`, Options{Resolver: missingEnum{}})
	var s Scratch
	if res := rs.Key(sipRequest(t, "INVITE", "sip:x@y", "X-A: a", "X-B: <tel:+46>"), &s, nil); res.Outcome != Matched {
		t.Errorf("%+v", res)
	}
	if res := rs.Key(sipRequest(t, "INVITE", "sip:x@y", "X-B: <tel:46>, <tel:+4-6>, <sip:a@b>"), &s, nil); res.Outcome != NeedNumber || string(res.Number) != "46" {
		t.Errorf("%+v", res)
	}
	if res := rs.Key(sipRequest(t, "INVITE", "sip:x@y", "X-B: <sip:a@b>, <tel:+46>"), &s, nil); string(res.Key) != "a" {
		t.Errorf("%+v", res)
	}
	if !rs.Needs(SIP) || rs.Needs(HTTP) {
		t.Error("only SIP may need a number")
	}
}

// TestHTTPForms is section 3.4 on the request target and cookies.
func TestHTTPForms(t *testing.T) {
	for _, c := range []struct{ target, cookies, variable, want string }{
		{"/x?a=1&b=2", "", "parameter.b", "2"}, {"/x?a=1&a=2", "", "parameter.a", "1"}, {"/x?a=&a=2", "", "parameter.a", ""},
		{"/x?a=%41%zz", "", "parameter.a", "A%zz"}, {"/x?%61=v", "", "parameter.a", "v"}, {"/x?A=v", "", "parameter.a", ""},
		{"/x?a=tel:+46%2B1", "", "parameter.a", "tel:+46+1"}, {"/x?a=b=c", "", "parameter.a", "b=c"}, {"/x?&&a=1", "", "parameter.a", "1"},
		{"/a=1?b=2", "", "parameter.a", ""}, {"/x?q?a=1", "", "parameter.a", ""}, {"/x?a=1?2", "", "parameter.a", "1?2"},
		{"/x?a=1;b=2", "", "parameter.a", "1;b=2"}, {"/x?a=%00", "", "parameter.a", "\x00"},
		{"/x?gr%C3%B6%C3%9Fe=1", "", "parameter.größe", "1"},
		{"/x?a=%3Csip:%2564@EX.com%3E", "", "parameter.a.uri.user", "d"},
		{"/x?a=%3Csip:d@EX.com%3E", "", "parameter.a.uri.host", "ex.com"},
		{"/x?a=sip:d@EX.com", "", "parameter.a.uri", "sip:d@EX.com"},
		{"/x?a.b=1", "", "parameter.a.b", "1"},
		{"/", "a=1; b=2", "cookie.b", "2"}, {"/", "a=1;b=2", "cookie.b", "2"}, {"/", "a=1; a=2", "cookie.a", "1"},
		{"/", `a="x y"`, "cookie.a", "x y"}, {"/", `a="x`, "cookie.a", `"x`}, {"/", `a=""`, "cookie.a", ""}, {"/", "A=1", "cookie.a", ""},
		{"/", "a; b=2", "cookie.a", ""}, {"/", "a = 1 ; b=2", "cookie.a", "1"}, {"/", "a=b=c", "cookie.a", "b=c"}, {"/", "a=%41", "cookie.a", "%41"},
		{"/", "aa=1; a=2", "cookie.a", "2"},
	} {
		var fields []string
		if c.cookies != "" {
			fields = append(fields, "Cookie: "+c.cookies)
		}
		if got := valueOf(t, c.variable, httpRequest(c.target, fields...), Options{}); got != c.want {
			t.Errorf("%s of %s %q = %q, want %q", c.variable, c.target, c.cookies, got, c.want)
		}
	}
	two := httpRequest("/", "cookie: a=1", "COOKIE: b=2")
	if got := valueOf(t, "cookie.b", two, Options{}); got != "2" {
		t.Errorf("second Cookie field: %q", got)
	}
	if got := valueOf(t, "parameter.a b", httpRequest("/?x=1&a+b=c+d%2B"), Options{PlusIsSpace: true}); got != "c d+" {
		t.Errorf("plus_is_space: %q", got)
	}
	caret := httpRequest("/", "X^A: v")
	if a, b := valueOf(t, "request.x^a", caret, Options{}), valueOf(t, "request.X~A", caret, Options{}); a != "v" || b != "" {
		t.Errorf("letters have a case, other octets have none: %q %q", a, b)
	}
	if got := valueOf(t, "request.f", httpRequest("/", "From: v"), Options{}); got != "" {
		t.Errorf("HTTP knows compact forms: %q", got)
	}
}

// TestPresence: presence is a matter of the item, not of its value.
func TestPresence(t *testing.T) {
	for _, c := range []struct {
		rule string
		m    Message
		want bool
	}{
		{`<header name="X-A" return="request.method"><exist/></header>`, sipRequest(t, "INVITE", "sip:x@y", "X-A:"), true},
		{`<request-uri parameter="lr" return="request.method"><exist/></request-uri>`, sipRequest(t, "INVITE", "sip:x@y;lr"), true},
		{`<request-uri parameter="LR" return="request.method"><exist/></request-uri>`, sipRequest(t, "INVITE", "sip:x@y;lr"), false},
		{`<request-uri parameter="ext" return="request.method"><exist/></request-uri>`, sipRequest(t, "INVITE", "tel:+46;ext=1"), true},
		{`<request-uri parameter="a" return="request.method"><notexist/></request-uri>`, sipRequest(t, "INVITE", "sip:x@y?a=1"), true},
		{`<header name="X-A" return="request.X-A"><exist/></header>`, sipRequest(t, "INVITE", "sip:x@y", "X-A:"), false},
		{`<cookie name="a" return="request.method"><notexist/></cookie>`, sipRequest(t, "INVITE", "sip:x@y", "Cookie: a=1"), true},
		{`<cookie name="a" return="request.method"><exist/></cookie>`, sipRequest(t, "INVITE", "sip:x@y", "Cookie: a=1"), false},
		{`<header name="X-A" return="request.X-A"><notexist/></header>`, sipRequest(t, "INVITE", "sip:x@y"), false},
	} {
		rs := compiled(t, "<user-centric-rules><sip-rules>"+c.rule+"</sip-rules></user-centric-rules>", Options{})
		if got := keyOf(rs, c.m) != ""; got != c.want {
			t.Errorf("%s: %v, want %v", c.rule, got, c.want)
		}
	}
	rs := compiled(t, `<user-centric-rules><http-rules><request-uri parameter="x" return="request.Host"><exist/></request-uri></http-rules></user-centric-rules>`, Options{})
	if keyOf(rs, httpRequest("/?x")) == "" {
		t.Error("?x is not present")
	}
}

// TestSessionCase is section 4.4.
func TestSessionCase(t *testing.T) {
	file := "<user-centric-rules><sip-rules>"
	for _, kw := range caseWords[1:] {
		file += fmt.Sprintf(`<session-case><equal>%s</equal><header name="X-%s" return="request.X-%s"><exist/></header></session-case>`, kw, kw, kw)
	}
	file += "</sip-rules></user-centric-rules>"
	all := []string{"X-EXTERNAL: EXTERNAL", "X-ORIGINATING: ORIGINATING", "X-TERMINATING: TERMINATING", "X-TERMINATING_UNREGISTERED: TERMINATING_UNREGISTERED"}
	for _, c := range []struct{ routes, want string }{
		{"", "EXTERNAL"}, {"Route: <sip:f;lr>", "EXTERNAL"}, {"Route: <sip:f;lr;call=orig>", "ORIGINATING"},
		{"Route: <sip:f;lr;call=term_registered>", "TERMINATING"}, {"Route: <sip:f;lr>;call=term_unregistered", "TERMINATING_UNREGISTERED"},
		{"Route: <sip:f;lr>; call = orig", "ORIGINATING"},
		{"Route: <sip:f;call=orig>;call=term_registered", "ORIGINATING"}, {"Route: <sip:f;lr>, <sip:g;call=orig>", "EXTERNAL"},
		{"Route: <sip:f;call=orig>\r\nRoute: <sip:g;call=term_registered>", "ORIGINATING"},
		{"Route: <sip:f;call=term>", ""}, {"Route: <sip:f;call>", ""}, {"Route: <sip:f;call=ORIG>", ""}, {"Route: <sip:f;recall=orig>", "EXTERNAL"},
	} {
		fields := all
		if c.routes != "" {
			fields = append([]string{c.routes}, all...)
		}
		m := sipRequest(t, "INVITE", "sip:x@y", fields...)
		if got := keyOf(compiled(t, file, Options{}), m); got != c.want {
			t.Errorf("%q: %q, want %q", c.routes, got, c.want)
		}
	}
	m := sipRequest(t, "INVITE", "sip:x@y", append([]string{"Route: <sip:f;call=term>"}, all...)...)
	if got := keyOf(compiled(t, file, Options{SessionCaseAliases: map[string]string{"term": "TERMINATING"}}), m); got != "TERMINATING" {
		t.Errorf("alias: %q", got)
	}
}

// TestGuards: a bare session-case is non-null for and, or, if and the list, and is never a key (Q3).
func TestGuards(t *testing.T) {
	const bare = "<session-case><equal>EXTERNAL</equal></session-case>"
	const key = `<header name="X-A" return="request.X-A"><exist/></header>`
	for _, c := range []struct{ rules, want string }{
		{"<and>" + bare + key + "</and>", "v"}, {"<and>" + key + bare + "</and>" + key, ""},
		{"<or>" + bare + key + "</or>" + key, ""}, {"<if>" + bare + key + "</if>" + key, ""},
		{"<if>" + bare + `<else return="request.X-A"/></if>`, ""}, {bare + key, ""},
		{"<and><or>" + bare + "</or>" + key + "</and>", "v"},
		{"<and></and>" + key, "v"}, {"<or/>" + key, "v"}, {"<if/>" + key, "v"},
		{"<session-case><equal>EXTERNAL</equal>" + strings.Replace(key, "X-A", "X-None", 2) + key + "</session-case>", "v"},
		{"<if><session-case><equal>EXTERNAL</equal>" + strings.Replace(key, "X-A", "X-None", 2) + `</session-case><else return="request.X-A"/></if>`, "v"},
	} {
		rs := compiled(t, "<user-centric-rules><sip-rules>"+c.rules+"</sip-rules></user-centric-rules>", Options{})
		if got := keyOf(rs, sipRequest(t, "INVITE", "sip:x@y", "X-A: v")); got != c.want {
			t.Errorf("%s: %q, want %q", c.rules, got, c.want)
		}
	}
}

// TestMatchValues is section 3.7 on what becomes of group 1.
func TestMatchValues(t *testing.T) {
	for _, c := range []struct{ rule, uri, want string }{
		{`<request-uri><match>^sip:([^@]+)@</match></request-uri>`, "sip:a%2Db@x", "a-b"},
		{`<request-uri><match>^sip:([^@]+)@</match></request-uri>`, "sip:a%252Db@x", "a%2Db"},
		{`<request-uri parameter="p"><match>^(.*)$</match></request-uri>`, "sip:x@y;p=a%252Db", "a%2Db"},
		{`<request-uri parameter="p"><match prefix="c:">^(.*)$</match></request-uri>`, "sip:x@y;p=1", "c:1"},
		{`<request-uri parameter="p"><match prefix="c:">^(.*)$</match></request-uri>`, "sip:x@y;p", ""},
		{`<request-uri parameter="p"><match prefix="c:">^(.*)$</match></request-uri>`, "sip:x@y", ""},
		{`<request-uri><match prefix="c:">x(z)?@</match></request-uri>`, "sip:x@y", ""},
		{`<request-uri return="request.uri.host"><match>x(z)?@</match></request-uri>`, "sip:x@y", "y"},
		{`<request-uri return="request.uri.host"><match>^sip:</match></request-uri>`, "sip:x@y", "y"},
		{`<request-uri return="request.uri.host"><match>^tel:</match></request-uri>`, "sip:x@y", ""},
		{`<request-uri return="match.resolve.user"><match prefix="tel:">^sip:(\+[0-9]+)@</match></request-uri>`, "sip:+4687190000@y", "alice"},
		{`<request-uri return="match.resolve.user"><match>route=([^;]+)</match></request-uri>`, "sip:x@y;route=%3Csip:zoe@ex.com%3E", "zoe"},
		{`<request-uri return="match.resolve.user"><match>route=([^;]+)</match></request-uri>`, "sip:x@y;route=sip:+4687190000@g%3Buser=phone", "alice"},
		{`<request-uri return="match.resolve.user"><match>(x)</match></request-uri>`, "sip:x@y", ""},
	} {
		rs := compiled(t, "<user-centric-rules><sip-rules>"+c.rule+"</sip-rules></user-centric-rules>", Options{Resolver: testEnum})
		if got := keyOf(rs, rawSIP(c.uri, nil)); got != c.want {
			t.Errorf("%s on %s: %q, want %q", c.rule, c.uri, got, c.want)
		}
	}
}

// TestHeaderMatch: affinity.sip.header_match lets match stand under header.
func TestHeaderMatch(t *testing.T) {
	const file = `<user-centric-rules><sip-rules>
		<header name="Subject" return="request.s.match"><match prefix="r-">room ([0-9]+)</match></header>
		<header name="X-Uri" return="request.X-Uri.match.resolve.user"><match>(sip:.*)</match></header>
		<header name="X-Plain"><match>(.*)</match></header>
		</sip-rules></user-centric-rules>`
	rs := compiled(t, file, Options{HeaderMatch: true})
	for field, want := range map[string]string{"Subject: the\r\n room 12 now": "r-12", "X-Uri: sip:ann@ex.com": "ann", "X-Plain: v": "v", "X-None: v": ""} {
		if got := keyOf(rs, sipRequest(t, "INVITE", "sip:x@y", field)); got != want {
			t.Errorf("%q: %q, want %q", field, got, want)
		}
	}
	if rs, _ := Compile("f.xml", []byte(file), Options{}); rs != nil {
		t.Error("accepted while header_match is off")
	}
}

// TestSameKeyByBothProtocols: what this is all for.
func TestSameKeyByBothProtocols(t *testing.T) {
	rs := compiled(t, `<user-centric-rules><sip-rules><if><else return="request.To.uri.resolve.user"/></if></sip-rules>
		<http-rules><request-uri parameter="conf" return="parameter.conf"><exist/></request-uri></http-rules></user-centric-rules>`, Options{})
	var s Scratch
	for i := range 1000 {
		room := fmt.Sprintf("Room %d+ü%%", i)
		call := rs.Key(sipRequest(t, "INVITE", "sip:x@y", "To: <sip:"+escapeAll(room)+"@EX.com>"), &s, nil)
		one := string(call.Key)
		page := rs.Key(httpRequest("/r?conf="+escapeAll(room)), &s, nil)
		if one != room || string(page.Key) != room {
			t.Fatalf("call %q, page %q, want %q", one, page.Key, room)
		}
	}
}

func escapeAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}
