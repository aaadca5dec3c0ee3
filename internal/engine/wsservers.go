package engine

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/internal/websocket"
	"github.com/wyegate/wyegate/routing"
)

// opening is how the WebSocket of a server is opened.
func opening(s *config.Server) websocket.Opening {
	return websocket.Opening{Host: s.SIP.String(), Path: s.SIPPath, Protocol: "sip"}
}

// webSockets lists the servers that speak SIP over WebSocket, with the listener whose name requests to them carry.
func (g *Generation) webSockets() (list []transport.WebSocketServer) {
	for name, p := range g.pools {
		members := p.Table().Members
		for i := range members {
			s := p.server(members[i].Name)
			if s == nil {
				continue
			}
			for _, a := range members[i].Addresses {
				if k := sipKind(a.Transport); a.Proto == routing.SIP && k >= transport.WS && a.Addr.IsValid() {
					list = append(list, transport.WebSocketServer{
						Listener: g.sipListenerFor(name, k), Kind: k, Dst: a.Addr, Name: g.shields.peers[name][s.Name], Opening: opening(s),
					})
				}
			}
		}
	}
	return list
}

func (p *pool) server(name string) *config.Server {
	for i := range p.def.Servers {
		if p.def.Servers[i].Name == name {
			return &p.def.Servers[i]
		}
	}
	return nil
}

// sipListenerFor picks a listener that reaches the pool, one of the same transport before others.
func (g *Generation) sipListenerFor(pool string, k transport.Kind) (any *transport.Listener) {
	for _, l := range g.listeners {
		if l.def.Protocol != "sip" || !g.reaches(l.def, pool) {
			continue
		}
		for _, tr := range l.sip {
			if tr.Kind == k {
				return tr
			}
			if any == nil {
				any = tr
			}
		}
	}
	return any
}

// webSocketTo makes a connection that was opened to a server a WebSocket, for probes.
func (g *Generation) webSocketTo(ctx context.Context, c net.Conn, a routing.Address) (net.Conn, error) {
	for _, p := range g.pools {
		members := p.Table().Members
		for i := range members {
			s := p.server(members[i].Name)
			if s == nil || !hasAddress(&members[i], a) {
				continue
			}
			if until, ok := ctx.Deadline(); ok {
				_ = c.SetDeadline(until)
			}
			o := opening(s)
			early, err := websocket.Open(c, &o)
			if err != nil {
				return nil, err
			}
			_ = c.SetDeadline(time.Time{})
			return &probeSocket{c, websocket.NewStream(c, early, maxProbeAnswer)}, nil
		}
	}
	return nil, fmt.Errorf("%w: %v", errNoSocket, a.Addr)
}

// maxProbeAnswer bounds one message of a server to a probe.
const maxProbeAnswer = 64 << 10

// probeSocket is a connection whose reads and writes go through WebSocket frames.
type probeSocket struct {
	net.Conn
	stream *websocket.Stream
}

func (p *probeSocket) Read(b []byte) (int, error)  { return p.stream.Read(b) }
func (p *probeSocket) Write(b []byte) (int, error) { return p.stream.Write(b) }
