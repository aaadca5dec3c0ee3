package transport

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// connsPerServer is how many connections there are to one server and transport; the Call-ID chooses.
const connsPerServer = 4

// serverKey names the connections that may carry the same messages. The listener is part of it: its sent-by stands in
// the Vias, and answers must find the sockets that it names.
type serverKey struct {
	ep   *endpoint
	kind Kind
	dst  netip.AddrPort
	name string
}

// serverConns are the connections to one server. A slot is empty, or has a flow that dials, lives or was just closed.
type serverConns struct {
	flows [connsPerServer]atomic.Pointer[flow]
	open  int // flows in the slots; guarded by Hub.mu

	again [connsPerServer]comeback // WS and WSS only
}

// connect gives the flow of a slot, and dials where there is none. The dial is a goroutine of Run; what is queued on the
// flow waits for it.
func (h *Hub) connect(key serverKey, slot uint32) (*flow, *serverConns, error) {
	if key.kind == UDP || key.kind.Secure() && h.cfg.Secure == nil && h.plain {
		return nil, nil, ErrKind
	}
	if _, known := h.opening(key.kind, key.dst); key.kind >= WS && !known {
		return nil, nil, ErrKind // clients over WebSocket are reached by their flow alone
	}
	if !sendable(key.dst) {
		return nil, nil, fmt.Errorf("transport: %v is no destination: %w", key.dst, ErrFlowGone)
	}
	f := &flow{
		hub: h, ep: key.ep, kind: key.kind, outgoing: true, key: key, slot: slot,
		remote: key.dst, source: key.dst, wake: make(chan struct{}, 1), gone: make(chan struct{}),
	}
	if key.kind >= WS {
		f.ws = &wsState{client: true}
	}
	if !h.flows.add(f) {
		return nil, nil, ErrFull
	}
	got, c := h.occupy(f)
	if got != f { // another worker was quicker
		h.flows.remove(f)
		if got == nil {
			return nil, nil, errWaits
		}
		return got, c, nil
	}
	if !h.group.start(f.dial) {
		f.close(errNotRunning)
		return nil, nil, errNotRunning
	}
	return f, c, nil
}

// occupy puts a flow into its slot unless a usable one is there, and gives the one that is there then; none where it is
// too early to open another.
func (h *Hub) occupy(f *flow) (*flow, *serverConns) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.servers[f.key]
	if c == nil {
		c = new(serverConns)
		h.servers[f.key] = c
	}
	if old := c.flows[f.slot].Load(); old != nil && old.state.Load() <= living {
		return old, c
	}
	if c.again[f.slot].waits {
		return nil, c
	}
	c.flows[f.slot].Store(f)
	c.open++
	return f, c
}

// disconnected empties the slot of a closed flow, unless another has it by now, and forgets servers without any.
func (h *Hub) disconnected(f *flow) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.servers[f.key]
	if c == nil {
		return
	}
	c.flows[f.slot].CompareAndSwap(f, nil)
	c.open--
	if f.ws != nil {
		h.comeBack(f, c)
	}
	if c.idle() {
		delete(h.servers, f.key)
	}
}

// dial opens the connection and serves it until it ends.
func (f *flow) dial(ctx context.Context) {
	s := f.hub.settings.Load()
	var source netip.Addr
	if s.Source != nil {
		source = s.Source(f.kind, f.remote)
	}
	within, cancel := context.WithTimeout(ctx, s.ConnectTime)
	conn, err := f.hub.cfg.Dial(within, f.kind, source, f.remote, f.key.name)
	cancel()
	if err == nil && f.kind.Secure() && f.hub.cfg.Secure != nil {
		conn, err = f.secure(ctx, conn)
	}
	if err == nil && f.ws != nil {
		err = f.askWebSocket(ctx, conn)
	}
	if err != nil {
		f.close(err)
		return
	}
	f.local = addrOf(conn.LocalAddr())
	f.mu.Lock()
	if f.state.Load() == closed {
		f.mu.Unlock()
		_ = conn.Close()
		return
	}
	f.conn = conn
	f.state.CompareAndSwap(dialling, living)
	f.mu.Unlock()
	if f.ws != nil {
		f.hub.lived(f)
	}
	stop := context.AfterFunc(ctx, func() { f.close(net.ErrClosed) })
	defer stop()
	f.run()
}

// secureTime is for the handshake with a server (sip-http.md section 19).
const secureTime = 3 * time.Second

func (f *flow) secure(ctx context.Context, plain net.Conn) (net.Conn, error) {
	within, cancel := context.WithTimeout(ctx, secureTime)
	defer cancel()
	c, err := f.hub.cfg.Secure(within, plain, f.key.name)
	if err != nil {
		_ = plain.Close()
		return nil, err
	}
	return c, nil
}

// dialTCP is the Dialer of package net, for kinds with TLS as well where somebody secures what it gives.
func dialTCP(ctx context.Context, k Kind, source netip.Addr, dst netip.AddrPort, _ string) (net.Conn, error) {
	if k == UDP {
		return nil, ErrKind
	}
	var d net.Dialer
	if source.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
	}
	return d.DialContext(ctx, "tcp", dst.String())
}
