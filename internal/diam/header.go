package diam

import (
	"encoding/binary"
	"fmt"
)

// HeaderLen is the length of a Diameter header in bytes (RFC 6733 3).
const HeaderLen = 20

// maxLen is the first length that 24 bits do not hold.
const maxLen = 1 << 24

// Flags are the command flags of a header (RFC 6733 3).
type Flags uint8

// The four flags; the other bits are reserved and must be 0.
const (
	FlagRequest       Flags = 0x80
	FlagProxiable     Flags = 0x40
	FlagError         Flags = 0x20
	FlagRetransmitted Flags = 0x10
	flagsReserved     Flags = 0x0f
)

// Header is the fixed part of a message.
type Header struct {
	Len      int // of the whole message, in bytes
	Flags    Flags
	Command  uint32 // 24 bits
	App      uint32
	HopByHop uint32
	EndToEnd uint32
}

// IsRequest says whether the R flag is set.
func (h Header) IsRequest() bool { return h.Flags&FlagRequest != 0 }

// BitsValid says whether a request may be relayed with its flags: no reserved bit, no E (RFC 6733 3; otherwise 3008).
func (h Header) BitsValid() bool {
	return h.Flags&flagsReserved == 0 && (!h.IsRequest() || h.Flags&FlagError == 0)
}

// ParseHeader reads the header at the start of b. limit is the longest message allowed, in bytes. Errors: ErrShort with
// fewer than 20 bytes, ErrVersion, ErrLength. It does not ask for the bytes after the header.
func ParseHeader(b []byte, limit int) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, ErrShort
	}
	if b[0] != 1 {
		return Header{}, fmt.Errorf("%w: %d", ErrVersion, b[0])
	}
	first := binary.BigEndian.Uint32(b)
	second := binary.BigEndian.Uint32(b[4:])
	h := Header{
		Len:      int(first & 0xffffff),
		Flags:    Flags(second >> 24),
		Command:  second & 0xffffff,
		App:      binary.BigEndian.Uint32(b[8:]),
		HopByHop: binary.BigEndian.Uint32(b[12:]),
		EndToEnd: binary.BigEndian.Uint32(b[16:]),
	}
	if h.Len < HeaderLen || h.Len > limit || h.Len%4 != 0 {
		return Header{}, fmt.Errorf("%w: %d", ErrLength, h.Len)
	}
	return h, nil
}

// Append writes the header with Len as it stands; a Builder and AppendRouteRecord set the length afterwards.
func (h Header) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, 1<<24|uint32(h.Len)&0xffffff)
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Flags)<<24|h.Command&0xffffff)
	dst = binary.BigEndian.AppendUint32(dst, h.App)
	dst = binary.BigEndian.AppendUint32(dst, h.HopByHop)
	return binary.BigEndian.AppendUint32(dst, h.EndToEnd)
}

// SetHopByHop replaces the Hop-by-Hop Identifier of the message in msg, which has a whole header.
func SetHopByHop(msg []byte, id uint32) { binary.BigEndian.PutUint32(msg[12:HeaderLen], id) }

// SetFlags replaces the flags of the message in msg, which has a whole header.
func SetFlags(msg []byte, f Flags) { msg[4] = byte(f) }

// setLen writes a message length below 16 MiB.
func setLen(msg []byte, n int) { msg[1], msg[2], msg[3] = byte(n>>16), byte(n>>8), byte(n) }
