package sip

import "bytes"

// URI is a parsed SIP, SIPS, TEL or other URI; every part is a piece of the bytes it was read from, nothing decoded.
type URI struct {
	Scheme   []byte
	User     []byte // octets before '@' and before ':password'; nil when there is none
	Password []byte
	Host     []byte // IPv6 with its brackets
	Port     []byte // digits; nil when not written
	Params   []byte // behind the host: ";a=b;c", first ';' included; nil when none
	Headers  []byte // behind '?', without it
	Opaque   []byte // what follows the colon of a scheme that is not sip or sips (tel number with its parameters, urn …)
}

// SIP says that the scheme is sip or sips, so that the URI has a host.
func (u *URI) SIP() bool { return sipScheme(u.Scheme) }

// Secure says that the scheme is sips.
func (u *URI) Secure() bool { return EqualFold(u.Scheme, "sips") }

func sipScheme(b []byte) bool {
	switch len(b) {
	case 3:
		return EqualFold(b, "sip")
	case 4:
		return EqualFold(b, "sips")
	}
	return false
}

// Scheme gives the scheme of a URI, when it has the shape of one (RFC 3986 section 3.1); else nil.
func Scheme(b []byte) []byte {
	i := bytes.IndexByte(b, ':')
	if i <= 0 || class[b[0]]&isScheme == 0 || class[b[0]]&isDigit != 0 || lower[b[0]] < 'a' || !all(b[:i], isScheme) {
		return nil
	}
	return b[:i]
}

// ParseURI reads one URI that fills b. Beyond the grammar of RFC 3261 section 25.1 it takes '#' in a user part, '_' in a
// host name, a parameter with an empty value, and a '%' that begins no escape; and in brackets the three colons that the
// grammar allows by mistake (RFC 5118 section 4.10). The error is a *Error with status 400.
func ParseURI(b []byte) (URI, error) {
	var u URI
	if u.parse(b) {
		return u, nil
	}
	return u, errURI
}

func (u *URI) parse(b []byte) bool {
	u.Scheme = Scheme(b)
	if u.Scheme == nil {
		return false
	}
	rest := b[len(u.Scheme)+1:]
	if !sipScheme(u.Scheme) {
		u.Opaque = rest
		return len(rest) > 0 && all(rest, isURIC)
	}
	if at := bytes.IndexByte(rest, '@'); at >= 0 {
		if !u.userinfo(rest[:at]) {
			return false
		}
		rest = rest[at+1:]
	}
	n := hostLen(rest)
	if n == 0 {
		return false
	}
	u.Host, rest = rest[:n], rest[n:]
	if len(rest) > 0 && rest[0] == ':' {
		n = run(rest, 1, isDigit)
		if _, ok := ParsePort(rest[1:n]); !ok {
			return false
		}
		u.Port, rest = rest[1:n], rest[n:]
	}
	if len(rest) > 0 && rest[0] == ';' {
		n = uriParamsLen(rest)
		if n < 0 {
			return false
		}
		u.Params, rest = rest[:n], rest[n:]
	}
	if len(rest) > 0 && rest[0] == '?' {
		u.Headers = rest[1:]
		return len(u.Headers) > 0 && all(u.Headers, isHeader)
	}
	return len(rest) == 0
}

func (u *URI) userinfo(b []byte) bool {
	n := run(b, 0, isUser)
	u.User = b[:n]
	if n < len(b) {
		if b[n] != ':' || !all(b[n+1:], isPass) {
			return false
		}
		u.Password = b[n+1:]
	}
	return n > 0
}

// uriParamsLen gives the length of the parameters at the start of b; -1 when one has no name or an octet does not
// belong there.
func uriParamsLen(b []byte) int {
	i := 0
	for i < len(b) && b[i] == ';' {
		name := run(b, i+1, isParam)
		if name == i+1 {
			return -1
		}
		if i = name; i < len(b) && b[i] == '=' {
			i = run(b, i+1, isParam)
		}
	}
	if i < len(b) && b[i] != '?' {
		return -1
	}
	return i
}

// Param finds a URI parameter without case; the value is nil for ";lr" and raw (not decoded) for ";a=b". An escaped name
// is another name: "%6C%72" is not "lr" (RFC 4475 3.1.1.3).
func (u *URI) Param(name string) (value []byte, present bool) { return uriParam(u.Params, name) }

func uriParam(params []byte, name string) (value []byte, present bool) {
	for len(params) > 1 && params[0] == ';' {
		p := params[1:]
		params = nil
		if i := bytes.IndexByte(p, ';'); i >= 0 {
			p, params = p[:i], p[i:]
		}
		if len(p) < len(name) || !EqualFold(p[:len(name)], name) {
			continue
		}
		if p = p[len(name):]; len(p) == 0 {
			return nil, true
		}
		if p[0] == '=' {
			return p[1:], true
		}
	}
	return nil, false
}
