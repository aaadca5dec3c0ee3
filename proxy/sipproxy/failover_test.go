package sipproxy

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/routing"
)

var tcpServers = []string{"as1 tcp 10.20.1.11:5060", "as2 tcp 10.20.1.12:5060", "as3 tcp 10.20.1.13:5060"}

func refusedErr() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// 9.2: a UDP client's copy moves when its server is marked down and has not answered: another server, another branch.
// 9.5: late responses of the attempt left behind.
func TestST4_CopyMovesFromDownServer(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("moves")
	one := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	b.down(b.nameAt(one.to))
	two := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	if two.to == one.to || branchOf(two.text) == branchOf(one.text) {
		t.Fatalf("copy went to %s with %s", two.to, branchOf(two.text))
	}
	// 1xx of the old attempt: dropped, and a CANCEL with that attempt's branch ends the ghost call, once.
	can := b.one(b.from(one, respond(one.text, 180, "ghost")))
	if can.to != one.to || !strings.HasPrefix(can.text, "CANCEL sip:team@ex.com SIP/2.0") || branchOf(can.text) != branchOf(one.text) || value(can.text, "CSeq") != "1 CANCEL" || value(can.text, "To") != value(one.text, "To") {
		t.Errorf("ghost is cancelled by %v", can)
	}
	b.none(b.from(one, respond(one.text, 180, "ghost")))
	b.none(b.from(can, respond(can.text, 200, "ghost"))) // ours alone
	// The non-2xx final: dropped, and ACKed by us.
	ack := b.one(b.from(one, respond(one.text, 487, "ghost")))
	if ack.to != one.to || !strings.HasPrefix(ack.text, "ACK ") || branchOf(ack.text) != branchOf(one.text) || !strings.HasSuffix(value(ack.text, "To"), ";tag=ghost") {
		t.Errorf("487 of the ghost is acknowledged by %v", ack)
	}
	ok := b.one(b.from(two, respond(two.text, 200, "b2")))
	if status(ok.text) != "200" || ok.to != "192.0.2.7:5070" {
		t.Errorf("200 is %v", ok)
	}
	// A 2xx of the old attempt is passed on: the caller ends it.
	if late := b.one(b.from(one, respond(one.text, 200, "ghost"))); status(late.text) != "200" {
		t.Errorf("late 2xx is %v", late)
	}
	l := b.lines()
	if len(l) != 1 || string(l[0].Disp[:]) != "--F2" || l[0].NumTried != 2 || l[0].Code != 200 {
		t.Errorf("log has %d lines, %s, tried %v", len(l), l[0].Disp, l[0].Tried)
	}
}

// 9.1: with any response seen, 100 too, the transaction stays.
func TestST4_AnsweredStays(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("stays")
	one := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	b.one(b.from(one, respond(one.text, 100, "")))
	b.down(b.nameAt(one.to))
	if two := b.one(b.in(aliceAt, a.request("INVITE", 1))); two.to != one.to || two.text != one.text {
		t.Errorf("copy went to %s", two.to)
	}
}

// 9.1: a CANCEL of a transaction on a down server goes to the next choice.
func TestST5_CancelLeavesDownServer(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("cdown")
	one := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	b.down(b.nameAt(one.to))
	if can := b.one(b.in(aliceAt, a.request("CANCEL", 1))); can.to == one.to {
		t.Error("CANCEL went to the down server")
	}
	b.none(b.in(aliceAt, a.request("INVITE", 1))) // 9.5: no further copy behind the CANCEL
}

// SX-15, 9.3: a refused connect moves a stream client's request at once, with edits made anew, and takes the server
// down; all refused: 503 with Retry-After and a stable To tag, whose ACK goes nowhere.
func TestSX15_RefusedConnect(t *testing.T) {
	b := newBed(t, bedOptions{servers: tcpServers})
	c := trunk("refused")
	one := b.one(b.in(trunkAt, c.request("INVITE", 1)))
	if one.kind != transport.TCP || !strings.HasPrefix(value(one.text, "Via"), "SIP/2.0/TCP 203.0.113.10:5060;branch=") || len(branchOf(one.text)) != 60 {
		t.Fatalf("sent %v", one)
	}
	two := b.one(b.event(transport.Event{Kind: transport.FlowFailed, Flow: one.flow, Err: refusedErr()}))
	if two.to == one.to || len(values(two.text, "Via")) != 2 || len(values(two.text, "Record-Route")) != 1 || value(two.text, "Max-Forwards") != "69" {
		t.Fatalf("second attempt is %v", two)
	}
	if b.reg.Server("app", b.nameAt(one.to)).TakesKnown(routing.SIP) {
		t.Error("the server that refused is not down")
	}
	three := b.one(b.event(transport.Event{Kind: transport.FlowFailed, Flow: two.flow, Err: refusedErr()}))
	r := b.one(b.event(transport.Event{Kind: transport.FlowFailed, Flow: three.flow, Err: refusedErr()}))
	if status(r.text) != "503" || value(r.text, "Retry-After") == "" || r.to != "flow 7" {
		t.Fatalf("answer is %v", r)
	}
	again := b.one(b.in(trunkAt, c.request("INVITE", 1)))
	if again.text != r.text {
		t.Errorf("a copy gets another answer:\n%s\n%s", again.text, r.text)
	}
	_, c.to, _ = strings.Cut(value(r.text, "To"), "tag=")
	b.none(b.in(trunkAt, c.request("ACK", 1)))
	l := b.lines()
	if len(l) != 1 || string(l[0].Disp[:]) != "SCFX" || l[0].Code != 503 || l[0].NumTried != 3 {
		t.Errorf("log has %d lines: %s tried %d", len(l), l[0].Disp, l[0].NumTried)
	}
}

// The same when the network refuses in the call itself: full queue, no way there.
func TestSX15_FullQueue(t *testing.T) {
	b := newBed(t, bedOptions{servers: tcpServers})
	probe := b.one(b.in(trunkAt, trunk("full").request("OPTIONS", 1)))
	b.net.refuse[probe.to] = transport.ErrFull
	moved := b.one(b.in(trunkAt, trunk("full").request("OPTIONS", 2)))
	if moved.to == probe.to {
		t.Errorf("sent to %s, whose queue is full", moved.to)
	}
}

// 9.3: the server's connection breaks and the server is not down: the same bytes once more; the second time elsewhere.
func TestSX15_BrokenConnection(t *testing.T) {
	b := newBed(t, bedOptions{servers: tcpServers})
	one := b.one(b.in(trunkAt, trunk("broken").request("INVITE", 1)))
	again := b.one(b.event(transport.Event{Kind: transport.FlowClosed, Flow: one.flow, Err: errors.New("reset")}))
	if again.to != one.to || again.text != one.text {
		t.Fatalf("after the break: %v", again)
	}
	two := b.one(b.event(transport.Event{Kind: transport.FlowFailed, Flow: again.flow, Err: refusedErr()}))
	if two.to == one.to {
		t.Error("a refused second connect did not move the request")
	}
}

// 9.1: a server that takes every connection and breaks it is a transport error as well: after the second break the request
// moves, a UDP client's with its next copy.
func TestSX15_BreaksAgain(t *testing.T) {
	b := newBed(t, bedOptions{servers: tcpServers})
	reset := func(flow uint64) []packet {
		return b.event(transport.Event{Kind: transport.FlowClosed, Flow: flow, Err: errors.New("reset")})
	}
	for _, method := range []string{"INVITE", "MESSAGE"} {
		one := b.one(b.in(trunkAt, trunk("kept"+method).request(method, 1)))
		again := b.one(reset(one.flow))
		if two := b.one(reset(again.flow)); again.to != one.to || two.to == one.to {
			t.Errorf("%s went to %s, then %s, then %s", method, one.to, again.to, two.to)
		}
		a := alice("copies" + method)
		one = b.one(b.in(aliceAt, a.request(method, 1)))
		b.none(reset(one.flow))
		again = b.one(b.in(aliceAt, a.request(method, 1)))
		b.none(reset(again.flow))
		two := b.one(b.in(aliceAt, a.request(method, 1)))
		if again.to != one.to || two.to == one.to {
			t.Errorf("copies of %s went to %s, then %s, then %s", method, one.to, again.to, two.to)
		}
		b.one(b.from(two, respond(two.text, 200, "b1")))
	}
}

// SX-15: a server's request outwards that ends in a transport error is answered 503: at once where it came by a stream,
// else with its next copy.
func TestSX15_Outwards(t *testing.T) {
	b := newBed(t, bedOptions{servers: []string{"as1 udp 10.20.1.11:5060", "as2 tcp 10.20.1.12:5060"}})
	byUDP := udp("10.20.1.11:5060")
	byTCP := from{listener: "sip-tcp", remote: "10.20.1.12:5060", flow: 900, outgoing: true}
	b.net.flows[900] = true
	request := func(branch, to string) string {
		return strings.Replace(alice("out"+branch).request("INVITE", 1), "sip:team@ex.com", to, 1)
	}
	gone := request("u", "sip:bob@198.51.100.77:5070")
	out := b.one(b.in(byUDP, gone))
	b.none(b.event(transport.Event{Kind: transport.Unreachable, Remote: addrPortOf(out.to), Err: syscall.ECONNREFUSED}))
	if got := b.one(b.in(byUDP, gone)); status(got.text) != "503" {
		t.Errorf("behind an unreachable address: %v", got)
	}
	refused := request("t", "sip:bob@198.51.100.77:5070;transport=tcp")
	out = b.one(b.in(byUDP, refused))
	b.none(b.event(transport.Event{Kind: transport.FlowFailed, Flow: out.flow, Err: refusedErr()}))
	if got := b.one(b.in(byUDP, refused)); status(got.text) != "503" {
		t.Errorf("behind a refused connect: %v", got)
	}
	if got := b.one(b.in(byUDP, refused)); status(got.text) != "503" {
		t.Errorf("a further copy got %v", got)
	}
	x, err := b.w.explain(b.p.current.Load(), &Query{Source: addrPortOf(byUDP.remote), Message: []byte(refused)}, &answer{})
	if err != nil || x.Status != 503 || x.Decided != "memory" {
		t.Errorf("explain says %+v, %v", x, err)
	}
	out = b.one(b.in(byTCP, request("s", "sip:bob@198.51.100.77:5070;transport=tcp")))
	if got := b.one(b.event(transport.Event{Kind: transport.FlowFailed, Flow: out.flow, Err: refusedErr()})); status(got.text) != "503" || got.flow != 900 {
		t.Errorf("what came by a stream got %v", got)
	}
}

// SX-15: ICMP unreachable moves what a stream client sent, at once; a UDP client's request with its next copy.
func TestSX15_Unreachable(t *testing.T) {
	b := newBed(t, bedOptions{})
	one := b.one(b.in(trunkAt, trunk("icmp").request("INVITE", 1)))
	two := b.one(b.event(transport.Event{Kind: transport.Unreachable, Remote: addrPortOf(one.to)}))
	if two.to == one.to {
		t.Fatal("the request did not move")
	}
	if b.reg.Server("app", b.nameAt(one.to)).TakesKnown(routing.SIP) {
		t.Error("the server is not down")
	}
}

// 9.3: a down edge moves all that is kept for the server in one pass; what has a response stays.
func TestSX15_DownEdge(t *testing.T) {
	b := newBed(t, bedOptions{})
	waiting, ringing := 0, 0
	name := ""
	for i := range 40 {
		p := b.one(b.in(trunkAt, trunk(fmt.Sprint("edge", i)).request("INVITE", 1)))
		if name == "" {
			name = b.nameAt(p.to)
		}
		if b.nameAt(p.to) != name {
			continue
		}
		if i%2 == 0 {
			b.one(b.from(p, respond(p.text, 180, "b1")))
			ringing++
		} else {
			waiting++
		}
	}
	b.down(name)
	b.net.sent = nil
	b.w.serverDown(b.reg.Server("app", name))
	if len(b.net.sent) != waiting || waiting == 0 || ringing == 0 {
		t.Fatalf("%d requests moved, want %d (%d ring)", len(b.net.sent), waiting, ringing)
	}
	for _, p := range b.net.sent {
		if b.nameAt(p.to) == name {
			t.Error("moved to the down server")
		}
	}
}

// SH-7: no server: 503 with Retry-After at once; nothing for an ACK; the pool recovers by itself.
func TestSH7_NoServer(t *testing.T) {
	b := newBed(t, bedOptions{})
	for _, n := range []string{"as1", "as2", "as3"} {
		b.down(n)
	}
	r := b.one(b.in(aliceAt, alice("none").request("INVITE", 1)))
	if status(r.text) != "503" || value(r.text, "Retry-After") == "" || r.to != "192.0.2.7:5070" {
		t.Fatalf("answer is %v", r)
	}
	if again := b.one(b.in(aliceAt, alice("none").request("INVITE", 1))); again.text != r.text {
		t.Errorf("a copy gets another answer")
	}
	b.none(b.in(aliceAt, alice("stray").request("ACK", 1)))
	b.up("as2")
	if p := b.one(b.in(aliceAt, alice("none").request("INVITE", 2))); b.nameAt(p.to) != "as2" {
		t.Errorf("after the recovery: %v", p)
	}
}

// SH-3: a 503 never goes upstream while a server is left: 500 without Retry-After for who is not held.
func TestSH3_503BecomesOwn500(t *testing.T) {
	b := newBed(t, bedOptions{})
	inv := b.one(b.in(aliceAt, alice("busy").request("INVITE", 1)))
	r := b.one(b.from(inv, respond(inv.text, 503, "b1", "Retry-After: 120 (rest);duration=5", "X-Kept: yes")))
	if startLine(r.text) != "SIP/2.0 500 Server Internal Error" || value(r.text, "Retry-After") != "" || value(r.text, "X-Kept") != "yes" {
		t.Errorf("answer is %s", r.text)
	}
	// With Retry-After it gets no new dialogs for that time; known ones stay.
	name := b.nameAt(inv.to)
	for i := range 20 {
		if p := b.one(b.in(aliceAt, alice(fmt.Sprint("after", i)).request("INVITE", 1))); b.nameAt(p.to) == name {
			t.Fatal("a new dialog went to the server that rests")
		}
	}
	for _, n := range []string{"as1", "as2", "as3"} {
		if n != name {
			b.down(n)
		}
	}
	if r := b.one(b.in(aliceAt, alice("last").request("INVITE", 1))); status(r.text) != "503" {
		t.Errorf("with all servers out: %v", r)
	}
}

// SH-3: every server out: the 503 goes upstream as it came.
func TestSH3_503WithAllOut(t *testing.T) {
	b := newBed(t, bedOptions{servers: []string{"as1 udp 10.20.1.11:5060"}})
	inv := b.one(b.in(aliceAt, alice("only").request("INVITE", 1)))
	r := b.one(b.from(inv, respond(inv.text, 503, "b1", "Retry-After: 99999999999999999999")))
	if status(r.text) != "503" || value(r.text, "Retry-After") != "99999999999999999999" {
		t.Errorf("answer is %s", r.text)
	}
	if d := b.reg.Server("app", "as1").Detail(routing.SIP); !d.Held || !strings.Contains(d.Cause, "300") {
		t.Errorf("an absurd Retry-After is not the maximum: %+v", d)
	}
}

// 9.5 item 2: a 503 to a request that is held is ACKed by us and tried once on the next choice; a second one goes on as
// 500.
func TestSH3_503RetriedOnce(t *testing.T) {
	b := newBed(t, bedOptions{})
	c := trunk("retry")
	one := b.one(b.in(trunkAt, c.request("INVITE", 1)))
	sent := b.from(one, respond(one.text, 503, "b1"))
	if len(sent) != 2 {
		t.Fatalf("sent %v", sent)
	}
	ack, two := sent[0], sent[1]
	if ack.to != one.to || !strings.HasPrefix(ack.text, "ACK ") || branchOf(ack.text) != branchOf(one.text) || !strings.HasSuffix(value(ack.text, "To"), "tag=b1") {
		t.Errorf("503 is acknowledged by %v", ack)
	}
	if two.to == one.to || !strings.HasPrefix(two.text, "INVITE ") || branchOf(two.text) == branchOf(one.text) {
		t.Errorf("second attempt: %v", two)
	}
	r := b.one(b.from(two, respond(two.text, 503, "b2")))
	if status(r.text) != "500" || r.to != "flow 7" {
		t.Errorf("second 503 becomes %v", r)
	}
}

// SH-3: what has passed us before is not retried.
func TestSH3_NoRetryInTiers(t *testing.T) {
	b := newBed(t, bedOptions{})
	first := b.one(b.in(trunkAt, trunk("tiers").request("INVITE", 1)))
	// A server hands it on, with its own Via on top, over TCP and to another name.
	text := strings.Replace(first.text, "\r\nVia:", "\r\nVia: SIP/2.0/TCP 10.20.1.50:5060;branch=z9hG4bKtier\r\nVia:", 1)
	text = strings.Replace(text, "sip:team@ex.com SIP", "sip:other@ex.com SIP", 1)
	one := b.one(b.in(tcp(9, "10.20.1.50:40000"), text))
	r := b.one(b.from(one, respond(one.text, 503, "b1")))
	if status(r.text) != "500" {
		t.Errorf("503 in the second tier: %v", r)
	}
}

// 9.5 item 4: after a CANCEL no retry.
func TestST5_NoRetryBehindCancel(t *testing.T) {
	b := newBed(t, bedOptions{})
	c := trunk("canret")
	one := b.one(b.in(trunkAt, c.request("INVITE", 1)))
	if can := b.one(b.in(trunkAt, c.request("CANCEL", 1))); status(can.text) != "200" {
		t.Errorf("CANCEL is answered with %v", can)
	}
	r := b.one(b.from(one, respond(one.text, 503, "b1")))
	if status(r.text) != "500" {
		t.Errorf("answer is %v", r)
	}
}

// ST-10: the CANCEL of a held INVITE is answered 200, a repeated one absorbed, no further copy of the INVITE is sent;
// it goes out with the first provisional, and over UDP until the final response.
func TestST10_HeldCancel(t *testing.T) {
	b := newBed(t, bedOptions{})
	c := trunk("held")
	inv := b.one(b.in(trunkAt, c.request("INVITE", 1)))
	for range 2 {
		if r := b.one(b.in(trunkAt, c.request("CANCEL", 1))); status(r.text) != "200" || r.to != "flow 7" || value(r.text, "CSeq") != "1 CANCEL" {
			t.Fatalf("CANCEL is answered with %v", r)
		}
	}
	b.none(b.pass(3 * time.Second))
	sent := b.from(inv, respond(inv.text, 180, "b1"))
	if len(sent) != 2 || !strings.HasPrefix(sent[0].text, "CANCEL ") || sent[0].to != inv.to || branchOf(sent[0].text) != branchOf(inv.text) || status(sent[1].text) != "180" {
		t.Fatalf("with the 180: %v", sent)
	}
	if again := b.pass(1600 * time.Millisecond); len(again) != 2 || again[0].text != sent[0].text {
		t.Errorf("copies of the CANCEL: %v", again)
	}
	b.none(b.from(inv, respond(sent[0].text, 200, "b1")))
	if r := b.one(b.from(inv, respond(inv.text, 487, "b1"))); status(r.text) != "487" {
		t.Errorf("final is %v", r)
	}
	c.to = "b1"
	if a := b.one(b.in(trunkAt, c.request("ACK", 1))); a.to != inv.to {
		t.Errorf("ACK: %v", a)
	}
	b.none(b.pass(10 * time.Second))
}

// 9.3, ST-10: 100 after 200 ms and 408 after 64*T1 for a kept INVITE; a late 2xx passes; nothing of that for others or
// for UDP clients.
func TestST10_TryingAndTimeout(t *testing.T) {
	b := newBed(t, bedOptions{})
	c := trunk("slow")
	one := b.one(b.in(trunkAt, c.request("INVITE", 1)))
	if sent := b.pass(199 * time.Millisecond); len(sent) != 0 {
		t.Fatalf("too early: %v", sent)
	}
	r := b.one(b.pass(10 * time.Millisecond))
	if status(r.text) != "100" || strings.Contains(value(r.text, "To"), "tag=") {
		t.Fatalf("after 200 ms: %v", r)
	}
	copies, final := 0, packet{}
	for _, p := range b.pass(32 * time.Second) {
		switch {
		case p.to == one.to:
			copies++
			if p.text != one.text {
				t.Error("a copy differs from the first")
			}
		case final.text == "":
			final = p
		default:
			t.Errorf("besides: %v", p)
		}
	}
	if copies != 6 || status(final.text) != "408" {
		t.Errorf("%d copies, final %q", copies, startLine(final.text))
	}
	if late := b.one(b.from(one, respond(one.text, 200, "b1"))); status(late.text) != "200" {
		t.Errorf("late 2xx: %v", late)
	}
	if l := b.lines(); len(l) != 1 || string(l[0].Disp[:]) != "TWF-" || l[0].Code != 408 {
		t.Errorf("log: %v", l)
	}
	b.one(b.in(trunkAt, trunk("opt").request("OPTIONS", 1)))
	for _, p := range b.pass(40 * time.Second) {
		if status(p.text) != "" {
			t.Errorf("non-INVITE without a response: %v", p)
		}
	}
	b.one(b.in(aliceAt, alice("udp").request("INVITE", 1)))
	b.none(b.pass(40 * time.Second))
}

// Section 10: an INVITE without any response for two seconds is one failure; five in a row eject.
func TestSH2_SilenceIsPassiveFailure(t *testing.T) {
	b := newBed(t, bedOptions{passive: routing.Passive{ConsecutiveFailures: 5, EjectFor: 30 * time.Second, MaxEjected: 50}})
	name := ""
	for i, n := 0, 0; n < 5; i++ {
		p := b.one(b.in(aliceAt, alice(fmt.Sprint("quiet", i)).request("INVITE", 1)))
		if name == "" {
			name = b.nameAt(p.to)
		}
		if b.nameAt(p.to) == name {
			n++
		} else {
			b.one(b.from(p, respond(p.text, 180, "x")))
		}
	}
	b.pass(1900 * time.Millisecond)
	if !b.reg.Server("app", name).TakesKnown(routing.SIP) {
		t.Fatal("down too early")
	}
	b.pass(200 * time.Millisecond)
	if b.reg.Server("app", name).Word(routing.SIP) != "ejected" {
		t.Errorf("state is %s", b.reg.Server("app", name).Word(routing.SIP))
	}
}

// SA-10: the keys of a failed server spread over all survivors, and all messages of one key go together.
func TestSA10_FailedKeysSpread(t *testing.T) {
	b := newBed(t, bedOptions{servers: []string{"as1 udp 10.20.1.11:5060", "as2 udp 10.20.1.12:5060", "as3 udp 10.20.1.13:5060", "as4 udp 10.20.1.14:5060"}})
	var keys []string
	for i := range 400 {
		id := "spread-" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		if p := b.one(b.in(aliceAt, alice(id).request("OPTIONS", 1))); b.nameAt(p.to) == "as1" {
			keys = append(keys, id)
		}
	}
	b.down("as1")
	to := map[string]int{}
	for _, id := range keys {
		one := b.one(b.in(aliceAt, alice(id).request("OPTIONS", 2)))
		two := b.one(b.in(aliceAt, alice(id).request("INVITE", 3)))
		if one.to != two.to {
			t.Errorf("%s parts", id)
		}
		to[b.nameAt(one.to)]++
	}
	if len(to) != 3 {
		t.Errorf("%d keys went to %v", len(keys), to)
	}
}

// SX-9: a request too large for UDP goes by TCP where the server has an address for it, with Via TCP; that never sticks;
// refused: UDP for a minute.
func TestSX9_LargeRequest(t *testing.T) {
	b := newBed(t, bedOptions{servers: []string{"as1 udp+tcp 10.20.1.11:5060+10.20.1.11:5060"}})
	big := alice("big")
	big.extra = []string{"X-Large: " + strings.Repeat("x", 1300)}
	p := b.one(b.in(aliceAt, big.request("MESSAGE", 1)))
	if p.kind != transport.TCP || !strings.HasPrefix(value(p.text, "Via"), "SIP/2.0/TCP ") {
		t.Fatalf("sent over %v: %s", p.kind, value(p.text, "Via"))
	}
	if small := b.one(b.in(aliceAt, alice("big").request("MESSAGE", 2))); small.kind != transport.UDP {
		t.Error("TCP sticks")
	}
	big.callID = "big2"
	big.via, big.branch = "TCP 192.0.2.8:5070", ""
	one := b.one(b.in(trunkAt, big.request("INVITE", 1)))
	two := b.one(b.event(transport.Event{Kind: transport.FlowFailed, Flow: one.flow, Err: refusedErr()}))
	if two.kind != transport.UDP || two.to != "10.20.1.11:5060" || !b.reg.Server("app", "as1").TakesKnown(routing.SIP) {
		t.Errorf("after the refusal: %v", two)
	}
	big.callID = "big3"
	if p := b.one(b.in(trunkAt, big.request("INVITE", 1))); p.kind != transport.UDP {
		t.Error("tried again at once")
	}
	b.pass(61 * time.Second)
	big.callID = "big4"
	if p := b.one(b.in(trunkAt, big.request("INVITE", 1))); p.kind != transport.TCP {
		t.Error("not tried again after a minute")
	}
	only := newBed(t, bedOptions{servers: []string{"as1 udp 10.20.1.11:5060"}})
	if p := only.one(only.in(aliceAt, big.request("INVITE", 1))); p.kind != transport.UDP {
		t.Error("no TCP address: not sent by UDP")
	}
}
