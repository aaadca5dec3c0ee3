package dcr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// tenSIP is the rule set of section 15.2: four header, two request-uri with a parameter, two match (one of them a
// search), one session-case with an inner or, one if with else, which is the rule that matches.
const tenSIP = `<user-centric-rules><sip-rules>
<header name="X-Session-Key" return="request.X-Session-Key"><exist/></header>
<header name="X-Room" return="request.X-Room.uri.user"><exist/></header>
<header name="P-Served-User" return="request.P-Served-User.uri.resolve.user"><exist/></header>
<header name="Subject" return="request.Subject"><exist/></header>
<request-uri parameter="conf" return="request.uri.user"><exist/></request-uri>
<request-uri parameter="grp" return="request.uri.host"><exist/></request-uri>
<request-uri><match>^sip:conference-([0-9]+)@.*$</match></request-uri>
<request-uri><match>;room=([^;]+)</match></request-uri>
<session-case><equal>ORIGINATING</equal><or>
  <header name="P-Asserted-Identity" return="request.P-Asserted-Identity.uri.user"><exist/></header>
  <header name="P-Preferred-Identity" return="request.P-Preferred-Identity.uri.user"><exist/></header></or></session-case>
<if><header name="X-Skip" return="request.X-Skip"><exist/></header><else return="request.To.uri.user"/></if>
</sip-rules></user-centric-rules>`

const tenHTTP = `<user-centric-rules><http-rules>
<header name="X-Session-Key" return="request.X-Session-Key"><exist/></header>
<header name="X-Room" return="request.X-Room.uri.user"><exist/></header>
<header name="X-Served-User" return="request.X-Served-User.uri.user"><exist/></header>
<header name="X-Subject" return="request.X-Subject"><exist/></header>
<request-uri parameter="conf" return="parameter.conf"><exist/></request-uri>
<request-uri parameter="grp" return="parameter.grp"><exist/></request-uri>
<request-uri><match>^/conference/([0-9]+)(?:[/?].*)?$</match></request-uri>
<request-uri><match>/users/((?:sip|tel):[^/?]+)</match></request-uri>
<and><cookie name="beta" return="cookie.beta"><exist/></cookie><or>
  <cookie name="room" return="cookie.room"><exist/></cookie>
  <header name="X-User" return="request.X-User"><exist/></header></or></and>
<if><header name="X-Skip" return="request.X-Skip"><exist/></header><else return="parameter.id"/></if>
</http-rules></user-centric-rules>`

func benchSIP(t testing.TB, extra ...string) Message {
	fields := append([]string{
		"Via: SIP/2.0/UDP 198.51.100.7:5060;branch=z9hG4bK77612345678;rport",
		"Route: <sip:front.ims.example.net;lr>",
		`From: "Dave Example" <sip:dave@ims.example.net>;tag=77345ab`,
		"To: <sip:room-4711@sip.example.net>",
		"Contact: <sip:dave@198.51.100.7:5060;transport=udp>;+g.3gpp.icsi-ref=\"urn%3Aurn-7%3A3gpp-service.ims.icsi.mmtel\"",
		"Allow: INVITE, ACK, CANCEL, OPTIONS, BYE, REFER, NOTIFY, MESSAGE, SUBSCRIBE, INFO, PRACK, UPDATE",
		"Supported: replaces, timer, 100rel, path, outbound, gruu",
		"User-Agent: Example Softphone/5.12.3 (build 20260101; Linux x86_64)",
		"Session-Expires: 1800;refresher=uac",
	}, extra...)
	return sipRequest(t, "INVITE", "sip:room-4711@sip.example.net;user=ip", fields...)
}

func benchHTTP(extra ...string) Message {
	return httpRequest("/room/index.html?lang=en&theme=dark&id=room-4711&tab=chat", append([]string{
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Accept-Language: en-GB,en;q=0.5",
		"Accept-Encoding: gzip, deflate, br", "Referer: https://phone.example.net/lobby", "Connection: keep-alive",
		"Cookie: JSESSIONID=0123456789abcdef.as1; theme=dark; consent=all", "Upgrade-Insecure-Requests: 1",
		"Sec-Fetch-Dest: document", "Sec-Fetch-Mode: navigate", "Cache-Control: max-age=0",
	}, extra...)...)
}

// cases are the evaluations that must not allocate.
func cases(t testing.TB) map[string]struct {
	rs  *RuleSet
	m   Message
	key string
} {
	type c = struct {
		rs  *RuleSet
		m   Message
		key string
	}
	none := strings.Replace(tenSIP, "request.To.uri.user", "request.X-Absent", 1)
	enum := strings.Replace(tenSIP, "request.To.uri.user", "request.X-Caller.uri.resolve.user", 1)
	plain := strings.Replace(tenSIP, "request.To.uri.user", "request.X-Caller.uri.user", 1)
	caller := "X-Caller: <tel:+46-8-719-0000>, <sip:caller@ex.com>"
	return map[string]c{
		"SIP/last":    {compiled(t, tenSIP, Options{}), benchSIP(t), "room-4711"},
		"SIP/none":    {compiled(t, none, Options{}), benchSIP(t), ""},
		"SIP/first":   {compiled(t, tenSIP, Options{}), benchSIP(t, "X-Session-Key: s1"), "s1"},
		"SIP/enum":    {compiled(t, enum, Options{Resolver: fixedEnum{}}), benchSIP(t, caller), "alice"},
		"SIP/no-enum": {compiled(t, plain, Options{}), benchSIP(t, caller), "caller"},
		"HTTP/last":   {compiled(t, tenHTTP, Options{}), benchHTTP(), "room-4711"},
		"HTTP/first":  {compiled(t, tenHTTP, Options{}), benchHTTP("X-Session-Key: s1"), "s1"},
		"SIP/escaped": {compiled(t, tenSIP, Options{}), sipRequest(t, "INVITE", "sip:x@EX.com", "To: <sip:%64esk@EX.com>"), "desk"},
	}
}

// fixedEnum answers from memory, as a cache hit does.
type fixedEnum struct{}

var aliceURI = []byte("sip:alice@ims.example.com")

func (fixedEnum) Resolve([]byte) ([]byte, Answer) { return aliceURI, AnswerKnown }

func TestNoAllocation(t *testing.T) {
	for name, c := range cases(t) {
		var s Scratch
		if got := string(c.rs.Key(c.m, &s, nil).Key); got != c.key {
			t.Errorf("%s: key %q, want %q", name, got, c.key)
		}
		if n := testing.AllocsPerRun(200, func() { c.rs.Key(c.m, &s, nil) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	match := compiled(t, `<user-centric-rules><sip-rules><request-uri><match prefix="c-">room-(%?[0-9]+)</match></request-uri></sip-rules></user-centric-rules>`, Options{})
	var s Scratch
	m := sipRequest(t, "INVITE", "sip:room-4711@ex.com")
	if got := keyOf(match, m); got != "c-4711" {
		t.Fatalf("match gave %q", got)
	}
	// The standard engine keeps its machines in a pool, which the race detector and a collection empty at will: the
	// least of several runs is what a match costs.
	least := testing.AllocsPerRun(200, func() { match.Key(m, &s, nil) })
	for range 9 {
		least = min(least, testing.AllocsPerRun(200, func() { match.Key(m, &s, nil) }))
	}
	if least > 2 {
		t.Errorf("a match that is tried costs %v allocations, two are allowed", least)
	}
}

func BenchmarkKey(b *testing.B) {
	for name, c := range cases(b) {
		b.Run(name, func(b *testing.B) {
			var s Scratch
			b.ReportAllocs()
			var sum uint64
			for b.Loop() {
				sum += xxhash.Sum64(c.rs.Key(c.m, &s, nil).Key)
			}
			_ = sum
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	var file strings.Builder
	file.WriteString("<user-centric-rules><sip-rules>\n")
	for i := range 499 {
		fmt.Fprintf(&file, "<header name=\"X-%d\" return=\"request.X-%d.uri.user\"><exist/></header>\n", i, i)
	}
	file.WriteString("</sip-rules></user-centric-rules>")
	data := []byte(file.String())
	b.ReportAllocs()
	for b.Loop() {
		if rs, p := Compile("rules.xml", data, Options{}); rs == nil {
			b.Fatal(p)
		}
	}
}
