package lbtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/internal/sip"
)

// Handler answers a request that is no response; it is called on a goroutine of the UA.
type Handler func(ua *UA, m *Message)

// UA is a SIP user agent on one port of 127.0.0.1, UDP and TCP. It is both sides: it answers through its Handler and
// starts transactions with Request.
type UA struct {
	Name    string
	Addr    netip.AddrPort
	Handler Handler
	Repeat  time.Duration // over UDP a request without a final answer is sent again after this; 0: never
	SDP     string        // goes with every INVITE and every 200 to one; empty: none

	udp     *net.UDPConn
	tcp     *net.TCPListener
	tls     net.Listener // nil until ListenTLS
	more    []net.Listener
	running sync.WaitGroup
	seq     atomic.Uint64

	mu      sync.Mutex
	waiting map[string]chan *Message // by Via branch
	conns   map[net.Conn]struct{}
	seen    []*Message
	dialogs map[string]*Dialog
	closed  bool
}

// NewUA binds a port of 127.0.0.1 for both transports and serves until Close.
func NewUA(name string, h Handler) (*UA, error) {
	return NewUAOn(name, h, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
}

// NewUAOn is NewUA on an address of the host, of either family.
func NewUAOn(name string, h Handler, on netip.Addr) (*UA, error) {
	for range 50 {
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(on, 0)))
		if err != nil {
			return nil, err
		}
		addr := udp.LocalAddr().(*net.UDPAddr).AddrPort()
		tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
		if err != nil {
			udp.Close()
			continue
		}
		_ = udp.SetReadBuffer(4 << 20)
		ua := &UA{Name: name, Addr: addr, Handler: h, udp: udp, tcp: tcp, waiting: map[string]chan *Message{}, conns: map[net.Conn]struct{}{}, dialogs: map[string]*Dialog{}}
		ua.running.Go(ua.readUDP)
		ua.running.Go(func() { ua.accept(tcp) })
		return ua, nil
	}
	return nil, errors.New("lbtest: no port free for both transports")
}

// Close ends the UA and waits for its goroutines.
func (ua *UA) Close() {
	ua.mu.Lock()
	ua.closed = true
	for c := range ua.conns {
		c.Close()
	}
	ua.mu.Unlock()
	ua.udp.Close()
	ua.tcp.Close()
	if ua.tls != nil {
		ua.tls.Close()
	}
	for _, l := range ua.more {
		l.Close()
	}
	ua.running.Wait()
}

// Seen gives the requests received so far, in order.
func (ua *UA) Seen() []*Message {
	ua.mu.Lock()
	defer ua.mu.Unlock()
	return append([]*Message(nil), ua.seen...)
}

// Forget drops what the UA has seen and the dialogs it knows: long runs need the memory.
func (ua *UA) Forget() {
	ua.mu.Lock()
	defer ua.mu.Unlock()
	ua.seen = nil
	clear(ua.dialogs)
}

// SeenCount counts received requests of a method; an empty method counts all.
func (ua *UA) SeenCount(method string) int {
	n := 0
	for _, m := range ua.Seen() {
		if method == "" || m.MethodName() == method {
			n++
		}
	}
	return n
}

func (ua *UA) readUDP() {
	buf := make([]byte, 65535)
	for {
		n, from, err := ua.udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		m, err := ReadMessage(buf[:n])
		if err != nil {
			continue
		}
		m.Reply = func(b []byte) { _, _ = ua.udp.WriteToUDPAddrPort(b, from) }
		m.Back = &Path{Transport: "UDP", To: from}
		ua.receive(m)
	}
}

// ListenTLS serves TLS as well, on a port of its own.
func (ua *UA) ListenTLS(c *tls.Config) (netip.AddrPort, error) {
	l, err := tls.Listen("tcp", netip.AddrPortFrom(ua.Addr.Addr(), 0).String(), c)
	if err != nil {
		return netip.AddrPort{}, err
	}
	ua.tls = l
	ua.running.Go(func() { ua.accept(l) })
	return l.Addr().(*net.TCPAddr).AddrPort(), nil
}

func (ua *UA) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if !ua.track(c) {
			return
		}
	}
}

func (ua *UA) track(c net.Conn) bool { return ua.follow(c, func() { ua.readStream(c) }) }

// follow closes the connection with the UA; read has it until it ends.
func (ua *UA) follow(c net.Conn, read func()) bool {
	ua.mu.Lock()
	defer ua.mu.Unlock()
	if ua.closed {
		c.Close()
		return false
	}
	ua.conns[c] = struct{}{}
	ua.running.Go(func() {
		defer func() {
			ua.mu.Lock()
			delete(ua.conns, c)
			ua.mu.Unlock()
		}()
		read()
	})
	return true
}

// readStream frames by Content-Length; what it talks to is under test, so it is strict and small.
func (ua *UA) readStream(c net.Conn) {
	defer c.Close()
	locked := &lockedConn{Conn: c}
	back := &Path{Transport: "TCP", conn: locked}
	if _, secure := c.(*tls.Conn); secure {
		back.Transport = "TLS"
	}
	var buf []byte
	chunk := make([]byte, 32<<10)
	for {
		buf = bytes.TrimLeft(buf, "\r\n")
		if end := bytes.Index(buf, []byte("\r\n\r\n")); end >= 0 {
			head, err := ReadMessage(buf[:end+4])
			if head == nil || err != nil && head.First(sip.ContentLength) == nil {
				return
			}
			n := 0
			fmt.Sscanf(string(head.Value(sip.ContentLength)), "%d", &n)
			if len(buf) >= end+4+n {
				m, err := ReadMessage(buf[:end+4+n])
				if err != nil {
					return
				}
				buf = buf[end+4+n:]
				m.Reply = func(b []byte) { _, _ = locked.Write(b) }
				m.Back = back
				ua.receive(m)
				continue
			}
		}
		n, err := c.Read(chunk)
		if err != nil {
			return
		}
		buf = append(buf, chunk[:n]...)
	}
}

// lockedConn lets several write.
type lockedConn struct {
	net.Conn
	mu sync.Mutex
}

func (c *lockedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.Write(b)
}

func (ua *UA) receive(m *Message) {
	if !m.Request {
		via, _, err := sip.NextVia(m.Value(sip.Via))
		if err != nil {
			return
		}
		ua.mu.Lock()
		ch := ua.waiting[string(via.Branch)]
		ua.mu.Unlock()
		if ch != nil {
			select {
			case ch <- m:
			default:
			}
		}
		return
	}
	ua.mu.Lock()
	ua.seen = append(ua.seen, m)
	ua.mu.Unlock()
	if ua.Handler != nil {
		ua.Handler(ua, m)
	}
}

// Branch makes a branch of this UA's own.
func (ua *UA) Branch() string {
	return fmt.Sprintf("z9hG4bK%s%d", ua.Name, ua.seq.Add(1))
}

// Path is a way to a peer: a transport and an address.
type Path struct {
	Transport string // "UDP", "TCP", "TLS", "WS" or "WSS"
	To        netip.AddrPort
	conn      net.Conn
}

// Dial opens the way; for UDP it is this UA's own socket. A connection comes from this UA's address.
func (ua *UA) Dial(transport string, to netip.AddrPort) (*Path, error) {
	p := &Path{Transport: transport, To: to}
	if transport == "UDP" {
		return p, nil
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	if own := ua.Addr.Addr(); own.Is4() == to.Addr().Is4() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(own, 0))
	}
	c, err := d.Dial("tcp", to.String())
	if err != nil {
		return nil, err
	}
	p.conn = c
	if !ua.track(c) {
		return nil, net.ErrClosed
	}
	return p, nil
}

// DialTLS opens a way over TLS.
func (ua *UA) DialTLS(c *tls.Config, to netip.AddrPort) (*Path, error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 2 * time.Second}, "tcp", to.String(), c)
	if err != nil {
		return nil, err
	}
	if !ua.track(conn) {
		return nil, net.ErrClosed
	}
	return &Path{Transport: "TLS", To: to, conn: conn}, nil
}

// Close closes the connection of the path.
func (p *Path) Close() {
	if p.conn != nil {
		p.conn.Close()
	}
}

// Send writes raw bytes on the path.
func (ua *UA) Send(p *Path, raw []byte) error {
	if p.conn != nil {
		_, err := p.conn.Write(raw)
		return err
	}
	_, err := ua.udp.WriteToUDPAddrPort(raw, p.To)
	return err
}

// Transaction is a request that was sent; Responses brings what comes back for its branch.
type Transaction struct {
	Branch    string
	Raw       []byte
	Responses chan *Message
	ua        *UA
	path      *Path
}

// Start sends a request with a Via of this UA on top of lines (start line first) and collects its responses.
func (ua *UA) Start(p *Path, branch string, lines ...string) (*Transaction, error) {
	raw := ua.build(p, branch, lines)
	t := &Transaction{Branch: branch, Raw: raw, Responses: make(chan *Message, 32), ua: ua, path: p}
	ua.mu.Lock()
	ua.waiting[branch] = t.Responses
	ua.mu.Unlock()
	return t, ua.Send(p, raw)
}

// End forgets the transaction.
func (t *Transaction) End() {
	t.ua.mu.Lock()
	delete(t.ua.waiting, t.Branch)
	t.ua.mu.Unlock()
}

// Final waits for the final response; provisional ones are passed over.
func (t *Transaction) Final(ctx context.Context) (*Message, error) {
	var again <-chan time.Time
	if t.ua.Repeat > 0 && t.path.Transport == "UDP" {
		tick := time.NewTicker(t.ua.Repeat)
		defer tick.Stop()
		again = tick.C
	}
	for {
		select {
		case <-again:
			_ = t.ua.Send(t.path, t.Raw) // lost as well, perhaps

		case m := <-t.Responses:
			if m.Status >= 200 {
				return m, nil
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("lbtest: no final response for %s: %w", t.Branch, ctx.Err())
		}
	}
}

// Build writes the request that Start would send.
func (ua *UA) Build(p *Path, branch string, lines ...string) []byte {
	return ua.build(p, branch, lines)
}

func (ua *UA) build(p *Path, branch string, lines []string) []byte {
	var b strings.Builder
	b.WriteString(lines[0] + "\r\n")
	fmt.Fprintf(&b, "Via: SIP/2.0/%s %s;branch=%s;rport\r\n", p.Transport, ua.host(p), branch)
	for _, l := range lines[1:] {
		b.WriteString(l + "\r\n")
	}
	b.WriteString("Content-Length: 0\r\n\r\n")
	if strings.HasPrefix(lines[0], "INVITE ") {
		return ua.describe([]byte(b.String()))
	}
	return []byte(b.String())
}

// describe puts the session description into a message that has no body yet.
func (ua *UA) describe(m []byte) []byte {
	head, empty := bytes.CutSuffix(m, []byte("Content-Length: 0\r\n\r\n"))
	if !empty || ua.SDP == "" {
		return m
	}
	return fmt.Appendf(head, "Content-Type: application/sdp\r\nContent-Length: %d\r\n\r\n%s", len(ua.SDP), ua.SDP)
}
