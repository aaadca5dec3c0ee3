package transport

import (
	"encoding/binary"
	"net/netip"
)

const (
	stunHeader  = 20
	stunCookie  = 0x2112A442
	stunRequest = 0x0001
	stunSuccess = 0x0101
	stunXORAddr = 0x0020
)

// stun answers a Binding request on a SIP socket (RFC 5626 section 3.5.2, RFC 8489 section 12): a client behind a NAT
// keeps its mapping with it, and learns when the mapping has changed. Everything else that begins like STUN is ignored.
//
// source is the client, which a proxy at remote may have named.
func (s *udpSocket) stun(b []byte, source, remote, local netip.AddrPort) {
	var out [stunHeader + 24]byte
	n := bindingResponse(out[:], b, source)
	if n == 0 {
		return
	}
	s.ep.counters.KeepAlives.Add(1)
	var ctl []byte
	if s.ctl != nil {
		var space [ctlOctets]byte
		ctl = space[:putPktInfo(space[:], local.Addr())]
	}
	if _, _, err := s.conn.WriteMsgUDPAddrPort(out[:n], ctl, remote); err != nil {
		s.ep.counters.NotSent.Add(1)
	}
}

// bindingResponse writes the answer to a Binding request into out and gives its length; 0: nothing is owed.
func bindingResponse(out, b []byte, remote netip.AddrPort) int {
	if len(b) < stunHeader || binary.BigEndian.Uint16(b) != stunRequest || binary.BigEndian.Uint32(b[4:]) != stunCookie {
		return 0
	}
	if int(binary.BigEndian.Uint16(b[2:])) != len(b)-stunHeader || len(b)%4 != 0 {
		return 0
	}
	binary.BigEndian.PutUint16(out, stunSuccess)
	copy(out[4:stunHeader], b[4:stunHeader]) // cookie and transaction
	ip, family := remote.Addr().AsSlice(), byte(1)
	if remote.Addr().Is6() {
		family = 2
	}
	a := out[stunHeader:]
	binary.BigEndian.PutUint16(a, stunXORAddr)
	binary.BigEndian.PutUint16(a[2:], uint16(4+len(ip)))
	a[4], a[5] = 0, family
	binary.BigEndian.PutUint16(a[6:], remote.Port()^stunCookie>>16)
	for i, c := range ip {
		a[8+i] = c ^ out[4+i] // cookie, then transaction: RFC 8489 section 14.2
	}
	binary.BigEndian.PutUint16(out[2:], uint16(8+len(ip)))
	return stunHeader + 8 + len(ip)
}
