package sipproxy

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/wyegate/wyegate/routing"
)

// SS-5: requests that nobody answers take a bounded part of what a node has. Those beyond are forwarded and remembered
// all the same: copies, responses and the end of their dialogs find what they need, and a held request still has its place.
func TestFloodHasABound(t *testing.T) {
	b := newBed(t, bedOptions{config: func(c *Config) { c.Waiting = 8 }})
	for i := range 20 {
		b.one(b.in(aliceAt, alice(fmt.Sprint("flood", i)).request("INVITE", 1)))
	}
	if n := b.w.open.count; n != 6 {
		t.Fatalf("%d transactions are held for requests that will come again, want 6 of 8", n)
	}
	if got := b.p.Stats().NotRemembered; got != 14 {
		t.Errorf("%d are counted as not held, want 14", got)
	}
	a := alice("late")
	inv := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	again := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	if again.to != inv.to || branchOf(again.text) != branchOf(inv.text) {
		t.Fatalf("a copy goes to %s, its request went to %s", again.to, inv.to)
	}
	ok := b.one(b.from(inv, respond(inv.text, 200, "b1")))
	live := func() (n int64) {
		for _, s := range []string{"as1", "as2", "as3"} {
			n += int64(b.reg.Server("app", s).Live(routing.Dialogs))
		}
		return n
	}
	if live() != 1 {
		t.Errorf("%d live dialogs, want 1", live())
	}
	a.to, a.routes, a.uri = "b1", routeSet(ok.text), "sip:x@host.invalid"
	bye := b.one(b.in(aliceAt, a.request("BYE", 2)))
	b.one(b.from(bye, respond(bye.text, 200, "")))
	if live() != 0 {
		t.Errorf("%d live dialogs are left behind the BYE", live())
	}
	for flow := range uint64(2) {
		b.in(tcp(flow+1, "198.51.100.8:40000"), alice(fmt.Sprint("held", flow)).request("MESSAGE", 1))
	}
	if n := b.w.open.count; n != 8 {
		t.Errorf("%d are held with two from reliable clients, want 8", n)
	}
	b.pass(3 * life)
	if b.w.open.count != 0 || b.w.mem.count != 0 {
		t.Errorf("%d held, %d remembered when all has ended", b.w.open.count, b.w.mem.count)
	}
}

// What a transaction without its response takes: the bound on their number is a bound on memory only with this.
func TestPendingIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(pending{}); n > 576 {
		t.Errorf("%d octets", n)
	}
}
