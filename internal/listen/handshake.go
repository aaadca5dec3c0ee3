package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

const (
	handshakeTimeout = 5 * time.Second // sip-http.md section 19
	shakingAtOnce    = 1024            // handshakes of one socket; each is some work, and a peer may take its time
)

// HandshakeResult is how a TLS handshake ended.
type HandshakeResult uint8

// The results.
const (
	HandshakeOK      HandshakeResult = iota
	HandshakeFailed                  // refused by either side, cut off, or no TLS at all
	HandshakeTimeout                 // not whole in time
	HandshakeShed                    // too many at once: closed before it began
	NumHandshakes
)

// handshake gives the connection with TLS on it; nil: there is none, it was counted, and the peer is owed no more than
// the alert it got. A flood of bad handshakes is no flood of log lines.
func (s *Socket) handshake(ctx context.Context, c *tls.Config, conn net.Conn) *tls.Conn {
	defer s.shaking.Add(-1)
	if s.shaking.Add(1) > shakingAtOnce {
		s.Stats.Handshakes[HandshakeShed].Add(1)
		return nil
	}
	within, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	secure := tls.Server(conn, c)
	err := secure.HandshakeContext(within)
	switch {
	case err == nil:
		s.Stats.Handshakes[HandshakeOK].Add(1)
		return secure
	case errors.Is(within.Err(), context.DeadlineExceeded):
		s.Stats.Handshakes[HandshakeTimeout].Add(1)
	default:
		s.Stats.Handshakes[HandshakeFailed].Add(1)
	}
	return nil
}
