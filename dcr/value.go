package dcr

import (
	"bytes"

	"github.com/wyegate/wyegate/internal/sip"
)

// requestURI parses the Request-URI on first use; nil when it is none.
func (e *run) requestURI() *sip.URI {
	s := e.s
	if !s.uriRead {
		u, err := sip.ParseURI(s.Req.Target)
		s.uri, s.uriOK, s.uriRead = u, err == nil, true
	}
	if !s.uriOK {
		return nil
	}
	return &s.uri
}

// uriPart takes a part of a URI as section 3.4 says octet for octet. raw is the URI as received.
func (e *run) uriPart(raw []byte, u *sip.URI, display []byte, p part) ([]byte, state) {
	switch p {
	case partURI:
		return raw, found
	case partScheme:
		return e.lowered(u.Scheme), found
	case partDisplay:
		return e.display(display), found
	case partResolve, partResolveUser, partResolveHost:
		return e.resolve(raw, u, p)
	}
	if !u.SIP() {
		return nil, null
	}
	switch p {
	case partUser:
		return e.unescaped(u.User), found
	case partHost:
		return e.lowered(u.Host), found
	case partPort:
		return port(u), found
	}
	return nil, null
}

var (
	port5060 = []byte("5060")
	port5061 = []byte("5061")
)

// port is the port as written, else the one that the scheme and the transport imply.
func port(u *sip.URI) []byte {
	if len(u.Port) > 0 {
		return u.Port
	}
	if u.Secure() {
		return port5061
	}
	if t, ok := u.Param("transport"); ok && sip.EqualFold(t, "tls") {
		return port5061
	}
	return port5060
}

// lowered puts ASCII capitals into lower case, in a copy when there are any.
func (e *run) lowered(b []byte) []byte {
	for _, c := range b {
		if c >= 'A' && c <= 'Z' {
			at := len(e.s.buf)
			e.s.buf = sip.AppendLower(e.s.buf, b)
			return e.s.buf[at:]
		}
	}
	return b
}

// unescaped decodes %xx once; a broken escape stays.
func (e *run) unescaped(b []byte) []byte {
	if bytes.IndexByte(b, '%') < 0 {
		return b
	}
	at := len(e.s.buf)
	e.s.buf, _ = sip.AppendUnescaped(e.s.buf, b)
	return e.s.buf[at:]
}

func (e *run) display(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	at := len(e.s.buf)
	e.s.buf = sip.AppendDisplay(e.s.buf, b)
	return e.s.buf[at:]
}

// parameter gives the raw value of a query or URI parameter. All parameters that rules read are found in one pass, on
// first use.
func (e *run) parameter(item uint16) ([]byte, bool) {
	s := e.s
	if !s.split {
		s.split = true
		if e.p.proto == HTTP {
			e.splitQuery()
		} else {
			e.splitURI()
		}
	}
	v := &s.params[item]
	if v.epoch != s.epoch { // what stands there is of an older request
		return nil, false
	}
	return v.raw, true
}

// decoded is a parameter's value, decoded once.
func (e *run) decoded(raw []byte) []byte {
	if e.p.proto == SIP || !e.set.opt.PlusIsSpace || bytes.IndexByte(raw, '+') < 0 {
		return e.unescaped(raw)
	}
	at := len(e.s.buf)
	for len(raw) > 0 {
		var word []byte
		if word, raw = cut(raw, '+'); len(raw) > 0 {
			e.s.buf, _ = sip.AppendUnescaped(e.s.buf, word)
			e.s.buf, raw = append(e.s.buf, ' '), raw[1:]
			continue
		}
		e.s.buf, _ = sip.AppendUnescaped(e.s.buf, word)
	}
	return e.s.buf[at:]
}

// splitURI finds the parameters of the Request-URI; those of a tel URI stand in its opaque part.
func (e *run) splitURI() {
	u := e.requestURI()
	if u == nil {
		return
	}
	rest := u.Params
	if !u.SIP() {
		if !sip.EqualFold(u.Scheme, "tel") {
			return
		}
		i := bytes.IndexByte(u.Opaque, ';')
		if i < 0 {
			return
		}
		rest = u.Opaque[i:]
	}
	for len(rest) > 1 {
		var one []byte
		one, rest = cut(rest[1:], ';')
		name, value := cut(one, '=')
		if len(value) > 0 {
			value = value[1:]
		}
		e.keep(&e.p.params, e.s.params, name, value)
	}
}

// splitQuery finds the parameters of the query; a name is compared decoded.
func (e *run) splitQuery() {
	i := bytes.IndexByte(e.s.Req.Target, '?')
	if i < 0 {
		return
	}
	rest := e.s.Req.Target[i:]
	for len(rest) > 1 {
		var one []byte
		one, rest = cut(rest[1:], '&')
		name, value := cut(one, '=')
		if len(value) > 0 {
			value = value[1:]
		}
		mark := len(e.s.buf)
		if len(name) <= 3*maxName {
			e.keep(&e.p.params, e.s.params, e.decoded(name), value)
		}
		e.s.buf = e.s.buf[:mark]
	}
}

// cut splits b before the first c; the rest begins with c and is empty when there is none.
func cut(b []byte, c byte) (before, rest []byte) {
	if i := bytes.IndexByte(b, c); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

// keep stores a value under the names that rules read; of several of one name the first counts.
func (e *run) keep(names *nameIndex, into []slot, name, value []byte) {
	if !names.maybe(len(name)) {
		return
	}
	for i, n := range names.names {
		if n == string(name) {
			if into[i].epoch != e.s.epoch {
				into[i] = slot{e.s.epoch, value}
			}
			return
		}
	}
}

// cookie gives the value of a cookie without one pair of quotes. All cookies that rules read are found in one pass over
// the Cookie fields, on first use.
func (e *run) cookie(item uint16) ([]byte, bool) {
	s := e.s
	if !s.crumbled {
		s.crumbled = true
		e.splitCookies()
	}
	v := &s.cookies[item]
	if v.epoch != s.epoch { // what stands there is of an older request
		return nil, false
	}
	return v.raw, true
}

func (e *run) splitCookies() {
	s, head := e.s, uint16(e.p.cookie)
	if s.heads[head].epoch != s.epoch {
		return
	}
	for i := int(s.heads[head].field); i < len(s.Req.Fields); i++ {
		if s.slots[i] != head+1 {
			continue
		}
		rest := s.Req.Fields[i].Value
		for len(rest) > 0 {
			var pair []byte
			if pair, rest = cut(rest, ';'); len(rest) > 0 {
				rest = rest[1:]
			}
			name, value := cut(pair, '=')
			if len(value) == 0 {
				continue // a crumb without '=' has no name
			}
			e.keep(&e.p.cookies, s.cookies, blanksOff(name), quotesOff(blanksOff(value[1:])))
		}
	}
}

// blanksOff removes blanks and tabs at both ends.
func blanksOff(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

func quotesOff(b []byte) []byte {
	if len(b) >= 2 && b[0] == '"' && b[len(b)-1] == '"' {
		return b[1 : len(b)-1]
	}
	return b
}
