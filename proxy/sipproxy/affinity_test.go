package sipproxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/dcr"
)

// SA-4: after 401, 407, 422 or a redirect to oneself the retry has a new CSeq and branch and the same key: it reaches the
// server that holds the nonce, also when nothing is remembered of the first attempt.
func TestSA4_RetryReachesTheServerOfTheNonce(t *testing.T) {
	for _, code := range []int{401, 407, 422, 302} {
		for _, method := range []string{"INVITE", "REGISTER"} {
			b := newBed(t, bedOptions{})
			a := alice(fmt.Sprintf("retry-%d", code))
			first := b.one(b.in(aliceAt, a.request(method, 1)))
			if p := b.one(b.from(first, respond(first.text, code, "s1"))); status(p.text) != fmt.Sprint(code) {
				t.Errorf("the %d did not come back: %s", code, startLine(p.text))
			}
			b.restart()
			a.extra = []string{`Authorization: Digest username="alice", nonce="n1"`}
			second := b.one(b.in(aliceAt, a.request(method, 2)))
			if second.to != first.to || branchOf(second.text) == branchOf(first.text) {
				t.Errorf("%s after %d went to %s, the first to %s", method, code, second.to, first.to)
			}
		}
	}
}

// SA-5: devices of one user, and refreshes after a restart of the device, meet under a rule by address of record; the
// default key, which has the Call-ID in it, spreads them.
func TestSA5_RegistrationsOfOneUserMeetByRule(t *testing.T) {
	rules, problems := dcr.Compile("aor.xml", []byte(`<user-centric-rules><sip-rules>
		<header name="To" return="request.To.uri.user"><exist/></header></sip-rules></user-centric-rules>`), dcr.Options{})
	if rules == nil {
		t.Fatal(problems)
	}
	servers := func(o bedOptions) map[string]bool {
		b := newBed(t, o)
		seen := map[string]bool{}
		for i := range 30 {
			u := alice(fmt.Sprintf("device-%d", i))
			u.from = fmt.Sprintf("t%d", i)
			seen[b.one(b.in(aliceAt, u.request("REGISTER", 1))).to] = true
		}
		return seen
	}
	if seen := servers(bedOptions{target: func(c *TargetConfig) { c.Target.Keyer = rules }}); len(seen) != 1 {
		t.Errorf("by rule the devices of one user are at %v", seen)
	}
	if seen := servers(bedOptions{}); len(seen) < 2 {
		t.Error("the default key is expected to spread them; this test proves nothing")
	}
}

// SA-7: a NOTIFY that comes before the 200 to its SUBSCRIBE passes at once, as do those of a second fork, and is
// record-routed; the subscriber's requests in each dialog go to the notifier of that dialog.
func TestSA7_NotifyBeforeThe200(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("sub")
	sub := b.one(b.in(aliceAt, a.request("SUBSCRIBE", 1)))
	routes := values(sub.text, "Record-Route")
	for _, fork := range []string{"f1", "f2"} {
		notifier := &ua{via: "UDP " + sub.to, from: fork, to: "a1", callID: "sub", uri: "sip:alice@192.0.2.7:5070", routes: routes, swapped: true}
		notifier.branch = "z9hG4bK-" + fork
		n := b.one(b.from(sub, notifier.request("NOTIFY", 1)))
		if n.to != "192.0.2.7:5070" || len(values(n.text, "Record-Route")) != 1 {
			t.Fatalf("NOTIFY of %s: %v", fork, n)
		}
		if r := b.one(b.in(aliceAt, respond(n.text, 200, ""))); r.to != sub.to {
			t.Errorf("the 200 to the NOTIFY of %s went to %s", fork, r.to)
		}
		refresh := alice("sub")
		refresh.to, refresh.uri, refresh.routes = fork, "sip:"+sub.to, values(n.text, "Record-Route")
		if p := b.one(b.in(aliceAt, refresh.request("SUBSCRIBE", 2+len(fork)))); p.to != sub.to {
			t.Errorf("refresh in the dialog of %s went to %s, want %s", fork, p.to, sub.to)
		}
	}
	if p := b.one(b.from(sub, respond(sub.text, 200, "f1"))); p.to != "192.0.2.7:5070" {
		t.Errorf("the late 200 went to %s", p.to)
	}
}

// SA-8: a forked INVITE has several To tags; what follows in each dialog goes by its own route set and Request-URI, not to
// where the other fork is.
func TestSA8_EachForkIsADialog(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("forked")
	inv := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	var routes []string
	for _, fork := range []string{"f1", "f2", "f3"} {
		r := b.one(b.from(inv, respond(inv.text, 183, fork)))
		if !strings.HasSuffix(value(r.text, "To"), "tag="+fork) {
			t.Fatalf("the 183 of %s: %s", fork, r.text)
		}
		routes = routeSet(r.text)
	}
	// The forks behind the first server have contacts at two servers of the pool.
	for fork, contact := range map[string]string{"f1": "10.20.1.11:5060", "f2": "10.20.1.12:5060", "f3": "10.20.1.13:5060"} {
		d := alice("forked")
		d.to, d.routes, d.uri = fork, routes, "sip:team@"+contact
		d.branch = "z9hG4bK-prack-" + fork
		p := b.one(b.in(aliceAt, d.request("PRACK", 2)))
		if startLine(p.text) != "PRACK sip:team@"+contact+" SIP/2.0" || p.to != contact {
			t.Errorf("PRACK of %s went to %s: %s", fork, p.to, startLine(p.text))
		}
		d.branch = "z9hG4bK-ack-" + fork
		if p := b.one(b.in(aliceAt, d.request("ACK", 1))); p.to != contact {
			t.Errorf("ACK to the 2xx of %s went to %s", fork, p.to)
		}
	}
}

// SR-11: an attempt at another server has the same edits as the first, made anew: only branch, token and Request-URI's
// host, where it names the server, differ.
func TestSR11_SecondAttemptIsMadeAnew(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("again")
	first := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	b.down(b.nameAt(first.to))
	second := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	if second.to == first.to {
		t.Fatal("the copy went to a server that is down")
	}
	masked := func(p packet) string {
		s := strings.ReplaceAll(p.text, branchOf(p.text), "BRANCH")
		return strings.ReplaceAll(s, tokenOf(values(p.text, "Record-Route")[0]), "TOKEN")
	}
	if masked(first) != masked(second) {
		t.Errorf("first\n%s\nsecond\n%s", first.text, second.text)
	}
	for field, want := range map[string]int{"Via": 2, "Record-Route": 1, "Max-Forwards": 1, "Content-Length": 1} {
		if n := len(values(second.text, field)); n != want {
			t.Errorf("%d %s in the second attempt, want %d", n, field, want)
		}
	}
}

// SS-2: what we answer ourselves over UDP to a source that nobody verified is at most 512 octets longer than what came,
// however much of the request is copied into it, and it goes to the source alone.
func TestSS2_NoAmplifier(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"no hops": func(s string) string { return strings.Replace(s, "Max-Forwards: 70", "Max-Forwards: 0", 1) },
		"scheme":  func(s string) string { return strings.Replace(s, "INVITE sip:team@ex.com", "INVITE http:x", 1) },
		"twice":   func(s string) string { return strings.Replace(s, "Call-ID:", "Call-ID: z\r\nCall-ID:", 1) },
		"proxy-require": func(s string) string {
			return strings.Replace(s, "CSeq", "Proxy-Require: "+strings.Repeat("a,", 200)+"b\r\nCSeq", 1)
		},
		"many Vias": func(s string) string {
			return strings.Replace(strings.Replace(s, "Max-Forwards: 70", "Max-Forwards: 0", 1), "From:", strings.Repeat("Via: SIP/2.0/UDP h\r\n", 60)+"From:", 1)
		},
		"spoofed address": func(s string) string {
			return strings.Replace(strings.Replace(s, ";branch", ";received=198.51.100.66;maddr=198.51.100.67;branch", 1), "Max-Forwards: 70", "Max-Forwards: 0", 1)
		},
	} {
		b := newBed(t, bedOptions{})
		req := change(alice("amp").request("INVITE", 1))
		p := b.one(b.in(aliceAt, req))
		if p.to != "192.0.2.7:5070" {
			t.Errorf("%s: answered to %s", name, p.to)
		}
		if len(p.text) > len(req)+512 {
			t.Errorf("%s: %d octets for %d", name, len(p.text), len(req))
		}
	}
}
