package listen

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/wyegate/wyegate/internal/limit"
)

// Socket is one bound address: a stream listener, or the UDP sockets that share a port.
type Socket struct {
	Network Network
	Addr    netip.AddrPort // bound, v4-mapped folded
	UDP     []*net.UDPConn // UDP only
	Stats   Stats

	tcp     *net.TCPListener // TCP only
	service atomic.Pointer[Service]
	caps    *limit.Caps
	headers atomic.Int32 // connections whose PROXY header is being read
	shaking atomic.Int32 // connections in their handshake
}

// Stats counts what happened on a stream socket.
type Stats struct {
	Accepted  atomic.Uint64 // connections taken from the kernel
	Refused   atomic.Uint64 // closed at once: over a cap, or nobody serves the socket
	BadHeader atomic.Uint64 // closed for want of a good PROXY header, or a peer that may not send one
	Failed    atomic.Uint64 // accept calls that failed, for want of descriptors or memory

	Handshakes [NumHandshakes]atomic.Uint64 // TLS handshakes by how they ended
}

// Handler has a connection until it returns. It must return soon after the context has ended.
type Handler func(ctx context.Context, c net.Conn)

// Service is what a stream socket does with its connections. It is immutable; a reload sets another one, and
// connections that are open keep the Handle they came with.
type Service struct {
	Handle    Handler
	ProxyFrom []netip.Prefix // not empty: these peers must send a PROXY header, all others are closed
	Total     int            // most connections at once; 0: no bound
	PerSource int            // the same from one source, the carried one where there is one; 0: no bound
	Exempt    []netip.Prefix // sources without a bound of their own
	TLS       *tls.Config    // not nil: a handshake comes first, and Handle gets the *tls.Conn
}

// Serve sets what happens with connections accepted from now on. Nil: they are closed at once.
func (s *Socket) Serve(v *Service) {
	if v != nil && s.caps != nil {
		s.caps.Change(v.Total, v.PerSource, limit.NewExempt(v.Exempt))
	}
	s.service.Store(v)
}

// Connections is the number of connections that are open now.
func (s *Socket) Connections() int {
	if s.caps == nil {
		return 0
	}
	return s.caps.Open()
}

// close may be called more than once.
func (s *Socket) close() {
	if s.tcp != nil {
		_ = s.tcp.Close() // nothing to be done about a failed close
	}
	for _, c := range s.UDP {
		_ = c.Close()
	}
}

// fold makes a v4-mapped address the IPv4 address it stands for (SX-13).
func fold(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
