package lbtest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// WebSocketOptions says how a client opens a WebSocket.
type WebSocketOptions struct {
	Path   string      // default: /ws
	TLS    *tls.Config // nil: ws, else wss
	Origin string
	Header http.Header // more fields of the handshake
	Binary bool        // messages go in binary frames
}

// DialWebSocket opens a way over WebSocket. Its Vias and Contacts have a host in .invalid, as browsers write them: only the
// connection leads to this UA (RFC 7118).
func (ua *UA) DialWebSocket(o WebSocketOptions, to netip.AddrPort) (*Path, error) {
	if o.Path == "" {
		o.Path = "/ws"
	}
	p := &Path{Transport: "WS", To: to}
	url := "ws://" + to.String() + o.Path
	d := ws.Dialer{Protocols: []string{"sip"}, Timeout: 5 * time.Second}
	if o.TLS != nil {
		p.Transport, url, d.TLSConfig = "WSS", "wss"+url[2:], o.TLS
	}
	more := o.Header.Clone()
	if o.Origin != "" {
		if more == nil {
			more = http.Header{}
		}
		more.Set("Origin", o.Origin)
	}
	if more != nil {
		d.Header = ws.HandshakeHeaderHTTP(more)
	}
	c, early, hs, err := d.Dial(context.Background(), url)
	if err != nil {
		return nil, err
	}
	if hs.Protocol != "sip" {
		c.Close()
		return nil, fmt.Errorf("lbtest: subprotocol %q", hs.Protocol)
	}
	w := &webSocket{Conn: c, r: c, state: ws.StateClientSide, op: ws.OpText}
	if early != nil {
		w.r = early
	}
	if o.Binary {
		w.op = ws.OpBinary
	}
	p.conn = w
	if !ua.follow(w, func() { ua.readWebSocket(w) }) {
		return nil, net.ErrClosed
	}
	return p, nil
}

// CloseCode waits until the peer of a WebSocket has closed it, and gives the code it named; 0: it named none.
func (p *Path) CloseCode(ctx context.Context) (uint16, error) {
	w, ok := p.conn.(*webSocket)
	if !ok {
		return 0, errors.New("lbtest: no websocket")
	}
	select {
	case <-w.ended():
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.code, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// ListenWebSocket serves SIP over WebSocket as well, on a port of its own; c may be nil.
func (ua *UA) ListenWebSocket(c *tls.Config) (netip.AddrPort, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(ua.Addr.Addr(), 0).String())
	if err != nil {
		return netip.AddrPort{}, err
	}
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	if c != nil {
		l = tls.NewListener(l, c)
	}
	ua.mu.Lock()
	ua.more = append(ua.more, l)
	ua.mu.Unlock()
	ua.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			ua.follow(c, func() { ua.upgrade(c) })
		}
	})
	return addr, nil
}

func (ua *UA) upgrade(c net.Conn) {
	r := bufio.NewReader(c)
	u := ws.Upgrader{Protocol: func(p []byte) bool { return string(p) == "sip" }}
	if _, err := u.Upgrade(struct {
		io.Reader
		io.Writer
	}{r, c}); err != nil {
		c.Close()
		return
	}
	ua.readWebSocket(&webSocket{Conn: c, r: r, state: ws.StateServerSide, op: ws.OpText})
}

// webSocket is a connection on which each Write is one message.
type webSocket struct {
	net.Conn
	r     io.Reader
	state ws.State
	op    ws.OpCode

	mu   sync.Mutex
	code uint16
	end  chan struct{}
}

func (w *webSocket) ended() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end == nil {
		w.end = make(chan struct{})
	}
	return w.end
}

func (w *webSocket) transport() string {
	if _, secure := w.Conn.(*tls.Conn); secure {
		return "WSS"
	}
	return "WS"
}

func (w *webSocket) Read(b []byte) (int, error) { return w.r.Read(b) }

func (w *webSocket) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(b), wsutil.WriteMessage(w.Conn, w.state, w.op, b)
}

// readWebSocket takes messages and answers control frames until the connection ends.
func (ua *UA) readWebSocket(w *webSocket) {
	defer func() {
		w.Conn.Close()
		close(w.ended())
	}()
	for {
		list, err := wsutil.ReadMessage(w, w.state, nil)
		if err != nil {
			return
		}
		for _, m := range list {
			if !ua.takeFrame(w, m) {
				return
			}
		}
	}
}

func (ua *UA) takeFrame(w *webSocket, f wsutil.Message) bool {
	switch f.OpCode {
	case ws.OpPing:
		w.mu.Lock()
		defer w.mu.Unlock()
		return wsutil.WriteMessage(w.Conn, w.state, ws.OpPong, f.Payload) == nil
	case ws.OpClose:
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(f.Payload) >= 2 {
			w.code = uint16(f.Payload[0])<<8 | uint16(f.Payload[1])
		}
		_ = wsutil.WriteMessage(w.Conn, w.state, ws.OpClose, f.Payload)
		return false
	case ws.OpPong:
		return true
	}
	m, err := ReadMessage(f.Payload)
	if err == nil {
		m.Reply = func(b []byte) { _, _ = w.Write(b) }
		m.Back = &Path{Transport: w.transport(), conn: w}
		ua.receive(m)
	}
	return true
}

// host is what this UA calls itself on a path: an address, or a name that leads nowhere.
func (ua *UA) host(p *Path) string {
	if strings.HasPrefix(p.Transport, "WS") {
		return ua.Name + ".invalid"
	}
	return ua.Addr.String()
}
