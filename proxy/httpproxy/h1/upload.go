package h1

import (
	"errors"
	"sync/atomic"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// uploader brings the body of a request to the server. What came with the head goes out with it; the rest is sent by a
// goroutine of its own, so that the response can be read meanwhile (HB-1).
type uploader struct {
	x *exchange
	c *conn
	s *server

	whole   bool  // all of the body went into out
	partly  bool  // some of it did: the client does not wait for a 100
	started bool  // the goroutine was started, and done is owed
	joined  bool  // done was received
	result  error // what done said
	left    int64 // of a body of known length: octets that have not come

	complete atomic.Bool // the last octets are being written, or were
	done     chan error

	toOut, toServer func(b []byte) error
}

func (u *uploader) init(x *exchange) {
	u.x, u.done = x, make(chan error, 1)
	u.toOut = func(b []byte) error { x.out = append(x.out, b...); return nil }
	u.toServer = u.write
}

func (u *uploader) begin() {
	u.c, u.s = nil, nil
	u.whole, u.partly, u.started, u.joined, u.left, u.result = false, false, false, false, 0, nil
	u.complete.Store(false)
}

// takeBody appends to out what has come of the body. It can be called again for another attempt: it starts anew.
func (c *conn) takeBody() error {
	x := c.x
	u := &x.up
	x.pos = x.head
	x.bytesIn = int64(x.head)
	switch f := x.view.Framing; f.Kind {
	case http1.Sized:
		n := int(min(f.Length, int64(x.fill-x.head)))
		x.out = append(x.out, x.in[x.head:x.head+n]...)
		x.pos += n
		x.bytesIn += int64(n)
		u.left, u.partly = f.Length-int64(n), n > 0
		u.whole = u.left == 0
	case http1.Chunked:
		x.chunks = http1.Chunks{}
		x.trailer.Reset()
		u.partly = x.fill > x.head
		whole, err := c.walk(u.toOut)
		u.whole = whole
		return err
	default:
		u.whole = true
	}
	return nil
}

// walk sends on what has come of a chunked body: sizes and data as they were received, no extensions, and of the
// trailers what may stand there (HF-5, HB-7). whole says that the body has ended.
func (c *conn) walk(emit func([]byte) error) (whole bool, err error) {
	x := c.x
	for x.pos < x.fill && !x.chunks.AtTrailers() {
		pass, skip, err := x.chunks.Step(x.in[x.pos:x.fill])
		if e := emit(x.in[x.pos : x.pos+pass]); e != nil {
			return false, e
		}
		x.pos += pass + skip
		x.bytesIn += int64(pass)
		if err != nil {
			return false, err
		}
		if limit := c.gen.Limits.MaxBody; limit > 0 && x.bytesIn > limit+int64(x.head) {
			return false, httpproxy.ErrBodyLong
		}
	}
	if !x.chunks.AtTrailers() {
		return false, nil
	}
	n, err := x.trailer.ParseTrailers(x.in[x.pos:x.fill], &http1.Limits{Block: c.gen.Limits.MaxTrailers, Fields: c.gen.Limits.MaxFields})
	if n == 0 || err != nil {
		return false, err
	}
	x.pos += n
	x.up.complete.Store(true)
	if len(x.trailer.Fields) == 0 {
		return true, emit(crlf)
	}
	x.trailer.CutTrailers()
	return true, emit(append(x.trailer.AppendFields(nil), crlf...))
}

var crlf = []byte("\r\n")

// start sends the rest of the body while the response is read.
func (u *uploader) start(c *conn, s *server) {
	u.c, u.s, u.started = c, s, true
	c.arm(c.f.now(), c.gen.Limits.BodyIdle)
	go u.run()
}

func (u *uploader) run() {
	err := u.guarded()
	if err == nil {
		u.c.arm(u.c.f.now(), u.c.gen.Limits.ResponseTimeout)
	} else if clientFault(err) {
		u.c.interrupt() // the one who waits for the response need not
	}
	u.done <- err
}

func (u *uploader) guarded() (err error) {
	defer func() {
		if p := recover(); p != nil {
			u.c.f.panics.Add(1)
			err = httpproxy.ErrPanic
		}
	}()
	return u.send()
}

func (u *uploader) send() error {
	x, c := u.x, u.c
	for {
		if x.pos == x.fill {
			x.pos, x.fill = x.head, x.head
		} else if x.fill == len(x.in) {
			x.fill = x.head + copy(x.in[x.head:], x.in[x.pos:x.fill])
			x.pos = x.head
		}
		room := x.in[x.fill:]
		if len(room) == 0 {
			return http1.ErrTrailerLong
		}
		sized := x.view.Framing.Kind == http1.Sized
		if sized && int64(len(room)) > u.left {
			room = room[:u.left]
		}
		n, err := c.client.Read(room)
		if n == 0 {
			return u.readFault(err)
		}
		x.fill += n
		c.arm(c.f.now(), c.gen.Limits.BodyIdle)
		if !sized {
			if whole, err := c.walk(u.toServer); whole || err != nil {
				return err
			}
			continue
		}
		u.left -= int64(n)
		x.bytesIn += int64(n)
		x.pos = x.fill
		if u.left == 0 {
			u.complete.Store(true)
		}
		if err := u.write(room[:n]); err != nil || u.left == 0 {
			return err
		}
	}
}

// readFault names what is wrong on the client's side (HB-9).
func (u *uploader) readFault(err error) error {
	if isDeadline(err) {
		switch u.c.deadline.Load() {
		case late:
			return httpproxy.ErrClientSlow
		case stopped:
			return errStopped
		}
	}
	return httpproxy.ErrClientGone
}

func (u *uploader) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := u.s.Write(b)
	switch {
	case err == nil:
		return nil
	case !isDeadline(err):
		return err
	case u.c.deadline.Load() == late:
		return httpproxy.ErrServerSlow
	}
	return errStopped
}

// errStopped ends an upload that nobody waits for any more.
var errStopped = errors.New("h1: upload stopped")

func clientFault(err error) bool {
	return http1.AsError(err) != nil || errors.Is(err, httpproxy.ErrClientGone) ||
		errors.Is(err, httpproxy.ErrClientSlow) || errors.Is(err, httpproxy.ErrBodyLong)
}

// sent says whether all of the body has reached the server. It waits for the last write, no longer.
func (u *uploader) sent() bool {
	if u.whole {
		return true
	}
	if !u.started || !u.complete.Load() {
		return false
	}
	u.join()
	return u.result == nil
}

func (u *uploader) join() {
	if u.started && !u.joined {
		u.result = <-u.done
		u.joined = true
	}
}

// endUpload ends a body that is still under way when the response is out or has failed: the response wins, the write
// stops, both connections close. What was wrong with the body goes before what became of the response.
func (c *conn) endUpload(err error) error {
	x := c.x
	u := &x.up
	if u.whole {
		return err
	}
	if !u.started {
		x.unread, x.keep = true, false
		return err
	}
	if !u.joined && (!u.complete.Load() || err != nil) {
		c.interrupt()
	}
	u.join()
	if c.deadline.Load() == stopped {
		c.disarm()
	}
	if u.result == nil {
		return err
	}
	x.unread, x.keep = true, false
	if err != nil && !errors.Is(u.result, errStopped) {
		return u.result
	}
	return err
}

// interrupt ends what the connection waits for, in either direction.
func (c *conn) interrupt() {
	for {
		d := c.deadline.Load()
		if d < 0 || c.deadline.CompareAndSwap(d, stopped) {
			break
		}
	}
	c.wake()
}
