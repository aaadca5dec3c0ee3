package sipproxy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// dialog sets a call up and gives both sides with their route sets.
func dialog(b *bed, at from, caller *ua) (callee *ua, inv packet) {
	b.t.Helper()
	inv = b.one(b.in(at, caller.request("INVITE", 1)))
	ok := b.one(b.from(inv, respond(inv.text, 200, "b1")))
	caller.to, caller.routes, caller.uri = "b1", routeSet(ok.text), "sip:team@"+inv.to
	callee = &ua{via: "UDP " + inv.to, from: "b1", to: caller.from, callID: caller.callID, uri: "sip:alice@192.0.2.7:5070", routes: values(inv.text, "Record-Route"), swapped: true}
	return callee, inv
}

// SR-1 (c): all leading own entries go, in every spelling; what follows stays, octet for octet.
func TestSR1_OwnRoutesOff(t *testing.T) {
	b := newBed(t, bedOptions{domains: []string{"sip.example.net"}, listener: func(l *ListenerConfig) { l.Aliases = []string{"edge.example.net"} }})
	a := alice("own")
	_, inv := dialog(b, aliceAt, a)
	mine := a.routes[0]
	for name, routes := range map[string][]string{
		"single":           {mine},
		"three own":        {mine, "<sip:203.0.113.10;lr>", "<sip:EDGE.example.net:5060;transport=tcp;lr>"},
		"one line":         {mine + " ,\r\n\t<sip:sip.example.net;lr>,<sip:203.0.113.10:5060;lr>"},
		"user part":        {strings.Replace(mine, "sip:", "sip:anyone@", 1)},
		"other parameters": {strings.Replace(mine, ";lr", ";x=y;LR;z", 1)},
		"display name":     {`"a, b; lr <c>" ` + mine},
		"upper case":       {strings.Replace(mine, "wg="+tokenOf(mine), "WG="+strings.ToUpper(tokenOf(mine)), 1)},
	} {
		a.routes = routes
		p := b.one(b.in(aliceAt, strings.Replace(a.request("INFO", 5), "z9hG4bK", "z9hG4bK"+strings.ReplaceAll(name, " ", ""), 1)))
		if p.to != inv.to || len(values(p.text, "Route")) != 0 {
			t.Errorf("%s: to %s, Route %q", name, p.to, values(p.text, "Route"))
		}
	}
	a.routes = []string{mine, "<sip:10.20.1.99:5060;lr>;odd"}
	p := b.one(b.in(aliceAt, a.request("INFO", 6)))
	if r := values(p.text, "Route"); len(r) != 1 || r[0] != "<sip:10.20.1.99:5060;lr>;odd" || p.to != inv.to {
		t.Errorf("own then other: to %s, Route %q", p.to, r)
	}
}

func tokenOf(route string) string {
	_, tok, _ := strings.Cut(route, "wg=")
	tok, _, _ = strings.Cut(tok, ">")
	return tok
}

// SR-1 (a): a strict router before us put our entry into the Request-URI.
func TestSR1_StrictRouterBefore(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("strict")
	_, inv := dialog(b, aliceAt, a)
	entry := strings.Trim(a.routes[0], "<>")
	a.uri, a.routes = entry, []string{"<sip:team@" + inv.to + ";x=1>"}
	p := b.one(b.in(aliceAt, a.request("BYE", 2)))
	if p.to != inv.to || startLine(p.text) != "BYE sip:team@"+inv.to+";x=1 SIP/2.0" || len(values(p.text, "Route")) != 0 {
		t.Errorf("to %s: %s", p.to, p.text)
	}
}

// SR-3: a next Route without lr: Request-URI to the end of Route, first Route to the Request-URI.
func TestSR3_StrictRouterNext(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("next")
	_, inv := dialog(b, aliceAt, a)
	a.uri = "sip:team@far.example"
	a.routes = append(a.routes, "<sip:"+inv.to+";x=y>", `"lr" <sip:10.9.9.9;other>;lr`)
	p := b.one(b.in(aliceAt, a.request("INFO", 2)))
	if p.to != inv.to || startLine(p.text) != "INFO sip:"+inv.to+";x=y SIP/2.0" {
		t.Errorf("to %s: %s", p.to, startLine(p.text))
	}
	if r := strings.Join(values(p.text, "Route"), ", "); r != `"lr" <sip:10.9.9.9;other>;lr, <sip:team@far.example>` {
		t.Errorf("Route is %s", r)
	}
}

// SR-1 (b): a maddr that is us goes, with port and transport.
func TestSR1_OwnMaddr(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("maddr")
	a.uri = "sip:team@ex.com;maddr=203.0.113.10;transport=udp;x=y"
	p := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	if startLine(p.text) != "INVITE sip:team@ex.com;x=y SIP/2.0" {
		t.Errorf("start line is %s", startLine(p.text))
	}
}

// SR-5: two entries where the sides differ in socket, the outgoing one on top; both are taken off when they come back,
// and the second one names the socket to send from.
func TestSR5_Pair(t *testing.T) {
	b := newBed(t, bedOptions{})
	c := trunk("pair")
	callee, inv := dialog(b, trunkAt, c)
	rr := values(inv.text, "Record-Route")
	if len(rr) != 2 || !strings.HasPrefix(rr[0], "<sip:203.0.113.10:5060;lr;wg=") || !strings.HasPrefix(rr[1], "<sip:203.0.113.10:5060;transport=tcp;lr;wg=") || tokenOf(rr[0]) != tokenOf(rr[1]) {
		t.Fatalf("Record-Route is %q", rr)
	}
	bye := b.one(b.in(trunkAt, c.request("BYE", 2)))
	if bye.to != inv.to || len(values(bye.text, "Route")) != 0 {
		t.Errorf("caller's BYE: %v", bye)
	}
	// SX-8, 6.4: the callee reaches the caller through its connection, whatever its Contact says.
	callee.uri = "sip:alice@192.0.2.8:49999;transport=tcp"
	back := b.one(b.from(inv, callee.request("INFO", 3)))
	if back.to != "flow 7" || len(values(back.text, "Route")) != 0 || !strings.HasPrefix(value(back.text, "Via"), "SIP/2.0/TCP 203.0.113.10:5060;") {
		t.Errorf("callee's INFO: %v", back)
	}
	r := b.one(b.in(trunkAt, respond(back.text, 200, "")))
	if r.to != inv.to || r.kind != transport.UDP {
		t.Errorf("its answer: %v", r)
	}
	// The flow is gone and need not be the only way: a new connection by the Request-URI.
	delete(b.net.flows, 7)
	if p := b.one(b.from(inv, callee.request("INFO", 4))); p.to != "192.0.2.8:49999" || p.kind != transport.TCP {
		t.Errorf("with the flow gone: %v", p)
	}
}

// SX-7, 6.4: where the client uses outbound, a flow that is gone is 430.
func TestSX7_FlowGone(t *testing.T) {
	b := newBed(t, bedOptions{listener: func(l *ListenerConfig) { l.Outbound = true }})
	c := trunk("ob")
	c.extra = []string{"Contact: <sip:alice@192.0.2.8:5070;ob>"}
	callee, inv := dialog(b, trunkAt, c)
	delete(b.net.flows, 7)
	if p := b.one(b.from(inv, callee.request("BYE", 3))); status(p.text) != "430" || p.to != inv.to {
		t.Errorf("answer is %v", p)
	}
}

// SX-15: the client's connection ends before it has answered a server's request that we hold: 430 at once.
func TestSX15_FlowEnds(t *testing.T) {
	b := newBed(t, bedOptions{servers: tcpServers})
	c := trunk("ends")
	callee, inv := dialog(b, trunkAt, c)
	callee.uri, b.net.flows[inv.flow] = "tel:+4930", true
	if out := b.one(b.from(inv, callee.request("INVITE", 3))); out.to != "flow 7" {
		t.Fatalf("the callee's request went to %v", out)
	}
	delete(b.net.flows, 7)
	if p := b.one(b.event(transport.Event{Kind: transport.FlowClosed, Flow: 7, Err: errors.New("reset")})); status(p.text) != "430" || p.flow != inv.flow {
		t.Errorf("behind the end of the flow: %v", p)
	}
	callee.branch, b.net.flows[7] = "z9hG4bKends-INVITE-3", true
	b.none(b.from(inv, callee.request("ACK", 3))) // ST-6: swallowed, in a dialog too
}

// SR-6: what is record-routed, and what gets a Path.
func TestSR6_WhatIsRecordRouted(t *testing.T) {
	b := newBed(t, bedOptions{})
	for m, want := range map[string]int{"INVITE": 1, "SUBSCRIBE": 1, "REFER": 1, "NOTIFY": 1, "UPDATE": 0, "MESSAGE": 0, "OPTIONS": 0, "REGISTER": 0, "BYE": 0, "FROB": 0} {
		p := b.one(b.in(aliceAt, alice("rr"+m).request(m, 1)))
		if n := len(values(p.text, "Record-Route")); n != want {
			t.Errorf("%s has %d Record-Route", m, n)
		}
	}
	reg := trunk("reg")
	if p := b.one(b.in(trunkAt, reg.request("REGISTER", 1))); len(values(p.text, "Path")) != 0 {
		t.Error("Path without an offer")
	}
	reg.extra = []string{"k: replaces, PATH"}
	p := b.one(b.in(trunkAt, reg.request("REGISTER", 2)))
	path := values(p.text, "Path")
	if len(path) != 1 || !strings.HasPrefix(path[0], "<sip:203.0.113.10:5060;transport=tcp;lr;wg=") {
		t.Fatalf("Path is %q", path)
	}
	// The registrar calls the UA through it.
	call := &ua{via: "UDP " + p.to, from: "s1", callID: "out", uri: "sip:alice@192.0.2.8:5070;transport=tcp", routes: path}
	if q := b.one(b.from(p, call.request("INVITE", 1))); q.to != "flow 7" || len(values(q.text, "Route")) != 0 {
		t.Errorf("call by Path: %v", q)
	}
	off := newBed(t, bedOptions{target: func(c *TargetConfig) { c.NoRecordRoute = true }})
	if p := off.one(off.in(aliceAt, alice("off").request("INVITE", 1))); len(values(p.text, "Record-Route")) != 0 {
		t.Error("record_route is off, and there is one")
	}
}

// SA-2, SR-10: a token that is forged, of another use or of another secret is none; it never leads anywhere by itself.
func TestSA2_ForgedTokens(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("forged")
	_, inv := dialog(b, aliceAt, a)
	good := tokenOf(a.routes[0])
	// Another server for the same key, so that token and key part.
	other := newBed(t, bedOptions{secret: "another"})
	foreignSecret := tokenOf(values(other.one(other.in(aliceAt, alice("forged").request("INVITE", 1))).text, "Record-Route")[0])
	var codec proxy.Codec
	sealed := func(use proxy.Use, app string) string {
		tok := proxy.Token{HasServer: true, App: tag32(app), Server: tag32("as1")}
		return string(codec.AppendToken(nil, b.gen.secrets, use, &tok))
	}
	for name, tok := range map[string]string{
		"changed":      "d" + good[1:],
		"cut":          good[:20],
		"empty":        "",
		"use HTTP":     sealed(proxy.UseHTTP, "voice/main"),
		"unknown app":  sealed(proxy.UseRecordRoute, "voice/other"),
		"other secret": foreignSecret,
		"an address":   "10.9.9.9",
	} {
		u := alice("forged-" + strings.ReplaceAll(name, " ", ""))
		want := b.one(b.in(aliceAt, u.request("OPTIONS", 1))).to // by key alone
		u.routes = []string{"<sip:203.0.113.10;lr;wg=" + tok + ">"}
		if p := b.one(b.in(aliceAt, u.request("OPTIONS", 2))); p.to != want {
			t.Errorf("%s: went to %s, by key it is %s", name, p.to, want)
		}
	}
	a.uri = "sip:team@198.51.100.66" // foreign, but the token decides
	if p := b.one(b.in(aliceAt, a.request("BYE", 2))); p.to != inv.to {
		t.Errorf("by token: %s", p.to)
	}
}

// dcr.md 5.8: the server of a token is gone: first usable choice of its key hash; it comes back: dialogs go there again.
func TestSA2_StaleToken(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("stale")
	_, inv := dialog(b, aliceAt, a)
	a.uri = "sip:team@host.invalid"
	b.lines()
	b.down(b.nameAt(inv.to))
	two := b.one(b.in(aliceAt, a.request("INFO", 2)))
	if two.to == inv.to {
		t.Fatal("went to the down server")
	}
	b.one(b.from(two, respond(two.text, 200, "")))
	if l := b.lines(); len(l) != 1 || l[0].Disp[2] != 'S' || l[0].KeySource != "stale_token" {
		t.Errorf("log: %+v", l)
	}
	b.up(b.nameAt(inv.to))
	if p := b.one(b.in(aliceAt, a.request("INFO", 3))); p.to != inv.to {
		t.Errorf("after its return: %s", p.to)
	}
}

// SR-10: from outside no foreign next hop is ever dialled.
func TestSR10_NoOpenRelay(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		b := newBed(t, bedOptions{target: func(c *TargetConfig) { c.ForeignRefuse = refuse }, domains: []string{"ex.com", "*.carrier.example"}})
		for name, change := range map[string]func(u *ua){
			"preloaded Route": func(u *ua) { u.routes = []string{"<sip:198.51.100.66:5070;lr>"} },
			"foreign URI":     func(u *ua) { u.uri = "sip:bob@198.51.100.66:5070" },
			"foreign name":    func(u *ua) { u.uri = "sip:bob@elsewhere.example" },
			"multicast":       func(u *ua) { u.uri = "sip:bob@224.0.1.75" },
			"broadcast":       func(u *ua) { u.uri = "sip:bob@255.255.255.255" },
		} {
			u := alice("relay" + strings.ReplaceAll(name, " ", ""))
			change(u)
			p := b.one(b.in(aliceAt, u.request("INVITE", 1)))
			if refuse && status(p.text) != "403" || !refuse && b.nameAt(p.to) == p.to {
				t.Errorf("refuse %v, %s: sent %s to %s", refuse, name, startLine(p.text), p.to)
			}
		}
		for _, uri := range []string{"sip:team@ex.com", "sip:team@EX.com:5060", "sip:x@a.carrier.example", "sip:x@203.0.113.10", "tel:+4930123", "urn:service:sos"} {
			u := alice("served" + uri)
			u.callID = strings.NewReplacer(":", "", "@", "", "+", "").Replace(u.callID)
			u.uri = uri
			if p := b.one(b.in(aliceAt, u.request("INVITE", 1))); b.nameAt(p.to) == p.to {
				t.Errorf("refuse %v: %s gets %s", refuse, uri, startLine(p.text))
			}
		}
	}
}

// Step 7 a: a pool member named by Route or Request-URI gets the message, whatever the key says; down: the key decides.
func TestSA3_AddressOfMember(t *testing.T) {
	b := newBed(t, bedOptions{})
	for i, s := range []string{"10.20.1.11", "10.20.1.12", "10.20.1.13"} {
		u := alice(fmt.Sprint("addr", i))
		u.uri = "sip:team@" + s + ":5060"
		if p := b.one(b.in(aliceAt, u.request("INVITE", 1))); p.to != s+":5060" {
			t.Errorf("named %s, went to %s", s, p.to)
		}
		u.routes, u.uri = []string{"<sip:" + s + ";lr>"}, "sip:other@ex.com"
		if p := b.one(b.in(aliceAt, u.request("INVITE", 2))); p.to != s+":5060" {
			t.Errorf("Route names %s, went to %s", s, p.to)
		}
	}
	b.down("as1")
	u := alice("addr-down")
	u.uri = "sip:team@10.20.1.11"
	if p := b.one(b.in(aliceAt, u.request("INVITE", 1))); b.nameAt(p.to) == "as1" || b.nameAt(p.to) == p.to {
		t.Errorf("the down member's message went to %s", p.to)
	}
}

// SA-3: a To tag without a token: the hints know it, under either tag; without hints the default key with the From tag,
// and a 481 is tried once more with the To tag in its place.
func TestSA3_NoToken(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("sa3")
	callee, inv := dialog(b, aliceAt, a)
	a.routes, a.uri, callee.routes = nil, "sip:team@host.invalid", nil
	if p := b.one(b.in(aliceAt, a.request("INFO", 2))); p.to != inv.to {
		t.Errorf("caller without token went to %s", p.to)
	}
	// A client that is the other side of the dialog, at another address.
	callee.uri, callee.via = "sip:alice@host.invalid", "UDP 192.0.2.7:5070"
	if p := b.one(b.in(aliceAt, callee.request("INFO", 2))); p.to != inv.to {
		t.Errorf("callee without token went to %s, want %s", p.to, inv.to)
	}
	// Nothing is known: look for a dialog whose two keys give two servers.
	for i := range 50 {
		b.restart()
		u := alice(fmt.Sprint("sa3-", i))
		inv := b.one(b.in(aliceAt, u.request("INVITE", 1)))
		b.restart()
		u.from, u.to, u.swapped = "b1", "a1", true // the callee's side, token-less
		u.uri, u.branch = "sip:alice@host.invalid", "z9hG4bK-bye"
		bye := b.one(b.in(aliceAt, u.request("BYE", 7)))
		if bye.to == inv.to {
			continue
		}
		again := b.one(b.from(bye, respond(bye.text, 481, "")))
		if again.to != inv.to || !strings.HasPrefix(again.text, "BYE ") {
			t.Fatalf("481 is followed by %v, want a BYE to %s", again, inv.to)
		}
		r := b.one(b.from(again, respond(again.text, 200, "")))
		if status(r.text) != "200" || r.to != "192.0.2.7:5070" {
			t.Errorf("the end is %v", r)
		}
		return
	}
	t.Fatal("no dialog whose keys part")
}

// SA-6: Replaces, Join and Target-Dialog go to the server of the dialog they name.
func TestSA6_Replaces(t *testing.T) {
	b := newBed(t, bedOptions{})
	for i := range 12 {
		a := alice(fmt.Sprint("orig", i))
		_, inv := dialog(b, aliceAt, a)
		for name, field := range map[string]string{
			"Replaces": fmt.Sprintf("Replaces: orig%d;to-tag=b1;from-tag=a1", i),
			"Join":     fmt.Sprintf("Join: orig%d ; from-tag=b1\r\n ;to-tag=a1", i),
			"Target":   fmt.Sprintf("Target-Dialog: orig%d;local-tag=a1;remote-tag=b1", i),
		} {
			u := alice(fmt.Sprint("new", name, i))
			u.from, u.extra = "z9", []string{field}
			if p := b.one(b.in(aliceAt, u.request("INVITE", 1))); p.to != inv.to {
				t.Errorf("%s went to %s, want %s", name, p.to, inv.to)
			}
		}
	}
	u := alice("unknown")
	u.extra = []string{"Replaces: nobody;to-tag=1;from-tag=2"}
	b.one(b.in(aliceAt, u.request("INVITE", 1)))
}

// SV-4: the same routing inputs: 482; changed ones are a spiral and go on.
func TestSV4_LoopAndSpiral(t *testing.T) {
	b := newBed(t, bedOptions{})
	inv := b.one(b.in(aliceAt, alice("loop").request("INVITE", 1)))
	back := strings.Replace(inv.text, "\r\nVia:", "\r\nVia: SIP/2.0/UDP 198.51.100.9:5060;branch=z9hG4bKrelay\r\nVia:", 1)
	if p := b.one(b.in(udp("198.51.100.9:5060"), back)); status(p.text) != "482" {
		t.Errorf("a loop gets %s", startLine(p.text))
	}
	spiral := strings.Replace(back, "INVITE sip:team@ex.com", "INVITE sip:other@ex.com", 1)
	spiral = strings.Replace(spiral, "z9hG4bKrelay", "z9hG4bKrelay2", 1)
	if p := b.one(b.in(udp("198.51.100.9:5060"), spiral)); b.nameAt(p.to) == p.to || len(values(p.text, "Via")) != 4 {
		t.Errorf("a spiral gets %s", startLine(p.text))
	}
}

// SR-9: a server calls out (Route, Request-URI), into the cluster, or a name of its own; route-only refuses the latter.
func TestSR9_FromServers(t *testing.T) {
	server := udp("10.20.1.11:5060")
	b := newBed(t, bedOptions{domains: []string{"ex.com"}})
	u := &ua{via: "UDP 10.20.1.11:5060", from: "s1", callID: "out", uri: "sip:bob@198.51.100.20:5080"}
	p := b.one(b.in(server, u.request("INVITE", 1)))
	if p.to != "198.51.100.20:5080" || len(values(p.text, "Record-Route")) != 1 {
		t.Fatalf("outward call: %v", p)
	}
	// The callee outside hangs up: the token is pinned to the server that called.
	bob := &ua{via: "UDP 198.51.100.20:5080", from: "b1", to: "s1", callID: "out", uri: "sip:x@host.invalid", routes: values(p.text, "Record-Route"), swapped: true}
	if bye := b.one(b.in(udp("198.51.100.20:5080"), bob.request("BYE", 1))); bye.to != "10.20.1.11:5060" {
		t.Errorf("BYE from outside went to %s", bye.to)
	}
	u.routes, u.callID = []string{"<sip:203.0.113.10;lr>", "<sip:198.51.100.30;lr>"}, "routed"
	if p := b.one(b.in(server, u.request("INVITE", 1))); p.to != "198.51.100.30:5060" || value(p.text, "Route") != "<sip:198.51.100.30;lr>" {
		t.Errorf("by Route: %v", p)
	}
	// Into the cluster: an initial request like any other; later requests find the other of the two servers.
	for i := range 20 {
		u := &ua{via: "UDP 10.20.1.11:5060", from: "s1", callID: fmt.Sprint("in", i), uri: "sip:team@ex.com"}
		in := b.one(b.in(server, u.request("INVITE", 1)))
		if b.nameAt(in.to) == in.to {
			t.Fatalf("into the cluster: %v", in)
		}
		if in.to == "10.20.1.11:5060" {
			continue
		}
		u.to, u.routes, u.uri = "b1", routeSet(in.text), "sip:x@host.invalid"
		if q := b.one(b.in(server, u.request("INFO", 2))); q.to != in.to {
			t.Errorf("caller's INFO went to %s, want %s", q.to, in.to)
		}
		callee := &ua{via: "UDP " + in.to, from: "b1", to: "s1", callID: u.callID, uri: "sip:x@host.invalid", routes: values(in.text, "Record-Route"), swapped: true}
		if q := b.one(b.in(udp(in.to), callee.request("BYE", 1))); q.to != "10.20.1.11:5060" {
			t.Errorf("callee's BYE went to %s", q.to)
		}
	}
	only := newBed(t, bedOptions{domains: []string{"ex.com"}, target: func(c *TargetConfig) { c.RouteOnly = true }})
	if p := only.one(only.in(server, (&ua{via: "UDP 10.20.1.11:5060", from: "s", callID: "x"}).request("INVITE", 1))); status(p.text) != "404" {
		t.Errorf("route-only: %v", p)
	}
	none := newBed(t, bedOptions{listener: func(l *ListenerConfig) { l.NoServers = true }})
	u = &ua{via: "UDP 10.20.1.11:5060", from: "s1", callID: "ns", uri: "sip:bob@198.51.100.20"}
	if p := none.one(none.in(server, u.request("INVITE", 1))); none.nameAt(p.to) == p.to {
		t.Errorf("a listener without servers lets one out: %v", p)
	}
}

// SX-3: a server's request, too, is never sent to what is no address of somebody.
func TestSX3_NeverSentTo(t *testing.T) {
	b := newBed(t, bedOptions{})
	for i, uri := range []string{"sip:x@224.0.1.75", "sip:x@255.255.255.255", "sip:x@0.0.0.0", "sip:x@127.0.0.1:5099", "sip:x@[::]", "sip:x@[ff02::1]", "sip:x@198.51.100.1:0"} {
		u := &ua{via: "UDP 10.20.1.11:5060", from: "s1", callID: fmt.Sprint("bad", i), uri: uri}
		for _, p := range b.in(udp("10.20.1.11:5060"), u.request("INVITE", 1)) {
			if p.to != "10.20.1.11:5060" {
				t.Errorf("%s: sent %s to %s", uri, startLine(p.text), p.to)
			}
		}
	}
}

// ST-6, SV-3: our own answers.
func TestST6_OwnAnswers(t *testing.T) {
	b := newBed(t, bedOptions{matcher: func(m *proxy.Matcher, tg *proxy.Target) { m.Add(proxy.Pattern{Host: "ex.com"}, tg) }})
	a := alice("unknown-host")
	a.uri = "sip:x@nobody.example"
	r := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	if status(r.text) != "404" || r.to != "192.0.2.7:5070" {
		t.Fatalf("answer is %v", r)
	}
	b.restart()
	if again := b.one(b.in(aliceAt, a.request("INVITE", 1))); again.text != r.text {
		t.Error("another node gives another To tag")
	}
	_, a.to, _ = strings.Cut(value(r.text, "To"), "tag=")
	b.none(b.in(aliceAt, a.request("ACK", 1)))
	if l := b.lines(); len(l) != 2 || string(l[0].Disp[:]) != "PK--" || l[0].Code != 404 {
		t.Errorf("log: %d lines, %s", len(l), l[0].Disp)
	}
	own := alice("ping")
	own.uri = "sip:203.0.113.10"
	for mf, want := range map[string]string{"70": "200", "0": "200"} {
		text := strings.Replace(own.request("OPTIONS", 1), "Max-Forwards: 70", "Max-Forwards: "+mf, 1)
		if r := b.one(b.in(aliceAt, text)); status(r.text) != want {
			t.Errorf("OPTIONS to us with Max-Forwards %s: %s", mf, startLine(r.text))
		}
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"zero hops":   {"Max-Forwards: 70", "Max-Forwards: 0", "483"},
		"scheme":      {"sip:team@ex.com SIP", "mailto:team@ex.com SIP", "416"},
		"version":     {"SIP/2.0\r\nVia", "SIP/3.0\r\nVia", "505"},
		"extension":   {"Max-Forwards", "Proxy-Require: foo, bar\r\nMax-Forwards", "420"},
		"CSeq":        {"CSeq: 1 INVITE", "CSeq: 1 BYE", "400"},
		"two Call-ID": {"CSeq", "Call-ID: x\r\nCSeq", "400"},
		"sips":        {"INVITE sip:team", "INVITE sips:team", "480"},
	} {
		text := alice("bad").request("INVITE", 1)
		bad := strings.Replace(text, c.from, c.to, 1)
		if bad == text {
			t.Fatalf("%s changes nothing", name)
		}
		r := b.one(b.in(aliceAt, bad))
		if status(r.text) != c.want || !strings.Contains(value(r.text, "To"), "tag=") {
			t.Errorf("%s: %s", name, r.text)
		}
		if c.want == "420" && value(r.text, "Unsupported") != "foo, bar" {
			t.Errorf("Unsupported is %q", value(r.text, "Unsupported"))
		}
		b.none(b.in(aliceAt, strings.ReplaceAll(bad, "INVITE", "ACK"))) // an ACK is never answered
	}
	b.p.Drain(true)
	if r := b.one(b.in(aliceAt, own.request("OPTIONS", 2))); status(r.text) != "503" || value(r.text, "Retry-After") == "" {
		t.Errorf("draining: %s", startLine(r.text))
	}
	b.p.Drain(false)
	for _, n := range []string{"as1", "as2", "as3"} {
		b.down(n)
	}
	if r := b.one(b.in(aliceAt, own.request("OPTIONS", 3))); status(r.text) != "503" {
		t.Errorf("all pools out: %s", startLine(r.text))
	}
	drop := newBed(t, bedOptions{listener: func(l *ListenerConfig) { l.DropBad = true }})
	drop.none(drop.in(aliceAt, strings.Replace(alice("d").request("INVITE", 1), "CSeq: 1 INVITE", "CSeq: x", 1)))
}

// SX-1, SX-2: received and rport, and where a response goes.
func TestSX2_ResponsesByVia(t *testing.T) {
	for _, c := range []struct{ via, at, want, line string }{
		{"UDP 192.0.2.7:5070", "192.0.2.7:6000", "192.0.2.7:5070", "SIP/2.0/UDP 192.0.2.7:5070;branch=z9hG4bKv"},
		{"UDP 192.0.2.7", "192.0.2.7:6000", "192.0.2.7:5060", "SIP/2.0/UDP 192.0.2.7;branch=z9hG4bKv"},
		{"UDP 10.0.0.1:5070", "192.0.2.7:6000", "192.0.2.7:5070", "SIP/2.0/UDP 10.0.0.1:5070;branch=z9hG4bKv;received=192.0.2.7"},
		{"UDP 10.0.0.1:5070;rport", "192.0.2.7:6000", "192.0.2.7:6000", "SIP/2.0/UDP 10.0.0.1:5070;rport=6000;branch=z9hG4bKv;received=192.0.2.7"},
		{"UDP host.invalid;maddr=198.51.100.66", "192.0.2.7:6000", "192.0.2.7:5060", "SIP/2.0/UDP host.invalid;maddr=198.51.100.66;branch=z9hG4bKv;received=192.0.2.7"},
		{"UDP 192.0.2.7:5070;received=198.51.100.66;rport=1", "192.0.2.7:6000", "192.0.2.7:6000", "SIP/2.0/UDP 192.0.2.7:5070;received=192.0.2.7;rport=6000;branch=z9hG4bKv"},
	} {
		b := newBed(t, bedOptions{})
		a := alice("via")
		a.via, a.branch = c.via, "z9hG4bKv"
		p := b.one(b.in(udp(c.at), a.request("OPTIONS", 1)))
		if v := values(p.text, "Via")[1]; v != c.line {
			t.Errorf("%s becomes %s", c.via, v)
		}
		r := b.one(b.from(p, respond(p.text, 200, "x")))
		if r.to != c.want || r.listener != "sip-udp" {
			t.Errorf("%s: response went to %s", c.via, r.to)
		}
		if bad := b.one(b.in(udp(c.at), strings.Replace(a.request("OPTIONS", 2), "Forwards: 70", "Forwards: x", 1))); bad.to != c.want {
			t.Errorf("%s: own answer went to %s", c.via, bad.to)
		}
	}
	// A stream client: its connection; gone: a new one to received with the sent-by port, never over UDP.
	b := newBed(t, bedOptions{})
	p := b.one(b.in(trunkAt, trunk("gone").request("OPTIONS", 1)))
	delete(b.net.flows, 7)
	if r := b.one(b.from(p, respond(p.text, 200, "x"))); r.to != "192.0.2.8:5070" || r.kind != transport.TCP {
		t.Errorf("response with the flow gone: %v", r)
	}
}

// SX-4, SX-5: what a datagram need not have, a stream must: a length, and the empty line behind the head.
func TestSX5_DatagramOntoStream(t *testing.T) {
	b := newBed(t, bedOptions{servers: tcpServers})
	text := strings.Replace(alice("nolength").request("MESSAGE", 1), "Content-Length: 0\r\n\r\n", "\r\nhello", 1)
	p := b.one(b.in(aliceAt, text))
	if value(p.text, "Content-Length") != "5" || !strings.HasSuffix(p.text, "\r\n\r\nhello") {
		t.Errorf("sent %s", p.text)
	}
	p = b.one(b.in(aliceAt, strings.TrimSuffix(alice("noend").request("OPTIONS", 1), "\r\n")))
	if !strings.HasSuffix(p.text, "\r\n\r\n") {
		t.Errorf("sent %q", p.text)
	}
	c := newBed(t, bedOptions{})
	q := c.one(c.in(trunkAt, trunk("reply").request("OPTIONS", 1)))
	r := c.one(c.from(q, strings.Replace(respond(q.text, 200, "x"), "Content-Length: 0\r\n\r\n", "\r\nhi", 1)))
	if value(r.text, "Content-Length") != "2" {
		t.Errorf("response is %s", r.text)
	}
}

// SX-13: IPv6 on both sides, and a pair when the families are bridged.
func TestSX13_IPv6(t *testing.T) {
	b := newBed(t, bedOptions{
		listeners: []string{"sip-udp udp 203.0.113.10:5060", "sip6 udp [2001:db8::10]:5060"},
		servers:   []string{"as1 udp 10.20.1.11:5060"},
	})
	a := alice("v6")
	a.via = "UDP [2001:db8::7]:5070"
	p := b.one(b.in(from{listener: "sip6", remote: "[2001:db8::7]:5070"}, a.request("INVITE", 1)))
	rr := values(p.text, "Record-Route")
	if p.listener != "sip-udp" || len(rr) != 2 || !strings.HasPrefix(rr[1], "<sip:[2001:db8::10]:5060;lr;") {
		t.Fatalf("bridged: %v", p)
	}
	if r := b.one(b.from(p, respond(p.text, 200, "x"))); r.to != "[2001:db8::7]:5070" || r.listener != "sip6" {
		t.Errorf("response: %v", r)
	}
	callee := &ua{via: "UDP 10.20.1.11:5060", from: "x", to: "a1", callID: "v6", uri: "sip:alice@[2001:DB8::7]:5070", routes: rr, swapped: true}
	if bye := b.one(b.from(p, callee.request("BYE", 1))); bye.to != "[2001:db8::7]:5070" || bye.listener != "sip6" || !strings.Contains(value(bye.text, "Via"), " [2001:db8::10]:5060;") {
		t.Errorf("callee's BYE: %v", bye)
	}
}

// SS-3, dcr.md 5.6: trust fields from strangers go, the fields of tell_server are ours alone.
func TestSS3_TrustFields(t *testing.T) {
	tell := func(c *TargetConfig) {
		c.Target.TellKey, c.Target.TellToken = "X-Wyegate-Key", "X-Wyegate-Token"
		c.TrustFrom = []netip.Prefix{netip.MustParsePrefix("192.0.2.128/25")}
	}
	b := newBed(t, bedOptions{target: tell})
	a := alice("trust")
	a.extra = []string{"P-Asserted-Identity: <sip:boss@ex.com>", "p-charging-vector: icid=1", "P-Preferred-Service: x", "x-wyegate-KEY: forged", "X-Wyegate-Token: forged", "P-Access-Network-Info: kept"}
	p := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	for _, n := range []string{"P-Asserted-Identity", "P-Charging-Vector", "P-Preferred-Service"} {
		if len(values(p.text, n)) != 0 {
			t.Errorf("%s passes", n)
		}
	}
	if k := values(p.text, "X-Wyegate-Key"); len(k) != 1 || k[0] != "a1trust" {
		t.Errorf("key is told as %q", k)
	}
	if k := values(p.text, "X-Wyegate-Token"); len(k) != 1 || k[0] == "forged" {
		t.Errorf("token is told as %q", k)
	}
	if value(p.text, "P-Access-Network-Info") != "kept" {
		t.Error("another field went too")
	}
	again := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	if again.text != p.text {
		t.Errorf("the copy differs:\n%s\n%s", p.text, again.text)
	}
	// A URI with the token that was told leads to the server, by another Call-ID too.
	u := alice("by-uri")
	u.uri = "sip:session@203.0.113.10;wg=" + value(p.text, "X-Wyegate-Token")
	if q := b.one(b.in(aliceAt, u.request("INVITE", 1))); q.to != p.to {
		t.Errorf("URI with token went to %s, want %s", q.to, p.to)
	}
	a.via = "UDP 192.0.2.200:5070"
	a.callID = "trusted"
	if q := b.one(b.in(udp("192.0.2.200:5070"), a.request("INVITE", 1))); value(q.text, "P-Asserted-Identity") == "" || value(q.text, "X-Wyegate-Key") == "forged" {
		t.Errorf("from a trusted source: %s", q.text)
	}
	// A server names the key of a dialog that it starts; the field does not leave.
	s := &ua{via: "UDP 10.20.1.11:5060", from: "s1", callID: "named", uri: "sip:bob@198.51.100.20", extra: []string{"X-Wyegate-Key: room%204711"}}
	out := b.one(b.in(udp("10.20.1.11:5060"), s.request("INVITE", 1)))
	if len(values(out.text, "X-Wyegate-Key")) != 0 {
		t.Error("the field leaves")
	}
	var codec proxy.Codec
	var tok proxy.Token
	if err := codec.ReadToken([]byte(tokenOf(value(out.text, "Record-Route"))), b.gen.secrets, proxy.UseRecordRoute, &tok); err != nil || !tok.Pinned || tok.Server != tag32("as1") || tok.Hash != hashOf("room 4711") {
		t.Errorf("token is %+v, %v", tok, err)
	}
}

// Live keys: a 2xx to INVITE begins one, the end of a BYE ends it, once however often it is repeated.
func TestSH6_LiveKeys(t *testing.T) {
	b := newBed(t, bedOptions{})
	var calls []*ua
	name := ""
	for i := range 5 {
		a := alice(fmt.Sprint("live", i))
		_, inv := dialog(b, aliceAt, a)
		b.one(b.from(inv, respond(inv.text, 200, "b1"))) // the 200 repeated
		name = b.nameAt(inv.to)
		calls = append(calls, a)
	}
	if n := b.pool.LiveKeys(); n != 5 {
		t.Fatalf("%d live keys, want 5", n)
	}
	total := int64(0)
	for _, s := range []string{"as1", "as2", "as3"} {
		total += b.reg.Server("app", s).Live(routing.Dialogs)
	}
	if total != 5 || b.reg.Server("app", name).Live(routing.Dialogs) == 0 {
		t.Errorf("%d dialogs on the servers", total)
	}
	for _, a := range calls {
		for range 2 {
			bye := b.one(b.in(aliceAt, a.request("BYE", 2)))
			b.one(b.from(bye, respond(bye.text, 200, "")))
		}
	}
	if n := b.pool.LiveKeys(); n != 0 {
		t.Errorf("%d live keys are left", n)
	}
	// A call that nobody ends ages out.
	dialog(b, aliceAt, alice("forgotten"))
	b.pass(time.Minute)
	b.now = b.now.Add(hintIdle)
	b.pass(time.Second)
	if n := b.pool.LiveKeys(); n != 0 {
		t.Errorf("%d live keys after four hours", n)
	}
}

// SH-5: a draining server keeps its dialogs and gets no new ones.
func TestSH5_Drain(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("drain")
	_, inv := dialog(b, aliceAt, a)
	name := b.nameAt(inv.to)
	b.pool.SetAdmin(b.reg.Server("app", name), routing.Drain, "test", b.now)
	if p := b.one(b.in(aliceAt, a.request("BYE", 2))); p.to != inv.to {
		t.Errorf("BYE went to %s", p.to)
	}
	for i := range 30 {
		if p := b.one(b.in(aliceAt, alice(fmt.Sprint("n", i)).request("REGISTER", 1))); p.to == inv.to {
			t.Error("a new request went to the draining server")
		}
	}
}

// Counters and log lines of a plain call.
func TestLineOfACall(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("line")
	inv := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	b.now = b.now.Add(20 * time.Millisecond)
	b.one(b.from(inv, respond(inv.text, 180, "b1")))
	b.now = b.now.Add(2 * time.Second)
	b.one(b.from(inv, respond(inv.text, 200, "b1")))
	l := b.lines()
	if len(l) != 1 {
		t.Fatalf("%d lines", len(l))
	}
	r := l[0]
	if string(r.Disp[:]) != "--F-" || r.Code != 200 || r.App != "voice/main" || r.Server != b.nameAt(inv.to) || r.Listener != "sip-udp" ||
		string(r.Bytes(r.CallID)) != "line" || string(r.Bytes(r.Key)) != "a1line" || r.KeySource != "default" || r.Proto != obs.SIP ||
		r.First != 20*time.Millisecond || r.Final != 2020*time.Millisecond || r.Client.String() != "192.0.2.7:5070" || r.Generation != 1 {
		t.Errorf("line is %+v", r)
	}
}

func hashOf(key string) uint64 {
	return proxy.DefaultKey(textKey(key), []proxy.KeyPart{0}, &proxy.Scratch{}).Hash
}

type textKey string

func (k textKey) Describe(*proxy.RuleRequest)                   {}
func (k textKey) AppendPart(dst []byte, _ proxy.KeyPart) []byte { return append(dst, k...) }
