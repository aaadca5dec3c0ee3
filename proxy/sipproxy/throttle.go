package sipproxy

import (
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/routing"
)

// offer is what our Via says to servers beside the branch: that we leave requests out when they ask for it (SH-4). It names
// the algorithm that all know, without quotes, which widespread parsers cannot read here (ADR 0021).
const offer = `;oc;oc-algo=loss`

// offered is how it comes back from servers that do not take part.
var offered = []byte(offer)

// throttle is what a server last asked for in the Via of its responses (RFC 7339 section 5, RFC 7415 section 3). All workers
// tell it and ask it; it outlives generations.
type throttle struct {
	order atomic.Uint64 // rate<<63 | asked<<62 | value; 0: nothing was asked for
	until atomic.Int64  // Unix time in nanoseconds
	seq   atomic.Uint64
	next  atomic.Int64 // rate: when the next request would be due, Unix time in nanoseconds
}

const (
	orderRate  = 1 << 63
	orderAsked = 1 << 62
	orderValue = 1<<32 - 1
	forgetSeq  = 5 * time.Second // a server that started again may count from less
)

// tell takes what a response says. What is older than what is known is ignored, and so is what makes no sense.
func (t *throttle) tell(o *sip.Overload, now time.Time) {
	order := uint64(orderAsked) | uint64(o.Value)
	switch {
	case !o.Answered:
		return
	case o.Algo == nil || sip.EqualFold(o.Algo, "loss"):
		if o.Value > 100 {
			return
		}
	case sip.EqualFold(o.Algo, "rate"):
		order |= orderRate
	default:
		return
	}
	was := t.seq.Load()
	if o.Seq != 0 && o.Seq <= was && now.UnixNano() < t.until.Load()+int64(forgetSeq) || !t.seq.CompareAndSwap(was, o.Seq) {
		return // another worker was told at the same time: one of the two is as good as the other
	}
	t.until.Store(now.Add(o.Validity).UnixNano())
	t.order.Store(order)
}

// in gives what is in force.
func (t *throttle) in(now time.Time) (order uint64, ok bool) {
	if order = t.order.Load(); order == 0 {
		return 0, false
	}
	if now.UnixNano() >= t.until.Load() {
		t.order.CompareAndSwap(order, 0)
		return 0, false
	}
	return order, order&orderRate != 0 || order&orderValue > 0
}

// byRate says whether a request keeps to so many in a second (RFC 7415 section 3.5). What matters more may come earlier than
// due by more, and so gets what others leave.
func (t *throttle) byRate(perSecond uint64, p priority, now time.Time) bool {
	if perSecond == 0 {
		return false
	}
	each := int64(time.Second) / int64(perSecond)
	early := 4 * each
	switch p {
	case unprovenInvite, newInvite, inDialog:
		early = 8 * each
	case emergency:
		early = 16 * each
	}
	for {
		due := t.next.Load()
		at := now.UnixNano()
		if due-at > early {
			return false
		}
		if t.next.CompareAndSwap(due, max(due, at)+each) {
			return true
		}
	}
}

// share is one worker's part in what a server asked for by loss.
type share struct {
	shedder
	order uint64
}

// left says that a request is to be left out because the server asked for it. ACK, CANCEL and BYE never are.
func (w *worker) left(r *request, s *server) bool {
	if s.throttle == nil {
		return false
	}
	order, ok := s.throttle.in(w.now)
	if !ok {
		delete(w.shares, s.throttle)
		return false
	}
	p := r.priorityOf(w.p.proven)
	if p == neverShed {
		return false
	}
	if order&orderRate != 0 {
		return !s.throttle.byRate(order&orderValue, p, w.now)
	}
	lost := float64(order&orderValue) / 100
	part := w.shares[s.throttle]
	switch {
	case part == nil || w.now.After(part.ends.Add(shedInterval)):
		// Nothing is known of what was offered: the same of everything that is not the last to go.
		part = &share{order: order}
		for p := range inDialog {
			part.shed[p] = portion(lost)
		}
		if lost == 1 {
			part.shed[inDialog], part.shed[emergency] = portion(1), portion(1)
		}
		part.ends = w.now.Add(shedInterval)
		w.shares[s.throttle] = part
	case order != part.order || !w.now.Before(part.ends):
		part.plan(1-lost, 1)
		part.order, part.ends = order, w.now.Add(shedInterval)
	}
	return !part.admit(p, r.d)
}

// leave answers what is left out for a server: 503 without Retry-After, since that would rest all of it (RFC 7339
// section 5.10). Keys are not moved, which would part calls from what belongs to them (sip-http.md 12.5).
func (w *worker) leave(r *request, d *decision) {
	w.askedAway.Add(1)
	no := refuse(503, "refused", 'R', 'K')
	no.t = d.t
	d.lease.Done(routing.OutcomeClientFault)
	w.answer(r, &no)
}

// Left is how many requests were refused because their server asked for less.
func (p *Proxy) Left() uint64 {
	n := uint64(0)
	for _, w := range p.workers {
		n += w.askedAway.Load()
	}
	return n
}

// told reads what a server says of its load in the Via that we gave it.
func (w *worker) told(g *state, e *sip.ViaValue, tag uint32) {
	o, ok := e.Overload()
	if !ok || !o.Answered {
		return
	}
	for _, p := range g.pools {
		if s := p.servers[tag]; s != nil && s.throttle != nil {
			s.throttle.tell(&o, w.now)
			return
		}
	}
}

// overloadValidity is how long callers may believe what we say of our load: until the second judgement from now.
const overloadValidity = 2 * shedInterval

// load is the answer to a caller's oc; nil where the listener does not offer it.
func (w *worker) load(l *listener) []byte {
	if l == nil || !l.Overload {
		return nil
	}
	percent, validity := w.guard.loss(), overloadValidity
	if percent == 0 {
		validity = 0
	}
	w.loadText = sip.AppendOverload(w.loadText[:0], percent, validity, w.now)
	return w.loadText
}

// tellLoad answers the oc of the requester in a response that goes back to it.
func (w *worker) tellLoad(p *reply) {
	answer := w.load(p.g.byTag[p.b.listener])
	if answer == nil {
		return
	}
	it := p.m.Vias()
	if it.Next() && it.Next() {
		w.edits.TellOverload(&it.Via, answer)
	}
}
