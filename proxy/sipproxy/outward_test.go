package sipproxy

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/sip/transport"
)

// names is a resolver whose answers a test writes.
type names struct {
	places []Endpoint
	known  bool
	old    bool // its time has ended: who asks for what is late gets it
	hops   []string
	done   []func()
}

func (n *names) Lookup(dst []Endpoint, _ NextHop, _ uint64, late bool) ([]Endpoint, bool) {
	if !n.known && !(n.old && late) {
		return dst, false
	}
	return append(dst, n.places...), true
}

func (n *names) Ask(h NextHop, done func()) bool {
	kind := "any"
	if h.Kind != 0 {
		kind = h.Kind.String()
	}
	n.hops = append(n.hops, fmt.Sprint(string(h.Host), " ", h.Port, " ", kind, " ", h.Secure))
	n.done = append(n.done, done)
	return true
}

// zone makes places of "kind address" and says that they are known.
func (n *names) zone(list ...string) {
	n.places, n.known = nil, true
	for _, p := range list {
		word, addr, _ := strings.Cut(p, " ")
		k, _ := kindOf(word)
		n.places = append(n.places, Endpoint{k, addrPortOf(addr)})
	}
}

// outwardBed has a server that speaks UDP and one that speaks TCP, and listeners for all that leads outwards.
func outwardBed(t testing.TB) (*bed, *names, *letters) {
	n, mail := &names{}, newLetters()
	b := newBed(t, bedOptions{
		config:    func(c *Config) { c.Names = n; c.Ports[0].In = mail },
		servers:   []string{"as1 udp 10.20.1.11:5060", "as2 tcp 10.20.1.12:5060"},
		listeners: []string{"sip-udp udp 203.0.113.10:5060", "sip-tcp tcp 203.0.113.10:5060", "sip-tls tls 203.0.113.10:5061"},
	})
	b.net.flows[900] = true
	return b, n, mail
}

var (
	byUDP = udp("10.20.1.11:5060")
	byTCP = from{listener: "sip-tcp", remote: "10.20.1.12:5060", flow: 900, outgoing: true}
)

func outward(id, uri string) *ua {
	return &ua{via: "UDP 10.20.1.11:5060", from: "s", callID: id, uri: uri}
}

func outwardTCP(id, uri string) *ua {
	return &ua{via: "TCP 10.20.1.12:5060", from: "s", callID: id, uri: uri}
}

// SX-14: a server's next hop that is a name waits for its places; nothing known after 4 s: 503.
func TestSX14_OutwardName(t *testing.T) {
	b, n, mail := outwardBed(t)
	u := outward("name", "sip:bob@phone.example:5071")
	b.none(b.in(byUDP, u.request("INVITE", 1)))
	b.none(b.in(byUDP, u.request("INVITE", 1)))
	n.zone("udp 198.51.100.20:5071")
	n.done[0]()
	p := b.one(b.event(<-mail.events))
	if p.to != "198.51.100.20:5071" || len(n.done) != 1 {
		t.Errorf("sent to %s after %d questions", p.to, len(n.done))
	}
	n.zone("udp 198.51.100.21:5071")
	if again := b.one(b.in(byUDP, u.request("INVITE", 1))); again.to != p.to || again.text != p.text {
		t.Errorf("the copy went to %s", again.to)
	}
	n.known = false
	b.none(b.in(byUDP, outward("never", "sip:bob@phone.example:5071").request("INVITE", 1)))
	b.none(b.pass(3900 * time.Millisecond))
	if r := b.one(b.pass(200 * time.Millisecond)); status(r.text) != "503" {
		t.Errorf("after 4 s: %v", r)
	}
	n.zone() // known to have none
	if r := b.one(b.in(byUDP, outward("none", "sip:bob@phone.example:5071").request("INVITE", 1))); status(r.text) != "503" {
		t.Errorf("a name without an address: %v", r)
	}
}

// RFC 3263 section 4: what a URI says is asked for, no more: a port or a transport that is not written is DNS's to say.
func TestSX14_WhatIsAskedFor(t *testing.T) {
	b, n, _ := outwardBed(t)
	for i, c := range []struct{ uri, want string }{
		{"sip:bob@Phone.example", "Phone.example 0 any false"},
		{"sip:bob@phone.example:5080", "phone.example 5080 any false"},
		{"sip:bob@phone.example;transport=TCP", "phone.example 0 TCP false"},
		{"sip:bob@phone.example:5080;transport=udp", "phone.example 5080 UDP false"},
		{"sip:bob@phone.example;transport=tls", "phone.example 0 TLS false"},
		{"sips:bob@phone.example", "phone.example 0 any true"},
		{"sips:bob@phone.example;transport=tcp", "phone.example 0 TLS true"},
		{"sip:bob@phone.example;maddr=gw.example;transport=tcp", "gw.example 0 TCP false"},
		{"sip:bob@phone.example;transport=sctp", "phone.example 0 any false"},
	} {
		n.hops = nil
		u := outward(fmt.Sprint("asks", i), c.uri)
		b.none(b.in(byUDP, u.request("MESSAGE", 1)))
		if len(n.hops) != 1 || n.hops[0] != c.want {
			t.Errorf("%s asks for %q, want %q", c.uri, n.hops, c.want)
		}
		u = outward(fmt.Sprint("routed", i), "sip:x@elsewhere.example;maddr=wrong.example")
		u.routes = []string{"<" + c.uri + ";lr>"}
		n.hops = nil
		b.none(b.in(byUDP, u.request("MESSAGE", 1)))
		if len(n.hops) != 1 || n.hops[0] != c.want {
			t.Errorf("Route %s asks for %q, want %q", c.uri, n.hops, c.want)
		}
	}
	for i, c := range []struct{ uri, want string }{
		{"sip:bob@198.51.100.7", "UDP 198.51.100.7:5060"},
		{"sip:bob@198.51.100.7;transport=tcp", "TCP 198.51.100.7:5060"},
		{"sips:bob@198.51.100.7", "TLS 198.51.100.7:5061"},
		{"sip:bob@198.51.100.7;transport=tls", "TLS 198.51.100.7:5061"},
		{"sip:bob@phone.example;maddr=198.51.100.8", "UDP 198.51.100.8:5060"},
		{"sip:bob@phone.example:5077;maddr=198.51.100.8;transport=tcp", "TCP 198.51.100.8:5077"},
	} {
		p := b.one(b.in(byUDP, outward(fmt.Sprint("literal", i), c.uri).request("MESSAGE", 1)))
		if got := p.kind.String() + " " + p.to; got != c.want {
			t.Errorf("%s goes to %s, want %s", c.uri, got, c.want)
		}
	}
}

// SX-14, SX-15: where one place fails before any response the next one is tried, in the order given: at once where the
// request is held, else with its next copy; the last one fails: 503. CANCEL and ACK go where their INVITE went.
func TestSX14_NextPlace(t *testing.T) {
	b, n, _ := outwardBed(t)
	n.zone("tcp 198.51.100.1:5060", "tcp 198.51.100.2:5060", "udp 198.51.100.3:5060")
	const uri = "sip:bob@phone.example"
	failed := func(p packet) []packet {
		return b.event(transport.Event{Kind: transport.FlowFailed, Flow: p.flow, Err: refusedErr()})
	}
	t.Run("held", func(t *testing.T) {
		u := outwardTCP("held", uri)
		one := b.one(b.in(byTCP, u.request("INVITE", 1)))
		n.known, n.old = false, true // its time ends while the connection is opened
		defer func() { n.known, n.old = true, false }()
		two := b.one(failed(one))
		three := b.one(failed(two))
		if got := fmt.Sprint(one.to, " ", two.to, " ", three.to); got != "198.51.100.1:5060 198.51.100.2:5060 198.51.100.3:5060" {
			t.Fatalf("tried %s", got)
		}
		if three.kind != transport.UDP || !strings.Contains(value(three.text, "Via"), "SIP/2.0/UDP ") || len(values(three.text, "Via")) != 2 {
			t.Errorf("over UDP it says %s", values(three.text, "Via"))
		}
		cancel := b.in(byTCP, u.request("CANCEL", 1))
		b.one(b.from(three, respond(three.text, 180, "p1")))
		if len(cancel) != 1 || cancel[0].to != three.to || branchOf(cancel[0].text) != branchOf(three.text) {
			t.Fatalf("CANCEL: %v", cancel)
		}
		b.one(b.from(three, respond(cancel[0].text, 200, "p1")))
		b.one(b.from(three, respond(three.text, 487, "p1")))
		u.to = "p1"
		if a := b.one(b.in(byTCP, u.request("ACK", 1))); a.to != three.to || branchOf(a.text) != branchOf(three.text) {
			t.Errorf("ACK went to %v", a)
		}
		u = outwardTCP("last", uri)
		n.zone("tcp 198.51.100.1:5060", "tcp 198.51.100.2:5060")
		one = b.one(b.in(byTCP, u.request("INVITE", 1)))
		two = b.one(failed(one))
		if r := b.one(failed(two)); status(r.text) != "503" || r.flow != 900 {
			t.Errorf("behind the last one: %v", r)
		}
	})
	t.Run("not held", func(t *testing.T) {
		n.zone("tcp 198.51.100.1:5060", "tcp 198.51.100.2:5060", "udp 198.51.100.3:5060", "udp 198.51.100.4:5060")
		for _, method := range []string{"INVITE", "MESSAGE"} {
			u := outward("copy"+method, uri)
			one := b.one(b.in(byUDP, u.request(method, 1)))
			b.none(failed(one))
			two := b.one(b.in(byUDP, u.request(method, 1)))
			three := b.one(failed(two)) // 9.5: what moved is kept
			four := b.one(b.event(transport.Event{Kind: transport.Unreachable, Remote: addrPortOf(three.to), Err: syscall.ECONNREFUSED}))
			if got := fmt.Sprint(one.to, " ", two.to, " ", three.to, " ", four.to); !strings.HasSuffix(got, ".1:5060 198.51.100.2:5060 198.51.100.3:5060 198.51.100.4:5060") {
				t.Errorf("%s: tried %s", method, got)
			}
			if again := b.one(b.in(byUDP, u.request(method, 1))); again.to != four.to || again.text != four.text {
				t.Errorf("%s: a further copy went to %v", method, again)
			}
			b.one(b.from(four, respond(four.text, 200, "p1")))
			b.now = b.now.Add(time.Second) // one ICMP error of an address is one look through what waits
		}
	})
	t.Run("at once", func(t *testing.T) {
		b.net.refuse["198.51.100.1:5060"], b.net.refuse["198.51.100.2:5060"] = transport.ErrFull, transport.ErrFull
		u := outward("full", uri)
		if p := b.one(b.in(byUDP, u.request("INVITE", 1))); p.to != "198.51.100.3:5060" {
			t.Errorf("went to %s", p.to)
		}
		delete(b.net.refuse, "198.51.100.2:5060")
		u = outward("later", uri)
		two := b.one(b.in(byUDP, u.request("INVITE", 1)))
		b.net.refuse["198.51.100.2:5060"] = transport.ErrFull
		if p := b.one(b.in(byUDP, u.request("INVITE", 1))); two.to != "198.51.100.2:5060" || p.to != "198.51.100.3:5060" {
			t.Errorf("the copy of what went to %s went to %s", two.to, p.to)
		}
		clear(b.net.refuse)
	})
	t.Run("answered", func(t *testing.T) {
		u := outwardTCP("rings", uri)
		one := b.one(b.in(byTCP, u.request("INVITE", 1)))
		b.one(b.from(one, respond(one.text, 180, "p1")))
		b.none(b.event(transport.Event{Kind: transport.FlowClosed, Flow: one.flow}))
	})
	if len(b.w.parking.byKey) != 0 || b.p.Open() > 3 {
		t.Errorf("%d parked, %d open", len(b.w.parking.byKey), b.p.Open())
	}
}

// RFC 3263 section 4.3, 9.5: a 503 to what we hold is ACKed by us and tried once at the next place; copies of that 503 are
// not taken for the answer of the second, whose own 503 goes on.
func TestSX14_BusyPlace(t *testing.T) {
	b, n, _ := outwardBed(t)
	n.zone("udp 198.51.100.1:5060", "udp 198.51.100.2:5060", "udp 198.51.100.3:5060")
	u := outwardTCP("busy", "sip:bob@phone.example")
	one := b.one(b.in(byTCP, u.request("INVITE", 1)))
	sent := b.from(one, respond(one.text, 503, "x1"))
	if len(sent) != 2 || !strings.HasPrefix(sent[0].text, "ACK ") || sent[0].to != one.to || branchOf(sent[0].text) != branchOf(one.text) ||
		!strings.HasPrefix(sent[1].text, "INVITE ") || sent[1].to != "198.51.100.2:5060" {
		t.Fatalf("after a 503: %v", sent)
	}
	if again := b.one(b.from(one, respond(one.text, 503, "x1"))); !strings.HasPrefix(again.text, "ACK ") || again.to != one.to {
		t.Errorf("after its copy: %v", again)
	}
	two := sent[1]
	if r := b.one(b.from(two, respond(two.text, 503, "x2"))); status(r.text) != "503" || r.to != "flow 900" {
		t.Errorf("the second 503: %v", r)
	}
	m := outwardTCP("message", "sip:bob@phone.example")
	one = b.one(b.in(byTCP, m.request("MESSAGE", 1)))
	two = b.one(b.from(one, respond(one.text, 503, "x1")))
	if two.to != "198.51.100.2:5060" {
		t.Errorf("a MESSAGE went on to %v", two)
	}
	if r := b.one(b.from(two, respond(two.text, 200, "x2"))); status(r.text) != "200" {
		t.Errorf("its answer: %v", r)
	}
	udp := outward("udp", "sip:bob@phone.example") // nothing is held: the 503 is the answer
	one = b.one(b.in(byUDP, udp.request("MESSAGE", 1)))
	if r := b.one(b.from(one, respond(one.text, 503, "x1"))); status(r.text) != "503" {
		t.Errorf("what is not held: %v", r)
	}
}

// SX-3, SX-13: places that a request may not go to, or that no socket of ours reaches, are passed over.
func TestSX14_ForbiddenPlaces(t *testing.T) {
	b, n, _ := outwardBed(t)
	bad := []string{"udp 203.0.113.10:5060", "udp 127.0.0.1:5060", "udp 224.0.0.1:5060", "udp 0.0.0.0:5060", "udp 255.255.255.255:5060", "udp 198.51.100.1:0"}
	n.zone(append(append(bad, "udp [2001:db8::1]:5060"), "udp 198.51.100.9:5060")...)
	if p := b.one(b.in(byUDP, outward("skips", "sip:bob@phone.example").request("INVITE", 1))); p.to != "198.51.100.9:5060" {
		t.Errorf("went to %s", p.to)
	}
	n.zone(bad...)
	if r := b.one(b.in(byUDP, outward("refused", "sip:bob@phone.example").request("INVITE", 1))); status(r.text) != "403" {
		t.Errorf("nothing but forbidden places: %v", r)
	}
	n.zone(append([]string{"tcp 198.51.100.1:5060"}, bad...)...)
	u := outwardTCP("fails", "sip:bob@phone.example")
	p := b.one(b.in(byTCP, u.request("INVITE", 1)))
	if r := b.one(b.event(transport.Event{Kind: transport.FlowFailed, Flow: p.flow, Err: refusedErr()})); status(r.text) != "503" {
		t.Errorf("no further place that is allowed: %v", r)
	}
}

// 13.4: whatever leaves outwards over TLS, copies, CANCEL and ACK of our own too, goes by connections for the name that the
// URI has, and towards a server for that server's name: else its certificate would be compared with nothing.
func TestSX14_NameOfTLS(t *testing.T) {
	b, n, _ := outwardBed(t)
	n.zone("tls 198.51.100.1:5061", "tls 198.51.100.2:5061")
	const uri = "sips:bob@phone.example"
	named := func(what string, p packet) {
		t.Helper()
		if p.kind != transport.TLS || p.name != "phone.example" {
			t.Errorf("%s went by %v to %q", what, p.kind, p.name)
		}
	}
	b2 := byUDP
	u := outward("tls", uri)
	one := b.one(b.in(b2, u.request("INVITE", 1)))
	named("INVITE", one)
	named("its copy", b.one(b.in(b2, u.request("INVITE", 1))))
	b.one(b.from(one, respond(one.text, 180, "p1")))
	named("CANCEL", b.one(b.in(b2, u.request("CANCEL", 1))))
	b.one(b.from(one, respond(one.text, 487, "p1")))
	u.to = "p1"
	named("ACK", b.one(b.in(b2, u.request("ACK", 1))))
	u = outwardTCP("own", uri)
	one = b.one(b.in(byTCP, u.request("INVITE", 1)))
	sent := b.from(one, respond(one.text, 503, "x"))
	if len(sent) != 2 {
		t.Fatalf("%v", sent)
	}
	named("our ACK", sent[0])
	named("the next attempt", sent[1])
}

// 13.4: towards a server every connection is for that server's name: attempts, our own ACK and CANCEL (9.5), and a response
// to a request of its own whose connection is gone.
func TestSX15_NameOfTLSServers(t *testing.T) {
	b := newBed(t, bedOptions{
		servers:   []string{"as1 tls 10.20.1.11:5061", "as2 tls 10.20.1.12:5061"},
		listeners: []string{"sip-udp udp 203.0.113.10:5060", "sip-tcp tcp 203.0.113.10:5060", "sip-tls tls 203.0.113.10:5061"},
		peers:     map[string]string{"as1": "as1.example.net", "as2": "as2.example.net"},
	})
	named := func(what string, p packet) {
		t.Helper()
		if want := b.nameAt(p.to) + ".example.net"; p.kind != transport.TLS || p.name != want {
			t.Errorf("%s went by %v to %q, want %q", what, p.kind, p.name, want)
		}
	}
	u := trunk("busy")
	one := b.one(b.in(trunkAt, u.request("INVITE", 1)))
	named("INVITE", one)
	sent := b.from(one, respond(one.text, 503, "x"))
	if len(sent) != 2 || sent[0].to == sent[1].to {
		t.Fatalf("%v", sent)
	}
	named("our ACK", sent[0])
	named("the next attempt", sent[1])
	late := b.from(one, respond(one.text, 180, "x"))
	if len(late) != 1 || !strings.HasPrefix(late[0].text, "CANCEL ") {
		t.Fatalf("a late 180 of the first attempt: %v", late)
	}
	named("our CANCEL", late[0])
	own := &ua{via: "TLS 10.20.1.11:5061", from: "s", callID: "own", uri: "sip:203.0.113.10"}
	r := b.one(b.in(from{listener: "sip-tls", remote: "10.20.1.11:40000", flow: 41}, own.request("INVITE", 1)))
	delete(b.net.flows, 41)
	named("its answer on a new connection", b.one(b.from(r, respond(r.text, 200, "y"))))
}

// 6.4: the flow is gone and need not be the only way: by Route or Request-URI, also where that is a name which has to be
// asked for first; for an ACK as well. Nobody knows the name: 430, and nothing for the ACK.
func TestSX8_FlowGoneToAName(t *testing.T) {
	b, n, mail := outwardBed(t)
	c := trunk("trunk-gone")
	callee, inv := dialog(b, trunkAt, c)
	b.net.flows[inv.flow] = true
	delete(b.net.flows, 7)
	callee.uri = "sip:alice@trunk.example;transport=tcp"
	b.none(b.from(inv, callee.request("INFO", 4)))
	b.none(b.from(inv, callee.request("INFO", 4))) // a copy waits with it
	n.zone("tcp 198.51.100.5:5060", "tcp 198.51.100.6:5060")
	n.done[0]()
	info := b.one(b.event(<-mail.events))
	if info.to != "198.51.100.5:5060" || !strings.HasPrefix(info.text, "INFO ") || len(n.done) != 1 {
		t.Fatalf("INFO went to %v after %d questions", info, len(n.done))
	}
	if r := b.one(b.from(info, respond(info.text, 200, ""))); status(r.text) != "200" || r.to != inv.to && r.flow != inv.flow {
		t.Errorf("its answer: %v", r)
	}
	b.net.refuse["198.51.100.5:5060"] = transport.ErrFull
	if a := b.one(b.from(inv, callee.request("ACK", 1))); a.to != "198.51.100.6:5060" || !strings.HasPrefix(a.text, "ACK ") {
		t.Errorf("ACK: %v", a)
	}
	clear(b.net.refuse)
	n.known = false
	b.none(b.from(inv, callee.request("ACK", 1)))
	n.known = true
	n.done[1]()
	if a := b.one(b.event(<-mail.events)); a.to != "198.51.100.5:5060" {
		t.Errorf("ACK that waited: %v", a)
	}
	n.known = false
	b.none(b.from(inv, callee.request("ACK", 1)))
	b.none(b.from(inv, callee.request("BYE", 5)))
	if r := b.one(b.pass(4100 * time.Millisecond)); status(r.text) != "430" {
		t.Errorf("a name that nobody knows: %v", r)
	}
	if len(b.w.parking.byKey) != 0 {
		t.Errorf("%d requests are parked still", len(b.w.parking.byKey))
	}
}

// SX-10, 9.4, outwards: where one side is reliable and the other is not, we repair losses for a server's own requests as we do
// for those of clients.
func TestSX10_Outwards(t *testing.T) {
	b, _, _ := outwardBed(t)
	u := outwardTCP("repeats", "sip:bob@198.51.100.7")
	inv := b.one(b.in(byTCP, u.request("INVITE", 1)))
	copies := 0
	for _, p := range b.pass(1600 * time.Millisecond) { // at 0.5 and 1.5 s, and a 100 of ours between
		if p.kind == transport.UDP {
			copies++
			if p.text != inv.text || p.to != inv.to {
				t.Errorf("the copy is %v", p)
			}
		} else if status(p.text) != "100" {
			t.Errorf("sent %v", p)
		}
	}
	if copies != 2 {
		t.Errorf("%d copies in 1.6 s", copies)
	}
	busy := b.one(b.from(inv, respond(inv.text, 486, "b1")))
	if status(busy.text) != "486" || busy.flow != 900 {
		t.Fatalf("486: %v", busy)
	}
	u.to = "b1"
	a := b.one(b.in(byTCP, u.request("ACK", 1)))
	if again := b.one(b.from(inv, respond(inv.text, 486, "b1"))); again.text != a.text || again.to != inv.to {
		t.Errorf("a repeated 486 gets %v", again)
	}
	b.none(b.pass(30 * time.Second))
	m := outward("keeps", "sip:bob@198.51.100.7;transport=tcp")
	one := b.one(b.in(byUDP, m.request("MESSAGE", 1)))
	ok := b.one(b.from(one, respond(one.text, 200, "b1")))
	if again := b.one(b.in(byUDP, m.request("MESSAGE", 1))); again.text != ok.text || again.to != ok.to {
		t.Errorf("a copy behind the answer: %v", again)
	}
	m = outward("lost486", "sip:bob@198.51.100.7;transport=tcp")
	one = b.one(b.in(byUDP, m.request("INVITE", 1)))
	busy = b.one(b.from(one, respond(one.text, 486, "b1")))
	if again := b.pass(1600 * time.Millisecond); len(again) != 2 || again[0].text != busy.text {
		t.Errorf("a 486 without its ACK: %v", again)
	}
	m.to = "b1"
	if a := b.one(b.in(byUDP, m.request("ACK", 1))); a.to != one.to || branchOf(a.text) != branchOf(one.text) {
		t.Errorf("its ACK: %v", a)
	}
	b.none(b.pass(30 * time.Second))
}
