package sipproxy

import (
	"time"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
)

// parkFor says what a request waits for.
type parkFor uint8

const (
	parkNumber parkFor = iota + 1 // ENUM (dcr.md section 14)
	parkName                      // the address of an outward next hop
	parkHint                      // what another worker knows about a dialog (SA-6)
	parkBehind                    // a CANCEL: its INVITE waits
)

const (
	maxNumbers    = 8                      // questions of one request; then null
	defaultBudget = 200 * time.Millisecond // all numbers of one request together
)

// parkedRequest was copied out of the receive buffer and waits for an answer. It ends under the generation that it began
// with.
type parkedRequest struct {
	serial   uint32
	used     bool
	key      uint64
	d        uint64
	invite   bool
	why      parkFor
	g        *state
	in       transport.Inbound
	raw      []byte
	deadline time.Time
	asked    int
	behind   []uint32
}

// parking is one worker's parked requests, bounded in number and octets.
type parking struct {
	slots  []parkedRequest
	free   []uint32
	byKey  map[uint64]uint32
	alarms alarms
	max    int
	octets int // that may still be parked
	shed   uint64
	copies uint64         // retransmissions of parked requests, dropped
	again  *parkedRequest // the one that is being worked on again
}

func (k *parking) init(max, octets int) {
	k.max, k.octets, k.byKey = max, octets, map[uint64]uint32{}
}

// holds says whether that very transaction waits.
func (k *parking) holds(r *request, key uint64) bool {
	if len(k.byKey) == 0 {
		return false
	}
	_, ok := k.byKey[key]
	return ok && r.class != ack
}

// from says whether a request of a connection waits.
func (k *parking) from(flow uint64) bool {
	for i := range k.slots {
		if k.slots[i].used && k.slots[i].in.Flow == flow {
			return true
		}
	}
	return false
}

// waits says whether the INVITE of a CANCEL waits.
func (k *parking) waits(d uint64) bool {
	if len(k.byKey) == 0 {
		return false
	}
	i, ok := k.byKey[nonZero(d)]
	return ok && k.slots[i].invite
}

// parkedAgain is a copy of a parked request: dropped and counted.
func (w *worker) parkedAgain(r *request, key uint64) {
	w.parking.copies++
	count(r.l.bad.Retransmissions)
}

// park copies the request and asks. Where there is no room, or nobody to ask, the answer counts as failed at once: the
// request is not dropped.
func (w *worker) park(r *request, key uint64, d *decision) {
	k := &w.parking
	i, ok := k.take(r, key, d)
	if !ok {
		w.shed(r, key, d)
		return
	}
	q := &k.slots[i]
	wait := outwardWait
	if d.park == parkNumber {
		if wait = d.t.Target.EnumBudget; wait <= 0 {
			wait = defaultBudget
		}
	}
	q.deadline = w.now.Add(wait)
	if k.again != nil && k.again.why == d.park {
		q.deadline, q.asked = k.again.deadline, k.again.asked+1
	}
	if d.park == parkBehind {
		if at, ok := k.byKey[nonZero(r.d)]; ok {
			k.slots[at].behind = append(k.slots[at].behind, i)
		}
		return
	}
	k.alarms.push(alarm{q.deadline, i, q.serial})
	if q.asked >= maxNumbers || !w.ask(r, d, i, q.serial) {
		w.unpark(i, true)
	}
}

// shed goes on without the answer.
func (w *worker) shed(r *request, key uint64, d *decision) {
	w.parking.shed++
	if d.park == parkBehind {
		return // its INVITE goes on by itself, and the CANCEL comes again
	}
	if d.park == parkNumber {
		count(d.t.Obs.RuleLimits[limitParked])
	}
	r.gaveUp, r.other = true, &answer{}
	next := w.decide(r, nil, nil)
	if next.verb == doPark {
		next = noServer(next)
	}
	w.carry(r, &next, key, 0)
}

func (k *parking) take(r *request, key uint64, d *decision) (uint32, bool) {
	if len(k.byKey) >= k.max || len(r.m.Raw) > k.octets {
		return 0, false
	}
	if len(k.free) == 0 {
		k.slots = append(k.slots, parkedRequest{})
		k.free = append(k.free, uint32(len(k.slots)-1))
	}
	i := k.free[len(k.free)-1]
	k.free = k.free[:len(k.free)-1]
	q := &k.slots[i]
	raw := append(q.raw[:0], r.m.Raw...)
	*q = parkedRequest{serial: q.serial + 1, used: true, key: key, d: r.d, invite: r.class == invite, why: d.park, g: r.g, in: *r.in, raw: raw, behind: q.behind[:0]}
	q.in.Bytes = raw
	k.octets -= len(raw)
	k.byKey[key] = i
	return i, true
}

func (k *parking) release(i uint32) {
	q := &k.slots[i]
	delete(k.byKey, q.key)
	k.octets += len(q.raw)
	q.used, q.serial = false, q.serial+1
	k.free = append(k.free, i)
}

// ask puts the question; the answer comes back to this worker.
func (w *worker) ask(r *request, d *decision, i, serial uint32) bool {
	back := func() {
		w.port.In.Post(transport.Event{Kind: transport.Call, Do: func() {
			if q := &w.parking.slots[i]; q.used && q.serial == serial {
				w.unpark(i, false)
			}
		}})
	}
	switch d.park {
	case parkNumber:
		return w.p.cfg.Numbers != nil && w.p.cfg.Numbers.Ask(d.t.Target.Service, d.number, back)
	case parkName:
		return w.p.cfg.Names.Ask(d.name, back)
	}
	callID, one, two, ok := namedDialog(r.m)
	if !ok {
		return false
	}
	callID, one, two = clone(callID), clone(one), clone(two)
	g, other := r.g, w.ownerOf(callID)
	return other.port.In.Post(transport.Event{Kind: transport.Call, Do: func() {
		known := other.hinted(g, callID, one, two)
		w.port.In.Post(transport.Event{Kind: transport.Call, Do: func() {
			if q := &w.parking.slots[i]; q.used && q.serial == serial {
				w.keptOther = known
				w.unpark(i, false)
			}
		}})
	}})
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// unpark works on a parked request from the start again, now that the answer is there or the budget is spent. What waits
// behind it follows.
func (w *worker) unpark(i uint32, gaveUp bool) {
	k := &w.parking
	was := k.slots[i]
	behind := append([]uint32(nil), was.behind...)
	raw := was.raw
	k.slots[i].raw = nil // this copy is read while the slot may be taken again
	k.octets += len(raw)
	k.release(i)
	other := w.keptOther
	w.keptOther = answer{}
	w.resume(&was, raw, gaveUp, other)
	if q := &k.slots[i]; !q.used && q.raw == nil {
		q.raw = raw[:0]
	}
	for _, b := range behind {
		if q := &k.slots[b]; q.used && q.why == parkBehind {
			w.unpark(b, false)
		}
	}
}

func (w *worker) resume(was *parkedRequest, raw []byte, gaveUp bool, other answer) {
	var m sip.Msg // a message of its own: rare, and the work on it may read kept ones
	_ = m.Parse(raw)
	w.valid.Schemes = nil
	sip.Validate(&m, &w.valid)
	was.in.Bytes = raw
	if w.listener(was.g, was.in.Listener) == nil {
		return
	}
	var r request
	w.read(&r, &was.in, &m, was.g, w.now)
	r.gaveUp = gaveUp
	if was.why == parkHint {
		r.other = &other
	}
	w.parking.again = was
	w.handle(&r)
	w.parking.again = nil
}

// first is the next deadline.
func (k *parking) first() (time.Time, bool) {
	if len(k.alarms) == 0 {
		return time.Time{}, false
	}
	return k.alarms[0].at, true
}

// expire ends the wait of those whose budget is spent.
func (k *parking) expire(w *worker) {
	for len(k.alarms) > 0 && !w.now.Before(k.alarms[0].at) {
		a := k.alarms.pop()
		if q := &k.slots[a.index]; q.used && q.serial == a.serial {
			w.guardedDo(func() { w.unpark(a.index, true) })
		}
	}
}
