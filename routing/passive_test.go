package routing

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var passive = Passive{ConsecutiveFailures: 5, EjectFor: 30 * time.Second, MaxEjected: 50}

func fails(p *Pool, s *Server, n int) {
	for range n {
		p.Report(s, HTTP, OutcomeTimeout)
	}
}

func TestEjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Registry{}
		var changes []Change
		suspects := 0
		p := pool(t, r, Config{Passive: passive, OnChange: func(c Change) { changes = append(changes, c) },
			OnSuspect: func(*Server, Proto) { suspects++ }}, mems(r, 1, 1, 1, 1)...)
		s := srv(r, "as1")
		fails(p, s, 4)
		p.Report(s, HTTP, OutcomeClientFault)
		if s.Health(HTTP) == Down || suspects != 1 {
			t.Fatalf("four failures: %v, %d bursts asked for", s.Health(HTTP), suspects)
		}
		p.Report(s, HTTP, OutcomeOK)
		fails(p, s, 4)
		if s.Health(HTTP) == Down {
			t.Fatal("a success between must begin the count anew")
		}
		fails(p, s, 1)
		if s.Word(HTTP) != "ejected" || s.Health(HTTP) != Down || s.Ejections(HTTP, EjectTimeout) != 1 {
			t.Fatalf("five failures: %s", s.Word(HTTP))
		}
		d := s.Detail(HTTP)
		if d.Cause != "timeout×5" || !d.Ejected || !d.Since.Equal(time.Now()) {
			t.Errorf("%+v", d)
		}
		p.Report(s, HTTP, OutcomeOK)
		if s.Health(HTTP) != Down {
			t.Error("traffic alone brought it up")
		}
		time.Sleep(29 * time.Second)
		p.Tick(time.Now())
		if s.Word(HTTP) != "ejected" {
			t.Error("back early")
		}
		time.Sleep(time.Second)
		p.Tick(time.Now())
		if s.Word(HTTP) != "unknown" {
			t.Errorf("after eject_for: %s", s.Word(HTTP))
		}
		if len(changes) != 2 || changes[0].To != "ejected" || changes[0].From != "unknown" || changes[1].To != "unknown" {
			t.Errorf("edges %+v", changes)
		}
		fails(p, s, 5)
		p.SetHealth(s, HTTP, Up, "2 hits", time.Now())
		if s.Word(HTTP) != "up" {
			t.Errorf("probes hit: %s", s.Word(HTTP))
		}
	})
}

// Not more than max_ejected of the pool, and a pool of one loses nobody in this way.
func TestMaxEjected(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{Passive: passive}, mems(r, 1, 1, 1, 1)...)
	for _, n := range []string{"as1", "as2", "as3", "as4"} {
		fails(p, srv(r, n), 5)
	}
	out := 0
	for _, n := range []string{"as1", "as2", "as3", "as4"} {
		if srv(r, n).Word(HTTP) == "ejected" {
			out++
		}
	}
	if out != 2 {
		t.Errorf("%d of 4 ejected", out)
	}
	one := &Registry{}
	alone := pool(t, one, Config{Passive: passive}, mems(one, 1)...)
	fails(alone, srv(one, "as1"), 20)
	if srv(one, "as1").Health(HTTP) == Down {
		t.Error("the only server was ejected")
	}
}

func TestRefusedIsDownAtOnce(t *testing.T) {
	r := &Registry{}
	suspects := 0
	p := pool(t, r, Config{Passive: passive, OnSuspect: func(*Server, Proto) { suspects++ }}, mems(r, 1, 1)...)
	l, err := p.Acquire(&Request{Hash: ownedBy(p, "as1"), HasKey: true})
	if err != nil {
		t.Fatal(err)
	}
	l.Done(OutcomeRefused)
	s := srv(r, "as1")
	if s.Health(SIP) != Down || !s.Refused(SIP) || suspects != 1 || s.Ejections(SIP, EjectRefused) != 1 {
		t.Errorf("%+v, %d", s.Detail(SIP), suspects)
	}
	p.SetHealth(s, SIP, Up, "hits", timeZero)
	if s.Refused(SIP) || !s.AcceptsNew(SIP) {
		t.Error("probes did not bring it back")
	}
}

// SH-3: Retry-After stops new traffic for that time, clamped to 1 to 300 s.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Registry{}
		p := pool(t, r, Config{Passive: passive}, mems(r, 1)...)
		s := srv(r, "as1")
		p.Hold(s, SIP, 100*time.Hour, time.Now())
		if _, err := p.Acquire(&Request{Hash: 1, HasKey: true}); !errors.Is(err, ErrNoServer) {
			t.Error("new traffic goes on")
		}
		if got(t, p, &Request{Hash: 1, HasKey: true, Known: s.Tag}) != "as1" {
			t.Error("known traffic must go on")
		}
		if s.Word(SIP) != "draining" {
			t.Errorf("shown as %s", s.Word(SIP))
		}
		time.Sleep(299 * time.Second)
		p.Tick(time.Now())
		if s.AcceptsNew(SIP) {
			t.Error("too early")
		}
		time.Sleep(time.Second)
		p.Tick(time.Now())
		if !s.AcceptsNew(SIP) {
			t.Error("an absurd number must be the maximum")
		}
		p.Hold(s, SIP, 0, time.Now())
		time.Sleep(time.Second)
		p.Tick(time.Now())
		if !s.AcceptsNew(SIP) {
			t.Error("the minimum is 1 s")
		}
		off := NewPool(r, "pool", Config{Passive: Passive{IgnoreRetryAfter: true}}, p.Table())
		off.Hold(s, SIP, time.Minute, time.Now())
		if !s.AcceptsNew(SIP) {
			t.Error("honour_retry_after: false")
		}
	})
}

// F8: a reload that renames nothing loses nothing.
func TestStateOutlivesGenerations(t *testing.T) {
	r := &Registry{}
	p := pool(t, r, Config{}, mems(r, 1, 1)...)
	p.SetAdmin(srv(r, "as1"), Drain, "alice", timeZero)
	p.Bind(5, srv(r, "as1").Tag, timeZero)
	l, _ := p.Acquire(&Request{Known: srv(r, "as1").Tag, Hash: 5, HasKey: true})
	next := pool(t, r, Config{}, mems(r, 1, 1, 1)...)
	next.Activate()
	m := next.Table().ByName("as1")
	if m.Server.Admin() != Drain || m.Active() != 1 || next.LiveKeys() != 1 {
		t.Errorf("%v, %d active, %d keys", m.Server.Admin(), m.Active(), next.LiveKeys())
	}
	l.Done(OutcomeOK)
	if m.Active() != 0 {
		t.Error("a lease of the old generation does not count down")
	}
	r.Forget("pool", "as1")
	if r.Known("pool", "as1") != nil || r.Server("pool", "as1").Admin() != Ready {
		t.Error("forgotten, and still known")
	}
}

func TestGuard(t *testing.T) {
	r := &Registry{}
	four := pool(t, r, Config{MinUsable: 25}, mems(r, 1, 1, 1, 1)...)
	if err := (Guard{}).Check(four, pool(t, r, Config{}, mems(r, 1, 1)...)); err != nil {
		t.Errorf("half may leave: %v", err)
	}
	if err := (Guard{}).Check(four, pool(t, r, Config{}, mems(r, 1)...)); !errors.Is(err, ErrGuard) {
		t.Errorf("three of four: %v", err)
	}
	four.SetHealth(srv(r, "as1"), SIP, Down, "timeout", timeZero)
	four.SetHealth(srv(r, "as2"), SIP, Down, "timeout", timeZero)
	if err := (Guard{}).Check(four, pool(t, r, Config{PanicRefuse: true}, mems(r, 1, 1)...)); !errors.Is(err, ErrGuard) {
		t.Errorf("the two that are left are down: %v", err)
	}
	if err := (Guard{}).Check(four, pool(t, r, Config{MinUsable: 60}, mems(r, 1, 1, 1)...)); !errors.Is(err, ErrGuard) {
		t.Errorf("below panic: %v", err)
	}
}
