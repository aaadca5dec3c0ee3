package sipproxy

import (
	"bytes"
	"errors"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/routing"
)

// reply is a response on its way back.
type reply struct {
	in     *transport.Inbound
	m      *sip.Msg
	g      *state
	b      branch
	hop    hop    // requester, by the Via below ours
	text   []byte // method of CSeq
	class  class
	method int
	status int    // what the client gets: 503 may become 500
	slot   uint32 // its transaction in memory; 0: not known
}

// response goes by Via alone (ST-8): the top one must be ours, its branch made here for the requester that the next one
// names. Memory is told, never needed.
func (w *worker) response(g *state, l *listener, in *transport.Inbound, bad *sip.Error) {
	m := &w.msg
	if bad != nil || m.Status == 0 {
		count(l.bad.ParseErrors[obs.ParseMalformed])
		return
	}
	v := &m.Values.Via
	if !g.sentBy.host(v.Host, v.Port, sip.EqualFold(v.Transport, "TLS")) {
		count(l.bad.ParseErrors[obs.ParseForeignVia])
		return
	}
	it := m.Vias()
	it.Next()
	if !it.Next() {
		if f := w.p.cfg.Probe; f != nil {
			f(in)
		}
		return // ours alone: the answer to a probe, or to an ACK or CANCEL of ours
	}
	p := reply{in: in, m: m, g: g}
	h, ok := responseHop(&it.Via)
	if it.Err != nil || !ok || !w.branches.read(v.Branch, g.secrets, h, &p.b) {
		count(l.bad.ParseErrors[obs.ParseForeignVia])
		return
	}
	p.hop = h
	_, p.text, _ = sip.ParseCSeq(m.Value(sip.CSeq))
	p.class, p.method, p.status = classOf(p.text), obs.SIPMethod(p.text), m.Status
	p.slot = w.mem.find(methodKey(p.b.d, p.text))
	if p.b.server != 0 && !bytes.Contains(v.Params, offered) {
		w.told(g, v, p.b.server)
	}
	if !w.answered(&p) {
		return
	}
	w.back(&p)
}

// back sends a response to the requester: one Via value off, everything else as it came.
func (w *worker) back(p *reply) {
	e := &w.edits
	e.Reset(p.m)
	e.PopVia()
	w.tellLoad(p)
	if p.status != p.m.Status {
		e.SetStatus(p.status, sip.Reason(p.status))
		e.Remove(sip.RetryAfter)
	}
	if p.in.Kind >= transport.WS || p.b.hasFlow && p.in.Kind == transport.UDP {
		e.Frame() // datagrams and WebSocket messages need not say their length, a stream must
	}
	w.out = e.Append(w.out[:0])
	w.toRequester(p.g, &p.b, p.hop, w.out)
	if p.slot != 0 && p.m.Status >= 200 {
		w.keepFinal(p, p.slot, w.out)
	}
}

// toRequester is SX-2: the same connection; gone: a new one to the address that the branch vouches for, never over UDP.
// A datagram leaves from the socket that the request came in on.
func (w *worker) toRequester(g *state, b *branch, h hop, msg []byte) {
	l := g.tagged(b.listener, h.kind, h.addr.Addr())
	if h.kind == transport.UDP {
		if l == nil || l.Listener.Kind != transport.UDP {
			if l = g.any(transport.UDP, h); l == nil {
				return
			}
		}
		w.port.Out.Datagram(l.Listener, h.addr, msg)
		return
	}
	if b.hasFlow {
		err := w.port.Out.OnFlow(b.flow, msg)
		if err == nil || !errors.Is(err, transport.ErrFlowGone) || h.kind >= transport.WS {
			return
		}
	}
	if l == nil {
		if l = g.any(h.kind, h); l == nil {
			return
		}
	}
	if !g.self.addr(h.addr) {
		_, _ = w.port.Out.ToServer(l.Listener, h.kind, h.addr, g.peerAt(h), 0, msg) // a response that cannot be delivered is dropped (SX-15)
	}
}

// peerAt is the name configured for whoever is answered on a new connection (13.4): a server's; others have none, and over
// TLS there is no way to them.
func (g *state) peerAt(h hop) string {
	if s := g.servers[h.addr]; s != nil {
		if a := s.address(h.kind); a != nil && a.addr == h.addr {
			return a.host
		}
	}
	return ""
}

// any finds a listener for a response whose own is gone.
func (g *state) any(k transport.Kind, h hop) *listener {
	for _, l := range g.listeners {
		if l.fits(k, h.addr.Addr()) {
			return l
		}
	}
	return nil
}

// answered tells memory, health, hints and log of a response. False: it does not go to the requester.
func (w *worker) answered(p *reply) bool {
	slot := p.slot
	if slot == 0 {
		if p.m.Status == 503 && p.b.server != 0 && w.anyUsable(p.g) {
			p.status = 500 // SH-3, as far as it can be told without memory
		}
		if p.class == bye && p.m.Status >= 200 {
			w.bound(p) // its dialog ends, whatever the memory had no room for
		}
		return true
	}
	e := w.mem.at(slot)
	q := w.pendingOf(e)
	if e.place == toNobody || e.place == toServer && p.b.server != e.server() || e.place == toAddress && q != nil && len(q.left) > 0 && q.leftBy(p) != nil {
		return w.late(p, e, q)
	}
	if p.m.Status < 200 {
		return w.provisional(p, slot, e, q)
	}
	if e.phase == final {
		return w.finalAgain(p, e, q)
	}
	if q != nil {
		if p.m.Status == 503 && w.busy(p, slot, e, q) {
			return false
		}
		if p.m.Status == 481 && e.has(flagRetag) && w.otherTag(p, slot, q) {
			return false
		}
	}
	if p.m.Status == 503 && e.place == toServer {
		p.status = w.status503(e, q)
	}
	w.finished(p, slot, e, q)
	return true
}

// status503 is SH-3: 503 goes upstream only when every server of the pool is out.
func (w *worker) status503(e *entry, q *pending) int {
	if q != nil && q.t != nil && q.t.pool.out() {
		return 503
	}
	return 500
}

func (w *worker) provisional(p *reply, slot uint32, e *entry, q *pending) bool {
	if e.phase == final {
		return p.class == invite // late: harmless, and the end decides
	}
	if e.phase == sent {
		e.phase = answered
		w.first(q)
	}
	w.mem.touch(slot, w.lifeOf(e))
	if q == nil {
		return true
	}
	q.trying, q.giveUp = time.Time{}, time.Time{}
	if p.class == invite {
		q.resend = time.Time{}
		switch {
		case q.holdsCancel:
			w.sendCancel(e, q)
		case len(q.left) == 0 && !e.has(flagRetag):
			w.release(q)
		}
	} else if !q.resend.IsZero() {
		q.interval = timerT2
	}
	w.rearm(q)
	w.learn(p)
	w.counts(p, q)
	return true
}

// sendCancel sends the CANCEL that was held to the server that has answered, and again by UDP until the final response.
func (w *worker) sendCancel(e *entry, q *pending) {
	w.withKept(q, func(r *request) { w.ownRequest(r, q, w.attemptOf(e, q), "CANCEL", r.m.Value(sip.To)) })
	if e.kind == transport.UDP {
		q.interval = timerT1
		q.resend = w.now.Add(timerT1)
	}
}

// busy is a 503 (SH-3, 9.5): Retry-After gives the server a rest; where the request is still held it is tried once on
// the next choice, outwards on the next place that its next hop stands for. True: the client does not see it.
func (w *worker) busy(p *reply, slot uint32, e *entry, q *pending) bool {
	switch {
	case e.place == toAddress:
		return w.busyOutside(p, e, q)
	case e.place != toServer || q.s == nil:
		return false
	}
	outcome := routing.OutcomeServerError
	if f := p.m.Value(sip.RetryAfter); f != nil && q.s.until.IsZero() && !q.s.pool.NoRetryAfter {
		if d, err := sip.ParseRetryAfter(f); err == nil {
			outcome = routing.OutcomeOK
			q.s.pool.Pool.Hold(q.s.state, routing.SIP, time.Duration(min(d.Delta, int(maxRetryAfter/time.Second)))*time.Second, w.now)
		}
	}
	q.lease.Done(outcome)
	if q.req == nil || q.retried || q.cancelled || q.passed || e.phase != sent || p.class == cancel {
		return false
	}
	moved := false
	w.withKept(q, func(r *request) {
		if r.class == invite {
			w.ownRequest(r, q, w.attemptOf(e, q), "ACK", p.m.Value(sip.To))
		}
		d := w.current(r, e, q)
		q.retried = true
		if moved = w.nextChoice(r, &d, slot, q); moved {
			w.attempt(r, &d, slot, q)
		}
	})
	if !moved {
		q.retried = true
	}
	return moved
}

func (w *worker) busyOutside(p *reply, e *entry, q *pending) (moved bool) {
	if q.req == nil || q.retried || q.cancelled || q.passed || e.phase != sent || p.class == cancel {
		return false
	}
	q.retried = true
	w.withKept(q, func(r *request) {
		d := w.current(r, e, q)
		if moved = d.verb == doAddress && w.nextEndpoint(r, &d, q); !moved {
			return
		}
		if r.class == invite {
			w.ownRequest(r, q, w.attemptOf(e, q), "ACK", p.m.Value(sip.To))
		}
		w.moveAway(e, q)
		w.attempt(r, &d, q.slot, q)
	})
	return moved
}

// otherTag is SA-3 (d): a 481 to a request without a token is tried once more with the To tag in the place of the From
// tag.
func (w *worker) otherTag(p *reply, slot uint32, q *pending) bool {
	e := w.mem.at(slot)
	e.flags &^= flagRetag
	if q.req == nil || q.cancelled {
		return false
	}
	moved := false
	w.withKept(q, func(r *request) {
		was := e.server()
		r.retag = true
		d := w.byKey(r, q.t, nil)
		if d.verb != doServer || d.s.tag == was {
			d.lease.Done(routing.OutcomeClientFault)
			return
		}
		if r.class == invite {
			w.ownRequest(r, q, w.attemptOf(e, q), "ACK", p.m.Value(sip.To))
		}
		q.lease.Done(routing.OutcomeOK)
		w.moveAway(e, q)
		e.phase = sent
		moved = true
		w.place(r, &d)
		w.attempt(r, &d, slot, q)
	})
	return moved
}

// late is a response of an attempt that the request was moved away from, or that was given up (9.5).
func (w *worker) late(p *reply, e *entry, q *pending) bool {
	if p.m.Status >= 200 && p.m.Status < 300 && p.class == invite {
		w.learn(p)
		return true // the caller ACKs and ends it
	}
	if p.class != invite {
		if p.m.Status < 200 || e.phase == final {
			return false
		}
		if q != nil {
			w.finished(p, q.slot, e, q)
		}
		return true
	}
	if q == nil || q.req == nil {
		return false
	}
	w.withKept(q, func(r *request) {
		a := q.leftBy(p)
		switch {
		case p.m.Status >= 200:
			w.ownRequest(r, q, a, "ACK", p.m.Value(sip.To))
		case a != nil && !a.cancelled:
			a.cancelled = true
			w.ownRequest(r, q, a, "CANCEL", r.m.Value(sip.To))
		}
	})
	return false
}

// finalAgain is a final response that comes once more.
func (w *worker) finalAgain(p *reply, e *entry, q *pending) bool {
	if p.class == invite && p.m.Status < 300 {
		w.learn(p)
		return true
	}
	if q != nil && q.acked && q.aux != nil && p.class == invite { // reliable client, UDP server: repeat its ACK
		w.keptAck(q)
		return false
	}
	if p.m.Status == 503 && e.place == toServer {
		p.status = w.status503(e, q)
	}
	return !e.has(flagReliable)
}

// finished is the end of a transaction.
func (w *worker) finished(p *reply, slot uint32, e *entry, q *pending) {
	first := e.phase == sent
	e.phase = final
	if p.m.Status < 300 {
		e.flags |= flagOK
	}
	w.mem.shorten(slot, life)
	w.learn(p)
	w.bound(p)
	if q == nil {
		return
	}
	if first {
		w.first(q)
	}
	q.lease.Done(routing.OutcomeOK)
	w.counts(p, q)
	w.end(q, p)
	q.resend, q.trying, q.giveUp, q.wake = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	if len(q.left) == 0 {
		w.release(q)
	}
	if w.stays(p, e, q) {
		w.over(q)
	} else {
		w.forget(slot)
	}
}

// stays says whether something is kept behind the final response (9.4, 9.5).
func (w *worker) stays(p *reply, e *entry, q *pending) bool {
	if len(q.left) > 0 && q.req != nil {
		return true
	}
	reliable, server := e.has(flagReliable), e.kind != transport.UDP
	switch {
	case reliable && !server:
		return p.class == invite && p.m.Status >= 300 // its ACK is kept
	case !reliable && server:
		return p.class != invite || p.m.Status >= 300 // the response is kept
	}
	return false
}

// keepFinal keeps the final response for a UDP client whose server's transaction has ended with it: repeated requests
// are answered from it, and a non-2xx to an INVITE is repeated until its ACK (9.4).
func (w *worker) keepFinal(p *reply, slot uint32, msg []byte) {
	e := w.mem.at(slot)
	q := w.pendingOf(e)
	if q == nil || e.phase != final || e.has(flagReliable) || e.kind == transport.UDP || q.aux != nil {
		return
	}
	if p.class == invite && p.m.Status < 300 {
		return
	}
	q.aux, q.status = w.arena.keep(msg), p.status
	if q.aux != nil && p.class == invite {
		q.interval = timerT1
		q.resend = w.now.Add(timerT1)
		w.rearm(q)
	}
}

// reply sends kept bytes to the requester of a pending once more.
func (w *worker) reply(g *state, in *transport.Inbound, msg []byte) {
	if in.Kind != transport.UDP {
		_ = w.port.Out.OnFlow(in.Flow, msg)
		return
	}
	if w.keptMsg.Parse(msg) != nil {
		return
	}
	it := w.keptMsg.Vias()
	if !it.Next() {
		return
	}
	if h, ok := responseHop(&it.Via); ok {
		w.port.Out.Datagram(in.Listener, h.addr, msg)
	}
}

// learn writes the hint of the other side of a dialog, once its To tag is known.
func (w *worker) learn(p *reply) {
	v := &p.m.Values
	if p.class != invite && p.class != subscribe || len(v.ToTag) == 0 {
		return
	}
	k := p.g.secrets.Writer()
	key, buf := hintKey(k, v.CallID, v.FromTag, w.buf)
	w.buf = buf
	h := w.hints.find(key)
	if h == nil {
		return
	}
	target, server := h.target, h.server
	key, w.buf = hintKey(k, v.CallID, v.ToTag, w.buf)
	w.hints.set(key, target, server, w.unbind)
}

// bound begins and ends live keys: a 2xx that makes a dialog, the end of a BYE.
func (w *worker) bound(p *reply) {
	v := &p.m.Values
	switch {
	case p.class == invite && p.m.Status < 300:
		if h := w.dialogHint(p.g, v.CallID, v.FromTag, v.ToTag); h != nil && !h.bound {
			w.bind(p.g, h)
		}
	case p.class == bye && p.m.Status != 401 && p.m.Status != 407:
		w.ended(p.g, v.CallID, v.FromTag, v.ToTag)
	}
}

// dialogHint finds the hint that carries the live key: the caller's, whichever side speaks now.
func (w *worker) dialogHint(g *state, callID, one, two []byte) *hint {
	k := g.secrets.Writer()
	var first *hint
	for _, tag := range [2][]byte{one, two} {
		if len(tag) == 0 {
			continue
		}
		var key uint64
		key, w.buf = hintKey(k, callID, tag, w.buf)
		h := w.hints.find(key)
		if h == nil {
			continue
		}
		if h.bound {
			return h
		}
		if first == nil {
			first = h
		}
	}
	return first
}

func (w *worker) bind(g *state, h *hint) {
	s := g.server(h.target, h.server)
	if s == nil {
		return
	}
	h.bound = true
	s.pool.Pool.Bind(h.hash, h.server, w.now)
	s.state.AddLive(routing.Dialogs, 1)
}

func (w *worker) ended(g *state, callID, one, two []byte) {
	if h := w.dialogHint(g, callID, one, two); h != nil && h.bound {
		w.unbind(h)
	}
}

// unbind gives a live key back.
func (w *worker) unbind(h *hint) {
	if !h.bound {
		return
	}
	h.bound = false
	g := w.p.current.Load()
	if g == nil {
		return
	}
	if s := g.server(h.target, h.server); s != nil {
		s.pool.Pool.Unbind(h.hash, h.server, w.now)
		s.state.AddLive(routing.Dialogs, -1)
	}
}
