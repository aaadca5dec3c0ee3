package dcr

import (
	"fmt"

	"github.com/wyegate/wyegate/internal/sip"
)

const shownValue = 256 // octets of a value in a trace or a log

// Escaped is a value as traces and logs show it: printable ASCII as it is, all else as \xNN, cut at 256 octets.
func Escaped(b []byte) string {
	out := string(sip.AppendEscaped(nil, b, shownValue))
	if len(b) > shownValue {
		return fmt.Sprintf("%s (%d octets)", out, len(b))
	}
	return out
}

// record tells what an instruction found. It is the only part of an evaluation that allocates, and it runs for explain
// and tests alone.
func (e *run) record(in *instr, held bool, became state) {
	st := Step{Rule: e.p.steps[in.el].path, Line: e.p.steps[in.el].line}
	switch {
	case in.op == opGuard:
		return // its session case was told already
	case !held:
		st.Text = e.condition(in)
	case in.op == opCase:
		st.Matched, st.Text = true, e.caseText()
	case became == found:
		st.Matched, st.Value = true, Escaped(e.s.current)
		st.Text = fmt.Sprintf("%s = \"%s\"%s", e.p.vars[in.val].text, st.Value, e.noteText())
	case became == missing:
		st.Text = fmt.Sprintf("%s needs the ENUM answer for +%s", e.p.vars[in.val].text, e.s.number)
	default:
		st.Text = fmt.Sprintf("%s is null%s", e.p.vars[in.val].text, e.nullText(&e.p.vars[in.val]))
	}
	e.tr.Steps = append(e.tr.Steps, st)
}

// condition says why a condition does not hold.
func (e *run) condition(in *instr) string {
	p := e.p
	switch in.op {
	case opHeader:
		return "no header field " + p.heads.items[in.item].name
	case opNoHeader:
		v, _ := e.headValue(in.item)
		return fmt.Sprintf("header field %s is there: \"%s\"", p.heads.items[in.item].name, Escaped(v))
	case opParam:
		return "no parameter " + p.params.names[in.item]
	case opNoParam:
		raw, _ := e.parameter(in.item)
		return fmt.Sprintf("parameter %s is there: \"%s\"", p.params.names[in.item], Escaped(raw))
	case opCookie:
		return "no cookie " + p.cookies.names[in.item]
	case opNoCookie:
		raw, _ := e.cookie(in.item)
		return fmt.Sprintf("cookie %s is there: \"%s\"", p.cookies.names[in.item], Escaped(raw))
	case opMatchAll, opMatchPar, opMatchHead:
		return e.missText(in)
	case opCase:
		return fmt.Sprintf("%s, wants %s", e.caseText(), in.kw)
	}
	if p.proto == HTTP {
		return "HTTP has no session case"
	}
	return "SIP has no cookies"
}

func (e *run) caseText() string {
	s := e.s
	if s.why == noRoute {
		return fmt.Sprintf("session case is %s (no Route with call=)", s.kase)
	}
	call, _ := e.call()
	if s.kase == caseNone {
		return fmt.Sprintf("session case is none (Route has call=%s)", Escaped(call))
	}
	return fmt.Sprintf("session case is %s (Route has call=%s)", s.kase, Escaped(call))
}

// missText says what a pattern was held against.
func (e *run) missText(in *instr) string {
	subject, ok := e.subject(in)
	if !ok && in.op == opMatchPar {
		return "no parameter " + e.p.params.names[in.item]
	} else if !ok {
		return "no header field " + e.p.heads.items[in.item].name
	}
	if e.s.limits.Steps > 0 {
		if _, h := e.p.pats[in.pat].match(subject, e.s); h == limited {
			return fmt.Sprintf("\"%s\" is beyond the limits of the pattern", Escaped(subject))
		}
	}
	return fmt.Sprintf("\"%s\" does not match the pattern", Escaped(subject))
}

// noteText says how resolve found a value.
func (e *run) noteText() string {
	switch e.s.note {
	case noteIdentity:
		return " (not a tel URI, no ENUM query)"
	case noteKnown:
		uri, _ := e.set.opt.Resolver.Resolve(e.s.number)
		return fmt.Sprintf(" (ENUM: +%s is %s)", e.s.number, Escaped(uri))
	case noteSelf:
		return " (no enum block: the number stands for itself)"
	}
	return ""
}

// nullText says why a variable has no value, as far as that can be told.
func (e *run) nullText(a *accessor) string {
	switch e.s.note {
	case noteNull:
		return fmt.Sprintf(" (ENUM has nothing for +%s)", e.s.number)
	case noteNoNumber:
		return " (a tel URI without a global number)"
	case noteSelf:
		return " (no enum block: a number has no host)"
	}
	switch a.origin {
	case fromHeader:
		v, ok := e.headValue(a.item)
		if !ok {
			return " (no header field " + a.name + ")"
		}
		return fmt.Sprintf(" (%s: \"%s\")", a.name, Escaped(v))
	case fromParameter, fromCookie:
		raw, ok := e.parameterOrCookie(a)
		if !ok {
			return " (not there)"
		}
		return fmt.Sprintf(" (\"%s\")", Escaped(raw))
	case fromURI:
		return fmt.Sprintf(" (Request-URI is \"%s\")", Escaped(e.s.Req.Target))
	case fromMatch:
		if len(e.s.group) == 0 {
			return " (group 1 took nothing)"
		}
		return fmt.Sprintf(" (match is \"%s\")", Escaped(e.s.group))
	}
	return ""
}

func (e *run) parameterOrCookie(a *accessor) ([]byte, bool) {
	if a.origin == fromCookie {
		return e.cookie(a.item)
	}
	return e.parameter(a.item)
}
