package sipproxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/routing"
)

// 21.6, cancel race with a 200: both go their ways, the caller ACKs and hangs up, and the server gets both; a 200 that is
// repeated passes again. The same where the CANCEL was held because nobody had answered (ST-10).
func TestCancelRacesWithThe200(t *testing.T) {
	for _, c := range []struct {
		name string
		at   from
		ua   *ua
		held bool
	}{{"udp", aliceAt, alice("race-u"), false}, {"tcp", trunkAt, trunk("race-t"), false}, {"tcp, held", trunkAt, trunk("race-h"), true}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t, bedOptions{})
			inv := b.one(b.in(c.at, c.ua.request("INVITE", 1)))
			if !c.held {
				b.one(b.from(inv, respond(inv.text, 180, "b1")))
			}
			cancel := b.one(b.in(c.at, c.ua.request("CANCEL", 1)))
			if c.held && status(cancel.text) != "200" || !c.held && (cancel.to != inv.to || branchOf(cancel.text) != branchOf(inv.text)) {
				t.Fatalf("CANCEL: %v", cancel)
			}
			ok := b.one(b.from(inv, respond(inv.text, 200, "b1")))
			if status(ok.text) != "200" || !strings.HasSuffix(value(ok.text, "CSeq"), "INVITE") {
				t.Fatalf("the 200 that crossed: %v", ok)
			}
			if !c.held { // too late: 481 or 200, and the caller hears it
				if late := b.one(b.from(cancel, respond(cancel.text, 481, "b1"))); status(late.text) != "481" {
					t.Errorf("the CANCEL's answer: %v", late)
				}
			}
			if again := b.one(b.from(inv, respond(inv.text, 200, "b1"))); again.text != ok.text {
				t.Errorf("the repeated 200: %v", again)
			}
			b.none(b.pass(3 * time.Second)) // no copy, no CANCEL of ours behind a 200
			c.ua.to, c.ua.routes, c.ua.uri = "b1", routeSet(ok.text), "sip:"+inv.to
			for i, m := range []string{"ACK", "BYE"} {
				if p := b.one(b.in(c.at, c.ua.request(m, 1+i))); p.to != inv.to || branchOf(p.text) == branchOf(inv.text) {
					t.Errorf("%s: %v", m, p)
				}
			}
		})
	}
}

// 21.6, drain while ringing (section 11): what rings stays: PRACK, CANCEL, copies, the answer, the ACK and the dialog after
// it; what is new goes elsewhere. Drained means that nothing of it is left.
func TestDrainWhileRinging(t *testing.T) {
	b := newBed(t, bedOptions{})
	answers, gives := alice("answers"), alice("gives-up")
	one := b.one(b.in(aliceAt, answers.request("INVITE", 1)))
	for i := 0; ; i++ { // a second call that rings at the same server
		gives.callID = fmt.Sprint("gives-up-", i)
		two := b.one(b.in(aliceAt, gives.request("INVITE", 1)))
		b.one(b.from(two, respond(two.text, 180, "b1", "Require: 100rel", "RSeq: 1")))
		if two.to == one.to {
			break
		}
		b.one(b.from(two, respond(two.text, 486, "b1")))
	}
	ring := b.one(b.from(one, respond(one.text, 180, "b1", "Require: 100rel", "RSeq: 1")))
	server := b.reg.Server("app", b.nameAt(one.to))
	b.pool.SetAdmin(server, routing.Drain, "test", b.now)
	early := *answers
	early.to, early.routes, early.uri = "b1", routeSet(ring.text), "sip:"+one.to
	for cseq, m := range map[int]string{2: "PRACK", 3: "UPDATE"} {
		if p := b.one(b.in(aliceAt, early.request(m, cseq))); p.to != one.to {
			t.Errorf("%s went to %s", m, p.to)
		} else {
			b.one(b.from(p, respond(p.text, 200, "b1")))
		}
	}
	if p := b.one(b.in(aliceAt, answers.request("INVITE", 1))); p.to != one.to || p.text != one.text {
		t.Errorf("the copy went to %s", p.to)
	}
	cancel := b.one(b.in(aliceAt, gives.request("CANCEL", 1)))
	if cancel.to != one.to {
		t.Fatalf("CANCEL went to %s", cancel.to)
	}
	b.one(b.from(cancel, respond(cancel.text, 200, "b1")))
	two := b.one(b.in(aliceAt, gives.request("ACK", 1))) // before the 487, as some do: it follows its INVITE
	if two.to != one.to {
		t.Errorf("ACK went to %s", two.to)
	}
	for i := range 20 {
		if p := b.one(b.in(aliceAt, alice(fmt.Sprint("new", i)).request("INVITE", 1))); p.to == one.to {
			t.Error("a new call went to the draining server")
		}
	}
	ok := b.one(b.from(one, respond(one.text, 200, "b1")))
	answers.to, answers.routes, answers.uri = "b1", routeSet(ok.text), "sip:"+one.to
	for i, m := range []string{"ACK", "INFO", "BYE"} {
		p := b.one(b.in(aliceAt, answers.request(m, 4+i)))
		if p.to != one.to {
			t.Errorf("%s went to %s", m, p.to)
		}
		if m != "ACK" {
			b.one(b.from(p, respond(p.text, 200, "b1")))
		}
	}
	b.pass(10 * time.Minute)
	if n := server.Active(); n != 0 {
		t.Errorf("%d leases are left on the drained server", n)
	}
}

// 21.6, response at the other node; section 8: two nodes with one secret and one name: a response, a copy, a CANCEL, an ACK
// and the rest of the dialog do at the other node what they do at the one that had the INVITE.
func TestTheOtherNode(t *testing.T) {
	here, there := newBed(t, bedOptions{}), newBed(t, bedOptions{})
	a := alice("nodes")
	inv := here.one(here.in(aliceAt, a.request("INVITE", 1)))
	if r := there.one(there.from(inv, respond(inv.text, 180, "b1"))); r.to != "192.0.2.7:5070" || status(r.text) != "180" {
		t.Errorf("180 at the other node: %v", r)
	}
	if p := there.one(there.in(aliceAt, a.request("INVITE", 1))); p.to != inv.to || p.text != inv.text {
		t.Errorf("the copy at the other node: %v", p)
	}
	if p := there.one(there.in(aliceAt, a.request("CANCEL", 1))); p.to != inv.to || branchOf(p.text) != branchOf(inv.text) {
		t.Errorf("CANCEL at the other node: %v", p)
	}
	gone := alice("nodes")
	gone.to = "b1"
	if p := there.one(there.in(aliceAt, gone.request("ACK", 1))); p.to != inv.to || branchOf(p.text) != branchOf(inv.text) {
		t.Errorf("ACK at the other node: %v", p)
	}
	b := alice("nodes-2")
	inv = here.one(here.in(aliceAt, b.request("INVITE", 1)))
	ok := there.one(there.from(inv, respond(inv.text, 200, "b1")))
	b.to, b.routes, b.uri = "b1", routeSet(ok.text), "sip:x@host.invalid"
	for i, m := range []string{"ACK", "INVITE", "BYE"} {
		if p := there.one(there.in(aliceAt, b.request(m, 1+i))); p.to != inv.to {
			t.Errorf("%s at the other node went to %s", m, p.to)
		}
	}
	// A stream client's connection is the first node's: the other one opens one to where the client listens.
	c := trunk("nodes-3")
	inv = here.one(here.in(trunkAt, c.request("INVITE", 1)))
	if r := there.one(there.from(inv, respond(inv.text, 200, "b1"))); r.to != "192.0.2.8:5070" || r.kind != transport.TCP {
		t.Errorf("200 to a stream client at the other node: %v", r)
	}
	secret := newBed(t, bedOptions{secret: "another secret"})
	secret.none(secret.from(inv, respond(inv.text, 200, "b1"))) // a node of another cluster is a stranger
}
