package sip

import "bytes"

// EqualFold compares without the case of ASCII letters; octets above 127 are compared as they are.
func EqualFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i, c := range b {
		if c != s[i] && lower[c] != lower[s[i]] {
			return false
		}
	}
	return true
}

func equalFoldString(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower[a[i]] != lower[b[i]] {
			return false
		}
	}
	return true
}

// AppendLower appends b with its ASCII letters in lower case.
func AppendLower(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, lower[c])
	}
	return dst
}

// AppendUnfolded appends a field value with every fold, and the blanks round it, as one space (RFC 3261 section 7.3.1).
// Blanks elsewhere stay.
func AppendUnfolded(dst, value []byte) []byte {
	for {
		i := bytes.IndexByte(value, '\n')
		if i < 0 {
			return append(dst, value...)
		}
		dst = append(append(dst, trimEnd(value[:i])...), ' ')
		value = value[skipSpace(value, i):]
	}
}

// AppendUnescaped appends b with each %xx decoded once; a broken escape stays as it is (dcr.md 3.4). clean is false when
// the decoded text holds CR, LF or NUL: such a text never goes into a header, a log or a page unescaped (SS-4).
func AppendUnescaped(dst, b []byte) (out []byte, clean bool) {
	clean = true
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '%' && i+2 < len(b) && class[b[i+1]]&isHex != 0 && class[b[i+2]]&isHex != 0 {
			c = unhex(b[i+1])<<4 | unhex(b[i+2])
			i += 2
		}
		if c == '\r' || c == '\n' || c == 0 {
			clean = false
		}
		dst = append(dst, c)
	}
	return dst, clean
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return lower[c] - 'a' + 10
}

// AppendDisplay appends a display name for people and keys: quotes taken off and \x as x, or the words of an unquoted
// one joined by single spaces (dcr.md 3.4). It takes what NameAddr.Display holds.
func AppendDisplay(dst, display []byte) []byte {
	if len(display) >= 2 && display[0] == '"' && display[len(display)-1] == '"' {
		return appendUnquoted(dst, display[1:len(display)-1])
	}
	first := true
	for i := skipSpace(display, 0); i < len(display); i = skipSpace(display, i) {
		if !first {
			dst = append(dst, ' ')
		}
		for first = false; i < len(display) && !space(display[i]); i++ {
			dst = append(dst, display[i])
		}
	}
	return dst
}

// appendUnquoted appends the inside of a quoted string: folds as one space, escapes resolved.
func appendUnquoted(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '\\' && i+1 < len(b):
			i++
			dst = append(dst, b[i])
		case b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n':
			dst = append(dst, ' ')
			i = skipSpace(b, i) - 1
		default:
			dst = append(dst, b[i])
		}
	}
	return dst
}

// AppendEscaped appends b for a log line or a page: printable ASCII as it is, everything else and the backslash as \xNN,
// cut to limit octets of b with "..." behind.
func AppendEscaped(dst, b []byte, limit int) []byte {
	cut := len(b) > limit
	if cut {
		b = b[:limit]
	}
	const hex = "0123456789abcdef"
	for _, c := range b {
		if c < 0x20 || c > 0x7e || c == '\\' {
			dst = append(dst, '\\', 'x', hex[c>>4], hex[c&15])
			continue
		}
		dst = append(dst, c)
	}
	if cut {
		dst = append(dst, "..."...)
	}
	return dst
}
