package diam

// AppendRouteRecord writes msg, a whole message, behind dst with a Route-Record for host at its end: nothing is
// reordered, and no other byte but the length changes (RFC 6733 6.1.9). Error: ErrTooLong, and then only dst.
func AppendRouteRecord(dst, msg []byte, host string) ([]byte, error) {
	b := Builder{buf: append(dst, msg...), start: len(dst)}
	b.String(AVPRouteRecord, host)
	return b.Bytes()
}

// EqualIdentity compares two DiameterIdentities: ASCII without case (RFC 6733 4.3.1).
func EqualIdentity(a []byte, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

// CompareIdentity orders two DiameterIdentities as the election does: octets, ASCII without case (RFC 6733 5.6.4).
// Negative where a stands before b, 0 where they are the same.
func CompareIdentity(a, b string) int {
	for i := range min(len(a), len(b)) {
		if d := int(lower(a[i])) - int(lower(b[i])); d != 0 {
			return d
		}
	}
	return len(a) - len(b)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
