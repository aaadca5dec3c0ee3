package dcr

import (
	"fmt"
	"slices"
	"strings"
)

// kind is the kind of a rule element.
type kind uint8

const (
	kindList kind = iota // sip-rules, http-rules
	kindOr
	kindAnd
	kindIf
	kindElse
	kindHeader
	kindURI
	kindCookie
	kindCase
)

// test is what a condition asks for.
type test uint8

const (
	testNone test = iota // not readable: the file has an error there
	testExist
	testNotExist
	testMatch
)

// rule is one element of the language, checked. A part with an error is left out, so that the rest can be looked at.
type rule struct {
	kind  kind
	el    *element
	kids  []*rule
	els   *rule  // else of an if
	name  string // header field or cookie
	param string // of request-uri; empty: the whole URI
	test  test
	ret   variable
	known bool // ret could be read
	pat   *pattern
	pre   string // prefix
	kw    sessionCase
	index int // in RuleSet.Rules; -1 for what never gives a key
	bare  bool
}

// sessionCase is one of the four keywords, and 0 for none of them.
type sessionCase uint8

const (
	caseNone sessionCase = iota
	caseExternal
	caseOriginating
	caseTerminating
	caseUnregistered
)

var caseWords = []string{"", "EXTERNAL", "ORIGINATING", "TERMINATING", "TERMINATING_UNREGISTERED"}

func (c sessionCase) String() string { return caseWords[c] }

func caseByWord(w string) sessionCase {
	if i := slices.Index(caseWords, w); i > 0 {
		return sessionCase(i)
	}
	return caseNone
}

var (
	ruleNames = []string{"or", "and", "if", "header", "request-uri", "session-case", "cookie"}
	allNames  = append([]string{"user-centric-rules", "sip-rules", "http-rules", "else", "exist", "notexist", "match", "equal"}, ruleNames...)

	// content says which elements an element may hold (section 2.2).
	content = map[string][]string{
		"sip-rules": ruleNames, "http-rules": ruleNames, "or": ruleNames, "and": ruleNames,
		"if": append([]string{"else"}, ruleNames...), "session-case": append([]string{"equal"}, ruleNames...),
		"header": {"exist", "notexist"}, "cookie": {"exist", "notexist"}, "request-uri": {"exist", "notexist", "match"},
	}
	// attributesOf says which attributes an element may have.
	attributesOf = map[string][]string{
		"else": {"return"}, "header": {"name", "return"}, "cookie": {"name", "return"},
		"request-uri": {"parameter", "return"}, "match": {"prefix"},
	}
)

// grammar turns the elements of a document into rules and reports what does not belong there.
type grammar struct {
	doc   *document
	f     *findings
	opt   *Options
	rules []Rule
	items [2]map[string]bool // what each protocol reads, to count
}

// root checks the outermost element and gives the rules of both protocols; nil for one that the file has not.
func (g *grammar) root() (sipRules, httpRules *rule) {
	el := g.doc.root
	if el == nil {
		return nil, nil
	}
	if el.name != "user-centric-rules" {
		g.f.add("DCR104", el.start, el, "user-centric-rules", "the root element is %q; expected \"user-centric-rules\"", el.name)
		return nil, nil
	}
	g.attributes(el)
	g.noText(el)
	var found [2]*rule
	seen := [2]bool{}
	for _, k := range el.kids {
		proto := SIP
		switch k.name {
		case "http-rules":
			proto = HTTP
			fallthrough
		case "sip-rules":
			if seen[proto] {
				g.f.add("DCR111", k.start, k, "", "%q stands there twice", k.name)
				continue
			}
			seen[proto] = true
			found[proto] = g.list(k, proto)
		default:
			g.misplaced(k, el, []string{"sip-rules", "http-rules"})
		}
	}
	if !seen[SIP] && !seen[HTTP] && el.closed {
		g.f.add("DCR111", el.start, el, "", "neither \"sip-rules\" nor \"http-rules\"; expected one or both")
	}
	return found[SIP], found[HTTP]
}

func (g *grammar) list(el *element, proto Proto) *rule {
	r := &rule{kind: kindList, el: el, index: -1}
	g.attributes(el)
	g.noText(el)
	g.children(r, el.kids, proto)
	return r
}

// children reads the rules among kids.
func (g *grammar) children(r *rule, kids []*element, proto Proto) {
	for _, k := range kids {
		if c := g.rule(k, r.el, proto); c != nil {
			r.kids = append(r.kids, c)
		}
	}
}

// rule reads one rule element; nil for what is none.
func (g *grammar) rule(el, parent *element, proto Proto) *rule {
	r := &rule{el: el, index: -1}
	switch el.name {
	case "or":
		r.kind = kindOr
	case "and":
		r.kind = kindAnd
	case "if":
		r.kind = kindIf
		g.attributes(el)
		g.noText(el)
		g.conditional(r, proto)
		return r
	case "session-case":
		r.kind = kindCase
		g.attributes(el)
		g.noText(el)
		g.sessionCase(r, proto)
		return r
	case "header", "cookie", "request-uri":
		r.kind = map[string]kind{"header": kindHeader, "cookie": kindCookie, "request-uri": kindURI}[el.name]
		g.attributes(el)
		g.noText(el)
		r.index = g.number(el)
		g.condition(r, proto)
		return r
	default:
		g.misplaced(el, parent, content[parent.name])
		return nil
	}
	g.attributes(el)
	g.noText(el)
	g.children(r, el.kids, proto)
	return r
}

// number enters an element that can give a key into the list of rules.
func (g *grammar) number(el *element) int {
	g.rules = append(g.rules, Rule{Path: el.path, Line: g.doc.src.at(el.start).line})
	return len(g.rules) - 1
}

// conditional reads an if: rules, then at most one else.
func (g *grammar) conditional(r *rule, proto Proto) {
	for i, k := range r.el.kids {
		if k.name != "else" {
			g.children(r, r.el.kids[i:i+1], proto)
			continue
		}
		switch {
		case r.els != nil:
			g.f.add("DCR106", k.start, k, "", "\"if\" has more than one \"else\"")
			continue
		case i < len(r.el.kids)-1 && r.el.kids[i+1].name != "else":
			g.f.add("DCR106", k.start, k, "", "\"else\" must be the last element of \"if\"")
		}
		r.els = g.otherwise(k, proto)
	}
}

func (g *grammar) otherwise(el *element, proto Proto) *rule {
	r := &rule{kind: kindElse, el: el, index: g.number(el)}
	g.attributes(el)
	g.noText(el)
	for _, k := range el.kids {
		if slices.Contains(allNames, k.name) {
			g.f.add("DCR106", k.start, k, "", "\"else\" holds no conditions: move the condition into the \"if\"")
		} else {
			g.misplaced(k, el, nil)
		}
	}
	g.variable(r, el, proto, true)
	return r
}

// sessionCase reads a session-case: equal first, then rules.
func (g *grammar) sessionCase(r *rule, proto Proto) {
	seen := false
	for i, k := range r.el.kids {
		if k.name != "equal" {
			g.children(r, r.el.kids[i:i+1], proto)
			continue
		}
		switch {
		case seen:
			g.f.add("DCR106", k.start, k, "", "\"session-case\" has more than one \"equal\"")
			continue
		case i > 0:
			g.f.add("DCR106", k.start, k, "", "\"equal\" must be the first element of \"session-case\"")
		}
		seen = true
		r.kw = g.keyword(k)
	}
	if !seen && r.el.closed {
		g.f.add("DCR106", r.el.start, r.el, "", "\"session-case\" must begin with \"equal\"")
	}
	r.bare = len(r.el.kids) == 1 && seen
}

func (g *grammar) keyword(el *element) sessionCase {
	g.attributes(el)
	g.empty(el)
	l := g.doc.src.literal(el)
	if len(l) == 0 {
		g.needsText(el)
		return caseNone
	}
	word := text(l)
	kw := caseByWord(word)
	if kw == caseNone {
		near := nearest(word, caseWords[1:])
		g.f.add("DCR201", l[0].at, el, near, "session case %q is none of %s%s", word, list(caseWords[1:]), didYouMean(near))
	}
	return kw
}

func (g *grammar) needsText(el *element) {
	if el.closed {
		g.f.add("DCR108", el.start, el, "", "%q has no text", el.name)
	}
}

// condition reads header, cookie or request-uri.
func (g *grammar) condition(r *rule, proto Proto) {
	el := r.el
	var match *element
	tests := 0
	for _, k := range el.kids {
		switch {
		case k.name == "match" && (r.kind == kindURI || r.kind == kindHeader && g.opt.HeaderMatch && proto == SIP):
			match, r.test = k, testMatch
			tests++
		case k.name == "match" && r.kind == kindHeader:
			why := "while affinity.sip.header_match is off"
			if g.opt.HeaderMatch {
				why = "in \"http-rules\""
			}
			g.f.add("DCR106", k.start, k, "", "\"match\" is not allowed in \"header\" %s", why)
			tests++
		case k.name == "exist", k.name == "notexist":
			r.test = testExist
			if k.name == "notexist" {
				r.test = testNotExist
			}
			g.attributes(k)
			g.noText(k)
			g.empty(k)
			tests++
		default:
			g.misplaced(k, el, content[el.name])
		}
	}
	if tests != 1 {
		r.test = testNone
		want := list(content[el.name])
		if el.closed {
			g.f.add("DCR110", el.start, el, "", "%q has %s of %s; expected exactly one", el.name, count(tests, "none", "more than one"), want)
		}
	}
	g.names(r, proto)
	g.variable(r, el, proto, match == nil)
	if match != nil {
		g.match(r, match)
	}
}

func count(n int, none, more string) string {
	if n == 0 {
		return none
	}
	return more
}

// names reads name and parameter.
func (g *grammar) names(r *rule, proto Proto) {
	el := r.el
	if r.kind == kindURI {
		a := el.attr("parameter")
		switch {
		case a == nil && (r.test == testExist || r.test == testNotExist):
			g.f.add("DCR108", el.start, el, "", "%q with %q needs the attribute \"parameter\"", el.name, map[test]string{testExist: "exist", testNotExist: "notexist"}[r.test])
		case a == nil:
		case a.value == "":
			g.f.add("DCR108", a.valueAt, el, "", "attribute \"parameter\" of %q is empty", el.name)
		case g.nameFits(a.value, a.valueAt, el):
			r.param = a.value
			g.item(proto, "parameter "+a.value, a.valueAt, el)
		}
		return
	}
	a := el.attr("name")
	switch {
	case a == nil:
		g.f.add("DCR108", el.start, el, "", "%q needs the attribute \"name\"", el.name)
	case a.value == "":
		g.f.add("DCR108", a.valueAt, el, "", "attribute \"name\" of %q is empty", el.name)
	case !isToken(a.value):
		g.f.add("DCR202", a.valueAt, el, "", "%s name %q is no token", el.name, a.value)
	case g.nameFits(a.value, a.valueAt, el):
		r.name = a.value
		g.item(proto, el.name+" "+a.value, a.valueAt, el)
	}
}

func (g *grammar) nameFits(name string, at int, el *element) bool {
	if len(name) > maxName {
		g.f.add("DCR113", at, el, "", "the name has %d octets; the limit is %d", len(name), maxName)
		return false
	}
	return true
}

// item counts what a protocol reads: memory per request is fixed, so the number is limited.
func (g *grammar) item(proto Proto, what string, at int, el *element) {
	if g.items[proto] == nil {
		g.items[proto] = map[string]bool{}
	}
	if strings.HasPrefix(what, "header ") {
		what = strings.ToLower(what)
	}
	if g.items[proto][what] {
		return
	}
	g.items[proto][what] = true
	if len(g.items[proto]) == maxItems+1 {
		g.f.add("DCR113", at, el, "", "the rules of one protocol read more than %d header fields, parameters and cookies", maxItems)
	}
}

// variable reads the attribute return.
func (g *grammar) variable(r *rule, el *element, proto Proto, required bool) {
	a := el.attr("return")
	switch {
	case a == nil && !required:
		r.ret, r.known = variable{origin: fromMatch, text: "match"}, true
		return
	case a == nil && r.kind == kindURI && r.test == testNone:
		return // without exist, notexist or match nobody knows whether one is needed
	case a == nil:
		g.f.add("DCR108", el.start, el, "", "%q needs the attribute \"return\"", el.name)
		return
	case a.value == "":
		g.f.add("DCR108", a.valueAt, el, "", "attribute \"return\" of %q is empty", el.name)
		return
	}
	v, bad := parseVariable(a.value, proto)
	switch {
	case bad != nil:
		g.f.add(bad.code, a.valueAt, el, bad.suggestion, "%s", bad.text)
		return
	case v.origin == fromMatch && v.name != "" && !g.opt.HeaderMatch:
		g.f.add("DCR211", a.valueAt, el, "", "return variable %q: affinity.sip.header_match is off", a.value)
		return
	case v.origin == fromMatch && r.test != testMatch:
		if r.kind != kindElse && r.test == testNone {
			return
		}
		g.f.add("DCR205", a.valueAt, el, "", "return variable %q: there is no \"match\" around it", a.value)
		return
	case v.origin == fromMatch && v.name != "" && (r.kind != kindHeader || !sameHeader(v.name, r.name, proto)):
		g.f.add("DCR205", a.valueAt, el, "", "return variable %q: there is no \"match\" on this header field around it", a.value)
		return
	case (v.origin == fromHeader || v.origin == fromCookie) && !isToken(v.name):
		g.f.add("DCR202", a.valueAt, el, "", "return variable %q: %q is no token", a.value, v.name)
		return
	}
	if v.name != "" && v.origin != fromMatch {
		if !g.nameFits(v.name, a.valueAt, el) {
			return
		}
		g.item(proto, map[origin]string{fromHeader: "header ", fromParameter: "parameter ", fromCookie: "cookie "}[v.origin]+v.name, a.valueAt, el)
	}
	r.ret, r.known = v, true
}

// match reads the pattern of a condition.
func (g *grammar) match(r *rule, el *element) {
	g.attributes(el)
	g.empty(el)
	if a := el.attr("prefix"); a != nil {
		r.pre = a.value
	}
	l := g.doc.src.literal(el)
	if len(l) == 0 {
		g.needsText(el)
		return
	}
	p, bad := compilePattern(l, g.opt)
	if bad != nil {
		at := l[len(l)-1].at
		if bad.at < len(l) {
			at = l[bad.at].at
		}
		g.f.add(bad.code, at, el, "", "%s", bad.text)
		return
	}
	if p.groups == 0 && r.known && r.ret.origin == fromMatch {
		g.f.add("DCR208", l[0].at, el, "", "the pattern has no capturing group, and its value is used")
		return
	}
	r.pat = p
}

// misplaced reports an element that may not stand where it does, and looks at what it holds.
func (g *grammar) misplaced(el, parent *element, want []string) {
	switch {
	case strings.Contains(el.name, ":"):
		g.f.add("DCR107", el.start, el, "", "namespaces are not used: %q", el.name)
	case !slices.Contains(allNames, el.name):
		near := nearest(el.name, want)
		if near == "" {
			near = nearest(el.name, allNames)
		}
		g.f.add("DCR105", el.start, el, near, "unknown element %q%s", el.name, didYouMean(near))
	default:
		expected := "nothing"
		if len(want) > 0 {
			expected = list(want)
		}
		g.f.add("DCR106", el.start, el, "", "%q is not allowed in %q; expected %s", el.name, parent.name, expected)
		return
	}
	proto := protocolOf(el)
	for _, k := range el.kids {
		if slices.Contains(ruleNames, k.name) {
			g.rule(k, el, proto)
		} else if !slices.Contains(allNames, k.name) {
			g.misplaced(k, el, allNames)
		}
	}
}

func protocolOf(el *element) Proto {
	for ; el != nil; el = el.parent {
		if el.name == "http-rules" {
			return HTTP
		}
	}
	return SIP
}

// attributes reports what an element may not have.
func (g *grammar) attributes(el *element) {
	want := attributesOf[el.name]
	for _, a := range el.attrs {
		switch {
		case a.foreign:
			g.f.add("DCR107", a.nameAt, el, "", "namespaces are not used: %q", a.name)
		case !slices.Contains(want, a.name):
			near := nearest(a.name, want)
			expected := "it has none"
			if len(want) > 0 {
				expected = "expected " + list(want)
			}
			g.f.add("DCR107", a.nameAt, el, near, "unknown attribute %q of %q; %s%s", a.name, el.name, expected, didYouMean(near))
		case a.repeated:
			g.f.add("DCR109", a.nameAt, el, "", "attribute %q of %q stands there twice", a.name, el.name)
		}
	}
}

// noText reports character data in an element that holds elements only. White space must be written as such: a
// character reference or a CDATA section is text.
func (g *grammar) noText(el *element) {
	for _, c := range el.text {
		if i := firstInk(g.doc.src.text[c.from:c.to]); i >= 0 {
			g.f.add("DCR112", c.from+i, el, "", "text in %q, which holds none", el.name)
			return
		}
	}
}

// empty reports elements inside of one that holds text or nothing.
func (g *grammar) empty(el *element) {
	for _, k := range el.kids {
		g.misplaced(k, el, nil)
	}
}

// quoted is a value as a finding or a trace shows it.
func quoted(s string) string { return fmt.Sprintf("%q", s) }
