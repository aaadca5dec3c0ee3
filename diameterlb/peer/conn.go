package peer

import (
	"context"
	"net/netip"
)

// Conn is a TCP, TLS or SCTP connection to a peer, or a fake in tests (diameter.md 2.1).
type Conn interface {
	// Read gives any number of bytes of a stream; over SCTP one message or a part of one, and its stream.
	Read(b []byte) (n int, stream uint16, err error)
	// Writev writes all of bufs, and gives the number of bytes written.
	Writev(bufs [][]byte, stream uint16) (int64, error)
	// Close ends the connection with FIN or SHUTDOWN.
	Close() error
	// Abort ends it with RST or ABORT: what cannot be framed is not closed politely (RFC 6733 2.1).
	Abort() error
	Local() []netip.AddrPort
	Remote() []netip.AddrPort
}

// Dialer opens connections to one peer. The context bounds one attempt.
type Dialer interface {
	Dial(ctx context.Context) (Conn, error)
}
