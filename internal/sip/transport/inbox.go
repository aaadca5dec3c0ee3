package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

const (
	inboxPlaces = 2048     // messages that wait for one worker
	eventPlaces = 4096     // events, the same
	placeOctets = 2048     // a message up to this size is copied into memory laid out before
	largeAtOnce = 64 << 20 // octets of all larger ones that wait, over all workers
	takeAtOnce  = 64       // messages out of the ring, and events, in one Receive
)

// Inbox is the bounded queue of one worker. Readers put, the worker alone takes. The worker also reads one UDP socket
// itself, its home, where there is one: a message whose worker reads the socket it came on changes no goroutine.
type Inbox struct {
	hub *Hub
	id  int

	ring   ring[letter]
	events ring[Event]
	home   atomic.Pointer[udpSocket]
	parked atomic.Uint32             // on what the worker waits: onNothing, onHome, onWake
	asleep atomic.Pointer[udpSocket] // the socket on which it waits, or waited last
	wake   chan struct{}

	wait    atomic.Int64  // of the oldest message in the last batch, in nanoseconds
	dropped atomic.Uint64 // messages that found the inbox full
	lost    atomic.Uint64 // events, the same

	// Owned by the worker.
	msgs       []Inbound
	evs        []Event
	lent       int // places of ring that msgs points into
	lentEvents int
	now        time.Time
	oldest     int64 // when the oldest of msgs came
	until      time.Time
	armed      time.Time // deadline set on home; zero: none
	timer      *time.Timer
	ctx        context.Context // whose end wakes the worker
	locals     localTable      // by which address of ours a peer came in, on wildcard sockets
	emptied    bool            // nothing waited, at least once since Emptied was asked
}

// letter is a message in the ring. Its bytes are in the place's own memory, or in large.
type letter struct {
	msg   Inbound
	own   []byte
	large int   // octets counted against largeAtOnce
	since int64 // when it came, in nanoseconds
}

const (
	onNothing uint32 = iota
	onHome
	onWake
)

func newInbox(h *Hub, id int) *Inbox {
	in := &Inbox{
		hub: h, id: id,
		wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour),
		msgs: make([]Inbound, 0, takeAtOnce+batch), evs: make([]Event, 0, takeAtOnce),
	}
	in.timer.Stop()
	in.ring.layOut(inboxPlaces)
	in.events.layOut(eventPlaces)
	memory := make([]byte, inboxPlaces*placeOctets)
	for i := range in.ring.places {
		in.ring.places[i].value.own = memory[i*placeOctets : (i+1)*placeOctets : (i+1)*placeOctets]
	}
	return in
}

// Receive waits until there is something, the deadline has passed (zero: no deadline) or the context ends. Messages and
// events are lent until the next call. now is one reading of the clock for the whole batch. Only one goroutine may call
// it, and with one context for long: a change of context costs an allocation.
func (in *Inbox) Receive(ctx context.Context, until time.Time) (msgs []Inbound, events []Event, now time.Time) {
	in.giveBack()
	if in.ctx != ctx {
		in.ctx = ctx
		context.AfterFunc(ctx, in.notify)
	}
	in.until = until
	for {
		in.collect()
		read := false
		if home := in.home.Load(); home != nil {
			read = in.readHome(home)
		} else if len(in.msgs)+len(in.evs) == 0 && ctx.Err() == nil {
			in.park()
			in.collect()
		}
		if !read {
			in.now = time.Now()
		}
		if len(in.msgs) > 0 {
			in.wait.Store(in.now.UnixNano() - in.oldest)
		}
		if len(in.msgs)+len(in.evs) > 0 || ctx.Err() != nil || !until.IsZero() && !in.now.Before(until) {
			return in.msgs, in.evs, in.now
		}
	}
}

// Post hands an event to the worker; false when the queue of events is full.
func (in *Inbox) Post(e Event) bool {
	if !in.events.put(e) {
		in.lost.Add(1)
		return false
	}
	in.notify()
	return true
}

// Wait is how long the oldest message of the last batch had waited since the kernel got it; 0 while the worker rests.
func (in *Inbox) Wait() time.Duration { return time.Duration(in.wait.Load()) }

// rest notes that the worker has nothing to do: nothing waits.
func (in *Inbox) rest() {
	in.emptied = true
	in.wait.Store(0)
}

// Emptied says whether the worker found nothing waiting, in its queue and in its socket, since it asked last. A worker that
// is called late by a busy machine empties its queue all the same; one that is offered more than it can do never does. Only
// the worker may ask.
func (in *Inbox) Emptied() bool {
	was := in.emptied
	in.emptied = false
	return was
}

// Dropped is how many messages and events found the inbox full since the start.
func (in *Inbox) Dropped() (messages, events uint64) { return in.dropped.Load(), in.lost.Load() }

// put copies a message into the ring; it does not wake the worker, so that a reader may put a whole batch first.
func (in *Inbox) put(m *Inbound, since int64) bool {
	n, large := len(m.Bytes), 0
	if n > placeOctets {
		// Rare, and bounded: such a message pays for its own memory, so that the ring need not be laid out for the
		// largest there may be.
		if in.hub.large.Add(int64(n)) > largeAtOnce {
			in.hub.large.Add(-int64(n))
			return false
		}
		large = n
	}
	p, pos := in.ring.claim()
	if p == nil {
		in.hub.large.Add(-int64(large))
		return false
	}
	v := &p.value
	v.msg, v.large, v.since = *m, large, since
	if large > 0 {
		v.msg.Bytes = append([]byte(nil), m.Bytes...)
	} else {
		v.msg.Bytes = append(v.own[:0], m.Bytes...)
	}
	p.publish(pos)
	return true
}

// collect takes what stands in the ring and in the queue of events.
func (in *Inbox) collect() {
	for in.lent < takeAtOnce {
		v := in.ring.at(in.lent)
		if v == nil {
			break
		}
		in.take(&v.msg, v.since)
		in.lent++
	}
	for in.lentEvents < takeAtOnce {
		e := in.events.at(in.lentEvents)
		if e == nil {
			break
		}
		in.evs = append(in.evs, *e)
		in.lentEvents++
	}
}

// giveBack frees what the last Receive lent.
func (in *Inbox) giveBack() {
	for i := range in.lent {
		if v := in.ring.at(i); v.large > 0 {
			in.hub.large.Add(-int64(v.large))
			v.msg.Bytes, v.large = nil, 0
		}
	}
	for i := range in.lentEvents {
		*in.events.at(i) = Event{} // a closure may hold much
	}
	in.ring.release(in.lent)
	in.events.release(in.lentEvents)
	in.lent, in.lentEvents, in.msgs, in.evs = 0, 0, in.msgs[:0], in.evs[:0]
}

// notify wakes the worker if it waits. Whoever puts calls it after the put: either the worker sees the put when it looks
// once more before it parks, or it is parked and woken here.
func (in *Inbox) notify() {
	for {
		was := in.parked.Load()
		if was == onNothing {
			return
		}
		home := in.asleep.Load() // set before parked was
		if !in.parked.CompareAndSwap(was, onNothing) {
			continue
		}
		if was == onHome {
			// An expired deadline is the one way to call a goroutine back from the poller. Package net wraps the error,
			// which allocates 80 octets per wake-up (not per message: a busy worker is not parked). It fails only when
			// the socket is closed, and that wakes as well.
			_ = home.conn.SetReadDeadline(past)
			return
		}
		select {
		case in.wake <- struct{}{}:
		default:
		}
		return
	}
}

var past = time.Unix(1, 0)

// quiet says that nothing waits and nothing was taken: the worker may sleep.
func (in *Inbox) quiet() bool {
	return in.ring.at(in.lent) == nil && in.events.at(in.lentEvents) == nil && in.ctx.Err() == nil
}

// park waits on the wake channel: there is no socket of its own to read.
func (in *Inbox) park() {
	in.parked.Store(onWake)
	if in.quiet() && in.home.Load() == nil {
		in.rest()
		if in.until.IsZero() {
			<-in.wake
		} else {
			in.timer.Reset(time.Until(in.until))
			select {
			case <-in.wake:
			case <-in.timer.C:
			}
			in.timer.Stop()
		}
	}
	in.parked.Store(onNothing)
}

// readHome reads the worker's own socket; it waits there when nothing else was taken. True: a batch was read, and the
// clock with it.
func (in *Inbox) readHome(s *udpSocket) (read bool) {
	s.reader = in
	s.wait = len(in.msgs)+len(in.evs) == 0
	err := s.rc.Read(s.recv)
	in.parked.Store(onNothing)
	switch {
	case err == nil:
		if read = s.got > 0; read {
			in.now = time.Now()
			s.sort(in.now, in)
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		// Woken by notify, or until is near. An expired deadline must go before the next read.
		_ = s.conn.SetReadDeadline(time.Time{})
		in.armed = time.Time{}
	case errors.Is(err, net.ErrClosed):
		in.home.CompareAndSwap(s, nil)
		in.armed = time.Time{}
	}
	in.collect()
	return read
}

// mayPark is asked inside the read of the home socket when the socket is empty. It says whether to wait, with the
// deadline armed and the flag set for notify.
func (in *Inbox) mayPark(s *udpSocket) bool {
	if !s.wait || !in.quiet() {
		return false
	}
	if !in.until.IsZero() && (in.armed.IsZero() || in.until.Before(in.armed)) {
		// An earlier deadline stays: waking once too early is cheaper than setting it anew for each batch.
		in.armed = in.until
		_ = s.conn.SetReadDeadline(in.until)
	}
	in.asleep.Store(s)
	in.parked.Store(onHome)
	if !in.quiet() {
		return false
	}
	in.rest()
	return true
}

// take lends a message to the worker. It reads a clock for nobody and copies nothing but the description.
func (in *Inbox) take(m *Inbound, since int64) {
	if len(in.msgs) == 0 || since < in.oldest {
		in.oldest = since
	}
	in.msgs = append(in.msgs, *m)
	if m.Kind == UDP && in.hub.wildcard.Load() {
		in.locals.set(m.Remote, m.Local.Addr())
	}
}
