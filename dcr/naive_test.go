package dcr

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tree is a random rule tree. Its evaluation below is the definition of section 4.2 written down as it stands there,
// over strings and maps, and shares nothing with the program.
type tree struct {
	op     string // element name
	kids   []*tree
	els    string // return of an else; only for if
	name   string // header, cookie, parameter
	test   string // exist, notexist, match
	ret    string
	kw     string
	regexp string
	prefix string
}

// world is the request that a tree is held against.
type world struct {
	proto   Proto
	uri     string
	fields  [][2]string
	missing bool // ENUM answers are not there yet
}

// needed is thrown when an ENUM answer is missing.
type needed struct{ number string }

const guard = "\x00guard"

func (w *world) ev(n *tree) string {
	switch n.op {
	case "or", "list":
		return w.first(n.kids)
	case "and":
		last := ""
		for _, k := range n.kids {
			if last = w.ev(k); last == "" {
				return ""
			}
		}
		return last
	case "if":
		if v := w.first(n.kids); v != "" {
			return v
		}
		if n.els != "" {
			return w.value(n.els, "")
		}
		return ""
	case "session-case":
		if w.proto == HTTP || w.kase() != n.kw {
			return ""
		}
		if len(n.kids) == 0 {
			return guard
		}
		return w.first(n.kids)
	}
	return w.condition(n)
}

func (w *world) first(kids []*tree) string {
	for _, k := range kids {
		if v := w.ev(k); v != "" {
			return v
		}
	}
	return ""
}

func (w *world) condition(n *tree) string {
	var there bool
	switch n.op {
	case "header":
		_, there = w.field(n.name)
	case "cookie":
		_, there = w.cookie(n.name)
	case "request-uri":
		if n.test == "match" {
			return w.match(n)
		}
		_, there = w.param(n.name)
	}
	if there != (n.test == "exist") {
		return ""
	}
	return w.value(n.ret, "")
}

// match knows the two patterns of the generator: "room-([0-9]+)" and "^sips?:([a-z]+)@.*$".
func (w *world) match(n *tree) string {
	subject := w.uri
	if n.name != "" {
		v, ok := w.param(n.name)
		if !ok {
			return ""
		}
		subject = decode(v)
	}
	group := ""
	switch n.regexp {
	case "room-([0-9]+)":
		_, after, ok := strings.Cut(subject, "room-")
		if !ok {
			return ""
		}
		for after != "" && after[0] >= '0' && after[0] <= '9' {
			group, after = group+after[:1], after[1:]
		}
	case "^sips?:([a-z]+)@.*$":
		scheme, rest, _ := strings.Cut(subject, ":")
		user, _, ok := strings.Cut(rest, "@")
		if scheme != "sip" && scheme != "sips" || !ok || strings.Trim(user, "abcdefghijklmnopqrstuvwxyz") != "" {
			return ""
		}
		group = user
	}
	if group == "" {
		return ""
	}
	ret := n.ret
	if ret == "" {
		ret = "match"
	}
	return w.value(ret, n.prefix+group)
}

func (w *world) field(name string) (string, bool) {
	for _, f := range w.fields {
		if strings.EqualFold(f[0], name) || w.proto == SIP && strings.EqualFold(f[0], "f") && strings.EqualFold(name, "From") {
			return f[1], true
		}
	}
	return "", false
}

func (w *world) cookie(name string) (string, bool) {
	for _, f := range w.fields {
		if w.proto == SIP || f[0] != "Cookie" {
			continue
		}
		for _, c := range strings.Split(f[1], ";") {
			if k, v, ok := strings.Cut(strings.TrimSpace(c), "="); ok && k == name {
				return v, true
			}
		}
	}
	return "", false
}

func (w *world) param(name string) (string, bool) {
	_, rest, _ := strings.Cut(w.uri, map[Proto]string{SIP: ";", HTTP: "?"}[w.proto])
	for _, p := range strings.FieldsFunc(rest, func(r rune) bool { return string(r) == map[Proto]string{SIP: ";", HTTP: "&"}[w.proto] }) {
		if k, v, _ := strings.Cut(p, "="); k == name {
			return v, true
		}
	}
	return "", false
}

func (w *world) kase() string {
	route, ok := w.field("Route")
	_, call, has := strings.Cut(route, "call=")
	switch {
	case !ok || !has:
		return "EXTERNAL"
	case strings.HasPrefix(call, "orig"):
		return "ORIGINATING"
	case strings.HasPrefix(call, "term_registered"):
		return "TERMINATING"
	}
	return ""
}

func decode(s string) string { return strings.ReplaceAll(s, "%2D", "-") }

// value evaluates a return variable; match is the text of the pattern around it.
func (w *world) value(ret, match string) string {
	head, rest, _ := strings.Cut(ret, ".")
	switch {
	case ret == "match":
		return match
	case ret == "match.resolve.user":
		return w.uriPart(match, "resolve.user")
	case ret == "request.method":
		return "INVITE"
	case ret == "request.uri":
		return w.uri
	case strings.HasPrefix(ret, "request.uri."):
		return w.uriPart(w.uri, strings.TrimPrefix(ret, "request.uri."))
	case head == "cookie":
		v, _ := w.cookie(rest)
		return v
	case head == "parameter":
		name, suffix, _ := strings.Cut(rest, ".uri.")
		v, _ := w.param(name)
		if suffix == "" {
			return decode(v)
		}
		return w.list(decode(v), suffix)
	}
	name, suffix, of := strings.Cut(rest, ".uri.")
	if !of {
		v, _ := w.field(name)
		return v
	}
	for _, f := range w.fields {
		if strings.EqualFold(f[0], name) || strings.EqualFold(f[0], "f") && strings.EqualFold(name, "From") && w.proto == SIP {
			if v := w.list(f[1], suffix); v != "" {
				return v
			}
		}
	}
	return ""
}

// list walks a list of addresses without quotes, as the generator makes them.
func (w *world) list(text, suffix string) string {
	for _, e := range strings.Split(text, ",") {
		_, uri, ok := strings.Cut(e, "<")
		uri, _, closed := strings.Cut(uri, ">")
		if !ok || !closed {
			continue
		}
		if v := w.uriPart(uri, suffix); v != "" {
			return v
		}
	}
	return ""
}

func (w *world) uriPart(uri, part string) string {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok {
		return ""
	}
	number := ""
	switch scheme {
	case "tel":
		number = rest
	case "sip", "sips":
		if user, _, _ := strings.Cut(rest, "@"); strings.Contains(rest, "user=phone") {
			number = user
		}
	default:
		return ""
	}
	if under, resolve := strings.CutPrefix(part, "resolve."); resolve {
		if number != "" {
			number = strings.NewReplacer("-", "", ".", "").Replace(number)
			if number[0] != '+' || strings.Trim(number[1:], "0123456789") != "" || len(number) == 1 {
				return ""
			}
			if w.missing {
				panic(needed{number[1:]})
			}
			uri, ok = testEnum[number[1:]]
			if !ok {
				return ""
			}
			_, rest, _ = strings.Cut(uri, ":")
		}
		part = under
	} else if scheme == "tel" {
		return ""
	}
	user, host, ok := strings.Cut(rest, "@")
	if !ok {
		user, host = "", rest
	}
	host, _, _ = strings.Cut(host, ";")
	if part == "user" {
		return decode(user)
	}
	return strings.ToLower(host)
}

func (n *tree) xml(b *strings.Builder) {
	attr := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, " %s=%q", name, value)
		}
	}
	b.WriteString("<" + n.op)
	switch n.op {
	case "header", "cookie":
		attr("name", n.name)
	case "request-uri":
		attr("parameter", n.name)
	}
	attr("return", n.ret)
	b.WriteString(">")
	if n.kw != "" {
		b.WriteString("<equal>" + n.kw + "</equal>")
	}
	switch n.test {
	case "match":
		b.WriteString("<match")
		attr("prefix", n.prefix)
		b.WriteString(">" + n.regexp + "</match>")
	case "exist", "notexist":
		b.WriteString("<" + n.test + "/>")
	}
	for _, k := range n.kids {
		k.xml(b)
	}
	if n.els != "" {
		fmt.Fprintf(b, "<else return=%q/>", n.els)
	}
	b.WriteString("</" + n.op + ">\n")
}

var (
	sipReturns = []string{"request.method", "request.uri", "request.uri.user", "request.uri.host", "request.uri.resolve.user",
		"request.X-A", "request.x-b", "request.From.uri.user", "request.f.uri.resolve.user", "request.X-A.uri.resolve.user",
		"request.X-B.uri.host", "request.X-B.uri.resolve.host"}
	httpReturns = []string{"parameter.p", "parameter.q", "parameter.p.uri.user", "parameter.q.uri.resolve.user", "cookie.a",
		"cookie.b", "request.X-A", "request.x-b.uri.user", "request.X-B.uri.resolve.user"}
	addresses = []string{"", "v1", "<sip:ann@EX.com>", "<tel:+46-8-719-0000>", "<tel:+15550009999>, <sip:zoe@ex.com>",
		"<sip:+4687190000@gw.ex;user=phone>", "broken, <sip:bob%2D1@ex.com>", "<sip:ex.com>", "<urn:x:y>, <tel:0719>"}
)

// drawTree makes a tree; depth bounds it.
func drawTree(t *rapid.T, proto Proto, depth int) *tree {
	returns := sipReturns
	ops := []string{"header", "header", "request-uri", "request-uri", "cookie"}
	if proto == HTTP {
		returns = httpReturns
	}
	if depth > 0 {
		ops = append(ops, "or", "and", "if", "session-case", "or", "and", "if", "session-case")
	}
	n := &tree{op: rapid.SampledFrom(ops).Draw(t, "op")}
	test := rapid.SampledFrom([]string{"exist", "exist", "notexist"}).Draw(t, "test")
	switch n.op {
	case "header":
		n.name = rapid.SampledFrom([]string{"X-A", "x-b", "From", "X-C"}).Draw(t, "name")
	case "cookie":
		n.name = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
	case "request-uri":
		n.name = rapid.SampledFrom([]string{"p", "q"}).Draw(t, "name")
		if rapid.Bool().Draw(t, "match") {
			test = "match"
			if rapid.Bool().Draw(t, "whole") {
				n.name = ""
			}
			n.regexp = rapid.SampledFrom([]string{"room-([0-9]+)", "^sips?:([a-z]+)@.*$"}).Draw(t, "pattern")
			n.prefix = rapid.SampledFrom([]string{"", "c-", "tel:+"}).Draw(t, "prefix")
			n.ret = rapid.SampledFrom([]string{"", "match", "match.resolve.user"}).Draw(t, "matchReturn")
		}
	default:
		for range rapid.IntRange(0, 3).Draw(t, "kids") {
			n.kids = append(n.kids, drawTree(t, proto, depth-1))
		}
		switch n.op {
		case "if":
			if rapid.Bool().Draw(t, "else") {
				n.els = rapid.SampledFrom(returns).Draw(t, "elseReturn")
			}
		case "session-case":
			n.kw = rapid.SampledFrom([]string{"EXTERNAL", "ORIGINATING", "TERMINATING"}).Draw(t, "case")
		}
		return n
	}
	n.test = test
	if test != "match" {
		n.ret = rapid.SampledFrom(returns).Draw(t, "return")
	}
	return n
}

func drawWorld(t *rapid.T, proto Proto) *world {
	w := &world{proto: proto, missing: rapid.IntRange(0, 3).Draw(t, "missing") == 0}
	if proto == SIP {
		w.uri = rapid.SampledFrom([]string{"sip:room-4711@ex.com", "sip:bob@EX.com;p=room-7;lr", "sips:ann@ex.com;q=x%2Dy;p",
			"tel:+4687190000", "sip:+15550009999@gw;user=phone", "sip:ex.com"}).Draw(t, "uri")
		if r := rapid.SampledFrom([]string{"", "<sip:f.ex;lr>", "<sip:f.ex;lr;call=orig>", "<sip:f.ex;lr>;call=term_registered", "<sip:f.ex;call=term>"}).Draw(t, "route"); r != "" {
			w.fields = append(w.fields, [2]string{"Route", r})
		}
	} else {
		w.uri = rapid.SampledFrom([]string{"/x", "/room-4711?p=1", "/x?q=%3Ctel:+4687190000%3E&p=a%2Db", "/x?p=<sip:ann@ex.com>&q", "/x?p=&p=2"}).Draw(t, "target")
		w.uri = strings.NewReplacer("%3C", "<", "%3E", ">").Replace(w.uri)
		if c := rapid.SampledFrom([]string{"", "a=1", "b=2; a=3", "ab=1; c"}).Draw(t, "cookies"); c != "" {
			w.fields = append(w.fields, [2]string{"Cookie", c})
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		w.fields = append(w.fields, [2]string{
			rapid.SampledFrom([]string{"X-A", "x-a", "X-B", "X-CC"}).Draw(t, "field"), rapid.SampledFrom(addresses).Draw(t, "value"),
		})
	}
	return w
}

// message makes the request that rules see.
func (w *world) message() Message {
	if w.proto == HTTP {
		m := &httpMessage{method: []byte("GET"), target: []byte(w.uri)}
		for _, f := range w.fields {
			m.fields = append(m.fields, Field{Name: []byte(f[0]), Value: []byte(f[1])})
		}
		return m
	}
	w.fields = append(w.fields, [2]string{"f", "<sip:dave@ims.ex>;tag=1"})
	return rawSIP(w.uri, w.fields)
}

// missingEnum has no answer yet.
type missingEnum struct{}

func (missingEnum) Resolve([]byte) ([]byte, Answer) { return nil, AnswerMissing }

// TestProgramIsTheDefinition: a random tree on a random request gives what the definition of 4.2 gives.
func TestProgramIsTheDefinition(t *testing.T) {
	var s Scratch // one for all: nothing may show of the request before
	rapid.Check(t, func(t *rapid.T) {
		proto := rapid.SampledFrom([]Proto{SIP, HTTP}).Draw(t, "proto")
		root := &tree{op: "list"}
		for range rapid.IntRange(0, 4).Draw(t, "rules") {
			root.kids = append(root.kids, drawTree(t, proto, 3))
		}
		var b strings.Builder
		list := map[Proto]string{SIP: "sip-rules", HTTP: "http-rules"}[proto]
		b.WriteString("<user-centric-rules><" + list + ">\n")
		for _, k := range root.kids {
			k.xml(&b)
		}
		b.WriteString("</" + list + "></user-centric-rules>\n")
		file := b.String()
		for range 4 {
			w := drawWorld(t, proto)
			o := Options{Resolver: testEnum}
			if w.missing {
				o.Resolver = missingEnum{}
			}
			rs, problems := Compile("random.xml", []byte(file), o)
			if rs == nil {
				t.Fatalf("refused: %v\n%s", problems, file)
			}
			m := w.message()
			want, number := w.naive(root)
			res := rs.Key(m, &s, nil)
			got := string(res.Key)
			if (res.Outcome == NeedNumber) != (number != "") || string(res.Number) != number || number == "" && got != want {
				t.Fatalf("got %d %q %q, the definition gives %q %q\n%s%+v", res.Outcome, got, res.Number, want, number, file, w)
			}
			var tr Trace
			if again := rs.Key(m, &s, &tr); again.Outcome != res.Outcome || string(again.Key) != got || again.Rule != res.Rule {
				t.Fatalf("with a trace: %+v, without: %+v", again, res)
			}
		}
	})
}

func (w *world) naive(root *tree) (key, number string) {
	defer func() {
		if n, ok := recover().(needed); ok {
			key, number = "", n.number
		}
	}()
	if key = w.ev(root); key == guard {
		key = ""
	}
	return key, ""
}

// rawSIP is a SIP request out of fields that a parser would refuse as a whole.
func rawSIP(uri string, fields [][2]string) Message {
	m := &fixedMessage{Request{Proto: SIP, Method: []byte("INVITE"), Target: []byte(uri)}}
	for _, f := range fields {
		m.r.Fields = append(m.r.Fields, sipField(f[0], f[1]))
	}
	return m
}

// TestFmtProperties: fmt keeps the program, and fmt twice is fmt once.
func TestFmtProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString("<?xml version='1.0' encoding='UTF-8'?><!-- head --><user-centric-rules><sip-rules>")
		for range rapid.IntRange(0, 4).Draw(t, "rules") {
			b.WriteString(rapid.SampledFrom([]string{"", "\n\n\n", "<!-- a -->", " <!-- b\n c -->\n", "\n<?pi x?>", "\n   <!--d--> <!--e-->"}).Draw(t, "between"))
			drawTree(t, SIP, 3).xml(&b)
		}
		b.WriteString("</sip-rules></user-centric-rules><!-- tail -->")
		file := []byte(b.String())
		before, _ := Compile("f.xml", file, Options{})
		if before == nil {
			t.Fatal("refused")
		}
		once, _, err := Format("f.xml", file, Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		after, _ := Compile("f.xml", once, Options{})
		if after == nil || !after.Same(before) {
			t.Fatalf("another program:\n%s\n%s", file, once)
		}
		twice, _, err := Format("f.xml", once, Options{})
		if err != nil || string(twice) != string(once) {
			t.Fatalf("not the same twice (%v):\n%s\n%s", err, once, twice)
		}
		if strings.Count(string(once), "<!--") != strings.Count(string(file), "<!--") {
			t.Fatalf("a comment is lost:\n%s\n%s", file, once)
		}
	})
}
