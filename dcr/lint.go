package dcr

import (
	"slices"
	"strings"

	"github.com/wyegate/wyegate/internal/sip"
)

// linter finds what is allowed and probably not meant: the codes DCR3xx of one rule, and in lint_keys.go the codes
// DCR4xx of the keys that come out.
type linter struct {
	f      *findings
	opt    *Options
	proto  Proto
	kinds  [2]map[string]bool // kinds of value that each protocol's keys are of
	noEnum bool               // DCR401 was said: once per file is enough
}

// file looks at both protocols; a nil rule is one that the file has not.
func (l *linter) file(root *element, sipRules, httpRules *rule) {
	for proto, r := range []*rule{sipRules, httpRules} {
		if r == nil {
			continue
		}
		l.proto = Proto(proto)
		l.kinds[proto] = map[string]bool{}
		l.look(r, caseNone)
		l.keys(r, true)
	}
	l.meeting(root, sipRules, httpRules)
}

// look walks the rules; inside is the session case around them.
func (l *linter) look(r *rule, inside sessionCase) {
	switch r.kind {
	case kindList, kindOr, kindAnd:
		l.connector(r)
	case kindIf:
		l.conditional(r)
	case kindCase:
		l.sessionCase(r, inside)
		if r.kw != caseNone {
			inside = r.kw
		}
	case kindHeader, kindCookie, kindURI:
		l.condition(r)
	}
	if r.kind != kindAnd {
		l.reach(r)
	}
	for i, k := range r.kids {
		if r.kind == kindAnd && i < len(r.kids)-1 {
			l.guard(k)
		}
		l.look(k, inside)
	}
}

func (l *linter) connector(r *rule) {
	switch {
	case len(r.el.kids) == 0:
		l.f.add("DCR305", r.el.start, r.el, "", "%q is empty: it never gives a value", r.el.name)
	case len(r.el.kids) == 1 && r.kind != kindList:
		l.f.add("DCR304", r.el.start, r.el, "", "%q has one child", r.el.name)
	}
}

func (l *linter) conditional(r *rule) {
	switch {
	case len(r.kids) > 1:
		l.f.add("DCR301", r.el.start, r.el, "", "\"if\" has %d conditions: they are tried in order, and \"else\" applies when none gives a value", len(r.kids))
	case len(r.el.kids) == 0:
		l.f.add("DCR305", r.el.start, r.el, "", "\"if\" is empty: it never gives a value")
	case len(r.kids) == 0 && r.els != nil && len(r.el.kids) == 1:
		l.f.add("DCR302", r.el.start, r.el, "", "\"if\" has no condition: \"else\" always applies")
	}
}

func (l *linter) sessionCase(r *rule, inside sessionCase) {
	if l.proto == HTTP {
		l.f.add("DCR306", r.el.start, r.el, "", "\"session-case\" in \"http-rules\" is always null: HTTP has no session case")
	}
	if r.bare {
		l.f.add("DCR303", r.el.start, r.el, "", "\"session-case\" holds only \"equal\": it is a guard and never gives a key")
	}
	if inside != caseNone && r.kw != caseNone && inside != r.kw {
		l.f.add("DCR315", r.el.start, r.el, "", "session case %s inside of %s is never true", r.kw, inside)
	}
}

// condition looks at one header, cookie or request-uri.
func (l *linter) condition(r *rule) {
	if r.kind == kindCookie && l.proto == SIP {
		l.f.add("DCR307", r.el.start, r.el, "", "\"cookie\" in \"sip-rules\": SIP has no cookies")
	}
	if !r.known {
		return
	}
	at := r.el.start
	if a := r.el.attr("return"); a != nil {
		at = a.valueAt
	}
	switch {
	case r.test == testNotExist && l.sameItem(r):
		l.f.add("DCR311", at, r.el, "", "\"notexist\" returns the item that must be absent: it never gives a value")
	case r.test == testExist && r.kind == kindHeader && r.ret.origin == fromHeader && r.name != "" && !sameHeader(r.name, r.ret.name, l.proto):
		l.f.add("DCR312", at, r.el, "", "\"exist\" tests header field %q and returns %q", r.name, r.ret.name)
	}
	if r.test != testMatch || r.pat == nil {
		return
	}
	for _, k := range r.el.kids {
		if a := k.attr("prefix"); k.name == "match" && a != nil && (r.ret.origin != fromMatch || a.value == "") {
			l.f.add("DCR313", a.nameAt, k, "", "\"prefix\" has no effect: %s", map[bool]string{true: "it is empty", false: "the return value is no match"}[a.value == ""])
		}
	}
}

// sameItem reports whether a condition returns what it tests.
func (l *linter) sameItem(r *rule) bool {
	switch r.kind {
	case kindHeader:
		return r.ret.origin == fromHeader && sameHeader(r.name, r.ret.name, l.proto)
	case kindCookie:
		return r.ret.origin == fromCookie && r.name == r.ret.name
	case kindURI:
		return l.proto == HTTP && r.ret.origin == fromParameter && r.param == r.ret.name
	}
	return false
}

// guard looks at an element of an and that is not the last: it only has to be there, so its value should be there too.
func (l *linter) guard(r *rule) {
	if r.test != testExist || !r.known || certainValue(r.ret) || r.ret.part == partWhole && l.sameItem(r) {
		return
	}
	if a := r.el.attr("return"); a != nil {
		l.f.add("DCR314", a.valueAt, r.el, "", "a guard inside \"and\" returns %s, which may be null although the item is there; return the item itself", r.ret.text)
	}
}

// reach reports rules behind one that always yields a value.
func (l *linter) reach(r *rule) {
	kids := r.kids
	if r.els != nil {
		kids = append(slices.Clip(kids), r.els)
	}
	for i, k := range kids {
		if !l.certain(k) {
			continue
		}
		for _, behind := range kids[i+1:] {
			l.f.add("DCR310", behind.el.start, behind.el, "", "this rule can't be reached; line %d always yields a value", l.f.src.at(k.el.start).line)
		}
		return
	}
}

// certain reports whether a rule always yields a value (section 10.2).
func (l *linter) certain(r *rule) bool {
	if l.proto == HTTP {
		return false // no field, parameter or cookie of HTTP is always there
	}
	switch r.kind {
	case kindElse:
		return r.known && certainValue(r.ret)
	case kindHeader:
		return r.test == testExist && r.known && alwaysThere(r.name) && certainValue(r.ret)
	case kindCookie:
		return r.test == testNotExist && r.known && certainValue(r.ret)
	case kindAnd:
		return len(r.kids) > 0 && !slices.ContainsFunc(r.kids, func(k *rule) bool { return !l.certain(k) })
	case kindOr, kindList, kindIf:
		return slices.ContainsFunc(r.kids, l.certain) || r.els != nil && l.certain(r.els)
	}
	return false
}

// certainValue reports whether a SIP variable is never null.
func certainValue(v variable) bool {
	switch v.origin {
	case fromMethod:
		return true
	case fromURI:
		return v.part == partWhole || v.part == partScheme
	case fromHeader:
		return v.part == partWhole && alwaysThere(v.name)
	}
	return false
}

// alwaysThere names the fields that every valid SIP request has.
func alwaysThere(name string) bool {
	switch sip.HeaderByName([]byte(name)) {
	case sip.From, sip.To, sip.CallID, sip.CSeq, sip.Via:
		return true
	}
	return false
}

// isField reports whether a name is one of the given header fields, whatever its form.
func isField(name string, proto Proto, fields ...string) bool {
	return slices.ContainsFunc(fields, func(f string) bool { return sameHeader(name, f, proto) || strings.EqualFold(name, f) })
}
