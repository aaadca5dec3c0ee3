package diam

import (
	"encoding/binary"
	"net/netip"
)

// AVPFlags are the flags of an AVP (RFC 6733 4.1).
type AVPFlags uint8

// The flags in use; P of RFC 3588 and the reserved bits pass through unread.
const (
	AVPVendor    AVPFlags = 0x80
	AVPMandatory AVPFlags = 0x40
)

// Lengths of an AVP header without and with a Vendor-Id, in bytes.
const (
	avpHeaderLen       = 8
	avpVendorHeaderLen = 12
)

// AVP is one attribute of a message. Data and Raw are parts of the walked bytes and live as long as these do.
type AVP struct {
	Code   uint32
	Vendor uint32 // 0 without the V flag
	Flags  AVPFlags
	Data   []byte // without header and padding
	Raw    []byte // header, data and what padding there is
}

// Is says whether a is the AVP of the base protocol with that code. A vendor's AVP of the same code is another one.
func (a AVP) Is(code uint32) bool { return a.Code == code && a.Flags&AVPVendor == 0 }

// Uint32 reads an Unsigned32 or Enumerated; ok is false where the data has another length than 4.
func (a AVP) Uint32() (v uint32, ok bool) {
	if len(a.Data) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(a.Data), true
}

// Addr reads an Address of family IPv4 or IPv6 (RFC 6733 4.3.1); ok is false for anything else.
func (a AVP) Addr() (addr netip.Addr, ok bool) {
	if len(a.Data) < 2 {
		return netip.Addr{}, false
	}
	family, ip := binary.BigEndian.Uint16(a.Data), a.Data[2:]
	if family == 1 && len(ip) != 4 || family == 2 && len(ip) != 16 || family != 1 && family != 2 {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice(ip)
}

// Group walks the AVPs inside a Grouped AVP.
func (a AVP) Group() AVPs { return Walk(a.Data) }

// AVPs is a walk over AVPs. The zero value has none.
type AVPs struct {
	rest   []byte
	failed []byte
	err    error
}

// Walk starts before the first AVP in b: the bytes of a message after its header, or the data of a group.
func Walk(b []byte) AVPs { return AVPs{rest: b} }

// Next is the next AVP; ok is false at the end and at an AVP whose length cannot be, which Err then tells apart. Every
// step takes at least eight bytes, so that a walk ends on every input.
func (w *AVPs) Next() (a AVP, ok bool) {
	if len(w.rest) == 0 {
		return AVP{}, false
	}
	if len(w.rest) < avpHeaderLen {
		return w.fail()
	}
	word := binary.BigEndian.Uint32(w.rest[4:])
	a.Code, a.Flags = binary.BigEndian.Uint32(w.rest), AVPFlags(word>>24)
	n, head := int(word&0xffffff), avpHeaderLen
	if a.Flags&AVPVendor != 0 {
		head = avpVendorHeaderLen
	}
	if n < head || n > len(w.rest) {
		return w.fail()
	}
	if head == avpVendorHeaderLen {
		a.Vendor = binary.BigEndian.Uint32(w.rest[8:])
	}
	// The last member of a group may come without its padding.
	padded := min((n+3)&^3, len(w.rest))
	a.Data, a.Raw = w.rest[head:n:n], w.rest[:padded:padded]
	w.rest = w.rest[padded:]
	return a, true
}

// fail ends the walk at the AVP it stands before.
func (w *AVPs) fail() (AVP, bool) {
	w.err, w.failed, w.rest = ErrAVPLength, w.rest, nil
	return AVP{}, false
}

// Err is ErrAVPLength once the walk has met an AVP whose length cannot be.
func (w *AVPs) Err() error { return w.err }

// Failed is what the walk stopped before: the malformed AVP and all that follows it.
func (w *AVPs) Failed() []byte { return w.failed }

// Find is the first AVP of the base protocol with that code in b. A malformed AVP ends the search.
func Find(b []byte, code uint32) (AVP, bool) {
	w := Walk(b)
	for {
		a, ok := w.Next()
		if !ok || a.Is(code) {
			return a, ok
		}
	}
}
