package dcr

import (
	"bytes"

	"github.com/wyegate/wyegate/internal/sip"
)

// run is one evaluation: the rule set, its program for the protocol of the request, and the memory of the worker.
type run struct {
	set *RuleSet
	p   *program
	s   *Scratch
	tr  *Trace
}

// Key evaluates the rules on a request. It allocates nothing, except that a pattern that matches may; and it never
// waits: an ENUM answer that is not there ends it with NeedNumber.
func (r *RuleSet) Key(m Message, s *Scratch, tr *Trace) Result {
	m.Describe(&s.Req)
	if s.Req.Proto > HTTP {
		return Result{Rule: -1}
	}
	p := r.prog[s.Req.Proto]
	if p == nil || p.entry < 0 {
		return Result{Rule: -1}
	}
	s.begin(p)
	e := run{set: r, p: p, s: s, tr: tr}
	if len(p.heads.items) > 0 {
		e.index()
	}
	return e.all()
}

// index is the one pass over the header fields: first field and presence of every item.
func (e *run) index() {
	s, h := e.s, &e.p.heads
	fields, slots := s.Req.Fields, s.slots
	for i := range fields {
		at := h.find(&fields[i])
		slots[i] = at
		if at == 0 {
			continue
		}
		if it := &s.heads[at-1]; it.epoch != s.epoch {
			it.epoch, it.field = s.epoch, int32(i)
		}
	}
}

// all runs the instructions.
func (e *run) all() Result {
	code, s := e.p.code, e.s
	for pc := e.p.entry; ; {
		in := &code[pc]
		held := e.holds(in)
		became := found
		if held && in.val >= 0 {
			became = e.value(in.val)
		}
		if e.tr != nil {
			e.record(in, held, became)
		}
		if became == missing {
			return Result{Outcome: NeedNumber, Rule: -1, Number: s.number}
		}
		next := in.no
		if held && became == found {
			if next = in.yes; in.op == opGuard {
				s.current = nil
			}
		}
		if next >= 0 {
			pc = next
			continue
		}
		if next == endNull || in.op == opGuard {
			return Result{Rule: -1}
		}
		return Result{Outcome: Matched, Key: s.current, Rule: int(in.rule)}
	}
}

// holds decides the condition of an instruction.
func (e *run) holds(in *instr) bool {
	switch in.op {
	case opHeader:
		return e.s.heads[in.item].epoch == e.s.epoch
	case opNoHeader:
		return e.s.heads[in.item].epoch != e.s.epoch
	case opParam:
		_, ok := e.parameter(in.item)
		return ok
	case opNoParam:
		_, ok := e.parameter(in.item)
		return !ok
	case opCookie:
		_, ok := e.cookie(in.item)
		return ok
	case opNoCookie:
		_, ok := e.cookie(in.item)
		return !ok
	case opMatchAll, opMatchPar, opMatchHead:
		return e.match(in)
	case opElse, opGuard:
		return true
	case opCase:
		return e.sessionCase() == in.kw
	}
	return false
}

// match holds a pattern against its subject and leaves group 1, decoded and behind its prefix, for the variables.
func (e *run) match(in *instr) bool {
	s, m := e.s, &e.p.pats[in.pat]
	s.group = nil
	subject, ok := e.subject(in)
	if !ok {
		return false
	}
	group, h := m.match(subject, s)
	if h != matched {
		if h == limited {
			s.limits.Steps++
		}
		return false
	}
	if len(group) == 0 {
		return true
	}
	plain := m.decoded || bytes.IndexByte(group, '%') < 0
	switch {
	case plain && len(m.prefix) == 0:
		s.group = group
	default:
		at := len(s.buf)
		s.buf = append(s.buf, m.prefix...)
		if plain {
			s.buf = append(s.buf, group...)
		} else {
			s.buf, _ = sip.AppendUnescaped(s.buf, group)
		}
		s.group = s.buf[at:]
	}
	return true
}

// subject is what a pattern is held against.
func (e *run) subject(in *instr) ([]byte, bool) {
	switch in.op {
	case opMatchPar:
		raw, ok := e.parameter(in.item)
		return e.decoded(raw), ok
	case opMatchHead:
		return e.headValue(in.item)
	}
	return e.s.Req.Target, true
}

// value evaluates a variable once per request and leaves it in s.current. A match is new with every pattern, and a
// trace wants to see how resolve came to its result, so these are not remembered.
func (e *run) value(v int16) state {
	s, a := e.s, &e.p.vars[v]
	m := &s.memo[v]
	if m.epoch == s.epoch && e.tr == nil && a.origin != fromMatch {
		s.current = m.value
		return m.state
	}
	s.note = noteNone
	val, st := e.compute(a)
	if len(val) == 0 && st == found { // an empty string is null
		st = null
	}
	s.current = val
	m.epoch, m.state, m.value = s.epoch, st, val
	return st
}

func (e *run) compute(a *accessor) ([]byte, state) {
	s := e.s
	switch a.origin {
	case fromMethod:
		return s.Req.Method, found
	case fromURI:
		if a.part == partWhole {
			return s.Req.Target, found
		}
		if u := e.requestURI(); u != nil {
			return e.uriPart(s.Req.Target, u, nil, a.part)
		}
	case fromHeader:
		if a.part == partWhole {
			val, _ := e.headValue(a.item)
			return val, found
		}
		return e.walkFields(a.item, a.part)
	case fromParameter:
		raw, ok := e.parameter(a.item)
		if !ok {
			return nil, null
		}
		if val := e.decoded(raw); a.part == partWhole {
			return val, found
		} else {
			left := maxWalk
			return e.walkList(val, a.part, false, &left)
		}
	case fromCookie:
		raw, _ := e.cookie(a.item)
		return raw, found
	case fromMatch:
		if a.part == partWhole {
			return s.group, found
		}
		return e.groupPart(a.part)
	}
	return nil, null
}

// groupPart reads match as a URI or, with brackets or a display name, as a name-addr.
func (e *run) groupPart(p part) ([]byte, state) {
	if len(e.s.group) == 0 {
		return nil, null
	}
	if u, err := sip.ParseURI(e.s.group); err == nil {
		return e.uriPart(e.s.group, &u, nil, p)
	}
	left := 1
	return e.walkList(e.s.group, p, true, &left)
}

// headValue is the first field of a name, unfolded.
func (e *run) headValue(item uint16) ([]byte, bool) {
	h := &e.s.heads[item]
	if h.epoch != e.s.epoch {
		return nil, false
	}
	return e.unfolded(e.s.Req.Fields[h.field].Value), true
}

func (e *run) unfolded(v []byte) []byte {
	if bytes.IndexByte(v, '\n') < 0 {
		return v
	}
	at := len(e.s.buf)
	e.s.buf = sip.AppendUnfolded(e.s.buf, v)
	return e.s.buf[at:]
}

// walkFields tries the elements of all fields of a name in order (section 3.6).
func (e *run) walkFields(item uint16, p part) ([]byte, state) {
	s := e.s
	if s.heads[item].epoch != s.epoch {
		return nil, null
	}
	single := e.p.heads.items[item].id.Single()
	left := maxWalk
	for i := int(s.heads[item].field); i < len(s.Req.Fields); i++ {
		if s.slots[i] != item+1 {
			continue
		}
		if left == 0 {
			s.limits.List++
			return nil, null
		}
		if val, st := e.walkList(s.Req.Fields[i].Value, p, single, &left); st != null {
			return val, st
		}
	}
	return nil, null
}

// walkList tries the elements of one list; the first that gives something wins, one that cannot be read is passed over.
func (e *run) walkList(b []byte, p part, single bool, left *int) ([]byte, state) {
	for ; b != nil; *left-- {
		if *left == 0 {
			e.s.limits.List++
			return nil, null
		}
		var na sip.NameAddr
		var err error
		if single {
			na, err = sip.ParseNameAddr(b)
			b = nil
		} else {
			na, b, err = sip.NextNameAddr(b)
		}
		if err != nil {
			continue
		}
		u, err := sip.ParseURI(na.URI)
		if err != nil {
			continue
		}
		if val, st := e.uriPart(na.URI, &u, na.Display, p); st == missing || st == found && len(val) > 0 {
			return val, st
		}
	}
	return nil, null
}
