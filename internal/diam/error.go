package diam

import "errors"

// What ParseHeader, Framer and Walk refuse. Version, length and truncation end a connection, since the bytes after them
// cannot be framed; an AVP's length concerns that message alone.
var (
	ErrVersion   = errors.New("diam: version is not 1")
	ErrLength    = errors.New("diam: message length out of range")
	ErrShort     = errors.New("diam: fewer bytes than the message says")
	ErrAVPLength = errors.New("diam: avp length out of range")
	ErrTooLong   = errors.New("diam: message or avp over 16 MiB")
)

// ResultFor is the result code that the sender of a malformed request is owed: 5014 where the AVP's header can be read
// (it then goes into Failed-AVP), 5015 where it cannot (RFC 6733 7.1.5).
func ResultFor(failed []byte) uint32 {
	if len(failed) >= avpHeaderLen {
		return ResultInvalidAVPLength
	}
	return ResultInvalidMessageLength
}
