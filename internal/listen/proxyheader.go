package listen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"strconv"
)

// ErrProxyHeader says that what stood in front of a connection is no PROXY header.
var ErrProxyHeader = errors.New("listen: malformed proxy protocol header")

const (
	v1Most     = 107 // octets of a version 1 header, CRLF included
	v1Least    = 15  // "PROXY UNKNOWN" CRLF
	v2Fixed    = 16  // octets in front of the addresses
	v2Most     = 4096
	v2Stream   = 1 // transport of the addresses: that of the socket
	v2Datagram = 2
	tlvCRC32   = 0x03
)

var v2Signature = []byte("\r\n\r\n\x00\r\nQUIT\n")

// ProxyHeader is what a header carries. The addresses are invalid for LOCAL, UNKNOWN and families other than IPv4 and
// IPv6 streams: the socket's own count then.
type ProxyHeader struct {
	Source, Destination netip.AddrPort
}

// ParseProxyHeader reads a header of version 1 or 2 at the start of b. need is how many more octets there must be at
// least before it can say more; 0 with a nil error: the header is b, whole. It never asks for octets behind the header.
func ParseProxyHeader(b []byte) (h ProxyHeader, need int, err error) {
	if len(b) == 0 {
		return h, v1Least, nil // the shortest of both versions
	}
	sig := min(len(b), len(v2Signature))
	if bytes.Equal(b[:sig], v2Signature[:sig]) {
		return parseV2(b, v2Stream)
	}
	return parseV1(b)
}

func parseV1(b []byte) (h ProxyHeader, need int, err error) {
	const word = "PROXY "
	n := min(len(b), len(word))
	if string(b[:n]) != word[:n] {
		return h, 0, ErrProxyHeader
	}
	if len(b) < v1Least {
		return h, v1Least - len(b), nil
	}
	end := bytes.IndexByte(b, '\n')
	switch {
	case end < 0 && len(b) < v1Most:
		return h, 1, nil
	case end != len(b)-1 || b[end-1] != '\r':
		return h, 0, ErrProxyHeader
	}
	line := b[len(word) : end-1]
	if bytes.HasPrefix(line, []byte("UNKNOWN")) && (len(line) == 7 || line[7] == ' ') {
		return h, 0, nil
	}
	return parseV1Line(line)
}

// parseV1Line reads "TCP4 source destination sport dport".
func parseV1Line(line []byte) (h ProxyHeader, need int, err error) {
	f := bytes.Split(line, []byte{' '})
	if len(f) != 5 || (string(f[0]) != "TCP4" && string(f[0]) != "TCP6") {
		return h, 0, ErrProxyHeader
	}
	src, err1 := v1Addr(f[1], f[3], string(f[0]) == "TCP4")
	dst, err2 := v1Addr(f[2], f[4], string(f[0]) == "TCP4")
	if err := errors.Join(err1, err2); err != nil {
		return h, 0, fmt.Errorf("%w: %w", ErrProxyHeader, err)
	}
	return ProxyHeader{Source: src, Destination: dst}, 0, nil
}

var errFamily = errors.New("address of another family")

func v1Addr(host, port []byte, is4 bool) (netip.AddrPort, error) {
	a, err := netip.ParseAddr(string(host))
	if err != nil {
		return netip.AddrPort{}, err
	}
	if a.Is4() != is4 || a.Zone() != "" {
		return netip.AddrPort{}, errFamily
	}
	if len(port) > 1 && port[0] == '0' {
		return netip.AddrPort{}, strconv.ErrSyntax
	}
	p, err := strconv.ParseUint(string(port), 10, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(p)), nil
}

func parseV2(b []byte, transport byte) (h ProxyHeader, need int, err error) {
	if len(b) < v2Fixed {
		return h, v2Fixed - len(b), nil
	}
	command, family := b[12], b[13]
	length := int(binary.BigEndian.Uint16(b[14:16]))
	if command>>4 != 2 || command&15 > 1 || v2Fixed+length > v2Most {
		return h, 0, ErrProxyHeader
	}
	if len(b) < v2Fixed+length {
		return h, v2Fixed + length - len(b), nil
	}
	if len(b) > v2Fixed+length {
		return h, 0, ErrProxyHeader // more than was asked for
	}
	if command&15 == 0 || family>>4 == 0 {
		return h, 0, nil // LOCAL, the proxy's own health check, and UNSPEC: the whole block is to be skipped
	}
	h, used, err := v2Addresses(family, transport, b[v2Fixed:])
	if err != nil {
		return ProxyHeader{}, 0, err
	}
	if err := checkTLVs(b, v2Fixed+used); err != nil {
		return ProxyHeader{}, 0, err
	}
	return h, 0, nil
}

// v2Addresses reads the address block of the family, and says how long it is. Another transport than the socket's, UNIX
// and unknown families carry nothing that could be used.
func v2Addresses(family, transport byte, b []byte) (h ProxyHeader, used int, err error) {
	sizes := [...]int{0, 12, 36, 216} // unspecified, IPv4, IPv6, UNIX
	kind := int(family >> 4)
	if kind >= len(sizes) || family&15 > 2 {
		return h, len(b), nil // from the future: all of it is skipped
	}
	if used = sizes[kind]; len(b) < used {
		return h, 0, ErrProxyHeader
	}
	if family&15 != transport {
		return h, used, nil
	}
	switch kind {
	case 1:
		h.Source = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[0:4])), binary.BigEndian.Uint16(b[8:]))
		h.Destination = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[10:]))
	case 2:
		h.Source = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[0:16])).Unmap(), binary.BigEndian.Uint16(b[32:]))
		h.Destination = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[16:32])).Unmap(), binary.BigEndian.Uint16(b[34:]))
	}
	return h, used, nil
}

// checkTLVs walks what follows the addresses: everything is skipped but the CRC32C, which must fit where it is present.
func checkTLVs(b []byte, at int) error {
	for at < len(b) {
		if len(b)-at < 3 {
			return ErrProxyHeader
		}
		kind, n := b[at], int(binary.BigEndian.Uint16(b[at+1:]))
		if at += 3; len(b)-at < n {
			return ErrProxyHeader
		}
		if kind == tlvCRC32 {
			if n != 4 || crcWithout(b, at) != binary.BigEndian.Uint32(b[at:]) {
				return ErrProxyHeader
			}
		}
		at += n
	}
	return nil
}

// crcWithout is the CRC32C of the whole header with the four octets of the sum itself taken as zero.
func crcWithout(b []byte, at int) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, b[:at])
	sum = crc32.Update(sum, table, make([]byte, 4))
	return crc32.Update(sum, table, b[at+4:])
}
