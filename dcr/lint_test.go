package dcr

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFindingTexts pins the texts that the documents show, and what a finding suggests.
func TestFindingTexts(t *testing.T) {
	for _, c := range []struct{ rules, text, suggestion string }{
		{`<if><header name="X-A" return="request.X-A"><exist/></header><else return="request.To.uri.usr"/></if>`,
			`DCR203: return variable "request.To.uri.usr": after "uri" expected scheme, user, host, port, display-name or resolve`, "request.To.uri.user"},
		{`<header name="X-A" return="request.uri.prot"><exist/></header>`,
			`DCR203: return variable "request.uri.prot": after "uri" expected scheme, user, host, port or resolve`, "request.uri.port"},
		{`<header name="X-A" return="request.To.uri.resolve.usr"><exist/></header>`,
			`DCR203: return variable "request.To.uri.resolve.usr": after "resolve" expected user or host`, "request.To.uri.resolve.user"},
		{`<header name="X-A" return="reqest.X-A"><exist/></header>`,
			`DCR203: return variable "reqest.X-A": expected request or match; did you mean "request"?`, "request.X-A"},
		{`<or><header name="X-A" return="request.X-A"><exist/></header></or>`, `DCR304: "or" has one child`, ""},
		{`<heder/>`, `DCR105: unknown element "heder"; did you mean "header"?`, "header"},
		{`<header name="X-A" retrun="x" return="request.X-A"><exist/></header>`,
			`DCR107: unknown attribute "retrun" of "header"; expected name or return; did you mean "return"?`, "return"},
		{`<session-case><equal>TERMINATIN</equal></session-case>`,
			`DCR201: session case "TERMINATIN" is none of EXTERNAL, ORIGINATING, TERMINATING or TERMINATING_UNREGISTERED; did you mean "TERMINATING"?`, "TERMINATING"},
		{`<header name="From" return="request.call-id"><exist/></header>` + "\n" + `<header name="X-A" return="request.X-A"><exist/></header>`,
			`DCR310: this rule can't be reached; line 1 always yields a value`, ""},
		{`<if><header name="X-A" return="request.X-A"><exist/></header><else return="request.uri.user"><exist/></else></if>`,
			`DCR106: "else" holds no conditions: move the condition into the "if"`, ""},
	} {
		file := "<user-centric-rules><sip-rules>" + c.rules + "</sip-rules></user-centric-rules>"
		found := false
		var all []string
		for _, p := range Lint("f.xml", []byte(file), Options{}) {
			all = append(all, p.String())
			if strings.HasSuffix(p.String(), ": "+c.text) && p.Suggestion == c.suggestion {
				found = true
			}
		}
		if !found {
			t.Errorf("%s\nfound %v\nwant  %s (%s)", c.rules, all, c.text, c.suggestion)
		}
	}
}

// TestProblemShape: the names of the JSON fields and the form of the line are a contract.
func TestProblemShape(t *testing.T) {
	data, err := os.ReadFile(examples + "/e.xml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "request.To.uri.resolve.user", "request.To.uri.usr", 1)
	list := Lint("data-centric-rules.xml", []byte(text), Options{})
	if len(list) != 1 {
		t.Fatalf("%v", list)
	}
	if got := list[0].String(); got != `data-centric-rules.xml:9:21: error: DCR203: return variable "request.To.uri.usr": after "uri" expected scheme, user, host, port, display-name or resolve` {
		t.Error(got)
	}
	out, err := json.Marshal(list[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"file":"data-centric-rules.xml","line":9,"col":21,"severity":"error","code":"DCR203","text":"return variable \"request.To.uri.usr\": after \"uri\" expected scheme, user, host, port, display-name or resolve","path":"/sip-rules/if[1]/else","suggestion":"request.To.uri.user"}`
	if string(out) != want {
		t.Errorf("%s", out)
	}
}

// TestLimitsOfAFile is section 15.1.
func TestLimitsOfAFile(t *testing.T) {
	big := "<user-centric-rules><sip-rules/></user-centric-rules>" + strings.Repeat(" ", maxFile)
	if p := Lint("f.xml", []byte(big), Options{}); len(p) != 1 || p[0].Code != "DCR100" || p[0].Line != 1 {
		t.Errorf("%v", p)
	}
	rule := `<header name="X-A" return="request.X-A"><exist/></header>`
	fits := "<user-centric-rules><sip-rules>" + strings.Repeat(rule, (maxElements-2)/2) + "</sip-rules></user-centric-rules>"
	if rs, p := Compile("f.xml", []byte(fits), Options{}); rs == nil {
		t.Errorf("10,000 elements are refused: %v", p[:1])
	}
	over := strings.Replace(fits, "</sip-rules>", rule+"</sip-rules>", 1)
	if p := Lint("f.xml", []byte(over), Options{}); !HasErrors(p) || p[len(p)-1].Code != "DCR113" {
		t.Error("10,002 elements are accepted")
	}
	deep := strings.Repeat("<or>", maxDepth-4) + rule + strings.Repeat("</or>", maxDepth-4) // two elements around, two inside
	if rs, p := Compile("f.xml", []byte("<user-centric-rules><sip-rules>"+deep+"</sip-rules></user-centric-rules>"), Options{}); rs == nil {
		t.Errorf("depth 64 is refused: %v", p)
	}
	if p := Lint("f.xml", []byte("\xFF\xFE<\x00"), Options{}); len(p) != 1 || p[0].Code != "DCR102" {
		t.Errorf("UTF-16: %v", p)
	}
	many := "<user-centric-rules><sip-rules>" + strings.Repeat("<foo/>", 250) + "</sip-rules></user-centric-rules>"
	shown, more := Shown(Lint("f.xml", []byte(many), Options{}))
	if len(shown) != 100 || more != 150 {
		t.Errorf("%d shown, %d more", len(shown), more)
	}
}

// TestTrace: explain names every rule that was asked, with the value that made it fail.
func TestTrace(t *testing.T) {
	data, err := os.ReadFile(examples + "/e.xml")
	if err != nil {
		t.Fatal(err)
	}
	rs := compiled(t, string(data), Options{Resolver: testEnum})
	var tr Trace
	rs.Key(sipRequest(t, "INVITE", "sip:room-4711@sip.example.net", "To: <sip:room-4711@sip.example.net>"), &Scratch{}, &tr)
	want := []Step{
		{Rule: "/sip-rules/if[1]/session-case[1]", Line: 6, Text: "session case is EXTERNAL (no Route with call=), wants ORIGINATING"},
		{Rule: "/sip-rules/if[1]/else", Line: 9, Matched: true, Value: "room-4711", Text: `request.To.uri.resolve.user = "room-4711" (not a tel URI, no ENUM query)`},
	}
	if fmt.Sprint(tr.Steps) != fmt.Sprint(want) {
		t.Errorf("%+v", tr.Steps)
	}
	tr = Trace{}
	rs.Key(sipRequest(t, "INVITE", "sip:x@y", "To: <tel:+4687190000>", "Route: <sip:f;call=orig>", "P-Asserted-Identity: <tel:+15550009999>"), &Scratch{}, &tr)
	texts := []string{
		"session case is ORIGINATING (Route has call=orig)",
		"request.P-Asserted-Identity.uri.resolve.user is null (ENUM has nothing for +15550009999)",
		`request.To.uri.resolve.user = "alice" (ENUM: +4687190000 is sip:alice@ims.example.com)`,
	}
	for i, s := range tr.Steps {
		if i >= len(texts) || s.Text != texts[i] {
			t.Errorf("step %d: %s", i, s.Text)
		}
	}
	tr = Trace{}
	rs.Key(httpRequest("/x"), &Scratch{}, &tr)
	texts = []string{"no parameter conf", "no header field X-Conference", "no cookie conf"}
	for i, s := range tr.Steps {
		if i >= len(texts) || s.Text != texts[i] || s.Matched {
			t.Errorf("step %d: %+v", i, s)
		}
	}
	if got := Escaped([]byte("a\r\n\x00" + strings.Repeat("x", 300))); !strings.HasPrefix(got, `a\x0d\x0a\x00xxx`) || !strings.HasSuffix(got, "... (304 octets)") {
		t.Errorf("%s", got)
	}
}

// TestCoverage: counts per rule and per branch, and the sum that the test runner prints.
func TestCoverage(t *testing.T) {
	data, err := os.ReadFile(examples + "/e.xml")
	if err != nil {
		t.Fatal(err)
	}
	rs := compiled(t, string(data), Options{})
	c := NewCoverage(rs)
	var s Scratch
	for _, m := range []Message{sipRequest(t, "INVITE", "sip:x@y"), httpRequest("/room?conf=1")} {
		var tr Trace
		rs.Key(m, &s, &tr)
		c.Add(&tr)
	}
	reached, rules, missed := c.Reached()
	var paths []string
	for _, m := range missed {
		paths = append(paths, m.Path)
	}
	if got := fmt.Sprintf("rules reached %d of %d; not reached: %s", reached, rules, strings.Join(paths, " ")); got !=
		"rules reached 2 of 5; not reached: /sip-rules/if[1]/session-case[1]/header[1] /http-rules/or[1]/header[1] /http-rules/or[1]/cookie[1]" {
		t.Error(got)
	}
	if row := c.Counts()[0]; row.Path != "/sip-rules/if[1]/session-case[1]" || row.Rule || row.Reached != 1 || row.Value != 0 || row.Null != 1 {
		t.Errorf("%+v", row)
	}
}

func TestFacts(t *testing.T) {
	data, err := os.ReadFile(examples + "/a.xml")
	if err != nil {
		t.Fatal(err)
	}
	f := compiled(t, string(data), Options{}).Facts()
	if !f.SIP || f.HTTP || !f.Resolve || strings.Join(f.Fields, " ") != "Route P-Served-User P-Asserted-Identity From X-Forced-Key" {
		t.Errorf("%+v", f)
	}
}

// TestGraph: every element is in both pictures, and DOT quotes what patterns hold.
func TestGraph(t *testing.T) {
	rs := compiled(t, `<user-centric-rules><sip-rules><if><session-case><equal>EXTERNAL</equal>
		<request-uri parameter="a&quot;b"><match prefix="c-">(\d+)</match></request-uri></session-case>
		<else return="request.To.uri.user"/></if></sip-rules></user-centric-rules>`, Options{})
	want := "sip-rules\n└─ if\n   ├─ session case is EXTERNAL\n" +
		"   │  └─ request-uri parameter a\"b matches (\\d+) → \"c-\" + match\n   └─ else → request.To.uri.user\n"
	if got := rs.Graph(); got != want {
		t.Errorf("%s", got)
	}
	dot := rs.DOT()
	if strings.Count(dot, "->") != 4 || !strings.Contains(dot, `a\"b matches (\\d+)`) {
		t.Errorf("%s", dot)
	}
}

// TestFormatLayout pins the one layout.
func TestFormatLayout(t *testing.T) {
	in := "<?xml version='1.0' encoding='ISO-8859-1'?><!DOCTYPE user-centric-rules SYSTEM \"dcr.dtd\"><!--f\xfcr--><user-centric-rules>" +
		"<sip-rules><if><session-case><equal> EXTERNAL </equal><!-- a --></session-case>\n\n\n<header return='request.X-A' name='X-A'>\n<exist></exist>\n</header> <!-- b -->" +
		"<else return='request.uri.user'></else></if>\n<or></or>" +
		"<request-uri return='match'  parameter='p'><match prefix='x&gt;'><![CDATA[ <(a)> ]]></match></request-uri></sip-rules></user-centric-rules>"
	want := `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE user-centric-rules SYSTEM "dcr.dtd">
<!--für-->
<user-centric-rules>
  <sip-rules>
    <if>
      <session-case>
        <equal> EXTERNAL </equal> <!-- a -->
      </session-case>

      <header name="X-A" return="request.X-A"><exist/></header> <!-- b -->
      <else return="request.uri.user"/>
    </if>
    <or/>
    <request-uri parameter="p" return="match"><match prefix="x>"><![CDATA[ <(a)> ]]></match></request-uri>
  </sip-rules>
</user-centric-rules>
`
	out, problems, err := Format("f.xml", []byte(in), Options{})
	if err != nil || string(out) != want {
		t.Errorf("%v %v\n%s", problems, err, out)
	}
	if out, problems, err := Format("f.xml", []byte("<user-centric-rules/>"), Options{}); out != nil || !HasErrors(problems) || err != nil {
		t.Errorf("a file with errors: %q %v %v", out, problems, err)
	}
}
