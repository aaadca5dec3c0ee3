package routing

import (
	"fmt"
	"math"
	"time"
)

// rested are the bounds of what a Retry-After may ask for (SH-3).
const (
	minRest = time.Second
	maxRest = 300 * time.Second
)

// SetHealth is what probes found out. All but Down ends an ejection and forgets a refused connect; whoever calls has
// counted the hits and misses. Unknown is for a server whose address has changed. cause is for people: "503×4", "timeout".
func (p *Pool) SetHealth(s *Server, pr Proto, h Health, cause string, now time.Time) {
	p.change(s, pr, cause, EjectProbes, now, func(w word) word {
		if h != Down {
			w &^= ejected | refused
			s.failures[pr].Store(0)
		}
		return w&^healthBits | word(h)
	})
}

// SetRefused is a probe's last miss in a row when its connect was refused: down, and out even in panic.
func (p *Pool) SetRefused(s *Server, pr Proto, cause string, now time.Time) {
	p.change(s, pr, cause, EjectProbes, now, func(w word) word { return w&^healthBits | word(Down) | refused })
}

// SetAdmin is the operator's wish, or the file's. cause is who or what asks for it.
func (p *Pool) SetAdmin(s *Server, a Admin, cause string, now time.Time) {
	p.setAdmin(s, uint32(a), cause, now)
}

// MoveDrained ends the grace of a draining server: known traffic leaves it too (drain.at_deadline: move). The next
// SetAdmin takes it back. A server that does not drain is left alone.
func (p *Pool) MoveDrained(s *Server, cause string, now time.Time) {
	if s.Admin() == Drain {
		p.setAdmin(s, uint32(Drain)|adminMoves, cause, now)
	}
}

func (p *Pool) setAdmin(s *Server, a uint32, cause string, now time.Time) {
	s.mu.Lock()
	old := s.admin.Load()
	if old == a {
		s.mu.Unlock()
		return
	}
	was := s.usable()
	s.admin.Store(a)
	s.intent = intent{since: now, cause: cause}
	p.came(s, was, now)
	s.mu.Unlock()
	s.edge()
	if f := p.cfg.OnChange; f != nil {
		f(Change{Server: s, Admin: true, From: Admin(old & adminBits).String(), To: Admin(a & adminBits).String(), Cause: cause, At: now})
	}
}

// Hold is a Retry-After: no new traffic for that time, clamped to 1 to 300 s (SH-3).
func (p *Pool) Hold(s *Server, pr Proto, d time.Duration, now time.Time) {
	if p.cfg.Passive.IgnoreRetryAfter {
		return
	}
	d = min(max(d, minRest), maxRest)
	p.change(s, pr, fmt.Sprintf("Retry-After %d s", int(d/time.Second)), EjectRetryAfter, now, func(w word) word {
		s.detail[pr].holdUntil = now.Add(d)
		return w | held
	})
}

// Report is passive health: what became of a message on the server. Only the first of several failures, the one that
// ejects and a refused connect cost more than an atomic or two.
func (p *Pool) Report(s *Server, pr Proto, o Outcome) {
	switch o {
	case OutcomeOK:
		if s.failures[pr].Load() != 0 {
			s.failures[pr].Store(0)
		}
	case OutcomeRefused:
		p.refuse(s, pr)
	case OutcomeTimeout, OutcomeServerError:
		p.fail(s, pr, o)
	}
}

// refuse: seen for certain, so down at once. Probes alone bring it back.
func (p *Pool) refuse(s *Server, pr Proto) {
	if s.Refused(pr) {
		return
	}
	now := p.cfg.Now()
	p.change(s, pr, "refused", EjectRefused, now, func(w word) word { return w&^healthBits | word(Down) | refused })
	p.suspect(s, pr)
}

func (p *Pool) fail(s *Server, pr Proto, o Outcome) {
	limit := int32(p.cfg.Passive.ConsecutiveFailures)
	if limit <= 0 {
		return
	}
	n := s.failures[pr].Add(1)
	if n == 1 {
		p.suspect(s, pr)
	}
	if n < limit || s.word(pr)&ejected != 0 {
		return
	}
	if !p.mayEject() {
		s.failures[pr].Store(0) // asked again after as many more
		return
	}
	what, by := "timeout", EjectTimeout
	if o == OutcomeServerError {
		what, by = "server error", EjectServerError
	}
	now := p.cfg.Now()
	p.change(s, pr, fmt.Sprintf("%s×%d", what, n), by, now, func(w word) word {
		s.detail[pr].ejectUntil = now.Add(p.cfg.Passive.EjectFor)
		s.failures[pr].Store(0)
		return w | ejected
	})
}

// mayEject keeps ejections to max_ejected of the pool's servers.
func (p *Pool) mayEject() bool {
	t := p.Table()
	if t == nil {
		return false
	}
	out := 0
	for i := range t.Members {
		for pr := range numProtos {
			if t.Members[i].Server.word(pr)&ejected != 0 {
				out++
				break
			}
		}
	}
	return (out+1)*100 <= len(t.Members)*p.cfg.Passive.MaxEjected
}

func (p *Pool) suspect(s *Server, pr Proto) {
	if f := p.cfg.OnSuspect; f != nil {
		f(s, pr)
	}
}

// change is the one place where health is written: state, since, cause, slow start, epoch, hook. by is what an edge
// that takes the server out is counted as.
func (p *Pool) change(s *Server, pr Proto, cause string, by EjectCause, now time.Time, f func(word) word) {
	s.mu.Lock()
	old := s.word(pr)
	was, from := s.usable(), s.Word(pr)
	w := f(old)
	if w == old {
		s.mu.Unlock()
		return
	}
	s.health[pr].Store(uint32(w))
	to := s.Word(pr)
	if from != to {
		s.detail[pr].since, s.detail[pr].cause = now, cause
	}
	out := w.worseThan(old)
	if out {
		s.ejections[pr][by].Add(1)
	}
	p.came(s, was, now)
	s.mu.Unlock()
	s.edge()
	if f := p.cfg.OnChange; f != nil && from != to {
		f(Change{Server: s, Proto: pr, From: from, To: to, Cause: cause, At: now, Out: out, By: by})
	}
}

// usable is who may get new traffic by which protocol, before scope.
func (s *Server) usable() (u [numProtos]bool) {
	for pr := range numProtos {
		u[pr] = s.AcceptsNew(pr)
	}
	return u
}

// came starts slow start for what has come back to use. s.mu is held.
func (p *Pool) came(s *Server, was [numProtos]bool, now time.Time) {
	is := s.usable()
	for pr := range numProtos {
		if is[pr] && !was[pr] {
			s.backAt[pr].Store(now.UnixNano())
		}
	}
	for pr := range numProtos {
		p.setRamp(s, pr, now)
	}
}

// setRamp works out what slow start still holds back. With scope "server" both protocols go by the later return, so
// that a call and its page come back together.
func (p *Pool) setRamp(s *Server, pr Proto, now time.Time) {
	back := s.backAt[pr].Load()
	if p.cfg.Scope == ScopeServer {
		back = max(s.backAt[SIP].Load(), s.backAt[HTTP].Load())
	}
	gone := now.UnixNano() - back
	if back == 0 || p.cfg.SlowStart <= 0 || gone >= int64(p.cfg.SlowStart) {
		s.ramp[pr].Store(0)
		return
	}
	left := 1 - float64(max(0, gone))/float64(p.cfg.SlowStart)
	s.ramp[pr].Store(uint32(left * math.MaxUint32))
}

// Tick lets time pass: ejections and rests end, slow start goes on, a site's hold runs out. Somebody calls it a few
// times a second; nothing else in the package looks at the clock.
func (p *Pool) Tick(now time.Time) {
	v := p.view.Load()
	if v == nil || v.Table == nil {
		return
	}
	for i := range v.Members {
		s := v.Members[i].Server
		for pr := range numProtos {
			p.expire(s, pr, now)
			if s.ramp[pr].Load() != 0 {
				p.setRamp(s, pr, now)
			}
		}
	}
	if len(v.ranks) > 1 {
		p.shared.epoch.Add(1) // a revert hold may be over
	}
	p.derive(v)
}

// expire ends what has a time: an ejected server is unknown again, so that it gets traffic before the next probe says.
func (p *Pool) expire(s *Server, pr Proto, now time.Time) {
	w := s.word(pr)
	if w&(ejected|held) == 0 {
		return
	}
	s.mu.Lock()
	d := s.detail[pr]
	s.mu.Unlock()
	if w&ejected != 0 && !now.Before(d.ejectUntil) {
		p.change(s, pr, "eject_for is over", EjectTimeout, now, func(w word) word {
			if w&healthBits == word(Up) {
				w = w&^healthBits | word(Unknown)
			}
			return w &^ ejected
		})
	}
	if w&held != 0 && !now.Before(d.holdUntil) {
		p.change(s, pr, "Retry-After is over", EjectRetryAfter, now, func(w word) word { return w &^ held })
	}
}
