package sipproxy

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
)

// worker has its share of all Call-IDs, message after message. Everything in it is its own: nobody else touches it, so
// there is no lock on the way of a message.
type worker struct {
	p    *Proxy
	id   int
	port Port
	now  time.Time

	msg, keptMsg sip.Msg
	req, kept    request
	keptBusy     bool
	keptOther    answer
	edits        sip.Edits
	branches     branchCodec
	codec        proxy.Codec
	view         view
	scratch      proxy.Scratch
	valid        sip.Options

	out, buf, uriBuf, route, host, bekey, value, token2 []byte

	places []Endpoint // of the next hop at hand

	sock  *transport.Listener // the listener found last
	found *listener
	gen   *state

	mem      *memory
	hints    *hints
	arena    *arena
	open     pendings
	alarms   alarms
	silence  queue // INVITEs that wait for their first response
	lines    lines
	parking  parking
	flows    map[uint64]struct{} // connections towards servers that requests went into
	lastFlow uint64
	lastGone struct {
		addr addrPort
		at   time.Time
	}
	noTCP  map[hop]time.Time // servers that refused TCP for a large request (SX-9)
	sample uint32
	ifDown []Assumption // what an explanation asks besides

	notHeld    uint64 // transactions that were remembered without a pending
	guard      guard
	turnedAway atomic.Uint64
	shares     map[*throttle]*share // parts in what servers asked to be left out
	askedAway  atomic.Uint64
	loadText   []byte
	openNow    atomic.Int64
	dropped    atomic.Uint64
	panicked   atomic.Uint64
	notKept    atomic.Uint64
	notKnown   atomic.Uint64
}

func newWorker(p *Proxy, id int) *worker {
	n := len(p.cfg.Ports)
	w := &worker{
		p: p, id: id, port: p.cfg.Ports[id],
		mem: newMemory(max(1, p.cfg.Entries/n)), hints: newHints(max(1, p.cfg.Hints/n)),
		guard: guard{share: 1}, shares: map[*throttle]*share{}, arena: newArena(p.cfg.Arena / n), noTCP: map[hop]time.Time{}, flows: map[uint64]struct{}{},
	}
	w.open.max = max(1, p.cfg.Waiting/n)
	w.lines.left = p.cfg.Records / n
	w.parking.init(max(1, p.cfg.Parked/n), parkedOctets/n)
	w.out = make([]byte, 0, 4096)
	return w
}

// run works until the context ends: batch after batch, one reading of the clock for each.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		msgs, events, now := w.port.In.Receive(ctx, w.until())
		w.now = now
		if g := w.p.current.Load(); g != nil {
			w.guard.note(now, w.port.In.Wait(), g.overload.Target, w.port.In.Emptied())
		}
		w.batch(msgs, events)
	}
}

func (w *worker) batch(msgs []transport.Inbound, events []transport.Event) {
	w.tick()
	for i := range events {
		w.guarded(nil, &events[i])
	}
	for i := range msgs {
		w.guarded(&msgs[i], nil)
	}
	w.about(nil) // what timers and, in the next batch, events send
	w.timers()
	w.port.Out.Flush()
	w.openNow.Store(int64(w.mem.open - w.mem.over))
	w.notKept.Store(w.arena.refused)
	w.notKnown.Store(w.mem.full + w.notHeld)
}

// guarded handles one message or event. No panic leaves a worker: it is counted, and that message dropped.
func (w *worker) guarded(in *transport.Inbound, e *transport.Event) {
	defer w.recover()
	if in != nil {
		w.message(in)
	} else {
		w.event(e)
	}
}

func (w *worker) recover() {
	v := recover()
	if v == nil {
		return
	}
	w.keptBusy = false
	w.panicked.Add(1)
	if f := w.p.cfg.Panic; f != nil {
		f(v, debug.Stack())
	}
}

// message is one message from the network.
func (w *worker) message(in *transport.Inbound) {
	g := w.p.current.Load()
	if g == nil {
		w.dropped.Add(1)
		return
	}
	l := w.listener(g, in.Listener)
	if l == nil {
		w.dropped.Add(1)
		return
	}
	if in.Bad != nil {
		w.about(nil)
		w.unframed(g, l, in)
		return
	}
	var err error
	switch {
	case in.Kind == transport.UDP:
		err = w.msg.ParseDatagram(in.Bytes)
	case in.Kind >= transport.WS:
		err = w.msg.ParseWebSocket(in.Bytes)
	default:
		err = w.msg.Parse(in.Bytes)
	}
	_ = err // what Parse found Validate says again, with the status that is owed
	w.valid.Schemes = l.schemes
	bad := sip.Validate(&w.msg, &w.valid)
	w.about(w.msg.Values.CallID)
	if !w.msg.Request {
		w.response(g, l, in, bad)
		return
	}
	w.request(g, l, in, bad)
}

// about tells the way out whose the next messages are, so that those of different dialogs need not keep their order.
func (w *worker) about(callID []byte) {
	if len(callID) == 0 {
		w.port.Out.About(0)
		return
	}
	w.port.Out.About(affinity(callID) | 1<<31)
}

// listener finds this generation's view of a listener; nil when it has none.
func (w *worker) listener(g *state, sock *transport.Listener) *listener {
	if sock == w.sock && g == w.gen {
		return w.found
	}
	w.sock, w.gen, w.found = sock, g, nil
	for _, l := range g.listeners {
		if l.Listener == sock {
			w.found = l
			return l
		}
		if w.found == nil && l.Listener.Kind == sock.Kind && l.Listener.Addr == sock.Addr {
			w.found = l // a reload gave the same socket another name: what it read before is not lost
		}
	}
	return w.found
}

// event is what a worker learns beside messages.
func (w *worker) event(e *transport.Event) {
	switch e.Kind {
	case transport.Call:
		e.Do()
	case transport.FlowClosed:
		w.flowLost(e, false)
	case transport.FlowFailed:
		w.flowLost(e, true)
	case transport.Unreachable:
		w.unreachable(e)
	case transport.Aged:
		if !w.busyOn(e.Flow) {
			e.Do()
		}
	}
}

// tick moves the clocks of memory and hints, and ends what has outlived its transaction.
func (w *worker) tick() {
	w.mem.tick(w.now, w.expired)
	w.hints.tick(w.now, w.unbind)
}

// until is when the worker wants to be woken even if nothing comes.
func (w *worker) until() time.Time {
	var t time.Time
	earlier := func(o time.Time) {
		if t.IsZero() || o.Before(t) {
			t = o
		}
	}
	if len(w.alarms) > 0 {
		earlier(w.alarms[0].at)
	}
	if a := w.silence.first(); a != nil {
		earlier(a.at)
	}
	if at, ok := w.parking.first(); ok {
		earlier(at)
	}
	if w.mem.count > 0 || w.hints.count > 0 {
		earlier(w.now.Add(time.Second))
	}
	return t
}

func (w *worker) owner(callID []byte) int {
	if w.p.cfg.Owner == nil || len(w.p.workers) == 1 {
		return w.id
	}
	return w.p.cfg.Owner(callID)
}

// ownerOf gives the worker that has a Call-ID. Only the worker itself may look into it; explain, which looks into the
// others' hints, does so while it holds them (see Explain).
func (w *worker) ownerOf(callID []byte) *worker {
	if i := w.owner(callID); i < len(w.p.workers) {
		return w.p.workers[i]
	}
	return w
}

func affinity(callID []byte) uint32 { return uint32(xxhash.Sum64(callID) >> 32) }

// Stats are what the workers count beside the metrics of listeners and applications.
type Stats struct {
	Dropped       uint64 // messages without a listener, or in front of the first generation
	Panics        uint64
	NotKept       uint64 // messages that the arena had no room for
	NotRemembered uint64 // transactions that the memory had no room for, or not for all that belongs to them
	Open          int    // transactions without a final response
}

// Stats adds up what the workers count. Any goroutine may ask.
func (p *Proxy) Stats() Stats {
	var s Stats
	for _, w := range p.workers {
		s.Dropped += w.dropped.Load()
		s.Panics += w.panicked.Load()
		s.NotKept += w.notKept.Load()
		s.NotRemembered += w.notKnown.Load()
	}
	s.Open = p.Open()
	return s
}

// lines hands out the open lines of the access log: bounded, made when first needed.
type lines struct {
	free []*obs.Record
	left int // that may still be made
}

func (l *lines) take() *obs.Record {
	if n := len(l.free); n > 0 {
		rec := l.free[n-1]
		l.free = l.free[:n-1]
		return rec
	}
	if l.left <= 0 {
		return nil
	}
	l.left--
	return new(obs.Record)
}

func (l *lines) give(rec *obs.Record) { l.free = append(l.free, rec) }
