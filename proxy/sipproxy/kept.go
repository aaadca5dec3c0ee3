package sipproxy

import (
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/routing"
)

// withKept reads a kept request again, under the generation it was sent with, and lends it to f.
func (w *worker) withKept(q *pending, f func(r *request)) {
	if q.req == nil || w.keptBusy || !w.readKept(q, q.req) {
		return
	}
	w.keptBusy = true
	f(&w.kept)
	w.keptBusy = false
}

func (w *worker) readKept(q *pending, raw []byte) bool {
	_ = w.keptMsg.Parse(raw) // it was valid when it came
	w.valid.Schemes = nil
	sip.Validate(&w.keptMsg, &w.valid)
	q.in.Bytes = raw
	if w.listener(q.g, q.in.Listener) == nil {
		return false
	}
	w.read(&w.kept, &q.in, &w.keptMsg, q.g, w.now)
	return true
}

// current is the decision that a pending was last sent by.
func (w *worker) current(r *request, e *entry, q *pending) decision {
	d, _ := w.remembered(r, &entry{
		place: e.place, dest: e.dest, port: e.port, out: e.out, kind: e.kind, phase: answered, flags: e.flags,
	}, nil)
	d.t, d.s = q.t, q.s
	if e.place == toServer {
		d.source = proxySource(q.source)
	}
	w.place(r, &d)
	return d
}

// release gives the kept request back.
func (w *worker) release(q *pending) {
	w.arena.give(q.req)
	q.req, q.in.Bytes = nil, nil
}

// forget ends a pending.
func (w *worker) forget(slot uint32) {
	e := w.mem.at(slot)
	if e.open == 0 {
		return
	}
	q := w.open.at(e.open)
	q.lease.Done(routing.OutcomeClientFault)
	if q.line != nil {
		w.lines.give(q.line)
	}
	w.release(q)
	w.arena.give(q.aux)
	if q.over {
		w.mem.over--
	}
	w.open.give(e.open)
	e.open = 0
	w.mem.open--
}

// over notes that a pending has had its final response and is kept for repetitions alone: nobody waits for it.
func (w *worker) over(q *pending) {
	if !q.over {
		q.over = true
		w.mem.over++
	}
}

// expired is the end of an entry: a transaction without a final response ends by its timer.
func (w *worker) expired(slot uint32) {
	e := w.mem.at(slot)
	q := w.pendingOf(e)
	if q == nil {
		return
	}
	if e.phase != final {
		q.lease.Done(routing.OutcomeClientFault)
		if q.t != nil {
			w.countClass(q, 0)
		}
		w.close(q, 0, 'T', 'W')
	}
	w.forget(slot)
}

// timers does what is due.
func (w *worker) timers() {
	for a := w.silence.first(); a != nil && !w.now.Before(a.at); a = w.silence.first() {
		due := *a
		w.silence.drop()
		w.guardedDo(func() { w.silentInvite(due) })
	}
	for len(w.alarms) > 0 && !w.now.Before(w.alarms[0].at) {
		a := w.alarms.pop()
		q := w.open.at(a.index)
		if q.serial != a.serial || !q.wake.Equal(a.at) {
			continue
		}
		w.guardedDo(func() { w.due(q) })
	}
	w.parking.expire(w)
}

func (w *worker) guardedDo(f func()) {
	defer w.recover()
	f()
}

// silentInvite is an INVITE without any response for two seconds: one passive failure (section 10).
func (w *worker) silentInvite(a alarm) {
	q := w.open.at(a.index)
	if q.serial != a.serial || q.slot == 0 || w.mem.at(q.slot).phase != sent || q.silent || q.s == nil {
		return
	}
	q.silent = true
	q.s.pool.Pool.Report(q.s.state, routing.SIP, routing.OutcomeTimeout)
}

// due is one wake-up of a pending: a copy, a 100 or a 408 of ours.
func (w *worker) due(q *pending) {
	q.wake = time.Time{}
	e := w.mem.at(q.slot)
	if passed(q.giveUp, w.now) {
		w.tooLate(e, q)
		return
	}
	if passed(q.trying, w.now) {
		q.trying = time.Time{}
		if e.phase == sent && !q.cancelled {
			w.withKept(q, func(r *request) { w.sendAnswer(r, 100, nil) })
		}
	}
	if passed(q.resend, w.now) {
		w.copyAgain(e, q)
	}
	w.rearm(q)
}

func passed(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// copyAgain repeats what 9.4 says: the request towards a server by UDP, or the final response towards a client by UDP.
func (w *worker) copyAgain(e *entry, q *pending) {
	if w.now.Sub(q.start) > life+ringing || e.phase == final && q.aux == nil {
		q.resend = time.Time{}
		return
	}
	q.interval *= 2
	if q.class != invite || e.phase != sent {
		q.interval = min(q.interval, timerT2)
	}
	q.resend = w.now.Add(q.interval)
	if e.phase == final {
		if q.acked || int64(q.resend.Sub(q.start)) > int64(life+ringing) {
			q.resend = time.Time{}
			return
		}
		w.reply(q.g, &q.in, q.aux)
		return
	}
	if e.phase == answered && q.class == invite {
		if q.holdsCancel {
			w.withKept(q, func(r *request) { w.ownRequest(r, q, w.attemptOf(e, q), "CANCEL", r.m.Value(sip.To)) })
		}
		return
	}
	w.withKept(q, func(r *request) {
		d := w.current(r, e, q)
		_ = w.launch(r, &d, nil) // by UDP: nothing to be told here
	})
}

// tooLate is 9.3: no response of any kind in 64*T1: 408 for INVITE. Late responses are those of an abandoned attempt.
func (w *worker) tooLate(e *entry, q *pending) {
	q.giveUp, q.resend, q.trying = time.Time{}, time.Time{}, time.Time{}
	if e.phase != sent {
		return
	}
	w.withKept(q, func(r *request) {
		d := refuse(408, "refused", 'T', 'W')
		d.t = q.t
		w.moveAway(e, q)
		w.settle(r, q.slot, &d)
	})
}

// keptAck repeats the ACK to a non-2xx for a final that was repeated.
func (w *worker) keptAck(q *pending) {
	if w.keptBusy || !w.readKept(q, q.aux) {
		return
	}
	q.in.Bytes = q.req
	r := &w.kept
	d, ok := w.remembered(r, w.mem.at(q.slot), nil)
	if !ok || d.verb == doDrop {
		return
	}
	w.place(r, &d)
	_ = w.launch(r, &d, nil)
}

// attemptOf is the attempt that a transaction is at.
func (w *worker) attemptOf(e *entry, q *pending) *leftAttempt {
	a := leftAttempt{dst: q.dst, out: q.g.byTag[e.out]}
	if e.place == toServer {
		a.tag = e.server()
	}
	return &a
}

// leftBy finds the abandoned attempt that a response belongs to: by the server in its branch; what went outwards has none,
// and is known by where it went to. nil: none.
func (q *pending) leftBy(p *reply) *leftAttempt {
	for i := len(q.left) - 1; i >= 0; i-- {
		if a := &q.left[i]; a.tag == p.b.server && (a.tag != 0 || a.dst == hop{p.in.Kind, fold(p.in.Remote)}) {
			return a
		}
	}
	return nil
}

// ownRequest sends an ACK or a CANCEL of our own towards an attempt, with that attempt's branch (9.5).
func (w *worker) ownRequest(r *request, q *pending, a *leftAttempt, method string, to []byte) {
	if a == nil || a.out == nil {
		return
	}
	b := append(w.out[:0], method...)
	b = append(append(append(b, ' '), r.uriText...), " SIP/2.0\r\nVia: SIP/2.0/"...)
	b = append(append(b, a.dst.kind.String()...), ' ')
	b = append(append(b, a.out.sent...), ";branch="...)
	b = w.appendBranch(b, r, a.tag)
	b = append(b, "\r\nMax-Forwards: 70\r\n"...)
	n := 0
	for it := r.m.Addrs(sip.Route); it.Next() && n < r.routes; n++ {
		if n >= r.pop {
			b = append(append(append(b, "Route: "...), it.Addr.Value...), "\r\n"...)
		}
	}
	b = append(append(append(b, "From: "...), r.m.Value(sip.From)...), "\r\nTo: "...)
	b = append(append(append(b, to...), "\r\nCall-ID: "...), r.id.callID...)
	b = append(append(strconv.AppendUint(append(b, "\r\nCSeq: "...), uint64(r.id.cseq), 10), ' '), method...)
	b = append(b, "\r\nContent-Length: 0\r\n\r\n"...)
	w.out = b
	d := decision{verb: doAddress, kind: a.dst.kind, addr: a.dst.addr, out: a.out, host: r.outwardURI().Host}
	if a.tag != 0 {
		if d.verb, d.s = doServer, q.t.pool.servers[a.tag]; d.s == nil {
			return
		}
	}
	_ = w.transmit(r, &d, nil, b) // what cannot be delivered is dropped
}

// flowLost is a connection that closed, or that could not be opened: what waits for its first response there goes on
// (9.3).
func (w *worker) flowLost(ev *transport.Event, failed bool) {
	if _, ours := w.flows[ev.Flow]; !ours {
		return // nothing was sent into it
	}
	delete(w.flows, ev.Flow)
	w.lastFlow = 0
	outcome := routing.OutcomeTimeout
	if dial := refusedDial(ev.Err); dial {
		outcome = routing.OutcomeRefused
	}
	for i := uint32(1); i <= w.open.used; i++ {
		q := w.open.at(i)
		if q.slot == 0 || q.flow != ev.Flow {
			continue
		}
		q.flow = 0
		e := w.mem.at(q.slot)
		if e.phase != sent {
			continue
		}
		w.guardedDo(func() { w.lostBefore(e, q, outcome, failed) })
	}
}

// refusedDial says that a connect was refused, and did not just take too long.
func refusedDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout()
}

func (w *worker) lostBefore(e *entry, q *pending, outcome routing.Outcome, failed bool) {
	if q.larger && failed {
		w.noTCP[q.dst] = w.now.Add(time.Minute)
		q.larger = false
		e.kind = transport.UDP // for the client's next copy, where nothing is kept
		w.withKept(q, func(r *request) {
			d := w.current(r, e, q)
			d.kind = transport.UDP
			d.out = nil
			w.place(r, &d)
			w.attempt(r, &d, q.slot, q)
		})
		return
	}
	refused := outcome == routing.OutcomeRefused
	if failed || refused || q.again || e.place == toFlow || q.s != nil && !q.s.takesKnown(w.now) {
		w.elsewhere(e, q, outcome) // a server that breaks one connection after the other is like one that refuses them
		return
	}
	q.again = true // what is not kept is sent once more by the client
	w.withKept(q, func(r *request) {
		d := w.current(r, e, q)
		if w.launch(r, &d, q) != nil {
			w.elsewhere(e, q, outcome)
		}
	})
}

// elsewhere moves a request that has no response to the next choice; what is not kept moves with the client's next copy.
func (w *worker) elsewhere(e *entry, q *pending, outcome routing.Outcome) {
	q.lease.Done(outcome)
	q.lost = q.req == nil
	move := func(r *request) {
		d := w.current(r, e, q)
		if d.verb == doFlow {
			if w.failed(r, &d, q.slot, q, transport.ErrFlowGone) {
				w.attempt(r, &d, q.slot, q)
			}
			return
		}
		if d.verb == doServer && w.nextChoice(r, &d, q.slot, q) {
			w.attempt(r, &d, q.slot, q)
			return
		}
		if d.verb == doAddress && w.nextEndpoint(r, &d, q) {
			w.moveAway(e, q)
			w.attempt(r, &d, q.slot, q)
			return
		}
		w.settle(r, q.slot, unreachableAnswer(&d))
	}
	if w.keptBusy {
		move(&w.kept)
		return
	}
	w.withKept(q, move)
}

// unreachable is an ICMP error for a destination that we sent to (SX-15).
func (w *worker) unreachable(ev *transport.Event) {
	g := w.p.current.Load()
	if g == nil {
		return
	}
	to := fold(ev.Remote)
	if f := w.p.cfg.Unreachable; f != nil {
		f(to, ev.Err)
	}
	if w.lastGone.addr == to && w.lastGone.at.Equal(w.now) {
		return // one look through the pending ones per batch
	}
	w.lastGone.addr, w.lastGone.at = to, w.now
	if s := g.udp[to]; s != nil {
		s.pool.Pool.Report(s.state, routing.SIP, routing.OutcomeRefused)
	}
	w.each(func(q *pending) bool {
		if q.dst.kind != transport.UDP || q.dst.addr != to {
			return false
		}
		q.lost = q.req == nil
		return true
	}, routing.OutcomeRefused)
}

// serverDown moves what is kept for a server that has just gone down.
func (w *worker) serverDown(s *routing.Server) {
	w.each(func(q *pending) bool { return q.s != nil && q.s.state == s }, routing.OutcomeClientFault)
}

// each moves every kept request without a response that meets a condition.
func (w *worker) each(meets func(q *pending) bool, outcome routing.Outcome) {
	for i := uint32(1); i <= w.open.used; i++ {
		q := w.open.at(i)
		if q.slot == 0 || !meets(q) || q.req == nil {
			continue
		}
		if e := w.mem.at(q.slot); e.phase == sent {
			w.guardedDo(func() { w.elsewhere(e, q, outcome) })
		}
	}
}

// first notes the first response of a transaction.
func (w *worker) first(q *pending) {
	if q == nil || q.line == nil {
		return
	}
	q.line.First = w.now.Sub(q.start)
}

// counts counts a response that goes to the client.
func (w *worker) counts(p *reply, q *pending) {
	if q.t == nil {
		return
	}
	w.countClass(q, p.status/100)
	if p.status >= 200 {
		if o := q.t.Obs.Duration[q.method]; o != nil {
			o.Observe(w.now.Sub(q.start).Seconds())
		}
	}
}

func (w *worker) countClass(q *pending, class int) {
	l := w.listener(q.g, q.in.Listener)
	if t := l.obsOf(q.t); t != nil && class >= 0 && class < len(t.Responses[0]) {
		count(t.Responses[q.method][class])
	}
}

// obsOf gives the counters of an application behind a listener; nil when nobody counts.
func (l *listener) obsOf(t *target) *obs.SIPTarget {
	if l == nil || t == nil || t.Target.Number >= len(l.Targets) {
		return nil
	}
	return l.Targets[t.Target.Number]
}
