package transport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/websocket"
)

// WebSocketServer is a server that speaks SIP over WebSocket. Nobody but us can open its connections, and it can call out
// over nothing else: so they are opened at once, one per worker, and again when they end (sip-http.md section 15).
type WebSocketServer struct {
	Listener *Listener // whose sent-by stands in the Vias
	Kind     Kind      // WS or WSS
	Dst      netip.AddrPort
	Name     string // for TLS
	Opening  websocket.Opening
}

const (
	comebackFirst = 500 * time.Millisecond
	comebackLast  = 10 * time.Second
)

// comeback is the wait before a connection to a WebSocket server is opened again; guarded by Hub.mu.
type comeback struct {
	wait  time.Duration // the last one; 0: the connection lived
	waits bool
}

// next gives how long to wait now: half a second, and twice as long each time it fails again.
func (c *comeback) next() time.Duration {
	c.wait = min(max(2*c.wait, comebackFirst), comebackLast)
	return c.wait
}

// errWaits is a transport error: the server has just refused, or ended, its connection.
var errWaits = fmt.Errorf("transport: websocket to the server is not open again yet: %w", ErrFlowGone)

// opening gives how the WebSocket of a server is opened; false: it is no such server any more.
func (h *Hub) opening(k Kind, dst netip.AddrPort) (websocket.Opening, bool) {
	if list := h.kept.Load(); list != nil {
		for _, s := range *list {
			if s.Kind == k && s.Dst == dst {
				return s.Opening, true
			}
		}
	}
	return websocket.Opening{}, false
}

// KeepWebSockets says which servers speak SIP over WebSocket, and opens what is not open of the connections to them. No
// others can be reached that way; connections to those that left are closed within a ping.
func (h *Hub) KeepWebSockets(list []WebSocketServer) {
	h.kept.Store(&list)
	for _, s := range list {
		if s.Listener == nil || s.Listener.ep == nil {
			continue
		}
		key := serverKey{ep: s.Listener.ep, kind: s.Kind, dst: s.Dst, name: s.Name}
		for slot := range uint32(min(len(h.inboxes), connsPerServer)) {
			_, _, _ = h.connect(key, slot) // what fails comes back by itself
		}
	}
}

// askWebSocket makes the handshake on a connection that was just opened.
func (f *flow) askWebSocket(ctx context.Context, c net.Conn) error {
	o, ok := f.hub.opening(f.kind, f.remote)
	if !ok {
		_ = c.Close()
		return ErrFlowGone
	}
	_ = c.SetDeadline(time.Now().Add(f.hub.settings.Load().ConnectTime))
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	early, err := websocket.Open(c, &o)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close()
		return err
	}
	_ = c.SetDeadline(time.Time{})
	f.ws.early, f.ws.pingAt = early, time.Now().Add(pingEvery)
	return nil
}

// comeBack opens a WebSocket to a server again after a while; Hub.mu is held.
func (h *Hub) comeBack(f *flow, c *serverConns) {
	again := &c.again[f.slot]
	if _, ok := h.opening(f.kind, f.remote); !ok || again.waits {
		return
	}
	wait := again.next()
	wait += time.Duration(rand.Float64() * 0.1 * float64(wait)) // several nodes do not come in step
	again.waits = h.group.start(func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		_, wanted := h.opening(f.kind, f.remote)
		h.mu.Lock()
		again.waits = false
		if !wanted && c.idle() {
			delete(h.servers, f.key)
		}
		h.mu.Unlock()
		if wanted && ctx.Err() == nil {
			_, _, _ = h.connect(f.key, f.slot)
		}
	})
}

// idle says that no connection is open and none is to be opened again; Hub.mu is held.
func (c *serverConns) idle() bool {
	for i := range c.again {
		if c.again[i].waits {
			return false
		}
	}
	return c.open == 0
}

// lived notes that a connection to a WebSocket server was opened: the next end begins with the shortest wait.
func (h *Hub) lived(f *flow) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.servers[f.key]; c != nil {
		c.again[f.slot].wait = 0
	}
}
