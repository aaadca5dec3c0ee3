package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/internal/limit"
	"github.com/wyegate/wyegate/internal/listen"
	"github.com/wyegate/wyegate/internal/websocket"
)

// ListenerConfig is what the configuration says of a listener.
type ListenerConfig struct {
	Name      string
	Kind      Kind
	ProxyFrom []netip.Prefix   // peers that must send a PROXY header; empty: nobody may
	Total     int              // streams: most connections at once; 0: no bound
	PerSource int              // streams: the same from one source; 0: no bound
	Exempt    []netip.Prefix   // streams: sources without a bound of their own
	Servers   []netip.AddrPort // UDP behind a proxy: who sends no PROXY header
	MaxAge    time.Duration    // streams: age at which a quiet connection is closed; 0: never
	AgeJitter float64          // streams: each connection's age differs by up to this fraction of MaxAge
	TLS       *tls.Config      // TLS and WSS: the settings of handshakes
	// WebSocket says which opening handshakes are accepted on WS and WSS.
	WebSocket websocket.Rules
	// Shared: the socket belongs to an HTTP listener, which hands WebSockets over with ServeWebSocket.
	Shared bool
}

func (a ListenerConfig) equal(b ListenerConfig) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.Total == b.Total && a.PerSource == b.PerSource &&
		a.MaxAge == b.MaxAge && a.Shared == b.Shared && a.WebSocket.Path == b.WebSocket.Path &&
		slices.Equal(a.WebSocket.Origins, b.WebSocket.Origins) && slices.Equal(a.WebSocket.Trust, b.WebSocket.Trust) && a.AgeJitter == b.AgeJitter && a.TLS == b.TLS &&
		slices.Equal(a.ProxyFrom, b.ProxyFrom) && slices.Equal(a.Servers, b.Servers) && slices.Equal(a.Exempt, b.Exempt)
}

// Counters of a listener; they live as long as its socket. Connections are counted by listen.Socket.
type Counters struct {
	KeepAlives  atomic.Uint64 // CRLFs, NULs, empty datagrams, STUN requests
	Limited     atomic.Uint64 // messages over the rate of their source or of all
	Dropped     atomic.Uint64 // messages that found the inbox of their worker full
	NotSent     atomic.Uint64 // datagrams that the kernel did not take, or that may not be sent
	Unreachable atomic.Uint64 // ICMP errors about destinations we had sent to
	Unframed    atomic.Uint64 // streams that ended in octets that are no SIP
}

// endpoint is a bound address: what stays when a reload gives the listener another name.
type endpoint struct {
	hub      *Hub
	socket   *listen.Socket
	kind     Kind
	addr     netip.AddrPort
	wildcard bool
	sockets  []*udpSocket
	current  atomic.Pointer[Listener]
	closed   atomic.Bool
	counters Counters
	proxied  atomic.Pointer[proxied] // UDP behind a proxy; nil: never so far

	started bool // only Use, and so only the engine, asks
}

// Open makes the Listener for a socket of the next generation. A socket that carries a listener already, with the same
// settings, gives that Listener; with others a new one for the same flows and counters. Nothing is read and nothing
// changes for messages before Use.
func (h *Hub) Open(c ListenerConfig, s *listen.Socket) (*Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ep := h.endpoints[s]
	if ep != nil {
		if l := ep.current.Load(); l != nil && ep.kind == c.Kind && l.settings.equal(c) {
			return l, nil
		}
	}
	if ep == nil || ep.kind != c.Kind {
		var err error
		if ep, err = h.newEndpoint(c.Kind, s); err != nil {
			return nil, err
		}
	}
	if c.Kind == UDP && len(c.ProxyFrom) > 0 && ep.proxied.Load() == nil {
		ep.proxied.Store(new(proxied))
	}
	return &Listener{Name: c.Name, Tag: uint16(xxhash.Sum64String(c.Name)), Kind: c.Kind, Addr: ep.addr, settings: c, ep: ep, proxies: limit.NewExempt(c.ProxyFrom)}, nil
}

func (h *Hub) newEndpoint(k Kind, s *listen.Socket) (*endpoint, error) {
	ep := &endpoint{hub: h, socket: s, kind: k, addr: s.Addr, wildcard: s.Addr.Addr().IsUnspecified()}
	for i, c := range s.UDP {
		u, err := newUDPSocket(ep, i, c)
		if err != nil {
			return nil, err
		}
		ep.sockets = append(ep.sockets, u)
	}
	return ep, nil
}

// Use makes these the listeners: new ones are read from now on, those left out are forgotten. Their sockets are closed
// by the listen.Set's Commit, their flows go on until they end.
func (h *Hub) Use(list []*Listener) {
	next := make(map[*listen.Socket]*endpoint, len(list))
	for _, l := range list {
		next[l.ep.socket] = l.ep
		l.ep.current.Store(l)
	}
	h.mu.Lock()
	for s, ep := range h.endpoints {
		if next[s] != ep {
			ep.closed.Store(true)
		}
	}
	h.endpoints = next
	h.mu.Unlock()
	for _, l := range list {
		h.begin(l)
	}
}

// begin lets a listener serve. The first socket of an endpoint becomes the home of the first worker without one, and so
// on; sockets that are nobody's home get a reader.
func (h *Hub) begin(l *Listener) {
	ep := l.ep
	if l.settings.Shared {
		return
	}
	if ep.kind != UDP {
		c := l.settings
		handle := h.Serve
		if ep.kind >= WS {
			handle = h.upgrade
		}
		ep.socket.Serve(&listen.Service{
			Handle: func(ctx context.Context, conn net.Conn) { handle(ctx, l, conn) }, ProxyFrom: c.ProxyFrom,
			Total: c.Total, PerSource: c.PerSource, Exempt: c.Exempt,
			TLS: c.TLS,
		})
		return
	}
	if ep.started {
		return
	}
	ep.started = true
	if ep.wildcard {
		h.wildcard.Store(true)
	}
	for _, s := range ep.sockets {
		if !s.settle() {
			h.group.start(s.run)
		}
	}
}

// WebSocket is which opening handshakes the listener accepts.
func (l *Listener) WebSocket() websocket.Rules { return l.settings.WebSocket }

// Counters of the listener.
func (l *Listener) Counters() *Counters { return &l.ep.counters }

// Connections is how many connections are open now; 0 on UDP.
func (l *Listener) Connections() int { return l.ep.socket.Connections() }

// Accepted is how many connections were taken from the kernel since the socket was opened.
func (l *Listener) Accepted() uint64 { return l.ep.socket.Stats.Accepted.Load() }
