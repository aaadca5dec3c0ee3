package sipproxy

import (
	"errors"
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
	w.handle(r)
}

// refused answers what is owed to a bad request; true when that was all.
func (w *worker) refused(r *request, bad *sip.Error) bool {
	switch {
	case bad == sip.ErrTooManyHops && r.class == options && r.uri.User == nil && !r.hasNext && r.g.self.uri(&r.uri):
		return false // answered instead (SV-3)
	case bad != nil:
		count(r.l.bad.ParseErrors[parseReason(r.m, bad)])
		if r.l.DropBad || bad.Status == 0 {
			return true
		}
		d := refuse(bad.Status, "refused", 'P', 'P')
		w.answerWith(r, &d, bad)
		return true
	}
	if r.class == ack && w.branches.ownToTag(r.id.toTag, r.g.secrets, r.d) {
		w.ownAck(r)
		return true
	}
	if r.looped {
		d := refuse(482, "refused", 'P', 'K')
		w.answer(r, &d)
		return true
	}
	if w.plainSecure(r) {
		d := refuse(480, "refused", 'P', 'K')
		w.answer(r, &d)
		return true
	}
	return false
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

// handle finds what is known of the request and does what is decided.
func (w *worker) handle(r *request) {
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
		d := w.decide(r, nil, nil)
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
	count(r.l.bad.Retransmissions)
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
	if r.class == ack {
		if t := r.l.obsOf(d.t); t != nil {
			count(t.Requests[r.method])
		}
		_ = w.launch(r, d, nil) // what cannot be delivered is dropped: an ACK is never answered
		d.lease.Done(routing.OutcomeClientFault)
		return
	}
	if slot != 0 && !d.moved {
		d.lease.Done(routing.OutcomeClientFault) // the transaction has one already
		p := w.pendingOf(w.mem.at(slot))
		if err := w.launch(r, d, p); err != nil {
			w.failed(r, d, slot, p, err)
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
	if d.s != nil && d.verb == doServer {
		p.avoid.Add(d.s.tag)
		if p.line != nil {
			p.line.AddTried(d.s.name)
		}
	}
	w.arm(r, d, p)
}

// launch composes and sends. A request too large for UDP goes by TCP where the server has an address for it (SX-9).
func (w *worker) launch(r *request, d *decision, p *pending) error {
	if d.out == nil {
		return errNoWay
	}
	b := w.compose(r, d)
	if d.verb == doServer && d.kind == transport.UDP && len(b) > mtuLimit {
		if a := d.s.address(transport.TCP); a != nil && w.now.After(w.noTCP[hop{transport.TCP, a.addr}]) {
			d.kind, d.addr = a.kind, a.addr
			d.out = r.g.outgoing(r.l, d.kind, d.addr.Addr())
			b = w.compose(r, d)
			if p != nil {
				p.larger, p.dst = true, hop{d.kind, d.addr}
				e := w.mem.at(p.slot)
				e.kind, e.out = d.kind, d.out.Listener.Tag
				w.arm(r, d, p)
			}
		}
	}
	if d.s != nil && d.verb == doServer && d.s.obs != nil {
		count(d.s.obs.Requests[obs.SIP])
	}
	return w.transmit(r, d, p, b)
}

// transmit hands the bytes to the network.
func (w *worker) transmit(r *request, d *decision, p *pending, b []byte) error {
	switch {
	case d.verb == doFlow:
		err := w.port.Out.OnFlow(d.flow, b)
		if p != nil && p.req != nil && err == nil { // where nothing is kept, nothing could be done about its end
			w.sentInto(p, d.flow)
		}
		return err
	case d.kind == transport.UDP:
		w.port.Out.Datagram(d.out.Listener, d.addr, b)
		return nil
	}
	if d.verb == doServer && r.g.self.addr(d.addr) {
		return errNoWay // never to a listener of our own (SV-4)
	}
	flow, err := w.port.Out.ToServer(d.out.Listener, d.kind, d.addr, w.serverName(d), affinity(r.id.callID), b)
	if p != nil && flow != 0 {
		w.sentInto(p, flow)
	}
	return err
}

// sentInto notes the connection that a request waits on.
func (w *worker) sentInto(p *pending, flow uint64) {
	p.flow = flow
	if flow != w.lastFlow {
		w.lastFlow = flow
		w.flows[flow] = struct{}{}
	}
}

func (w *worker) serverName(d *decision) string {
	if d.s != nil {
		if a := d.s.address(d.kind); a != nil {
			return a.host
		}
		return ""
	}
	if d.kind == transport.TLS {
		return string(d.host) // a handshake follows: this allocation is nothing beside it
	}
	return ""
}

var (
	errNoWay      = errors.New("sipproxy: no way there")
	errForeignApp = errors.New("sipproxy: token of an unknown application")
)

// failed is a transport error at once (SX-15): the next choice while the request may still move, else an answer. True:
// d is to be tried.
func (w *worker) failed(r *request, d *decision, slot uint32, p *pending, err error) bool {
	if d.verb == doFlow {
		if !d.only && errors.Is(err, transport.ErrFlowGone) && w.afterFlow(r, d) {
			return true
		}
		gone := refuse(430, "flow", 'S', 'C')
		gone.t, gone.source = d.t, d.source
		w.settle(r, slot, &gone)
		return false
	}
	if d.s != nil && p != nil && d.verb == doServer {
		d.lease = routing.Lease{}
		p.lease.Done(routing.OutcomeTimeout)
		if w.nextChoice(r, d, slot, p) {
			return true
		}
	}
	w.settle(r, slot, unreachableAnswer(d))
	return false
}

func unreachableAnswer(d *decision) *decision {
	gone := refuse(503, d.by, 'S', 'C')
	gone.rest, gone.t, gone.source, gone.rule = true, d.t, d.source, d.rule
	return &gone
}

// afterFlow goes on by Route or Request-URI when a flow is gone that need not be the only way (6.4).
func (w *worker) afterFlow(r *request, d *decision) bool {
	u := &r.uri
	if r.hasNext {
		u = &r.next
	}
	if !u.SIP() || r.g.self.uri(u) {
		return false
	}
	next := w.outwards(r, u, nil)
	if next.verb != doAddress {
		return false
	}
	next.by = d.by
	*d = next
	return true
}

// nextChoice finds another server for a request that may move: at most connect.tries of them, each once.
func (w *worker) nextChoice(r *request, d *decision, slot uint32, p *pending) bool {
	if p.cancelled || p.avoid.Len() >= d.t.pool.Tries || !d.hasKey || slot != 0 && w.mem.at(slot).phase != sent {
		return false
	}
	req := routing.Request{Hash: d.hash, HasKey: true, Avoid: p.avoid}
	was := d.s
	next := *d
	next.out, next.kind, next.addr = nil, 0, addrPort{}
	if !w.acquire(r, &next, &req, nil) {
		return false
	}
	if slot != 0 {
		w.moveAway(w.mem.at(slot), p)
	}
	if was != nil && was.obs != nil {
		count(was.obs.Failovers[obs.SIP])
	}
	*d = next
	w.place(r, d)
	return true
}

// moveAway notes the attempt that a request leaves behind; its late responses are known by the server in the branch
// (9.5). The received bytes are kept from here on, those of UDP clients too.
func (w *worker) moveAway(e *entry, p *pending) {
	if p == nil || e.place != toServer {
		return
	}
	p.lease.Done(routing.OutcomeClientFault)
	if len(p.left) < maxLeft { // a failover is rare, and pays for its own memory
		p.left = append(p.left, leftAttempt{tag: e.server(), kind: e.kind, out: p.g.byTag[e.out], dst: p.dst, flow: p.flow})
	}
}

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
	if r.class == invite && d.verb == doServer {
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
