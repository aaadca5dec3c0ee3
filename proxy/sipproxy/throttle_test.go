package sipproxy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// asks makes the 200 of a server that says something of its load in the Via that it got from us.
func asks(t *testing.T, request, oc string) string {
	t.Helper()
	answer := respond(request, 200, "s1")
	if !strings.Contains(answer, offer) {
		t.Fatalf("nothing is offered: %s", value(request, "Via"))
	}
	return strings.Replace(answer, offer, oc, 1)
}

// offered makes new calls in a while, and counts those that were refused.
func (b *bed) offered(name string, count int, every time.Duration, extra ...string) (refused int) {
	b.t.Helper()
	for i := range count {
		a := alice(fmt.Sprintf("%s-%d", name, i))
		a.extra = extra
		sent := b.one(b.in(aliceAt, a.request("INVITE", 1)))
		b.pass(every)
		switch {
		case !strings.HasPrefix(sent.text, "SIP/2.0 "):
		case status(sent.text) == "503" && value(sent.text, "Retry-After") == "":
			refused++
		default:
			b.t.Fatalf("%s", sent.text)
		}
	}
	return refused
}

// SH-4, RFC 7339 section 5: what a server asks for by loss is left out for as long as it said, new work first; what it says
// ends here, and a reload forgets nothing.
func TestServerAsksForLess(t *testing.T) {
	b := newBed(t, bedOptions{servers: []string{"as1 udp 10.20.1.11:5060"}})
	said := 0
	say := func(oc string) {
		t.Helper()
		said++
		// An emergency call: the last to be left out.
		a := alice(fmt.Sprint("say-", said))
		a.uri = "urn:service:sos"
		out := b.one(b.in(aliceAt, a.request("INVITE", 1)))
		back := b.one(b.from(out, asks(t, out.text, oc)))
		if status(back.text) != "200" || strings.Contains(back.text, "oc") {
			t.Fatalf("the caller got\n%s", back.text)
		}
	}
	const each = 2 * time.Millisecond
	if n := b.offered("free", 200, each); n != 0 {
		t.Fatalf("%d refused before anything was asked for", n)
	}
	say(`;oc=40;oc-algo="loss";oc-validity=60000;oc-seq=100.5`)
	if n := b.offered("less", 1000, each); n < 330 || n > 470 {
		t.Errorf("%d of 1000 left out of 40 %%", n)
	}
	for name, text := range map[string]string{
		"BYE":         alice("bye").request("BYE", 2),
		"in a dialog": strings.Replace(alice("info").request("INFO", 2), "To: <sip:team@ex.com>", "To: <sip:team@ex.com>;tag=s1", 1),
	} {
		if sent := b.one(b.in(aliceAt, text)); strings.HasPrefix(sent.text, "SIP/2.0 ") {
			t.Errorf("%s: %q", name, sent.text)
		}
	}
	b.p.Swap(b.build(), b.now, false)
	if n := b.offered("reload", 500, each); n < 150 || n > 250 {
		t.Errorf("%d of 500 left out after a reload", n)
	}
	// Older, absurd, of an unknown algorithm, or not to be read: ignored.
	for _, oc := range []string{`;oc=0;oc-algo="loss";oc-seq=100.4`, `;oc=101;oc-seq=101.0`, `;oc=1;oc-algo="new";oc-seq=101.0`, `;oc=x;oc-seq=101.0`, `;oc`} {
		say(oc)
	}
	if n := b.offered("ignored", 500, each); n < 150 || n > 250 {
		t.Errorf("%d of 500 left out after what is to be ignored", n)
	}
	say(`;oc=40;oc-validity=0;oc-seq=102.0`)
	if n := b.offered("over", 200, each); n != 0 {
		t.Errorf("%d refused when it was over", n)
	}
	say(`;oc=100;oc-seq=103.0`) // 500 ms
	if n := b.offered("all", 100, each); n != 100 {
		t.Errorf("%d of 100 left out of all", n)
	}
	b.pass(500 * time.Millisecond)
	if n := b.offered("passed", 100, each); n != 0 {
		t.Errorf("%d refused when its time was over", n)
	}
	if b.p.Left() < 700 {
		t.Errorf("%d counted", b.p.Left())
	}
}

// RFC 7415 section 3.5: a rate is kept to, what matters more gets its part of it first.
func TestServerAsksForARate(t *testing.T) {
	b := newBed(t, bedOptions{servers: []string{"as1 udp 10.20.1.11:5060"}})
	out := b.one(b.in(aliceAt, alice("say").request("INVITE", 1)))
	b.one(b.from(out, asks(t, out.text, `;oc=20;oc-algo="rate";oc-validity=60000;oc-seq=1.0`)))
	if n := b.offered("rate", 1000, 10*time.Millisecond); n < 760 || n > 800 { // 10 s at 100 a second
		t.Errorf("%d of 1000 left out", n)
	}
	registers, calls := 0, 0
	for i := range 500 {
		if sent := b.one(b.in(aliceAt, alice(fmt.Sprint("r", i)).request("REGISTER", 1))); !strings.HasPrefix(sent.text, "SIP/2.0 ") {
			registers++
		}
		calls += 1 - b.offered(fmt.Sprint("c", i), 1, 10*time.Millisecond)
	}
	if calls < 90 || registers > 5 {
		t.Errorf("%d calls and %d registrations passed", calls, registers)
	}
	out = b.one(b.in(aliceAt, strings.Replace(alice("bye").request("BYE", 2), "From:", "X: y\r\nFrom:", 1)))
	b.one(b.from(out, asks(t, out.text, `;oc=0;oc-algo=rate;oc-validity=1000;oc-seq=2.0`)))
	if n := b.offered("none", 20, 10*time.Millisecond); n != 20 {
		t.Errorf("%d of 20 left out of all", n)
	}
}

// SH-4: callers that offer it are told our own load, in the answers of servers and in ours, where the service says so.
func TestCallersAreToldOurLoad(t *testing.T) {
	for _, on := range []bool{true, false} {
		b := newBed(t, bedOptions{listener: func(c *ListenerConfig) { c.Overload = on }})
		call := func(id string) string { // what the caller's Via is when its call has come back
			a := alice(id)
			a.via += `;oc;oc-algo="A,loss"`
			sent := b.one(b.in(aliceAt, a.request("INVITE", 1)))
			if !strings.HasPrefix(sent.text, "SIP/2.0 ") {
				if top := values(sent.text, "Via")[1]; !strings.Contains(top, `;oc;oc-algo="A,loss"`) {
					t.Errorf("the server got %s", top)
				}
				sent = b.one(b.from(sent, respond(sent.text, 200, "s1")))
			}
			return value(sent.text, "Via")
		}
		seq := fmt.Sprintf("oc-seq=%d.000", b.now.Unix())
		want := `SIP/2.0/UDP 192.0.2.7:5070;oc;oc-algo="A,loss";branch=z9hG4bKa-INVITE-1`
		if on {
			want = `SIP/2.0/UDP 192.0.2.7:5070;oc=0;oc-algo="loss";oc-validity=0;` + seq + `;branch=z9hG4bKa-INVITE-1`
		}
		if got := call("a"); got != want {
			t.Errorf("%v: %s", on, got)
		}
		b.w.guard.share = 0.75
		want = strings.NewReplacer("oc=0", "oc=25", "validity=0", "validity=1000", "bKa-", "bKb-").Replace(want)
		if got := call("b"); got != want {
			t.Errorf("%v: under load %s", on, got)
		}
		b.w.guard.shed[unprovenInvite] = 1<<32 - 1
		if got := call("c"); got != strings.Replace(want, "bKb-", "bKc-", 1) {
			t.Errorf("%v: an answer of ours %s", on, got)
		}
		if got := value(b.one(b.in(aliceAt, strings.Replace(alice("d").request("BYE", 1), "Max-Forwards: 70", "Max-Forwards: 0", 1))).text, "Via"); strings.Contains(got, "oc") {
			t.Errorf("nobody asked: %s", got)
		}
	}
}
