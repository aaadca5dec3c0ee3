package dcr

import (
	"bytes"

	"github.com/wyegate/wyegate/internal/sip"
)

const maxDigits = 15 // of an E.164 number

// resolve is section 3.5: a number is looked up, a SIP URI stands for itself, any other scheme is null.
func (e *run) resolve(raw []byte, u *sip.URI, p part) ([]byte, state) {
	if !isTel(u) {
		if !u.SIP() {
			return nil, null
		}
		e.s.note = noteIdentity
		return e.resolved(raw, u, p)
	}
	if !e.subscriber(u) {
		e.s.note = noteNoNumber
		return nil, null
	}
	return e.ask(p)
}

func isTel(u *sip.URI) bool {
	if !u.SIP() {
		return sip.EqualFold(u.Scheme, "tel")
	}
	v, ok := u.Param("user")
	return ok && sip.EqualFold(v, "phone")
}

// resolved takes the part of a SIP URI that a variable wants.
func (e *run) resolved(raw []byte, u *sip.URI, p part) ([]byte, state) {
	switch p {
	case partResolveUser:
		return e.unescaped(u.User), found
	case partResolveHost:
		return e.lowered(u.Host), found
	}
	return raw, found
}

// subscriber leaves the digits of the number in s.number, without the plus; false when the URI holds none that can be
// asked for.
func (e *run) subscriber(u *sip.URI) bool {
	s := e.s
	text := u.Opaque
	if u.SIP() {
		text = e.unescaped(u.User)
	}
	digits, params := cut(text, ';')
	s.number = s.number[:0]
	if len(digits) > 0 && digits[0] == '+' {
		return e.digits(digits[1:]) && len(s.number) > 0
	}
	for len(params) > 1 {
		var one []byte
		one, params = cut(params[1:], ';')
		name, value := cut(one, '=')
		if !sip.EqualFold(name, "phone-context") {
			continue
		}
		return len(value) > 2 && value[1] == '+' && e.digits(value[2:]) && len(s.number) > 0 && e.digits(digits) &&
			bytes.ContainsAny(digits, "0123456789")
	}
	return false
}

// digits appends the digits of b to the number, without the visual separators of RFC 3966; false when there is anything
// else, or too much.
func (e *run) digits(b []byte) bool {
	s := e.s
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			if len(s.number) == maxDigits {
				return false
			}
			s.number = append(s.number, c)
		case c == '-' || c == '.' || c == '(' || c == ')':
		default:
			return false
		}
	}
	return true
}

// ask gets the answer for the number at hand. Without an enum block the number stands for itself, so that the forms of
// one number still meet.
func (e *run) ask(p part) ([]byte, state) {
	s := e.s
	if e.set.opt.Resolver == nil {
		s.note = noteSelf
		if p == partResolveHost {
			return nil, null
		}
		at := len(s.buf)
		if p == partResolve {
			s.buf = append(s.buf, "tel:"...)
		}
		s.buf = append(append(s.buf, '+'), s.number...)
		return s.buf[at:], found
	}
	uri, answer := e.set.opt.Resolver.Resolve(s.number)
	switch answer {
	case AnswerMissing:
		if s.GiveUp {
			break
		}
		s.note = noteMissing
		return nil, missing
	case AnswerKnown:
		s.note = noteKnown
		if u, err := sip.ParseURI(uri); err == nil && u.SIP() {
			return e.resolved(uri, &u, p)
		}
	}
	s.note = noteNull
	return nil, null
}
