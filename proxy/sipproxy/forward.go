package sipproxy

import (
	"errors"
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/routing"
)

// request is the way of one request (sip-http.md section 3).
func (w *worker) request(g *state, l *listener, in *transport.Inbound, bad *sip.Error) {
	r := &w.req
	w.read(r, in, &w.msg, g, w.now)
	if w.refused(r, bad) {
		return
	}
	if in.Kind == transport.TLS && !in.Outgoing {
		w.aliased(r)
	}
	w.handle(r)
}

// aliased hears a client that wants requests to its own address on its connection (SX-8, RFC 5923 section 5). What it says
// of its address is believed as far as that it came from there.
func (w *worker) aliased(r *request) {
	v := &r.m.Values.Via
	if _, asked := sip.HeaderParam(v.Params, "alias"); asked {
		w.port.Out.Alias(r.in.Flow, netip.AddrPortFrom(fold(r.in.Source).Addr(), viaPort(v)))
	}
}

// refused answers what is owed to a bad request; true when that was all.
func (w *worker) refused(r *request, bad *sip.Error) bool {
	d, _, ok := w.owed(r, bad)
	switch {
	case !ok:
		return false
	case bad != nil:
		count(r.l.bad.ParseErrors[parseReason(r.m, bad)])
		if !r.l.DropBad && bad.Status != 0 {
			w.answerWith(r, &d, bad)
		}
	case d.verb == doDrop:
		w.ownAck(r)
	default:
		w.answer(r, &d)
	}
	return true
}

// owed is what a request gets before anybody asks where it would go, and why; traffic and explain ask the same. False:
// nothing.
func (w *worker) owed(r *request, bad *sip.Error) (d decision, why string, ok bool) {
	switch {
	case bad == sip.ErrTooManyHops && r.asksUs():
		return d, "", false // answered instead (SV-3)
	case bad != nil:
		return refuse(bad.Status, "refused", 'P', 'P'), bad.Text, true
	case r.class == ack && w.branches.ownToTag(r.id.toTag, r.g.secrets, r.d):
		return decision{verb: doDrop, by: "local", rule: -1}, "the ACK to an answer of our own ends here", true
	case r.looped:
		return refuse(482, "refused", 'P', 'K'), "the request was here before", true
	case w.plainSecure(r):
		return refuse(480, "refused", 'P', 'K'), "sips from outside over a plain transport", true
	}
	return d, "", false
}

// asksUs says that a request is an OPTIONS to wyegate itself.
func (r *request) asksUs() bool {
	return r.class == options && !r.hasNext && r.uri.User == nil && r.g.self.uri(&r.uri)
}

// parseReason tells what has no readable head from what was indexed and refused.
func parseReason(m *sip.Msg, bad *sip.Error) obs.ParseReason {
	if len(m.Fields) == 0 || bad.Close {
		return obs.ParseMalformed
	}
	return obs.ParseInvalid
}

// plainSecure is SX-11: sips from outside over a plain transport.
func (w *worker) plainSecure(r *request) bool {
	if r.inside != nil || r.l.Protected || r.in.Kind == transport.TLS || r.in.Kind == transport.WSS {
		return false
	}
	return r.uri.Secure() || r.hasNext && r.next.Secure()
}

// downgrades is SX-11 towards the next hop: what came as sips goes over TLS, or within a protected network. A client's
// own connection is as safe as it made it.
func downgrades(r *request, d *decision) bool {
	if d.verb == doFlow || !r.uri.Secure() && !(r.hasNext && r.next.Secure()) {
		return false
	}
	return d.kind != transport.TLS && d.kind != transport.WSS && !(d.out != nil && d.out.Protected)
}

// handle finds what is known of the request and does what is decided.
func (w *worker) handle(r *request) {
	if r.hasTok && r.in.Kind == transport.UDP && r.inside == nil {
		w.p.proven.add(r.in.Source.Addr())
	}
	key := methodKey(r.d, r.text)
	if w.parking.holds(r, key) {
		w.parkedAgain(r, key)
		return
	}
	own := w.mem.find(key)
	from := own
	if r.class == cancel || r.class == ack {
		if from = w.mem.find(nonZero(r.d)); from == 0 && !r.hasTok {
			from = w.mem.findSecond(r.second)
		}
	}
	if own != 0 && r.class != ack {
		w.repeated(r, own)
		return
	}
	if from == 0 {
		if r.class == cancel && w.parking.waits(r.d) {
			w.park(r, key, &decision{park: parkBehind})
			return
		}
		if w.shedding(r) {
			return
		}
		d := w.decide(r, nil, nil)
		if d.verb == doServer && w.left(r, d.s) {
			w.leave(r, &d)
			return
		}
		w.carry(r, &d, key, 0)
		return
	}
	e := w.mem.at(from)
	if r.class == cancel || e.phase == final && !e.has(flagOK) {
		r.d = e.key // found by the second index: the server knows the transaction by its INVITE's branch (ST-7)
		if key = methodKey(r.d, r.text); r.class == cancel && w.mem.find(key) != 0 {
			w.repeated(r, w.mem.find(key))
			return
		}
	}
	switch r.class {
	case ack:
		w.acked(r, e)
		if e.place == toNobody {
			return // the answer was ours, though its To tag was the dialog's (ST-6)
		}
		if d := w.decide(r, e, nil); d.verb != doDrop && d.verb != doAnswer {
			w.carry(r, &d, key, 0)
		}
		return
	case cancel:
		if p := w.pendingOf(e); p != nil {
			held := p.holds(e)
			p.cancelled, p.resend, p.trying = true, time.Time{}, time.Time{}
			if held {
				p.holdsCancel = true
				d := refuse(200, "local", 'L', '-')
				d.t = p.t
				w.answer(r, &d)
				return
			}
		}
		if e.place == toNobody {
			d := refuse(200, "local", 'L', '-')
			w.answer(r, &d)
			return
		}
	}
	d := w.decide(r, e, nil)
	w.carry(r, &d, key, 0)
}

// holds says that an INVITE is held and nobody has answered it: its CANCEL is answered here, and goes to the server that
// shows itself with a provisional (ST-10).
func (p *pending) holds(e *entry) bool {
	if p.holdsCancel {
		return true // a repeated one is absorbed
	}
	return p.req != nil && e.phase == sent && e.place == toServer && (e.has(flagReliable) || p.t.KeepAll)
}

// repeated is a request that we have seen: it takes the same path, unless its server cannot take it any more and has
// not answered (ST-4, section 9).
func (w *worker) repeated(r *request, slot uint32) {
	if w.parking.again == nil { // what comes back from its wait is no copy
		count(r.l.bad.Retransmissions)
	}
	e := w.mem.at(slot)
	p := w.pendingOf(e)
	switch {
	case e.place == toNobody:
		d := refuse(int(e.port), "local", 'L', '-')
		d.rest = d.status == 503
		w.answerOnly(r, &d)
		return
	case e.phase == final && p != nil && p.aux != nil && p.status != 0:
		w.reply(p.g, &p.in, p.aux)
		return
	case p != nil && p.cancelled && r.class == invite:
		return // 9.5: no further copy behind a CANCEL
	}
	w.mem.touch(slot, w.lifeOf(e))
	d := w.decide(r, e, nil)
	w.carry(r, &d, e.key, slot)
}

func (w *worker) lifeOf(e *entry) time.Duration {
	if e.has(flagInvite) && e.phase == answered {
		return ringing
	}
	return life
}

// carry does what was decided. slot is the transaction's entry; 0: it has none yet.
func (w *worker) carry(r *request, d *decision, key uint64, slot uint32) {
	switch d.verb {
	case doDrop:
		return
	case doAnswer:
		if slot != 0 {
			w.settle(r, slot, d)
			return
		}
		w.answer(r, d)
		return
	case doPark:
		w.park(r, key, d)
		return
	}
	w.place(r, d)
	if r.class != ack && slot == 0 && downgrades(r, d) {
		d.lease.Done(routing.OutcomeClientFault)
		no := refuse(480, "refused", 'P', 'K')
		no.t = d.t
		w.answer(r, &no)
		return
	}
	if r.class == ack {
		if t := r.l.obsOf(d.t); t != nil {
			count(t.Requests[r.method])
		}
		w.launchAck(r, d, key)
		d.lease.Done(routing.OutcomeClientFault)
		return
	}
	if slot != 0 && !d.moved {
		d.lease.Done(routing.OutcomeClientFault) // the transaction has one already
		p := w.pendingOf(w.mem.at(slot))
		if err := w.launch(r, d, p); err != nil && w.failed(r, d, slot, p, err) {
			w.attempt(r, d, slot, p)
		}
		return
	}
	var p *pending
	if slot != 0 {
		p = w.pendingOf(w.mem.at(slot))
		w.moveAway(w.mem.at(slot), p)
		if p != nil {
			w.keepRequest(p, r) // 9.5: what moved is kept, UDP clients' too
			if p.s != nil && p.s.obs != nil {
				count(p.s.obs.Failovers[obs.SIP])
			}
		}
	} else {
		slot, p = w.remember(r, d, key)
		w.counted(r, d)
	}
	w.attempt(r, d, slot, p)
}

// launchAck sends an ACK, by another way where one fails at once. It is never answered: what cannot be delivered is dropped.
func (w *worker) launchAck(r *request, d *decision, key uint64) {
	for err := w.launch(r, d, nil); err != nil; err = w.launch(r, d, nil) {
		switch {
		case d.verb == doAddress && w.nextEndpoint(r, d, nil):
		case d.verb == doFlow && !d.only && errors.Is(err, transport.ErrFlowGone) && w.afterFlow(r, d):
		case d.verb == doPark:
			w.park(r, key, d)
			return
		default:
			return
		}
	}
}

// place fixes socket and address of what goes to a server.
func (w *worker) place(r *request, d *decision) {
	switch d.verb {
	case doServer:
		a := d.s.address(d.kind)
		if a == nil && len(d.s.addrs) > 0 {
			a = &d.s.addrs[0]
		}
		if a == nil {
			return
		}
		d.kind, d.addr = a.kind, a.addr
		if d.out == nil {
			d.out = r.sendBy
		}
		if d.out == nil || !d.out.fits(d.kind, d.addr.Addr()) {
			d.out = r.g.outgoing(r.l, d.kind, d.addr.Addr())
		}
	case doFlow:
		if d.out == nil && r.pop > 0 { // one entry: a Path, or a Record-Route where both sides had one socket
			d.out = r.g.named(&r.entry)
		}
		if d.out == nil || !d.out.Listener.Kind.Reliable() {
			d.out = r.g.streamListener(r.l)
		}
		d.kind = d.out.Listener.Kind
	}
}

// streamListener picks the name under which we send into a client's connection when the route does not name it.
func (g *state) streamListener(in *listener) *listener {
	for _, l := range g.listeners {
		if l.Listener.Kind.Reliable() {
			return l
		}
	}
	return in
}

// attempt sends a request that was not sent there yet, and goes on to the next choice as long as that fails at once.
func (w *worker) attempt(r *request, d *decision, slot uint32, p *pending) {
	for {
		w.assign(r, d, slot, p)
		err := w.launch(r, d, p)
		if err == nil {
			return
		}
		if !w.failed(r, d, slot, p, err) {
			return
		}
	}
}

// assign writes into entry and pending where the request goes now.
func (w *worker) assign(r *request, d *decision, slot uint32, p *pending) {
	if slot != 0 {
		e := w.mem.at(slot)
		e.out, e.kind = d.out.Listener.Tag, d.kind
		e.flags &^= flagKey | flagPinned
		switch d.verb {
		case doServer:
			e.setServer(d.hash, d.t.Target.Tag, d.s.tag)
			if d.hasKey {
				e.flags |= flagKey
			}
			if d.pinned {
				e.flags |= flagPinned
			}
		case doAddress:
			e.setAddr(d.addr)
		case doFlow:
			e.setFlow(d.flow)
		}
	}
	w.hint(r, d)
	if p == nil {
		d.lease.Done(routing.OutcomeClientFault) // nobody would give it back
		return
	}
	p.g, p.t, p.s, p.how = r.g, d.t, d.s, d.how
	p.dst = hop{d.kind, d.addr}
	p.lease, p.lost = d.lease, false
	if d.verb == doAddress {
		p.places++
	}
	if d.s != nil && d.verb == doServer {
		p.avoid.Add(d.s.tag)
		if p.line != nil {
			p.line.AddTried(d.s.name)
		}
	}
	w.arm(r, d, p)
}
