package listen

import (
	"bytes"
	"encoding/binary"
)

// ParseProxyDatagram reads the header of version 2 in front of a datagram, which is the only version that datagrams have.
// n is its length: what follows is the datagram itself.
func ParseProxyDatagram(b []byte) (h ProxyHeader, n int, err error) {
	if len(b) < v2Fixed || !bytes.Equal(b[:len(v2Signature)], v2Signature) {
		return h, 0, ErrProxyHeader
	}
	if n = v2Fixed + int(binary.BigEndian.Uint16(b[14:16])); n > len(b) {
		return h, 0, ErrProxyHeader
	}
	if h, _, err = parseV2(b[:n], v2Datagram); err != nil {
		return h, 0, err
	}
	return h, n, nil
}
