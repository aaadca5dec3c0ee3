package sipproxy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// overloaded lets intervals pass in which even the quickest message waited that long, and what is offered comes in.
func (g *guard) overloaded(now *time.Time, intervals int, wait time.Duration, offered map[priority]uint32) {
	for range intervals {
		for p, n := range offered {
			g.offered[p] = n
		}
		g.note(*now, wait, 50*time.Millisecond, false)
		*now = now.Add(shedInterval)
		g.note(*now, wait, 50*time.Millisecond, false)
	}
}

// Sections 12.1 and 12.2: admission falls until the wait is back at its target, what matters least goes first, and
// everything is admitted again within seconds.
func TestGuard(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	g := guard{share: 1}
	load := map[priority]uint32{foreignOptions: 100, newRegister: 100, newOther: 100, unprovenInvite: 100, newInvite: 100, inDialog: 100, emergency: 100}
	g.overloaded(&now, 3, 40*time.Millisecond, load)
	if g.share != 1 || g.shed != [priorities]uint32{} {
		t.Fatalf("shed below the target: %+v", g)
	}
	last := 1.0
	for range 12 {
		g.overloaded(&now, 1, 80*time.Millisecond, load)
		if g.share >= last && last > guardLeast {
			t.Fatalf("share %v after %v", g.share, last)
		}
		last = g.share
		for p := priority(1); p < priorities; p++ {
			if g.shed[p] > 0 && g.shed[p-1] < 1<<32-1<<32/50-1 {
				t.Fatalf("%d is shed before all of %d: %v", p, p-1, g.shed)
			}
		}
	}
	if last != guardLeast || !g.silent() || g.shed[emergency] == 0 {
		t.Fatalf("share %v, %v", last, g.shed)
	}
	seconds := 0.0
	for ; g.share < 1; seconds += shedInterval.Seconds() {
		g.overloaded(&now, 1, time.Millisecond, load)
	}
	if seconds > 6 || g.shed != [priorities]uint32{} {
		t.Errorf("all is admitted again after %v s, %v", seconds, g.shed)
	}
	// A burst that is worked off within the interval is no overload.
	g.note(now, time.Second, 50*time.Millisecond, false)
	g.note(now, time.Millisecond, 50*time.Millisecond, false)
	// Nor is a worker that is called late and finds nothing left afterwards.
	for range 4 {
		now = now.Add(shedInterval)
		g.note(now, time.Second, 50*time.Millisecond, true)
		g.note(now, time.Second, 50*time.Millisecond, false)
	}
	if g.share != 1 {
		t.Errorf("share %v", g.share)
	}
}

// Section 12.2 on messages: a refusal is a 503 with Retry-After, the same for every copy; what is never shed passes, and
// so do copies of what was admitted.
func TestOverloadShedsByPriority(t *testing.T) {
	b := newBed(t, bedOptions{})
	admitted := alice("admitted")
	out := b.one(b.in(aliceAt, admitted.request("INVITE", 1)))
	g := &b.w.guard
	for p := range newInvite + 1 {
		g.shed[p] = 1<<32 - 1
	}
	refused := func(method, callID string) bool {
		sent := b.one(b.in(aliceAt, alice(callID).request(method, 1)))
		if !strings.HasPrefix(sent.text, "SIP/2.0 ") {
			return false
		}
		var after int
		if _, err := fmt.Sscan(value(sent.text, "Retry-After"), &after); err != nil || status(sent.text) != "503" || after < 5 || after > 15 {
			t.Errorf("%s: %q", method, sent.text)
		}
		if again := b.one(b.in(aliceAt, alice(callID).request(method, 1))); again.text != sent.text {
			t.Errorf("%s: a copy got %q, not %q", method, again.text, sent.text)
		}
		return true
	}
	for _, method := range []string{"OPTIONS", "REGISTER", "SUBSCRIBE", "MESSAGE", "INVITE"} {
		if !refused(method, "new-"+method) {
			t.Errorf("%s passed", method)
		}
	}
	if sent := b.in(aliceAt, admitted.request("INVITE", 1)); len(sent) != 1 || sent[0].to != out.to {
		t.Errorf("a copy of what was admitted: %v", sent)
	}
	for name, text := range map[string]string{
		"BYE":               alice("bye").request("BYE", 2),
		"emergency":         strings.Replace(alice("sos").request("INVITE", 1), "INVITE sip:team@ex.com", "INVITE urn:service:sos", 1),
		"Resource-Priority": strings.Replace(alice("rp").request("INVITE", 1), "Max-Forwards", "Resource-Priority: ets.0\r\nMax-Forwards", 1),
		"in a dialog":       strings.Replace(alice("info").request("INFO", 2), "To: <sip:team@ex.com>", "To: <sip:team@ex.com>;tag=s1", 1),
	} {
		if sent := b.one(b.in(aliceAt, text)); strings.HasPrefix(sent.text, "SIP/2.0 ") {
			t.Errorf("%s: %q", name, sent.text)
		}
	}
	g.share = guardSilent / 2
	b.none(b.in(aliceAt, alice("dropped").request("INVITE", 1)))
	if b.p.Shed() != 11 {
		t.Errorf("%d counted", b.p.Shed())
	}
}

// Calls from invented addresses are shed before those of senders who are there: over a connection, or from a host that has
// sent a token of ours. A token that we did not make proves nothing.
func TestInventedAddressesAreShedFirst(t *testing.T) {
	b := newBed(t, bedOptions{})
	invite := b.one(b.in(aliceAt, alice("real").request("INVITE", 1)))
	route := value(invite.text, "Record-Route")
	g := &b.w.guard
	for p := range unprovenInvite + 1 {
		g.shed[p] = 1<<32 - 1
	}
	passes := func(callID string) bool {
		sent := b.one(b.in(aliceAt, alice(callID).request("INVITE", 1)))
		return !strings.HasPrefix(sent.text, "SIP/2.0 ")
	}
	if passes("before") {
		t.Error("a host that may be invented has passed")
	}
	bye := func(route string) string {
		m := strings.Replace(alice("real").request("BYE", 2), "Max-Forwards", "Route: "+route+"\r\nMax-Forwards", 1)
		return strings.Replace(m, "To: <sip:team@ex.com>", "To: <sip:team@ex.com>;tag=s1", 1)
	}
	at := strings.Index(route, ";wg=") + len(";wg=") + 3
	forged := route[:at] + string(route[at]^1) + route[at+1:]
	b.in(aliceAt, bye(forged))
	if passes("forged") {
		t.Error("a forged token has proven a host")
	}
	b.in(aliceAt, bye(route))
	if !passes("after") {
		t.Error("a host that has sent our token was shed")
	}
}
