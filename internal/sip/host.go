package sip

import (
	"bytes"
	"net/netip"
)

// hostLen gives the length of the host at the start of b, brackets included; 0 when there is none.
func hostLen(b []byte) int {
	if len(b) == 0 || b[0] != '[' {
		return run(b, 0, isHost)
	}
	end := bytes.IndexByte(b, ']')
	if end < 0 || !bracketed(b[1:end]) {
		return 0
	}
	return end + 1
}

// bracketed says that b may stand in the brackets of a host: an IPv6 address, or one with three colons before its IPv4
// part, which the grammar of RFC 3261 allows by mistake and which RFC 5118 section 4.10 wants forwarded. The latter is
// no address to ParseHost.
func bracketed(b []byte) bool {
	if _, ok := parse6(b); ok {
		return true
	}
	i := bytes.Index(b, []byte(":::"))
	if i < 0 || len(b) > 64 {
		return false
	}
	var two [64]byte
	n := copy(two[:], b[:i])
	n += copy(two[n:], b[i+1:])
	_, ok := parse6(two[:n])
	return ok && bytes.IndexByte(b[i:], '.') > 0
}

// ParseHost gives the address that a host is, in brackets or without; an IPv4-mapped IPv6 address as IPv4, so that two
// spellings of one host compare equal (SX-13). It is false for a name, and for an address with a zone.
func ParseHost(b []byte) (netip.Addr, bool) {
	if len(b) > 1 && b[0] == '[' {
		if b[len(b)-1] != ']' {
			return netip.Addr{}, false
		}
		return parse6(b[1 : len(b)-1])
	}
	if bytes.IndexByte(b, ':') >= 0 {
		return parse6(b)
	}
	a, ok := parse4(b)
	if !ok {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4(a), true
}

// ParsePort reads a port as it is written in a URI or a Via: digits, at most 65535.
func ParsePort(b []byte) (uint16, bool) {
	n, ok := number(b, 65535)
	return uint16(n), ok
}

// number reads decimal digits up to a limit; leading zeros are fine.
func number(b []byte, limit uint64) (n uint64, ok bool) {
	for _, c := range b {
		if class[c]&isDigit == 0 {
			return 0, false
		}
		if n = n*10 + uint64(c-'0'); n > limit {
			return limit, false
		}
	}
	return n, len(b) > 0
}

// parse4 reads a dotted quad without leading zeros. netip.ParseAddr wants a string, which would be an allocation for
// every Via.
func parse4(b []byte) (a [4]byte, ok bool) {
	part, n, digits := 0, 0, 0
	for _, c := range b {
		switch {
		case c == '.':
			if digits == 0 || part == 3 {
				return a, false
			}
			a[part] = byte(n)
			part, n, digits = part+1, 0, 0
		case class[c]&isDigit == 0 || digits > 0 && n == 0:
			return a, false
		default:
			if n, digits = n*10+int(c-'0'), digits+1; n > 255 {
				return a, false
			}
		}
	}
	if part != 3 || digits == 0 {
		return a, false
	}
	a[3] = byte(n)
	return a, true
}

// parse6 reads an IPv6 address as RFC 4291 section 2.2 writes it, without a zone.
func parse6(b []byte) (netip.Addr, bool) {
	var a [16]byte
	n, gap := 0, -1 // octets written; where "::" stands
	i := 0
	if len(b) >= 2 && b[0] == ':' && b[1] == ':' {
		gap, i = 0, 2
	}
	for i < len(b) {
		if n == 16 {
			return netip.Addr{}, false
		}
		group, end := 0, i
		for end < len(b) && end < i+4 && class[b[end]]&isHex != 0 {
			group = group<<4 | int(unhex(b[end]))
			end++
		}
		if end < len(b) && b[end] == '.' {
			quad, ok := parse4(b[i:])
			if !ok || n > 12 {
				return netip.Addr{}, false
			}
			n += copy(a[n:], quad[:])
			break
		}
		if end == i {
			return netip.Addr{}, false
		}
		a[n], a[n+1] = byte(group>>8), byte(group)
		n += 2
		if i = end; i == len(b) {
			break
		}
		if b[i] != ':' || i+1 == len(b) {
			return netip.Addr{}, false
		}
		if i++; b[i] == ':' {
			if gap >= 0 {
				return netip.Addr{}, false
			}
			gap = n
			i++
		}
	}
	if gap < 0 && n != 16 || gap >= 0 && n == 16 {
		return netip.Addr{}, false
	}
	if gap >= 0 {
		tail := copy(a[16-(n-gap):], a[gap:n])
		clear(a[gap : 16-tail])
	}
	return netip.AddrFrom16(a).Unmap(), true
}
