package sipproxy

import (
	"time"

	"github.com/wyegate/wyegate/internal/sip/transport"
)

// remember makes entry and pending of a new transaction.
func (w *worker) remember(r *request, d *decision, key uint64) (uint32, *pending) {
	second := uint64(0)
	if r.class == invite {
		second = r.second
	}
	slot := w.mem.add(key, second)
	if slot == 0 {
		return 0, nil
	}
	e := w.mem.at(slot)
	if r.class == invite {
		e.flags |= flagInvite
	}
	if r.in.Kind.Reliable() {
		e.flags |= flagReliable
	}
	if d.retag {
		e.flags |= flagRetag
	}
	keeps := w.keeps(r, d)
	if e.open = w.open.take(keeps); e.open == 0 {
		w.notHeld++
		return slot, nil
	}
	w.mem.open++
	p := w.open.at(e.open)
	p.slot, p.class, p.method, p.start, p.passed = slot, r.class, r.method, w.now, r.passed
	p.source = d.source.Letter()
	p.in = *r.in
	p.in.Bytes = nil
	if keeps {
		w.keepRequest(p, r)
	}
	if w.port.Log.Enabled() {
		p.line = w.lines.take()
		w.begin(p.line, r, d)
	}
	return slot, p
}

// keeps says whether a request is held until it is answered: a reliable client never sends it again (9.3).
func (w *worker) keeps(r *request, d *decision) bool {
	return r.in.Kind.Reliable() || d.retag || d.t != nil && d.t.KeepAll
}

func (w *worker) keepRequest(p *pending, r *request) {
	if p.req == nil {
		p.req = w.arena.keep(r.m.Raw)
		p.in.Bytes = p.req
	}
}

// arm sets the timers of 9.3 and 9.4 for an attempt.
func (w *worker) arm(r *request, d *decision, p *pending) {
	p.resend, p.trying, p.giveUp = time.Time{}, time.Time{}, time.Time{}
	if r.class == invite && d.verb == doServer && w.silence.n < silent*w.open.max {
		w.silence.put(alarm{w.now.Add(silenceLimit), w.mem.at(p.slot).open, p.serial})
	}
	if p.req == nil {
		return
	}
	reliable := r.in.Kind.Reliable()
	if reliable && d.kind == transport.UDP {
		p.interval = timerT1
		p.resend = w.now.Add(timerT1)
	}
	if r.class == invite && reliable {
		p.trying = p.start.Add(tryingAfter)
		if !p.trying.After(w.now) {
			p.trying = time.Time{}
		}
		p.giveUp = p.start.Add(life)
		w.mem.touch(p.slot, life+2*time.Second) // the entry outlives its own 408
	}
	w.rearm(p)
}

// rearm puts the earliest of a pending's times among the alarms.
func (w *worker) rearm(p *pending) {
	var at time.Time
	for _, t := range [3]time.Time{p.resend, p.trying, p.giveUp} {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if at.IsZero() || at.Equal(p.wake) {
		p.wake = at
		return
	}
	p.wake = at
	w.alarms.push(alarm{at, w.mem.at(p.slot).open, p.serial})
}

func (w *worker) pendingOf(e *entry) *pending {
	if e.open == 0 {
		return nil
	}
	return w.open.at(e.open)
}

// hint remembers which server has the dialog that a request forms: by the tag of the caller (4.4).
func (w *worker) hint(r *request, d *decision) {
	if r.class != invite && r.class != subscribe || len(r.id.toTag) > 0 || len(r.id.fromTag) == 0 || d.t == nil {
		return
	}
	server := uint32(0)
	switch {
	case d.verb == doServer:
		server = d.s.tag
	case r.inside != nil:
		server = r.inside.tag
	default:
		return
	}
	key, buf := hintKey(r.g.secrets.Writer(), r.id.callID, r.id.fromTag, w.buf)
	w.buf = buf
	if h := w.hints.set(key, d.t.Target.Tag, server, w.unbind); h != nil && !h.bound {
		h.hash = d.hash
		if !d.hasKey {
			h.hash = w.dialogKey(r, d.t)
		}
	}
}

// acked is the ACK to a non-2xx final: what repeated the final stops, and the ACK itself is kept for finals that are
// repeated (9.4).
func (w *worker) acked(r *request, e *entry) {
	p := w.pendingOf(e)
	if p == nil || e.phase != final {
		return
	}
	p.resend = time.Time{}
	if p.acked {
		return
	}
	p.acked = true
	if r.in.Kind.Reliable() && e.kind == transport.UDP {
		w.arena.give(p.aux)
		p.aux = w.arena.keep(r.m.Raw)
		p.status = 0
		return
	}
	w.arena.give(p.aux)
	p.aux = nil
}

// ownAck is the ACK to an answer of ours: it goes nowhere (ST-6).
func (w *worker) ownAck(r *request) {
	if slot := w.mem.find(nonZero(r.d)); slot != 0 {
		w.acked(r, w.mem.at(slot))
	}
}

// count adds one to a counter that may not be there.
func count(c interface{ Inc() }) {
	if c != nil {
		c.Inc()
	}
}
