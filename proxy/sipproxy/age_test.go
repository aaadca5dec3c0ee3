package sipproxy

import (
	"testing"

	"github.com/wyegate/wyegate/internal/sip/transport"
)

// Section 11.5: a worker lets an old connection go only while no transaction is open on it, whichever side began it.
func TestAgeOfBusyConnections(t *testing.T) {
	b := newBed(t, bedOptions{})
	mayGo := func(flow uint64) bool {
		free := false
		b.none(b.event(transport.Event{Kind: transport.Aged, Flow: flow, Do: func() { free = true }}))
		return free
	}
	expect := func(when string, want bool) {
		t.Helper()
		if got := mayGo(7); got != want {
			t.Errorf("%s: may go is %v", when, got)
		}
		if !mayGo(8) {
			t.Errorf("%s: another connection may not go", when)
		}
	}
	expect("before anything", true)
	c := trunk("aged")
	inv := b.one(b.in(trunkAt, c.request("INVITE", 1)))
	expect("INVITE sent", false)
	b.one(b.from(inv, respond(inv.text, 180, "b1")))
	expect("ringing", false)
	ok := b.one(b.from(inv, respond(inv.text, 200, "b1")))
	expect("answered", true)
	c.to, c.routes, c.uri = "b1", routeSet(ok.text), "sip:team@"+inv.to
	b.one(b.in(trunkAt, c.request("ACK", 1)))
	expect("in the dialog", true)
	callee := &ua{via: "UDP " + inv.to, from: "b1", to: c.from, callID: c.callID, uri: "sip:alice@192.0.2.8:5070;transport=tcp", routes: values(inv.text, "Record-Route"), swapped: true}
	info := b.one(b.from(inv, callee.request("INFO", 3)))
	expect("a server's request is open", false)
	b.one(b.in(trunkAt, respond(info.text, 200, "")))
	expect("it is answered", true)
	reg := b.one(b.in(trunkAt, trunk("aged-late").request("REGISTER", 1)))
	expect("REGISTER sent", false)
	if reg.to == "" {
		t.Error("REGISTER went nowhere")
	}
	for range 40 {
		b.pass(1e9)
	}
	expect("REGISTER timed out", true)
}
