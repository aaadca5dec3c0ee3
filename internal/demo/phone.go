package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Timers of the phones (RFC 3261 17.1.1.1), with a shorter end of patience.
const (
	phoneT1   = 500 * time.Millisecond
	phoneWait = 8 * time.Second
)

var errSilence = errors.New("no final response")

// phone is a user agent on one socket or one connection to the edge; it has any number of calls at a time.
type phone struct {
	// Set by the constructors, never written again.
	network string // UDP or TCP
	local   string // address and port
	edge    string
	id      string // of this phone, in tags, branches and Call-IDs
	conn    net.Conn
	packets net.PacketConn
	to      net.Addr

	running sync.WaitGroup // what the reader began; Run waits for it

	seq   atomic.Uint64
	write sync.Mutex // one message at a time on the stream

	mu     sync.Mutex // guards the maps; leaf
	waits  map[string]chan message
	calls  map[string]*call
	guests map[string]chan string // who waits for a call from a server, by user
}

// dialUDP makes a phone with a socket of its own.
func dialUDP(edge, id string) (*phone, error) {
	to, err := net.ResolveUDPAddr("udp", edge)
	if err != nil {
		return nil, err
	}
	c, err := net.ListenPacket("udp", address(0))
	if err != nil {
		return nil, err
	}
	if u, ok := c.(*net.UDPConn); ok {
		_ = u.SetReadBuffer(1 << 20) // a smaller one loses datagrams, which are sent again
	}
	p := newPhone("UDP", c.LocalAddr().String(), edge, id)
	p.packets, p.to = c, to
	return p, nil
}

// dialTCP makes a phone with a connection of its own.
func dialTCP(ctx context.Context, edge, id string) (*phone, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", edge)
	if err != nil {
		return nil, err
	}
	p := newPhone("TCP", c.LocalAddr().String(), edge, id)
	p.conn = c
	return p, nil
}

func newPhone(network, local, edge, id string) *phone {
	return &phone{
		network: network, local: local, edge: edge, id: id,
		waits: map[string]chan message{}, calls: map[string]*call{}, guests: map[string]chan string{},
	}
}

// close ends Run.
func (p *phone) close() {
	if p.conn != nil {
		p.conn.Close()
		return
	}
	p.packets.Close()
}

// Run reads until the phone is closed.
func (p *phone) Run() {
	defer p.running.Wait()
	if p.conn != nil {
		for r := bufio.NewReader(p.conn); ; {
			m, err := readMessage(r)
			if err != nil {
				return
			}
			p.receive(m)
		}
	}
	buf := make([]byte, 65535)
	for {
		n, _, err := p.packets.ReadFrom(buf)
		if err != nil {
			return
		}
		if m, err := parse(string(buf[:n])); err == nil {
			p.receive(m)
		}
	}
}

func (p *phone) send(text string) error {
	if p.conn == nil {
		_, err := p.packets.WriteTo([]byte(text), p.to)
		return err
	}
	p.write.Lock()
	defer p.write.Unlock()
	_, err := p.conn.Write([]byte(text))
	return err
}

// contact is where in-dialog requests are to be sent.
func (p *phone) contact() string {
	if p.conn != nil {
		return fmt.Sprintf("<sip:phone@%s;transport=tcp>", p.local)
	}
	return fmt.Sprintf("<sip:phone@%s>", p.local)
}

func (p *phone) token() string { return fmt.Sprintf("%s-%d", p.id, p.seq.Add(1)) }

func (p *phone) via() string {
	return fmt.Sprintf("Via: SIP/2.0/%s %s;branch=z9hG4bK%s;rport\r\nMax-Forwards: 70\r\n", p.network, p.local, p.token())
}

// roundTrip sends a request and waits for its final response. Over UDP it is sent again until something comes.
func (p *phone) roundTrip(ctx context.Context, m message, text string) (message, error) {
	key := transaction(m)
	answers := make(chan message, 8)
	p.mu.Lock()
	p.waits[key] = answers
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.waits, key)
		p.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(ctx, phoneWait)
	defer cancel()
	if err := p.send(text); err != nil {
		return message{}, err
	}
	again := time.NewTimer(phoneT1)
	defer again.Stop()
	if p.conn != nil {
		again.Stop()
	}
	for wait := 2 * phoneT1; ; wait *= 2 {
		select {
		case r := <-answers:
			if r.status() >= 200 {
				return r, nil
			}
			again.Stop() // a provisional response ends retransmission of an INVITE
		case <-again.C:
			if err := p.send(text); err != nil {
				return message{}, err
			}
			again.Reset(wait)
		case <-ctx.Done():
			return message{}, fmt.Errorf("%w to %s of %s", errSilence, m.method(), m.get("Call-ID"))
		}
	}
}

// transaction names what a response belongs to.
func transaction(m message) string { return m.get("Call-ID") + " " + m.get("CSeq") }

func (p *phone) receive(m message) {
	if m.status() == 0 {
		p.request(m)
		return
	}
	p.mu.Lock()
	wait, c := p.waits[transaction(m)], p.calls[m.get("Call-ID")]
	p.mu.Unlock()
	if wait != nil {
		select {
		case wait <- m:
		default: // whoever waits has had its answer
		}
		return
	}
	if c != nil && m.method() == "INVITE" && m.status()/100 == 2 {
		c.acknowledge() // the ACK was lost (RFC 3261 13.2.2.4)
	}
}

// request answers what servers ask of a phone: calls to guests, and the end of calls.
func (p *phone) request(m message) {
	id := m.get("Call-ID")
	p.mu.Lock()
	c := p.calls[id]
	p.mu.Unlock()
	switch m.method() {
	case "INVITE":
		p.ring(m, c)
	case "ACK":
		if c != nil && c.guest != nil {
			c.confirmed()
		}
	case "BYE":
		if c == nil {
			p.answer(m, "481 Call/Transaction Does Not Exist", "", "")
			return
		}
		p.answer(m, "200 OK", "", "")
		c.end()
	default:
		p.answer(m, "405 Method Not Allowed", "", "")
	}
}

// answer makes a response: what a UAS copies (RFC 3261 8.2.6.2) and what the caller adds.
func (p *phone) answer(m message, status, tag, more string) {
	to := m.get("To")
	if tag != "" && !strings.Contains(to, ";tag=") {
		to += ";tag=" + tag
	}
	_ = p.send("SIP/2.0 " + status + "\r\n" + m.lines("Via") + m.lines("Record-Route") + "From: " + m.get("From") + "\r\nTo: " + to +
		"\r\n" + m.lines("Call-ID") + m.lines("CSeq") + more + "Content-Length: 0\r\n\r\n") // a lost answer is asked for again
}
