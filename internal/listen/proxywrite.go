package listen

import (
	"encoding/binary"
	"net/netip"
	"strconv"
)

// AppendProxyHeader appends a header of version 1 or 2 for a stream. Addresses that are not valid make it one of the
// proxy's own connection: LOCAL, or UNKNOWN in version 1. Where the families differ both are written as IPv6.
func AppendProxyHeader(dst []byte, version int, h ProxyHeader) []byte {
	from, to := h.Source, h.Destination
	valid := from.IsValid() && to.IsValid()
	four := valid && from.Addr().Unmap().Is4() && to.Addr().Unmap().Is4()
	if version == 1 {
		return appendV1(dst, from, to, valid, four)
	}
	dst = append(dst, v2Signature...)
	switch {
	case !valid:
		return append(dst, 0x20, 0, 0, 0)
	case four:
		dst = append(dst, 0x21, 0x10|v2Stream, 0, 12)
		a, b := from.Addr().Unmap().As4(), to.Addr().Unmap().As4()
		dst = append(append(dst, a[:]...), b[:]...)
	default:
		dst = append(dst, 0x21, 0x20|v2Stream, 0, 36)
		a, b := from.Addr().As16(), to.Addr().As16()
		dst = append(append(dst, a[:]...), b[:]...)
	}
	dst = binary.BigEndian.AppendUint16(dst, from.Port())
	return binary.BigEndian.AppendUint16(dst, to.Port())
}

func appendV1(dst []byte, from, to netip.AddrPort, valid, four bool) []byte {
	if !valid {
		return append(dst, "PROXY UNKNOWN\r\n"...)
	}
	dst = append(dst, "PROXY TCP4 "...)
	a, b := from.Addr().Unmap().WithZone(""), to.Addr().Unmap().WithZone("")
	if !four {
		dst[len(dst)-2] = '6'
		a, b = netip.AddrFrom16(a.As16()), netip.AddrFrom16(b.As16())
	}
	dst = append(a.AppendTo(dst), ' ')
	dst = append(b.AppendTo(dst), ' ')
	dst = append(strconv.AppendUint(dst, uint64(from.Port()), 10), ' ')
	return append(strconv.AppendUint(dst, uint64(to.Port()), 10), "\r\n"...)
}
