package http1

import "bytes"

// NextItem takes the first item off a comma-separated list, without white space around it. Empty items are given too.
func NextItem(v []byte) (item, rest []byte) {
	if i := bytes.IndexByte(v, ','); i >= 0 {
		return trim(v[:i]), v[i+1:]
	}
	return trim(v), nil
}

func trim(v []byte) []byte {
	for len(v) > 0 && (v[0] == ' ' || v[0] == '\t') {
		v = v[1:]
	}
	for len(v) > 0 && (v[len(v)-1] == ' ' || v[len(v)-1] == '\t') {
		v = v[:len(v)-1]
	}
	return v
}

// EqualFold compares v with a text in lower case; ASCII letters match in either case.
func EqualFold(v []byte, lower string) bool {
	if len(v) != len(lower) {
		return false
	}
	for i := range v {
		c := v[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// equalNames compares two names without regard to case and with "_" and "-" alike.
func equalNames(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if fold[a[i]] != fold[b[i]] || fold[a[i]] == 0 {
			return false
		}
	}
	return true
}

// NextCookie takes the first pair off a Cookie value. Blanks around are gone, one pair of double quotes round the value
// too; a pair without "=" has an empty name.
func NextCookie(v []byte) (name, value, rest []byte) {
	pair := v
	if i := bytes.IndexByte(v, ';'); i >= 0 {
		pair, rest = v[:i], v[i+1:]
	}
	eq := bytes.IndexByte(pair, '=')
	name, value = trim(pair[:max(eq, 0)]), trim(pair[eq+1:])
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1]
	}
	return name, value, rest
}

// CookieName gives the name that a Set-Cookie value sets.
func CookieName(v []byte) []byte {
	name, _, _ := NextCookie(v)
	return name
}
