package peer

import (
	"context"
	"net/netip"
)

// Conn is a TCP or TLS connection to a peer, or a fake in tests (diameter.md 2.1). Read is called by one goroutine and
// Writev by one at a time; Close and Abort by any.
type Conn interface {
	// Read gives any number of bytes of a stream.
	Read(b []byte) (n int, stream uint16, err error)
	// Writev writes all of bufs, and gives the number of bytes written. It fails when nothing could be written for the
	// write time-out of the connection.
	Writev(bufs [][]byte, stream uint16) (int64, error)
	// Close ends the connection with FIN.
	Close() error
	// Abort ends it with RST: what cannot be framed is not closed politely (RFC 6733 2.1).
	Abort() error
	Local() []netip.AddrPort
	Remote() []netip.AddrPort
}

// prompt is a connection that can write what fits without waiting. n is less than len(b) where the socket is full.
type prompt interface {
	TryWrite(b []byte) (n int, err error)
}

// secured is a connection whose other end has shown a certificate: VerifyHost says whether that names host.
type secured interface {
	VerifyHost(host string) error
}

// Dialer opens connections to one peer. The context bounds one attempt.
type Dialer interface {
	Dial(ctx context.Context) (Conn, error)
}
