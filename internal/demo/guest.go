package demo

import (
	"context"
	"slices"
)

// A guest is called by a server, takes the call, and is the one who ends it: the BYE of the called side has the tags the
// other way round, so the default key of its call would lead elsewhere; only the token in Record-Route leads back.

// expect gets ready for the call of a server to a user of this phone. The channel gives the server that took the BYE,
// empty when it failed; stop ends the wait.
func (p *phone) expect(user string) (took <-chan string, stop func()) {
	ch := make(chan string, 1)
	p.mu.Lock()
	p.guests[user] = ch
	p.mu.Unlock()
	return ch, func() {
		p.mu.Lock()
		delete(p.guests, user)
		p.mu.Unlock()
	}
}

// ring takes an INVITE: one that came again gets the same answer.
func (p *phone) ring(m message, c *call) {
	if c == nil {
		user := userPart(m.uri())
		p.mu.Lock()
		ch := p.guests[user]
		p.mu.Unlock()
		if ch == nil {
			p.answer(m, "404 Not Found", p.token(), "")
			return
		}
		c = &call{
			p: p, id: m.get("Call-ID"), local: m.get("To") + ";tag=" + p.token(), remote: m.get("From"), target: addrSpec(m.get("Contact")),
			routes: slices.Clone(m.all("Record-Route")), guest: ch, ended: make(chan struct{}),
		}
		p.keep(c)
	}
	if c.guest == nil {
		p.answer(m, "488 Not Acceptable Here", "", "") // a re-INVITE in a call of ours
		return
	}
	p.answer(withTo(m, c.local), "200 OK", "", "Contact: "+p.contact()+"\r\n")
}

func withTo(m message, to string) message {
	m.fields = slices.Clone(m.fields)
	for i := range m.fields {
		if m.fields[i][0] == "To" {
			m.fields[i][1] = to
		}
	}
	return m
}

// confirmed hangs up as soon as the call stands. It is called by the reader of the phone, which must not wait.
func (c *call) confirmed() {
	c.mu.Lock()
	first := !c.begun
	c.begun = true
	c.mu.Unlock()
	if !first {
		return
	}
	c.p.running.Go(func() {
		server, err := c.bye(context.Background()) // ends by its own time
		if err != nil {
			server = ""
		}
		select {
		case c.guest <- server:
		default: // nobody waits any more
		}
	})
}
