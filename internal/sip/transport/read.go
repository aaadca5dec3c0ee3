package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/websocket"
)

const (
	lingerOctets = 256 << 10              // thrown away of what a peer still sends while we close
	halfClosed   = 500 * time.Millisecond // a peer that has ended its side after a message may still want the answer
	fullRetry    = time.Millisecond       // a stream may wait for a full inbox: TCP holds its peer back
	fullTries    = 200
)

// reader is what one flow needs to read. Nothing of it is larger than a few words while the flow is idle.
type reader struct {
	f      *flow
	framer framer
	rc     syscall.RawConn // nil when the connection is no TCP socket
	recv   func(fd uintptr) bool
	n      int
	errno  unix.Errno

	born    time.Time
	began   time.Time // when the first octet of the message at hand came; zero: between messages
	message time.Time // when the last whole message came; zero: none yet
	armed   time.Time // read deadline in force; zero: none
	one     [1]byte
	asked   *question // of an old flow; nil: not old yet
}

// read takes messages off the connection until it ends, and says why it did.
func (f *flow) read() error {
	s := f.hub.settings.Load()
	r := &reader{f: f, born: time.Now()}
	r.framer = r.newFramer(s)
	r.recv = r.receive
	if tcp, ok := inner(f.conn).(*net.TCPConn); ok {
		r.rc, _ = tcp.SyscallConn() // without it the reader goes the way of other connections
	}
	if why := r.begin(); why != nil {
		return why
	}
	for {
		r.arm()
		n, err := r.fill()
		now := time.Now()
		if n > 0 {
			f.touch(now)
			if why := r.pieces(now); why != nil {
				return why
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			if why := r.overdue(now); why != nil {
				return why
			}
			r.armed = time.Time{}
		case err == io.EOF:
			return r.ended(now)
		default:
			return err
		}
	}
}

// fill waits for octets and gives them to the framer. The buffer is borrowed when they are there, not while waiting.
func (r *reader) fill() (int, error) {
	if r.rc == nil {
		return r.fillPlain()
	}
	r.n, r.errno = 0, 0
	if err := r.rc.Read(r.recv); err != nil {
		return 0, err
	}
	switch {
	case r.errno != 0:
		return 0, os.NewSyscallError("read", r.errno)
	case r.n == 0:
		return 0, io.EOF
	}
	return r.n, nil
}

// receive is one read of the socket; false: there was nothing, wait.
func (r *reader) receive(fd uintptr) bool {
	room := r.room()
	for {
		n, err := unix.Read(int(fd), room)
		switch {
		case err == nil:
			r.n = n
			r.framer.Filled(n)
			return true
		case err == unix.EAGAIN:
			r.handBack()
			return false
		case err != unix.EINTR:
			r.errno, _ = err.(unix.Errno)
			return true
		}
	}
}

// fillPlain is fill for connections that are no TCP sockets: the first octet is awaited without a buffer.
func (r *reader) fillPlain() (int, error) {
	if r.framer.Held() {
		n, err := r.f.conn.Read(r.room())
		r.framer.Filled(n)
		return n, err
	}
	n, err := r.f.conn.Read(r.one[:])
	if n > 0 {
		r.framer.Lend(r.f.hub.free.get())
		r.framer.Feed(r.one[:n])
	}
	return n, err
}

// room is where to read to, in a borrowed buffer while the framer has none.
func (r *reader) room() []byte {
	if !r.framer.Held() {
		r.framer.Lend(r.f.hub.free.get())
	}
	return r.framer.Room(bufferOctets / 4)
}

// handBack gives the buffer back between messages.
func (r *reader) handBack() {
	if b := r.framer.Reclaim(); b != nil {
		r.f.hub.free.put(b)
	}
}

// pieces hands over what is whole. Not nil: the flow is over.
func (r *reader) pieces(now time.Time) error {
	for {
		p, b, bad := r.framer.Next()
		switch p {
		case sip.Message:
			r.message, r.began = now, time.Time{}
			r.deliver(b, nil)
		case sip.Ping: // RFC 5626 section 4.4.1 (SX-6)
			r.f.ep.counters.KeepAlives.Add(1)
			r.f.pong()
		case sip.Pong:
			r.f.ep.counters.KeepAlives.Add(1)
		case sip.Broken:
			r.f.ep.counters.Unframed.Add(1)
			return r.broken(b, bad)
		default:
			r.waiting(now)
			return nil
		}
	}
}

// waiting notes since when a message is incomplete, and hands the buffer back where none is.
func (r *reader) waiting(now time.Time) {
	if r.framer.Part() == sip.Between {
		r.began = time.Time{}
		r.handBack()
	} else if r.began.IsZero() {
		r.began = now
	}
}

// deliver hands a message to its worker. An inbox that is full holds the stream back for a while, and its peer by TCP;
// then the message is dropped and counted like any other.
func (r *reader) deliver(b []byte, bad *sip.Error) {
	f := r.f
	l := f.ep.current.Load()
	if !f.outgoing && !f.hub.rates.Load().Allow(f.source.Addr(), r.message.UnixNano()) {
		f.ep.counters.Limited.Add(1)
		return
	}
	m := Inbound{
		Bytes: b, Listener: l, Kind: f.kind, Flow: f.id, Outgoing: f.outgoing,
		Remote: f.remote, Source: f.source, Local: f.local, Bad: bad,
	}
	w := f.hub.workerFor(b, f.remote)
	for range fullTries {
		if f.hub.inboxes[w].put(&m, r.message.UnixNano()) {
			f.hub.inboxes[w].notify()
			return
		}
		select {
		case <-f.gone:
			return
		case <-time.After(fullRetry):
		}
	}
	f.hub.inboxes[w].dropped.Add(1)
	f.ep.counters.Dropped.Add(1)
}

// pong answers a keep-alive. It stands in the queue behind what is there, and never inside a message.
func (f *flow) pong() {
	if f.enqueue(crlf, 0) == ErrFull {
		f.close(ErrFull)
	}
}

var crlf = []byte("\r\n")

// broken hands over what there was of a head, so that it may be answered, and waits for the worker to say that the
// answer is queued (CloseAfter); what still comes in is thrown away. What has no Call-ID cannot be answered, and is not
// SIP at all in most cases: that is closed at once.
func (r *reader) broken(b []byte, bad *sip.Error) error {
	if r.f.ws != nil { // what is owed is a close frame, and is queued
		r.discard(time.Now().Add(r.f.hub.cfg.Timers.Linger))
		return errUnframed
	}
	if sip.FindCallID(b) == nil {
		return errUnframed
	}
	r.message = time.Now()
	r.deliver(b, bad)
	r.discard(time.Now().Add(r.f.hub.cfg.Timers.Linger))
	return errUnframed
}

// discard reads and forgets until the peer ends, too much has come, or the deadline.
func (r *reader) discard(until time.Time) {
	_ = r.f.conn.SetReadDeadline(until)
	b := r.f.hub.free.get()
	defer r.f.hub.free.put(b)
	for left := lingerOctets; left > 0; {
		n, err := r.f.conn.Read(b[:cap(b)])
		left -= n
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(until):
			_ = r.f.conn.SetReadDeadline(until) // the writer has finished, and called
		default:
			return
		}
	}
}

// ended is called when the peer has ended its side. Where a message came just before, its answer is given a moment.
func (r *reader) ended(now time.Time) error {
	if !r.f.outgoing && now.Sub(r.message) < halfClosed {
		t := time.NewTimer(halfClosed)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.f.gone:
		}
	}
	return io.EOF
}

// deadline is when the flow is overdue, as things stand, and what it is closed for then.
func (r *reader) deadline() (time.Time, error) {
	t := &r.f.hub.cfg.Timers
	active := time.Unix(0, r.f.active.Load())
	at, why := active.Add(t.Idle), errIdle
	if !r.began.IsZero() {
		at, why = r.began.Add(t.Head), errTooSlow
		if r.framer.Part() == sip.InBody {
			at = r.began.Add(t.Body)
		}
	}
	if first := r.born.Add(t.First); r.message.IsZero() && !r.f.outgoing && first.Before(at) {
		at, why = first, errTooSlow
	}
	if !r.f.age.IsZero() && r.began.IsZero() {
		if old := r.old(); old.Before(at) {
			at, why = old, errAged
		}
	}
	if s := r.f.ws; s != nil && s.pingAt.Before(at) {
		at, why = s.pingAt, nil
	}
	return at, why
}

// arm sets the read deadline when the one in force is too late; one that is too early only wakes the reader once more.
func (r *reader) arm() {
	at, _ := r.deadline()
	if r.armed.IsZero() || at.Before(r.armed) {
		r.armed = at
		_ = r.f.conn.SetReadDeadline(at)
	}
}

// overdue says whether a deadline that has passed means the end.
func (r *reader) overdue(now time.Time) error {
	if r.f.state.Load() == draining {
		r.discard(now.Add(r.f.hub.cfg.Timers.Linger))
		return errFinished
	}
	if err := r.beat(now); err != nil {
		return err
	}
	at, why := r.deadline()
	if now.Before(at) || why == errAged && !r.settled(now) {
		return nil
	}
	if why == errAged && r.f.ws != nil {
		r.f.goodbye(websocket.CodeRestart)
		r.discard(now.Add(r.f.hub.cfg.Timers.Linger))
	}
	return why
}
