package transport

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/sip"
)

// handshakeLimits bound the request that opens a WebSocket.
var handshakeLimits = http1.Limits{Target: 8 << 10, Block: 16 << 10, Fields: 128}

// upgrade reads the opening handshake of a connection to a listener of kind WS or WSS, answers it, and serves what
// becomes of it (sip-http.md 15.1).
func (h *Hub) upgrade(ctx context.Context, l *Listener, c net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	source, early, ok := h.handshake(l, c)
	if !stop() || !ok {
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	h.ServeWebSocket(ctx, l, c, source, early)
}

// handshake answers the request; source is who sent it as far as we can know, early is what came right behind it.
func (h *Hub) handshake(l *Listener, c net.Conn) (source netip.Addr, early []byte, ok bool) {
	_ = c.SetDeadline(time.Now().Add(h.cfg.Timers.Head))
	buf := h.free.get()
	defer func() { h.free.put(buf) }()
	var head http1.Head
	for have := 0; ; {
		n, err := head.ParseRequest(buf[:have], &handshakeLimits)
		if err != nil {
			l.ep.counters.Unframed.Add(1)
			_, _ = c.Write(refusal(err))
			return source, nil, false
		}
		if n > 0 {
			answer, status := l.settings.WebSocket.Accept(nil, &head)
			if status != 101 {
				l.ep.counters.Unframed.Add(1)
			}
			if _, err := c.Write(answer); err != nil || status != 101 {
				return source, nil, false
			}
			source = head.Client(addrOf(c.RemoteAddr()).Addr(), l.settings.WebSocket.Trust)
			return source, append([]byte(nil), buf[n:have]...), true
		}
		if have == cap(buf) {
			grown := make([]byte, have, 2*have)
			copy(grown, buf[:have])
			buf = grown
		}
		got, err := c.Read(buf[have:cap(buf)])
		if buf = buf[:have+got]; err != nil {
			return source, nil, false
		}
		have += got
	}
}

// refusal is the answer to what is no handshake. Who does not even speak HTTP gets none.
func refusal(err error) []byte {
	e := http1.AsError(err)
	if e == nil || e == http1.ErrRequestLine || e == http1.ErrMethod || e == http1.ErrBareLF {
		return nil
	}
	return []byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

// ServeWebSocket has a connection of a client whose handshake was accepted until it ends: from a listener of ours, or
// handed over by an HTTP one. source is the client, which a trusted hop may have named; early is what came right behind the
// handshake.
func (h *Hub) ServeWebSocket(ctx context.Context, l *Listener, c net.Conn, source netip.Addr, early []byte) {
	f := h.accepted(l, c)
	if source != f.source.Addr() { // the port is the hop's: nobody names the client's
		f.source = netip.AddrPortFrom(source, f.source.Port())
	}
	f.ws = &wsState{early: early, pingAt: time.Now().Add(pingEvery)}
	h.serve(ctx, f)
}

// newFramer gives the framer for what the flow carries.
func (r *reader) newFramer(s *Settings) framer {
	limits := sip.Limits{Head: s.MaxHead, Body: s.MaxBody}.WithDefaults()
	if r.f.ws == nil {
		return sip.NewFramer(limits)
	}
	w := &wsFramer{f: r.f}
	w.Max, w.Unmasked = limits.Head+limits.Body, r.f.ws.client
	return w
}

// begin takes what came right behind the handshake of a WebSocket.
func (r *reader) begin() error {
	if r.f.ws == nil || len(r.f.ws.early) == 0 {
		return nil
	}
	r.framer.Lend(r.f.hub.free.get())
	r.framer.Feed(r.f.ws.early)
	r.f.ws.early = nil
	return r.pieces(time.Now())
}
