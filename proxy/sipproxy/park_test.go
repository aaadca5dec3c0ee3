package sipproxy

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// letters is an Inbox of channels: a worker in Run and a test talk through it.
type letters struct {
	msgs   chan transport.Inbound
	events chan transport.Event
}

func newLetters() *letters {
	return &letters{make(chan transport.Inbound, 64), make(chan transport.Event, 64)}
}

func (l *letters) Wait() time.Duration { return 0 }
func (l *letters) Emptied() bool       { return true }

func (l *letters) Receive(ctx context.Context, until time.Time) ([]transport.Inbound, []transport.Event, time.Time) {
	var timer <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		timer = t.C
	}
	select {
	case m := <-l.msgs:
		return []transport.Inbound{m}, nil, time.Now()
	case e := <-l.events:
		return nil, []transport.Event{e}, time.Now()
	case <-timer:
	case <-ctx.Done():
	}
	return nil, nil, time.Now()
}

func (l *letters) Post(e transport.Event) bool {
	select {
	case l.events <- e:
		return true
	default:
		return false
	}
}

// stub is a rule set that needs a number, until it is known or given up.
type stub struct {
	number string
	known  *bool
	panics bool
}

func (s stub) Key(m dcr.Message, sc *dcr.Scratch, tr *dcr.Trace) dcr.Result {
	m.Describe(&sc.Req)
	if s.panics {
		panic("a rule that fails")
	}
	if !strings.HasPrefix(string(sc.Req.Target), "tel:") {
		return dcr.Result{Outcome: dcr.Matched, Key: []byte("plain")}
	}
	switch {
	case *s.known:
		return dcr.Result{Outcome: dcr.Matched, Key: []byte("resolved")}
	case sc.GiveUp:
		return dcr.Result{Outcome: dcr.NoKey, Rule: -1}
	}
	return dcr.Result{Outcome: dcr.NeedNumber, Number: []byte(s.number), Rule: -1}
}

func (s stub) Rules() []dcr.Rule { return []dcr.Rule{{Path: "/sip-rules/if[1]", Line: 3}} }

// asked notes questions; the test answers them.
type asked struct {
	mu    sync.Mutex
	done  []func()
	shed  bool
	asked []string
}

func (a *asked) Ask(_ string, number []byte, done func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, string(number))
	if a.shed {
		return false
	}
	a.done = append(a.done, done)
	return true
}

func parkingBed(t *testing.T, s stub, a *asked) (*bed, *letters) {
	mail := newLetters()
	b := newBed(t, bedOptions{
		config: func(c *Config) { c.Numbers = a; c.Ports[0].In = mail },
		target: func(c *TargetConfig) { c.Target.Keyer = s; c.Target.EnumBudget = 200 * time.Millisecond },
	})
	return b, mail
}

func telCall(id string) *ua {
	a := alice(id)
	a.uri = "tel:+4930123"
	return a
}

// dcr.md 14: a request that needs a number waits, all others pass by; a copy is dropped; a CANCEL waits behind its
// INVITE and follows it; the answer brings it back to the same worker.
func TestParkedForANumber(t *testing.T) {
	known, a := false, &asked{}
	b, mail := parkingBed(t, stub{number: "4930123", known: &known}, a)
	u := telCall("park")
	b.none(b.in(aliceAt, u.request("INVITE", 1)))
	b.none(b.in(aliceAt, u.request("INVITE", 1)))
	b.none(b.in(aliceAt, u.request("CANCEL", 1)))
	other := b.one(b.in(aliceAt, alice("other").request("INVITE", 1)))
	if b.nameAt(other.to) == other.to {
		t.Fatal("another request does not pass by")
	}
	if len(a.asked) != 1 || a.asked[0] != "4930123" {
		t.Fatalf("asked for %v", a.asked)
	}
	known = true
	a.done[0]()
	sent := b.event(<-mail.events)
	if len(sent) != 2 || !strings.HasPrefix(sent[0].text, "INVITE ") || !strings.HasPrefix(sent[1].text, "CANCEL ") || branchOf(sent[0].text) != branchOf(sent[1].text) || sent[0].to != sent[1].to {
		t.Fatalf("sent %v", sent)
	}
	b.one(b.from(sent[0], respond(sent[0].text, 487, "b1")))
	if l := b.lines(); len(l) != 1 || l[0].Disp[2] != 'R' || l[0].Rule != "/sip-rules/if[1]" || string(l[0].Bytes(l[0].Key)) != "resolved" {
		t.Errorf("log: %+v", l)
	}
}

// The budget ends: the number counts as null, the default key is used, nothing is lost. The same when there is no room,
// and when nobody may be asked.
func TestParkedUntilTheBudgetEnds(t *testing.T) {
	known, a := false, &asked{}
	b, _ := parkingBed(t, stub{number: "4930123", known: &known}, a)
	b.none(b.in(aliceAt, telCall("late").request("INVITE", 1)))
	b.none(b.pass(199 * time.Millisecond))
	p := b.one(b.pass(2 * time.Millisecond))
	b.one(b.from(p, respond(p.text, 200, "x")))
	if l := b.lines(); len(l) != 1 || l[0].Disp[2] != 'F' {
		t.Errorf("log: %+v", l)
	}
	a.done[0]() // too late: nobody waits
	a.shed = true
	b.one(b.in(aliceAt, telCall("shed").request("INVITE", 1)))
	a.shed = false
	b.w.parking.max = 0
	b.one(b.in(aliceAt, telCall("full").request("INVITE", 1)))
	if b.w.parking.octets != parkedOctets || len(b.w.parking.byKey) != 0 {
		t.Errorf("%d octets and %d requests are parked still", parkedOctets-b.w.parking.octets, len(b.w.parking.byKey))
	}
}

// SA-6 with the named dialog at another worker, which is asked.
func TestSA6_OtherWorker(t *testing.T) {
	boxes := []*letters{newLetters(), newLetters()}
	owner := func(callID []byte) int {
		if strings.HasPrefix(string(callID), "one") {
			return 1
		}
		return 0
	}
	b := newBed(t, bedOptions{config: func(c *Config) {
		c.Owner = owner
		c.Ports[0].In = boxes[0]
		c.Ports = append(c.Ports, c.Ports[0])
		c.Ports[1].In = boxes[1]
	}})
	w0, w1 := b.p.workers[0], b.p.workers[1]
	for i := range 8 {
		id := "one" + string(rune('a'+i))
		b.w = w1
		_, inv := dialog(b, aliceAt, alice(id))
		b.w = w0
		u := alice("pickup" + string(rune('a'+i)))
		u.extra = []string{"Replaces: " + id + ";to-tag=b1;from-tag=a1"}
		b.none(b.in(aliceAt, u.request("INVITE", 1)))
		b.w = w1
		b.none(b.event(<-boxes[1].events))
		b.w = w0
		if p := b.one(b.event(<-boxes[0].events)); p.to != inv.to {
			t.Errorf("pick-up went to %s, want %s", p.to, inv.to)
		}
	}
}

// architecture.md 4.2, rule 7: a panic costs its message and nothing else.
func TestPanicCostsOneMessage(t *testing.T) {
	known := false
	panics := 0
	b := newBed(t, bedOptions{
		config: func(c *Config) { c.Panic = func(any, []byte) { panics++ } },
		target: func(c *TargetConfig) { c.Target.Keyer = stub{known: &known, panics: true} },
	})
	b.none(b.in(aliceAt, alice("boom").request("INVITE", 1)))
	own := alice("ok")
	own.uri = "sip:203.0.113.10"
	b.one(b.in(aliceAt, own.request("OPTIONS", 1)))
	if s := b.p.Stats(); panics != 1 || s.Panics != 1 {
		t.Errorf("%d panics told, %d counted", panics, s.Panics)
	}
}

// Run ends with its context, and explain asks the worker while it works (operations.md 5.3).
func TestRunAndExplain(t *testing.T) {
	mail := newLetters()
	b := newBed(t, bedOptions{config: func(c *Config) { c.Ports[0].In = mail }})
	b.down("as1")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.p.Run(ctx) }()
	call := alice("explained")
	call.extra = []string{"P-Asserted-Identity: <sip:boss@ex.com>"}
	text := call.request("INVITE", 1)
	q := &Query{Listener: "sip-udp", Source: addrPortOf("192.0.2.7:5070"), Message: []byte(text), IfDown: []Assumption{{"as2", []string{"as2"}}, {"all", []string{"as2", "as3"}}}}
	x, err := b.p.Explain(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	if x.Listener != "sip-udp" || x.Application != "voice/main" || x.Kind != "converged" || !x.Initial || x.Key != "a1explained" || x.Source != "default" ||
		x.Decided != "default" || len(x.Candidates) != 3 || x.Server == "as1" || x.Server == "" || x.Partition == nil || x.Generation != 1 ||
		len(x.PassedOver) != 1 || x.PassedOver[0].Server != "as1" || x.IfDown["all"] != "" || len(x.Removed) != 1 {
		t.Errorf("explanation: %+v", x)
	}
	for name, s := range b.p.current.Load().pools[0].servers {
		if s.state.Active() != 0 {
			t.Errorf("explain counted on %v", name)
		}
	}
	offline, err := ExplainOffline(b.gen, q)
	if err != nil || offline.Server != x.Server || offline.Key != x.Key {
		t.Errorf("offline: %+v, %v", offline, err)
	}
	if _, err := b.p.Explain(ctx, &Query{Listener: "nobody"}); !errors.Is(err, ErrNoListener) {
		t.Errorf("unknown listener: %v", err)
	}
	// After traffic the memory decides.
	sock := b.socks["sip-udp"]
	at := addrPortOf("192.0.2.7:5070")
	mail.msgs <- transport.Inbound{Bytes: []byte(text), Listener: sock, Kind: transport.UDP, Remote: at, Source: at, Local: sock.Addr}
	deadline := time.Now().Add(5 * time.Second)
	for x.Decided != "memory" && time.Now().Before(deadline) {
		if x, err = b.p.Explain(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	if x.Decided != "memory" || x.Server != offline.Server {
		t.Errorf("after traffic: %+v", x)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run ended with %v", err)
	}
}

// A matched token, a refusal, a message to ourselves and an outward one, in words.
func TestExplainOffline(t *testing.T) {
	b := newBed(t, bedOptions{})
	a := alice("words")
	_, inv := dialog(b, aliceAt, a)
	known := true
	ruled := newBed(t, bedOptions{target: func(c *TargetConfig) { c.Target.Keyer, c.Target.RuleFile = stub{known: &known}, "rules.xml" }})
	own := alice("own")
	own.uri = "sip:203.0.113.10"
	s := &ua{via: "UDP 10.20.1.11:5060", from: "s", callID: "out", uri: "sip:bob@198.51.100.20"}
	for _, c := range []struct {
		gen             *Generation
		text            string
		at              string
		decided, server string
		status          int
	}{
		{b.gen, a.request("BYE", 2), "192.0.2.7:5070", "address", b.nameAt(inv.to), 0},
		{b.gen, strings.Replace(a.request("BYE", 2), a.uri, "sip:x@y.example", 1), "192.0.2.7:5070", "token", b.nameAt(inv.to), 0},
		{b.gen, own.request("OPTIONS", 1), "192.0.2.7:5070", "local", "", 200},
		{b.gen, s.request("INVITE", 1), "10.20.1.11:5060", "outward", "", 0},
		{b.gen, strings.Replace(own.request("INVITE", 1), "CSeq: 1", "CSeq: x", 1), "192.0.2.7:5070", "refused", "", 400},
		{ruled.gen, alice("r").request("INVITE", 1), "192.0.2.7:5070", "rule", "", 0},
	} {
		x, err := ExplainOffline(c.gen, &Query{Source: addrPortOf(c.at), Message: []byte(c.text)})
		if err != nil || x.Decided != c.decided || c.server != "" && x.Server != c.server || x.Status != c.status {
			t.Errorf("%s: %+v, %v", startLine(c.text), x, err)
		}
		if c.decided == "rule" && (x.Rule != "/sip-rules/if[1]" || x.RuleLine != 3 || x.RuleFile != "rules.xml" || x.Key != "plain") {
			t.Errorf("rule: %+v", x)
		}
	}
}

var _ proxy.Message = (*view)(nil)

// An unframeable stream: the answer that is owed, then the end (SX-5).
func TestSX5_Unframeable(t *testing.T) {
	b := newBed(t, bedOptions{})
	text := strings.Replace(trunk("bad").request("INVITE", 1), "Content-Length: 0\r\n", "", 1)
	bad := sipBad(400)
	sock := b.socks["sip-tcp"]
	at := addrPortOf("192.0.2.8:40000")
	b.net.flows[7] = true
	b.net.sent = nil
	b.w.batch([]transport.Inbound{{Bytes: []byte(text), Listener: sock, Kind: transport.TCP, Flow: 7, Remote: at, Source: at, Bad: bad}}, nil)
	if r := b.one(b.net.sent); status(r.text) != "400" || r.to != "flow 7" || len(b.net.closed) != 1 {
		t.Errorf("answer %v, closed %v", r, b.net.closed)
	}
	b.net.sent = nil
	b.w.batch([]transport.Inbound{{Bytes: []byte("GET / HTTP/1.1\r\n\r\n"), Listener: sock, Kind: transport.TCP, Flow: 7, Remote: at, Source: at, Bad: bad}}, nil)
	if len(b.net.sent) != 0 || len(b.net.closed) != 2 {
		t.Errorf("HTTP gets %v, closed %v", b.net.sent, b.net.closed)
	}
}

func sipBad(status int) *sip.Error {
	return &sip.Error{Status: status, Reason: sip.Reason(status), Close: true}
}
