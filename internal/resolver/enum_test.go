package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a DNS server on loopback, UDP and TCP on one port.
type scripted struct {
	addr  string
	asked atomic.Int32
	mu    sync.Mutex
	reply func(q *dns.Msg, network string) *dns.Msg // nil: silence
}

func (s *scripted) set(f func(q *dns.Msg, network string) *dns.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = f
}

func (s *scripted) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	s.asked.Add(1)
	s.mu.Lock()
	f := s.reply
	s.mu.Unlock()
	if m := f(q, w.RemoteAddr().Network()); m != nil {
		_ = w.WriteMsg(m)
	}
}

// onePort binds both transports to one port: what is free for UDP may be taken for TCP.
func onePort(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 100 {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if l, err := net.Listen("tcp", pc.LocalAddr().String()); err == nil {
			return pc, l
		}
		_ = pc.Close()
	}
	t.Fatal("no port free for both transports")
	return nil, nil
}

func serve(t *testing.T, f func(q *dns.Msg, network string) *dns.Msg) *scripted {
	t.Helper()
	s := &scripted{reply: f}
	pc, l := onePort(t)
	s.addr = pc.LocalAddr().String()
	var started sync.WaitGroup
	started.Add(2)
	for _, srv := range []*dns.Server{{PacketConn: pc}, {Listener: l}} {
		srv.Handler, srv.NotifyStartedFunc = s, started.Done
		done := make(chan error, 1)
		go func() { done <- srv.ActivateAndServe() }()
		t.Cleanup(func() {
			_ = srv.Shutdown()
			<-done
		})
	}
	started.Wait()
	return s
}

func records(lines ...string) func(q *dns.Msg, network string) *dns.Msg {
	return func(q *dns.Msg, _ string) *dns.Msg {
		m := new(dns.Msg)
		m.SetReply(q)
		for _, l := range lines {
			rr, err := dns.NewRR(strings.Replace(l, "@", q.Question[0].Name, 1))
			if err != nil {
				panic(err)
			}
			m.Answer = append(m.Answer, rr)
		}
		return m
	}
}

func code(rcode int) func(q *dns.Msg, network string) *dns.Msg {
	return func(q *dns.Msg, _ string) *dns.Msg { return new(dns.Msg).SetRcode(q, rcode) }
}

func silent(*dns.Msg, string) *dns.Msg { return nil }

const toAlice = `@ 300 IN NAPTR 100 10 "u" "E2U+sip" "!^\\+(.*)$!sip:\\1@example.net!" .`

// running gives a resolver under Run, ended with the test.
func running(t *testing.T, c ENUMConfig) *ENUM {
	t.Helper()
	e := NewENUM(c)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
	})
	for {
		e.mu.Lock()
		up := e.run != nil
		e.mu.Unlock()
		if up {
			return e
		}
		time.Sleep(time.Millisecond)
	}
}

// ask waits for the answer and looks it up.
func ask(t *testing.T, e *ENUM, digits string) (string, State) {
	t.Helper()
	done := make(chan struct{})
	if !e.Ask([]byte(digits), func() { close(done) }) {
		t.Fatal("shed")
	}
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("never told")
	}
	uri, s := e.Lookup([]byte(digits))
	return string(uri), s
}

func TestENUM(t *testing.T) {
	s := serve(t, func(q *dns.Msg, n string) *dns.Msg {
		if name := q.Question[0].Name; name != "8.7.6.5.4.3.2.1.6.4.e164.arpa." || q.Question[0].Qtype != dns.TypeNAPTR || q.IsEdns0() == nil {
			return code(dns.RcodeNameError)(q, n)
		}
		return records(toAlice)(q, n)
	})
	e := running(t, ENUMConfig{Client: Client{Resolvers: []string{s.addr}, Wait: 5 * time.Second}, Budget: 5 * time.Second})
	if _, st := e.Lookup([]byte("4612345678")); st != Missing {
		t.Fatalf("before: %v", st)
	}
	uri, st := ask(t, e, "4612345678")
	if uri != "sip:4612345678@example.net" || st != Known {
		t.Errorf("%q %v", uri, st)
	}
	if _, st := ask(t, e, "4699"); st != Null {
		t.Errorf("NXDOMAIN: %v", st)
	}
	if e.Count(Answered) != 1 || e.Count(Negative) != 1 || e.Count(Hit) != 2 || s.asked.Load() != 2 {
		t.Errorf("answers %d, negative %d, hits %d, asked %d", e.Count(Answered), e.Count(Negative), e.Count(Hit), s.asked.Load())
	}
	if p := e.Peek([]byte("4612345678")); p.URI != uri || p.Stale || p.State != Known {
		t.Errorf("%+v", p)
	}
}

// Outsiders cannot make us ask for names of their choice.
func TestOnlyNumbersAreAskedFor(t *testing.T) {
	s := serve(t, silent)
	e := running(t, ENUMConfig{Client: Client{Resolvers: []string{s.addr}}})
	for _, bad := range []string{"", "1234567890123456", "12a", "+46", "1.2", "٤٦"} {
		if _, st := e.Lookup([]byte(bad)); st != Null {
			t.Errorf("%q: %v", bad, st)
		}
		if e.Ask([]byte(bad), func() {}) {
			t.Errorf("%q was asked for", bad)
		}
	}
	if s.asked.Load() != 0 {
		t.Error("a query was sent")
	}
}

func TestRequestsForOneNumberShareAQuery(t *testing.T) {
	hold := make(chan struct{})
	s := serve(t, func(q *dns.Msg, n string) *dns.Msg { <-hold; return records(toAlice)(q, n) })
	e := running(t, ENUMConfig{Client: Client{Resolvers: []string{s.addr}, Wait: 5 * time.Second}, Budget: 5 * time.Second})
	var wg sync.WaitGroup
	for range 20 {
		wg.Add(1)
		if !e.Ask([]byte("46"), wg.Done) {
			t.Fatal("shed")
		}
	}
	if e.Waiting() != 20 {
		t.Errorf("%d wait", e.Waiting())
	}
	close(hold)
	wg.Wait()
	if s.asked.Load() != 1 || e.Waiting() != 0 {
		t.Errorf("%d queries, %d still wait", s.asked.Load(), e.Waiting())
	}
}

// The next resolver is asked when one is silent or says nothing of use; the answer's order does not matter.
func TestNextResolver(t *testing.T) {
	dead, broken, good := serve(t, silent), serve(t, code(dns.RcodeServerFailure)), serve(t, records(toAlice))
	for _, first := range []*scripted{dead, broken} {
		e := running(t, ENUMConfig{Client: Client{Resolvers: []string{first.addr, good.addr}}, Budget: 5 * time.Second})
		if uri, st := ask(t, e, "461"); uri != "sip:461@example.net" || st != Known {
			t.Errorf("%q %v", uri, st)
		}
	}
}

func TestTruncatedAnswersAreAskedForOverTCP(t *testing.T) {
	s := serve(t, func(q *dns.Msg, network string) *dns.Msg {
		if network == "udp" {
			m := new(dns.Msg).SetReply(q)
			m.Truncated = true
			return m
		}
		return records(toAlice)(q, network)
	})
	e := running(t, ENUMConfig{Client: Client{Resolvers: []string{s.addr}, Wait: 5 * time.Second}, Budget: 5 * time.Second})
	if uri, _ := ask(t, e, "461"); uri != "sip:461@example.net" {
		t.Errorf("%q", uri)
	}
}

// Silence ends with the budget, counts as nothing for 5 s, and nobody is asked meanwhile.
func TestBudget(t *testing.T) {
	a, b := serve(t, silent), serve(t, silent)
	e := running(t, ENUMConfig{Client: Client{Resolvers: []string{a.addr, b.addr}}})
	start := time.Now()
	if _, st := ask(t, e, "461"); st != Null {
		t.Errorf("%v", st)
	}
	if d := time.Since(start); d < 190*time.Millisecond || d > 2*time.Second {
		t.Errorf("took %v, the budget is 200 ms", d)
	}
	if e.Count(TimedOut) != 1 || a.asked.Load() != 1 || b.asked.Load() != 1 {
		t.Errorf("timeouts %d, asked %d and %d", e.Count(TimedOut), a.asked.Load(), b.asked.Load())
	}
}

func TestShed(t *testing.T) {
	s := serve(t, silent)
	e := running(t, ENUMConfig{Client: Client{Resolvers: []string{s.addr}}, Queries: 2, Rate: 100})
	var wg sync.WaitGroup
	wg.Add(2)
	for i := range 2 {
		if !e.Ask(fmt.Append(nil, 460+i), wg.Done) {
			t.Fatal("shed too early")
		}
	}
	if e.Ask([]byte("469"), func() { t.Error("told, though shed") }) {
		t.Error("a third at once")
	}
	if _, st := e.Lookup([]byte("469")); st != Null || e.Count(Shed) != 1 {
		t.Errorf("a shed number must count as failed: %v, %d", st, e.Count(Shed))
	}
	wg.Wait()
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewENUM(ENUMConfig{Rate: 3})
		for i := range 5 {
			if got := e.admit(time.Now()); got != (i < 3) {
				t.Errorf("query %d in this second: %v", i, got)
			}
		}
		time.Sleep(time.Second)
		if !e.admit(time.Now()) {
			t.Error("the next second is full too")
		}
	})
}

// 20 failures in a row: at once for 2 s, one probe every 500 ms.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		for range 19 {
			b.failed(time.Now())
		}
		if !b.allow(time.Now()) {
			t.Fatal("19 failures broke it")
		}
		b.failed(time.Now())
		asked := 0
		for range 18 {
			time.Sleep(100 * time.Millisecond)
			if b.allow(time.Now()) {
				asked++
			}
		}
		if asked != 3 {
			t.Errorf("%d probes in 1.8 s, want 3", asked)
		}
		time.Sleep(300 * time.Millisecond)
		if !b.allow(time.Now()) || !b.allow(time.Now()) {
			t.Error("after 2 s it is still broken")
		}
		b.failed(time.Now())
		if b.allow(time.Now()) {
			t.Error("one more failure does not break it again")
		}
		b.worked()
		if !b.allow(time.Now()) {
			t.Error("an answer does not mend it")
		}
	})
}

// answers plays DNS without sockets, for time.
func settle(e *ENUM, n number, f func(q *dns.Msg, network string) *dns.Msg, err error) {
	var m *dns.Msg
	if f != nil {
		q := new(dns.Msg)
		q.SetQuestion(n.domain("e164.arpa."), dns.TypeNAPTR)
		m = f(q, "udp")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settle(n, m, err, time.Now())
}

// The table of dcr.md section 14, in virtual time.
func TestLivesOfAnswers(t *testing.T) {
	lasts := func(e *ENUM, digits string, want State) time.Duration {
		start := time.Now()
		for {
			if _, s := e.Lookup([]byte(digits)); s != want {
				return time.Since(start)
			}
			time.Sleep(time.Second)
		}
	}
	soa := func(q *dns.Msg, n string) *dns.Msg {
		m := code(dns.RcodeNameError)(q, n)
		rr, _ := dns.NewRR("e164.arpa. 40 IN SOA ns. host. 1 1 1 1 20")
		m.Ns = append(m.Ns, rr)
		return m
	}
	ttl := func(n string) func(*dns.Msg, string) *dns.Msg {
		return records(strings.Replace(toAlice, "300", n, 1))
	}
	synctest.Test(t, func(t *testing.T) {
		n, _ := parseNumber([]byte("461"))
		for _, c := range []struct {
			name  string
			reply func(*dns.Msg, string) *dns.Msg
			err   error
			state State
			want  time.Duration
		}{
			{"TTL", ttl("120"), nil, Known, 120 * time.Second},
			{"at least 30 s", ttl("1"), nil, Known, 30 * time.Second},
			{"at most cache_max", ttl("86400"), nil, Known, 600 * time.Second},
			{"SOA minimum", soa, nil, Null, 20 * time.Second},
			{"no SOA", code(dns.RcodeNameError), nil, Null, 60 * time.Second},
			{"failure", nil, errors.New("SERVFAIL"), Null, 5 * time.Second},
		} {
			e := NewENUM(ENUMConfig{})
			settle(e, n, c.reply, c.err)
			if got := lasts(e, "461", c.state); got != c.want {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
	})
}

// A dead DNS must not change keys: the last answer is used for an hour past its end, and marked.
func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewENUM(ENUMConfig{})
		n, _ := parseNumber([]byte("461"))
		settle(e, n, records(toAlice), nil)
		start := time.Now()
		time.Sleep(301 * time.Second)
		if _, s := e.Lookup([]byte("461")); s != Missing {
			t.Errorf("expired: %v, resolvers may answer", s)
		}
		for time.Since(start) < 300*time.Second+time.Hour {
			settle(e, n, nil, errors.New("silence"))
			uri, s := e.Lookup([]byte("461"))
			if s != Known || string(uri) != "sip:461@example.net" || !e.Peek([]byte("461")).Stale {
				t.Fatalf("after %v: %q %v", time.Since(start), uri, s)
			}
			time.Sleep(6 * time.Second)
			if _, s := e.Lookup([]byte("461")); s != Missing {
				t.Fatal("a stale answer is asked for again after 5 s")
			}
		}
		settle(e, n, nil, errors.New("silence"))
		if _, s := e.Lookup([]byte("461")); s != Null {
			t.Errorf("an hour later: %v", s)
		}
		if e.Count(Stale) == 0 {
			t.Error("not counted")
		}
	})
}

func TestRefreshBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewENUM(ENUMConfig{})
		n, _ := parseNumber([]byte("461"))
		settle(e, n, records(toAlice), nil)
		time.Sleep(269 * time.Second)
		e.Lookup([]byte("461"))
		if len(e.renew) != 0 {
			t.Error("renewed before its last tenth")
		}
		time.Sleep(2 * time.Second)
		e.Lookup([]byte("461"))
		if len(e.renew) != 1 {
			t.Error("not renewed in its last tenth")
		}
		settle(e, n, nil, errors.New("silence"))
		if _, s := e.Lookup([]byte("461")); s != Known || e.Peek([]byte("461")).Stale {
			t.Errorf("a failed refresh spoilt an answer in force: %v", s)
		}
	})
}

func TestCacheForgetsTheOldestUnused(t *testing.T) {
	c := &cache[number, []byte]{hash: func(number) uint64 { return 0 }}
	now := time.Unix(1000, 0)
	for i := range number(ways) {
		c.put(&answer[number, []byte]{key: i, ends: now.Add(time.Hour).UnixNano()}, now.Add(time.Duration(i)*time.Second))
	}
	c.find(0, now.Add(10*time.Second))
	c.put(&answer[number, []byte]{key: 99, ends: now.Add(time.Hour).UnixNano()}, now.Add(11*time.Second))
	for k, want := range map[number]bool{0: true, 1: false, 2: true, 3: true, 99: true} {
		if a, _ := c.find(k, now); (a != nil) != want {
			t.Errorf("key %d there: %v", k, a != nil)
		}
	}
	if c.size.Load() != ways {
		t.Errorf("size %d", c.size.Load())
	}
}

// dcr.md 15.2: a cache hit costs no allocation.
func TestLookupAllocatesNothing(t *testing.T) {
	e := NewENUM(ENUMConfig{})
	n, _ := parseNumber([]byte("461"))
	settle(e, n, records(toAlice), nil)
	d := []byte("461")
	if a := testing.AllocsPerRun(1000, func() {
		if _, s := e.Lookup(d); s != Known {
			t.Fatal(s)
		}
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

func BenchmarkLookup(b *testing.B) {
	e := NewENUM(ENUMConfig{})
	n, _ := parseNumber([]byte("4612345678"))
	settle(e, n, records(toAlice), nil)
	d := []byte("4612345678")
	b.ReportAllocs()
	for b.Loop() {
		e.Lookup(d)
	}
}

// What is asked for before Run begins is asked with it, so that a start or a reload costs no number; after Run nothing is.
func TestENUMBeforeAndAfterRun(t *testing.T) {
	s := serve(t, records(toAlice))
	e := NewENUM(ENUMConfig{Client: Client{Resolvers: []string{s.addr}, Wait: 3 * time.Second}, Budget: 10 * time.Second})
	digits, done := []byte("4612345678"), make(chan struct{}, 2)
	for range 2 {
		if !e.Ask(digits, func() { done <- struct{}{} }) {
			t.Fatal("refused before Run")
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for range 2 {
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("never told")
		}
	}
	if _, state := e.Lookup(digits); state != Known || e.Waiting() != 0 || s.asked.Load() != 1 {
		t.Errorf("%v after %d queries, %d wait", state, s.asked.Load(), e.Waiting())
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if e.Ask([]byte("46"), func() {}) {
		t.Error("asked after Run")
	}
}
