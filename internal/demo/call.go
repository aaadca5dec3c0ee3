package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// call is one dialog of a phone.
type call struct {
	p      *phone
	id     string
	local  string // our From or To value, with our tag
	remote string
	target string   // where the other side is (its Contact)
	routes []string // route set in the order in which it is sent
	server string   // X-Server of the answer
	guest  chan string

	mu    sync.Mutex // guards what follows; leaf
	cseq  int
	ack   string
	begun bool // a guest's call that was confirmed
	once  sync.Once
	ended chan struct{}
}

// outgoing is an INVITE that is ready to be sent: explain reads the same text.
type outgoing struct {
	text string
	m    message
}

// invite writes an INVITE for a room; an empty room leaves the user away. more are further field lines.
func (p *phone) invite(room string, more ...string) (outgoing, error) {
	uri := "sip:" + sipDomain
	if room != "" {
		uri = "sip:" + room + "@" + sipDomain
	}
	var extra strings.Builder
	for _, l := range more {
		extra.WriteString(l + "\r\n")
	}
	text := "INVITE " + uri + " SIP/2.0\r\n" + p.via() + extra.String() +
		"From: <sip:alice@" + webDomain + ">;tag=" + p.token() + "\r\nTo: <" + uri + ">\r\nCall-ID: " + p.token() + "@" + host +
		"\r\nCSeq: 1 INVITE\r\nContact: " + p.contact() + "\r\nContent-Length: 0\r\n\r\n"
	m, err := parse(text)
	return outgoing{text, m}, err
}

// call places a call to a room and confirms it.
func (p *phone) call(ctx context.Context, room string, more ...string) (*call, error) {
	out, err := p.invite(room, more...)
	if err != nil {
		return nil, err
	}
	return p.place(ctx, out)
}

// place sends an INVITE and confirms the call when it is taken.
func (p *phone) place(ctx context.Context, out outgoing) (*call, error) {
	c := &call{p: p, id: out.m.get("Call-ID"), local: out.m.get("From"), cseq: 1, ended: make(chan struct{})}
	r, err := p.roundTrip(ctx, out.m, out.text)
	if err != nil {
		return nil, err
	}
	if r.status() >= 300 {
		_ = p.send("ACK " + out.m.uri() + " SIP/2.0\r\n" + out.m.lines("Via") + "Max-Forwards: 70\r\n" + out.m.lines("Route") +
			"From: " + c.local + "\r\nTo: " + r.get("To") + "\r\nCall-ID: " + c.id + "\r\nCSeq: 1 ACK\r\nContent-Length: 0\r\n\r\n")
		return nil, fmt.Errorf("INVITE %s: %s", out.m.uri(), strings.TrimPrefix(r.start, "SIP/2.0 "))
	}
	c.remote, c.target, c.server = r.get("To"), addrSpec(r.get("Contact")), r.get("X-Server")
	c.routes = r.all("Record-Route")
	slices.Reverse(c.routes) // RFC 3261 12.1.2
	p.keep(c)
	c.ack = c.inDialog("ACK", 1)
	c.acknowledge()
	return c, nil
}

func (p *phone) keep(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[c.id] = c
}

func (c *call) acknowledge() {
	c.mu.Lock()
	ack := c.ack
	c.mu.Unlock()
	_ = c.p.send(ack) // a lost ACK is asked for by another 200
}

// inDialog writes a request of the dialog: to the other side's Contact, by the route set (RFC 3261 12.2.1.1).
func (c *call) inDialog(method string, cseq int) string {
	var routes strings.Builder
	for _, r := range c.routes {
		routes.WriteString("Route: " + r + "\r\n")
	}
	return fmt.Sprintf("%s %s SIP/2.0\r\n%s%sFrom: %s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %d %s\r\nContact: %s\r\nContent-Length: 0\r\n\r\n",
		method, c.target, c.p.via(), routes.String(), c.local, c.remote, c.id, cseq, method, c.p.contact())
}

// bye ends the call from our side and gives the name of the server that took the BYE.
func (c *call) bye(ctx context.Context) (string, error) {
	c.mu.Lock()
	c.cseq++
	text := c.inDialog("BYE", c.cseq)
	c.mu.Unlock()
	m, err := parse(text)
	if err != nil {
		return "", err
	}
	defer c.p.forget(c)
	r, err := c.p.roundTrip(ctx, m, text)
	if err != nil {
		return "", err
	}
	if r.status() != 200 {
		return "", fmt.Errorf("BYE of a call on %s: %s", c.server, strings.TrimPrefix(r.start, "SIP/2.0 "))
	}
	return r.get("X-Server"), nil
}

// wait blocks until the other side has ended the call.
func (c *call) wait(ctx context.Context) error {
	defer c.p.forget(c)
	ctx, cancel := context.WithTimeout(ctx, phoneWait)
	defer cancel()
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no BYE came for a call on %s", c.server)
	}
}

// end notes that the other side has ended the call.
func (c *call) end() { c.once.Do(func() { close(c.ended) }) }

func (p *phone) forget(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, c.id)
}
