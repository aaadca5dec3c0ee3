package h1

import (
	"context"
	"net"
	"net/netip"
)

// handover is a connection that becomes a WebSocket of SIP (sip-http.md section 15). It has left HTTP: no request follows
// on it, and the Front watches its time no more.
type handover struct {
	serve  func(ctx context.Context, c net.Conn, source netip.Addr, early []byte)
	source netip.Addr
	early  []byte
}

// readdressed is a connection whose addresses are those that count (a PROXY header carried them).
type readdressed struct {
	net.Conn
	local, remote net.Addr
}

func (r *readdressed) LocalAddr() net.Addr  { return r.local }
func (r *readdressed) RemoteAddr() net.Addr { return r.remote }

// NetConn is the real connection.
func (r *readdressed) NetConn() net.Conn { return r.Conn }

// websocket answers a request for the path of SIP over WebSocket; false: it was for somebody else.
func (c *conn) websocket() bool {
	x, ws := c.x, c.l.WebSocket
	if ws == nil || !ws.Rules.Asks(&x.req) {
		return false
	}
	var answer []byte
	answer, x.code = ws.Rules.Accept(x.out[:0], &x.req)
	x.out, x.begun, c.closing = answer, true, true
	x.first = c.f.now()
	if c.write(answer) == nil && x.code == 101 {
		c.handed = &handover{serve: ws.Serve, source: x.req.Client(x.view.Remote.Addr(), ws.Rules.Trust), early: append([]byte(nil), x.in[x.pos:x.fill]...)}
		x.pos = x.fill
	}
	x.phase = '-'
	c.record(c.f.now())
	return true
}
