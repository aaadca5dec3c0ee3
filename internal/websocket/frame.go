package websocket

import (
	"encoding/binary"

	"github.com/gobwas/ws"
)

// Kinds of frames, as on the wire (RFC 6455 section 11.8).
const (
	Text   = byte(ws.OpText)
	Binary = byte(ws.OpBinary)
	Close  = byte(ws.OpClose)
	Ping   = byte(ws.OpPing)
	Pong   = byte(ws.OpPong)
)

// Close codes (RFC 6455 section 7.4.1; 1012 is IANA's "service restart").
const (
	CodeGone     = uint16(ws.StatusGoingAway)
	CodeProtocol = uint16(ws.StatusProtocolError)
	CodeNotText  = uint16(ws.StatusInvalidFramePayloadData)
	CodeTooLarge = uint16(ws.StatusMessageTooBig)
	CodeRestart  = uint16(1012)
)

// Mask is a masking key; nil: the frame is not masked, as from a server.
type Mask = *[4]byte

// AppendFrame appends one whole message, or one control frame of at most 125 octets.
func AppendFrame(dst []byte, kind byte, payload []byte, mask Mask) []byte {
	masked := byte(0)
	if mask != nil {
		masked = 0x80
	}
	dst = append(dst, 0x80|kind)
	switch n := len(payload); {
	case n < 126:
		dst = append(dst, masked|byte(n))
	case n <= 0xffff:
		dst = binary.BigEndian.AppendUint16(append(dst, masked|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, masked|127), uint64(n))
	}
	if mask != nil {
		dst = append(dst, mask[:]...)
	}
	at := len(dst)
	dst = append(dst, payload...)
	if mask != nil {
		ws.Cipher(dst[at:], *mask, 0)
	}
	return dst
}

// AppendClose appends a close frame with a code; 0: without one.
func AppendClose(dst []byte, code uint16, mask Mask) []byte {
	if code == 0 {
		return AppendFrame(dst, Close, nil, mask)
	}
	return AppendFrame(dst, Close, binary.BigEndian.AppendUint16(nil, code), mask)
}

// CloseCode reads the code of a close frame: 0 when there is none. false: what stands there may not stand there.
func CloseCode(payload []byte) (uint16, bool) {
	if len(payload) == 0 {
		return 0, true
	}
	if len(payload) < 2 {
		return 0, false
	}
	c := binary.BigEndian.Uint16(payload)
	registered := c >= 1000 && c <= 1014 && c != 1004 && c != 1005 && c != 1006
	return c, registered || c >= 3000 && c <= 4999
}
