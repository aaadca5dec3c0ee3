package diam

import (
	"encoding/binary"
	"net/netip"
)

// Builder writes a message of ours behind the bytes of dst. The zero value is not usable; Build makes one.
type Builder struct {
	buf   []byte
	start int
	err   error
}

// Build starts a message with header h; h.Len is ignored and set by Bytes.
func Build(dst []byte, h Header) Builder {
	return Builder{buf: h.Append(dst), start: len(dst)}
}

// Group is an open Grouped AVP of a Builder.
type Group struct{ at int }

// Octets adds an AVP with the given data and its padding. vendor 0 means none.
func (b *Builder) Octets(code, vendor uint32, f AVPFlags, data []byte) {
	g := b.Begin(code, vendor, f)
	b.buf = append(b.buf, data...)
	b.End(g)
}

// String adds a UTF8String, DiameterIdentity or the like of the base protocol, M set.
func (b *Builder) String(code uint32, s string) {
	g := b.Begin(code, 0, AVPMandatory)
	b.buf = append(b.buf, s...)
	b.End(g)
}

// Uint32 adds an Unsigned32 or Enumerated of the base protocol, M set.
func (b *Builder) Uint32(code, v uint32) {
	g := b.Begin(code, 0, AVPMandatory)
	b.buf = binary.BigEndian.AppendUint32(b.buf, v)
	b.End(g)
}

// Address adds an Address of the base protocol, M set (RFC 6733 4.3.1). An IPv4 address in IPv6 form is written as IPv4.
func (b *Builder) Address(code uint32, a netip.Addr) {
	g := b.Begin(code, 0, AVPMandatory)
	a = a.Unmap()
	family := uint16(2)
	if a.Is4() {
		family = 1
	}
	b.buf = binary.BigEndian.AppendUint16(b.buf, family)
	b.buf = append(b.buf, a.AsSlice()...)
	b.End(g)
}

// Raw adds AVPs as they were received; they are a multiple of four bytes long.
func (b *Builder) Raw(avps []byte) { b.buf = append(b.buf, avps...) }

// Begin opens a Grouped AVP: what is added until End stands inside it.
func (b *Builder) Begin(code, vendor uint32, f AVPFlags) Group {
	g := Group{at: len(b.buf)}
	f &^= AVPVendor
	if vendor != 0 {
		f |= AVPVendor
	}
	b.buf = binary.BigEndian.AppendUint32(b.buf, code)
	b.buf = append(b.buf, byte(f), 0, 0, 0)
	if vendor != 0 {
		b.buf = binary.BigEndian.AppendUint32(b.buf, vendor)
	}
	return g
}

// End closes the group, sets its length and pads it.
func (b *Builder) End(g Group) {
	n := len(b.buf) - g.at
	if n >= maxLen {
		b.err = ErrTooLong
	}
	setLen(b.buf[g.at+4:], n)
	for ; n%4 != 0; n++ {
		b.buf = append(b.buf, 0)
	}
}

// Bytes sets the length and gives dst with the message behind it. Error: ErrTooLong, and then only dst.
func (b *Builder) Bytes() ([]byte, error) {
	n := len(b.buf) - b.start
	if n >= maxLen {
		b.err = ErrTooLong
	}
	if b.err != nil {
		return b.buf[:b.start], b.err
	}
	setLen(b.buf[b.start:], n)
	return b.buf, nil
}
