package dcr

import (
	"bytes"

	"github.com/wyegate/wyegate/internal/sip"
)

// caseReason says for a trace what the session case was read from.
type caseReason uint8

const (
	noRoute   caseReason = iota // no Route with call=
	callParam                   // the call parameter of the topmost Route, kept in Scratch.current while it is told
)

// sessionCase reads the topmost Route as received, once per request (section 4.4): call among its URI parameters, then
// among its header parameters.
func (e *run) sessionCase() sessionCase {
	s := e.s
	if s.caseRead {
		return s.kase
	}
	s.caseRead, s.kase, s.why = true, caseExternal, noRoute
	if call, ok := e.call(); ok {
		s.kase, s.why = e.set.caseOf(call), callParam
	}
	return s.kase
}

// call is the value of the call parameter.
func (e *run) call() ([]byte, bool) {
	s := e.s
	h := &s.heads[e.p.route]
	if h.epoch != s.epoch {
		return nil, false
	}
	value := s.Req.Fields[h.field].Value
	if !mayCall(value) {
		return nil, false
	}
	na, _, err := sip.NextNameAddr(value)
	if err != nil {
		return nil, false
	}
	if u, err := sip.ParseURI(na.URI); err == nil {
		if v, ok := u.Param("call"); ok {
			return v, true
		}
	}
	return sip.HeaderParam(na.Params, "call")
}

// mayCall is a quick look for a parameter that begins with a c: most Routes have none, and need no parsing.
func mayCall(b []byte) bool {
	for {
		i := bytes.IndexByte(b, ';')
		if i < 0 {
			return false
		}
		b = b[i+1:]
		for len(b) > 0 && isSpace(b[0]) {
			b = b[1:]
		}
		if len(b) > 0 && b[0]|0x20 == 'c' {
			return true
		}
	}
}

// caseOf maps a value of call to a keyword. Another value is none of the four, unless the service has an alias for it.
func (r *RuleSet) caseOf(call []byte) sessionCase {
	switch string(call) {
	case "orig":
		return caseOriginating
	case "term_registered":
		return caseTerminating
	case "term_unregistered":
		return caseUnregistered
	}
	return r.alias[string(call)]
}
