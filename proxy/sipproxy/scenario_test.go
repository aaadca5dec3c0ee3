package sipproxy

import (
	"fmt"
	"strings"
	"testing"
)

// ST-1, SX-1, SR-4, SV-3: what one INVITE looks like behind us, octet for octet.
func TestST1_InviteForwarded(t *testing.T) {
	b := newBed(t, bedOptions{})
	p := b.one(b.in(udp("192.0.2.9:6000"), alice("c1").request("INVITE", 1)))
	if b.nameAt(p.to) == p.to || p.listener != "sip-udp" {
		t.Fatalf("sent to %s by %s", p.to, p.listener)
	}
	vias := values(p.text, "Via")
	if len(vias) != 2 || !strings.HasPrefix(vias[0], "SIP/2.0/UDP 203.0.113.10:5060;branch=z9hG4bK") || len(branchOf(p.text)) != 47 {
		t.Errorf("Vias are %q", vias)
	}
	if vias[1] != "SIP/2.0/UDP 192.0.2.7:5070;branch=z9hG4bKc1-INVITE-1;received=192.0.2.9" {
		t.Errorf("the client's Via is %s", vias[1])
	}
	rr := value(p.text, "Record-Route")
	if !strings.HasPrefix(rr, "<sip:203.0.113.10:5060;lr;wg=c") || !strings.HasSuffix(rr, ">") {
		t.Errorf("Record-Route is %s", rr)
	}
	if value(p.text, "Max-Forwards") != "69" {
		t.Errorf("Max-Forwards is %s", value(p.text, "Max-Forwards"))
	}
}

// A whole call over UDP: every in-dialog request of either side meets the server of its INVITE, and every response its
// requester (SA-1, ST-3, ST-8, SR-9).
func TestSA1_WholeCall(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("call")
	inv := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	r := b.one(b.from(inv, respond(inv.text, 180, "b1")))
	if r.to != "192.0.2.7:5070" || r.listener != "sip-udp" || len(values(r.text, "Via")) != 1 {
		t.Fatalf("180 went to %s: %s", r.to, r.text)
	}
	ok := b.one(b.from(inv, respond(inv.text, 200, "b1", "Contact: <sip:team@"+inv.to+">")))
	a.to, a.routes, a.uri = "b1", routeSet(ok.text), "sip:team@"+inv.to
	ack := b.one(b.in(aliceAt, a.request("ACK", 1)))
	if ack.to != inv.to || branchOf(ack.text) == branchOf(inv.text) || values(ack.text, "Route") != nil {
		t.Errorf("ACK to 2xx went to %s: %s", ack.to, ack.text)
	}
	for i, m := range []string{"PRACK", "INVITE", "UPDATE", "INFO"} {
		p := b.one(b.in(aliceAt, a.request(m, 2+i)))
		if p.to != inv.to {
			t.Errorf("%s went to %s, want %s", m, p.to, inv.to)
		}
		back := b.one(b.from(p, respond(p.text, 200, "")))
		if back.to != "192.0.2.7:5070" {
			t.Errorf("200 to %s went to %s", m, back.to)
		}
	}
	// The callee hangs up: tags swapped, its route set top first (SA-1). It is not balanced, it goes to the caller.
	callee := &ua{via: "UDP " + inv.to, from: "b1", to: "a1", callID: "call", uri: "sip:alice@192.0.2.7:5070", routes: values(inv.text, "Record-Route"), swapped: true}
	bye := b.one(b.from(inv, callee.request("BYE", 9)))
	if bye.to != "192.0.2.7:5070" || values(bye.text, "Route") != nil || startLine(bye.text) != "BYE sip:alice@192.0.2.7:5070 SIP/2.0" {
		t.Fatalf("callee's BYE went to %s: %s", bye.to, bye.text)
	}
	end := b.one(b.in(aliceAt, respond(bye.text, 200, "")))
	if end.to != inv.to {
		t.Errorf("the 200 to the BYE went to %s, want %s", end.to, inv.to)
	}
}

// ST-3: CANCEL and the ACK to a non-2xx have branch and server of their INVITE; one ACK in is one ACK out.
func TestST3_CancelAndAck(t *testing.T) {
	b := newBed(t, bedOptions{})
	for _, mk := range []func(*ua){
		func(*ua) {},
		func(u *ua) { u.branch = "1" }, // RFC 2543
		func(u *ua) { u.branch = "z9hG4bK" },
		func(u *ua) { u.branch = "z9hG4bK-constant" },
	} {
		a := alice("cancel")
		mk(a)
		a.callID += a.branch
		inv := b.one(b.in(aliceAt, a.request("INVITE", 1)))
		b.one(b.from(inv, respond(inv.text, 100, "")))
		for range 2 { // ST-5: forwarded, twice if it came twice
			can := b.one(b.in(aliceAt, a.request("CANCEL", 1)))
			if can.to != inv.to || branchOf(can.text) != branchOf(inv.text) || values(can.text, "Record-Route") != nil {
				t.Errorf("CANCEL went to %s with %s, INVITE to %s with %s", can.to, branchOf(can.text), inv.to, branchOf(inv.text))
			}
			r := b.one(b.from(can, respond(can.text, 200, "b1")))
			if value(r.text, "CSeq") != "1 CANCEL" || r.to != "192.0.2.7:5070" {
				t.Errorf("answer to CANCEL: %v", r)
			}
		}
		fin := b.one(b.from(inv, respond(inv.text, 487, "b1")))
		if status(fin.text) != "487" {
			t.Error("the 487 is lost")
		}
		a.to = "b1"
		ack := b.one(b.in(aliceAt, a.request("ACK", 1)))
		if ack.to != inv.to || branchOf(ack.text) != branchOf(inv.text) {
			t.Errorf("ACK went to %s with %s", ack.to, branchOf(ack.text))
		}
	}
	for _, l := range b.lines() {
		if string(l.Bytes(l.Method)) == "INVITE" && (string(l.Disp[:2]) != "CW" || l.Code != 487) {
			t.Errorf("line of a cancelled call: %d %s", l.Code, l.Disp)
		}
	}
}

// ST-7: the ACK to a 407 with a fresh branch finds its server by the second index.
func TestST7_AckWithFreshBranch(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("c407")
	inv := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	b.one(b.from(inv, respond(inv.text, 407, "b1")))
	b.down(b.nameAt(inv.to)) // the key would now give another server
	a.branch, a.to = "z9hG4bK-fresh", "b1"
	ack := b.one(b.in(aliceAt, a.request("ACK", 1)))
	if ack.to != inv.to || branchOf(ack.text) != branchOf(inv.text) {
		t.Errorf("ACK went to %s with branch %s", ack.to, branchOf(ack.text))
	}
}

// ST-4: a retransmission takes the same path, octet for octet, over a reload that changes the pool and over health
// changes once it was answered.
func TestST4_RetransmissionOverReload(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("r1")
	first := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	b.opt.servers = []string{"as7 udp 10.20.1.17:5060", "as8 udp 10.20.1.18:5060"}
	b.p.Swap(b.build(), b.now, false)
	again := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	if again.to != first.to || again.text != first.text {
		t.Errorf("after a reload the copy went to %s:\n%s\nthe first to %s:\n%s", again.to, again.text, first.to, first.text)
	}
	b.one(b.from(first, respond(first.text, 180, "b1")))
	b.pass(20 * 1e9)
	can := b.one(b.in(aliceAt, a.request("CANCEL", 1)))
	if can.to != first.to || branchOf(can.text) != branchOf(first.text) {
		t.Errorf("CANCEL went to %s", can.to)
	}
	if n := len(b.p.current.Load().gone); n != 3 {
		t.Errorf("%d servers that left are remembered, want 3", n)
	}
	b.pass(40 * 1e9)
	if p := b.one(b.in(aliceAt, alice("new").request("INVITE", 1))); b.nameAt(p.to) == p.to {
		t.Errorf("a new call went to %s, which left", p.to)
	}
}

// ST-8, section 8: a restart in mid-call loses nothing but the memory; responses, dialog and branch are the same.
func TestST8_Restart(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("restart")
	inv := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	b.restart()
	again := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	if again.text != inv.text || again.to != inv.to {
		t.Errorf("after a restart the copy differs:\n%s\n%s", inv.text, again.text)
	}
	b.restart()
	ok := b.one(b.from(inv, respond(inv.text, 200, "b1")))
	if ok.to != "192.0.2.7:5070" {
		t.Errorf("200 went to %s", ok.to)
	}
	a.to, a.routes, a.uri = "b1", routeSet(ok.text), "sip:team@host.invalid"
	for i := 4; ; i++ { // the key's own server is another one meanwhile: the token knows better
		b.opt.servers = append(b.opt.servers, fmt.Sprintf("as%d udp 10.20.1.%d:5060", i, 10+i))
		b.restart()
		if p := b.one(b.in(aliceAt, alice("restart").request("INVITE", 7))); p.to != inv.to {
			break
		}
		if i > 60 {
			t.Fatal("the key never gets another server")
		}
	}
	bye := b.one(b.in(aliceAt, a.request("BYE", 2)))
	if bye.to != inv.to {
		t.Errorf("BYE went to %s, want %s", bye.to, inv.to)
	}
}

// ST-8: foreign top Via, a branch not ours, one for another requester, ours alone: dropped in silence.
func TestST8_ForeignResponses(t *testing.T) {
	b := newBed(t, bedOptions{})
	inv := b.one(b.in(aliceAt, alice("f1").request("INVITE", 1)))
	good := respond(inv.text, 200, "b1")
	for name, bad := range map[string]string{
		"foreign sent-by":     strings.Replace(good, "203.0.113.10:5060;branch", "203.0.113.99:5060;branch", 1),
		"foreign branch":      strings.Replace(good, branchOf(inv.text), "z9hG4bKwhatever", 1),
		"changed branch":      strings.Replace(good, branchOf(inv.text)[:20], branchOf(inv.text)[:19]+"q", 1),
		"another requester":   strings.Replace(good, "192.0.2.7:5070", "198.51.100.66:5070", 1),
		"another port":        strings.Replace(good, "192.0.2.7:5070", "192.0.2.7:5071", 1),
		"spoofed received":    strings.Replace(good, "branch=z9hG4bKf1-INVITE-1", "branch=z9hG4bKf1-INVITE-1;received=198.51.100.66", 1),
		"ours alone":          strings.Replace(good, "Via: SIP/2.0/UDP 192.0.2.7:5070;branch=z9hG4bKf1-INVITE-1\r\n", "", 1),
		"no Via":              strings.ReplaceAll(good, "Via:", "X-Via:"),
		"status out of range": strings.Replace(good, " 200 ", " 4294967301 ", 1),
		"other transport":     strings.Replace(good, "SIP/2.0/UDP 192.0.2.7", "SIP/2.0/TCP 192.0.2.7", 1),
	} {
		if bad == good {
			t.Fatalf("%s: the case changes nothing", name)
		}
		if sent := b.from(inv, bad); len(sent) != 0 {
			t.Errorf("%s: sent %v", name, sent)
		}
	}
	// Two values in one line, folded, compact name, other spelling of parameters: one value comes off, the rest stays.
	odd := strings.Replace(good, "\r\nVia: SIP/2.0/UDP 192.0.2.7:5070;branch=z9hG4bKf1-INVITE-1", " ,\r\n SIP / 2.0 / UDP 192.0.2.7 : 5070 ; BRANCH=z9hG4bKf1-INVITE-1;x=y", 1)
	odd = strings.Replace(odd, "Via:", "v :", 1)
	r := b.one(b.from(inv, odd))
	if r.to != "192.0.2.7:5070" || !strings.Contains(r.text, "SIP / 2.0 / UDP 192.0.2.7 : 5070 ; BRANCH=z9hG4bKf1-INVITE-1;x=y\r\n") {
		t.Errorf("odd Vias: %v", r)
	}
}
