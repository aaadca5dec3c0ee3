package sipproxy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// uas is a user agent server by RFC 3261 17.2: it absorbs copies, answers once, and over UDP repeats a non-2xx final to
// an INVITE until the ACK comes.
type uas struct {
	code     int
	reliable bool
	final    map[string]string    // response by transaction
	due      map[string]time.Time // timer G
	wait     map[string]time.Duration
	requests map[string]int // handed to its application, by method
	acks     int
}

func newUAS(code int, reliable bool) *uas {
	return &uas{code: code, reliable: reliable, final: map[string]string{}, due: map[string]time.Time{}, wait: map[string]time.Duration{}, requests: map[string]int{}}
}

func (s *uas) receive(text string, now time.Time) (out []string) {
	method, _, _ := strings.Cut(text, " ")
	id := branchOf(text)
	if method == "ACK" {
		if s.final[id] != "" {
			s.acks++
			delete(s.due, id)
		}
		return nil
	}
	if r := s.final[id]; r != "" {
		if s.reliable && method != "INVITE" { // Timer J is zero: the transaction is over, this one is new to it
			s.requests[method]++
		}
		return []string{r}
	}
	s.requests[method]++
	s.final[id] = respond(text, s.code, "b1")
	if method == "INVITE" {
		out = append(out, respond(text, 100, ""))
		if !s.reliable {
			s.due[id], s.wait[id] = now.Add(timerT1), timerT1
		}
	}
	return append(out, s.final[id])
}

func (s *uas) tick(now time.Time) (out []string) {
	for id, at := range s.due {
		if !now.Before(at) {
			s.wait[id] = min(2*s.wait[id], timerT2)
			s.due[id] = now.Add(s.wait[id])
			out = append(out, s.final[id])
		}
	}
	return out
}

// uac is a user agent client by RFC 3261 17.1.
type uac struct {
	ua       *ua
	method   string
	reliable bool
	finals   int
	next     time.Time
	wait     time.Duration
	done     bool // has a response that stops its copies
}

func (c *uac) receive(text string) (out []string) {
	switch s := status(text); {
	case s == "":
		return nil
	case s < "200":
		if c.method == "INVITE" {
			c.done = true
		}
	default:
		c.done = true
		c.finals++
		if c.method == "INVITE" {
			c.ua.to = "b1"
			return []string{c.ua.request("ACK", 1)}
		}
	}
	return nil
}

func (c *uac) tick(now time.Time) []string {
	if c.done || c.next.After(now) {
		return nil
	}
	first := c.wait == 0
	if c.reliable && !first {
		return nil
	}
	if c.wait = max(timerT1, 2*c.wait); c.method != "INVITE" {
		c.wait = min(c.wait, timerT2)
	}
	c.next = now.Add(c.wait)
	return []string{c.ua.request(c.method, 1)}
}

// 9.4: in all rows where one side is reliable and the other is not, every single datagram lost once still gives exactly
// one request at the server's application, a final response at the client, and the end of the server's repetitions.
func TestSX10_EverySingleLoss(t *testing.T) {
	rows := []struct {
		client, server string
	}{{"tcp", "udp"}, {"udp", "tcp"}, {"udp", "udp"}}
	for _, row := range rows {
		for _, method := range []string{"INVITE", "OPTIONS", "BYE"} {
			for lost := range 8 {
				name := fmt.Sprintf("%s-%s %s loss %d", row.client, row.server, method, lost)
				t.Run(name, func(t *testing.T) { oneLoss(t, row.client, row.server, method, lost) })
			}
		}
	}
}

func oneLoss(t *testing.T, client, server, method string, lost int) {
	b := newBed(t, bedOptions{servers: []string{"as1 " + server + " 10.20.1.11:5060"}})
	c := &uac{ua: alice("loss"), method: method, reliable: client == "tcp"}
	at := aliceAt
	if c.reliable {
		c.ua, at = trunk("loss"), trunkAt
	}
	s := newUAS(486, server == "tcp")
	var toProxy []string // from the server, what was not lost
	var serverAt packet
	datagram := 0
	drop := func(reliable bool) bool {
		if reliable {
			return false
		}
		datagram++
		return datagram-1 == lost
	}
	var deliver func(sent []packet)
	deliver = func(sent []packet) {
		for _, p := range append([]packet(nil), sent...) {
			if status(p.text) != "" {
				if drop(c.reliable) {
					continue
				}
				for _, m := range c.receive(p.text) {
					if !drop(c.reliable) {
						deliver(b.in(at, m))
					}
				}
				continue
			}
			serverAt = p
			if drop(s.reliable) {
				continue
			}
			for _, m := range s.receive(p.text, b.now) {
				if !drop(s.reliable) {
					toProxy = append(toProxy, m)
				}
			}
		}
	}
	for range 400 { // 40 s
		for _, m := range c.tick(b.now) {
			if !drop(c.reliable) {
				deliver(b.in(at, m))
			}
		}
		for _, m := range s.tick(b.now) {
			if !drop(s.reliable) {
				toProxy = append(toProxy, m)
			}
		}
		for len(toProxy) > 0 {
			m := toProxy[0]
			toProxy = toProxy[1:]
			deliver(b.from(serverAt, m))
		}
		deliver(b.pass(100 * time.Millisecond))
	}
	if s.requests[method] != 1 {
		t.Errorf("the server's application got %d requests", s.requests[method])
	}
	if c.finals == 0 {
		t.Error("the client has no final response")
	}
	if method == "INVITE" && (s.acks == 0 || len(s.due) > 0) {
		t.Errorf("%d ACKs; the server repeats its final still: %v", s.acks, len(s.due) > 0)
	}
	if client == "tcp" && c.finals > 1 {
		t.Errorf("a reliable client got %d finals", c.finals)
	}
	b.pass(5 * time.Minute)
	if b.w.mem.count != 0 || b.w.mem.open != 0 || b.reg.Server("app", "as1").Active() != 0 {
		t.Errorf("left over: %d entries, %d pending, %d leases", b.w.mem.count, b.w.mem.open, b.reg.Server("app", "as1").Active())
	}
}
