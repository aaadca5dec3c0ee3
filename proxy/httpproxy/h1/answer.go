package h1

import (
	"errors"
	"time"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// refuse answers instead of a server, gives back what was leased, and says whether the connection goes on in c.closing.
func (c *conn) refuse(err error) {
	x := c.x
	x.choice.Fail(err)
	x.code = httpproxy.Status(err)
	x.end, x.phase = c.letters(err)
	x.keep = x.keep && c.goesOn(err) && c.stays()
	c.closing = !x.keep
	if x.code != 499 {
		a := httpproxy.Answer{
			Code: x.code, Close: !x.keep, Head: x.view.Is("HEAD"), Keep: x.req.Minor == 0,
			Now: c.f.wall(c.f.now()),
		}
		x.out = a.Append(x.out[:0])
		c.arm(c.f.now(), c.gen.Limits.BodyIdle)
		if c.write(x.out) != nil {
			c.closing = true
		}
		x.unread = x.unread || c.closing
		c.l.CountRefused(x.code)
	}
	c.account()
}

// goesOn says whether the next request can be found behind one that we answered: nothing is wrong with its framing, and
// its body is not on the way.
func (c *conn) goesOn(err error) bool {
	x := c.x
	if http1.AsError(err) != nil && !errors.Is(err, httpproxy.ErrBadResponse) {
		return false
	}
	switch {
	case errors.Is(err, httpproxy.ErrClientGone), errors.Is(err, httpproxy.ErrClientSlow), errors.Is(err, httpproxy.ErrBodyLong),
		errors.Is(err, httpproxy.ErrPanic), errors.Is(err, httpproxy.ErrExpectation), x.view.Is("CONNECT"):
		return false
	}
	return x.up.whole || x.skipBody()
}

// skipBody passes over a body that has come whole and that nobody took; false when there may be more of it.
func (x *exchange) skipBody() bool {
	f := x.view.Framing
	if f.Kind == http1.Chunked || f.Length > int64(x.fill-x.head) {
		return false
	}
	x.pos = x.head + int(f.Length)
	return true
}

// abort ends a response that has begun and can't be finished, so that the client sees it (HF-7).
func (c *conn) abort(err error) {
	x := c.x
	x.choice.Fail(err)
	x.end, x.phase = c.letters(err)
	c.closing = true
	c.broken = !x.framed // chunks without their end say it, and what was sent can still be read
	x.unread = false
	x.pos = x.fill
	c.account()
}

// finish ends a request that a server has answered.
func (c *conn) finish() {
	x := c.x
	c.closing = !x.keep
	x.choice.Answered(&x.answer, c.f.wall(x.first))
	c.account()
}

// letters gives place 1 and 2 of the disposition (operations.md 8.4).
func (c *conn) letters(err error) (end, phase byte) {
	x := c.x
	phase = x.phase
	switch {
	case errors.Is(err, httpproxy.ErrOptions):
		return 'L', '-'
	case errors.Is(err, httpproxy.ErrNoApplication):
		return 'P', 'K'
	case errors.Is(err, httpproxy.ErrNoServer):
		return 'R', 'Q' // as sipproxy writes it
	case errors.Is(err, httpproxy.ErrClientGone):
		end = 'C'
	case errors.Is(err, httpproxy.ErrClientSlow):
		end = 'T'
	case errors.Is(err, httpproxy.ErrServerSlow), errors.Is(err, httpproxy.ErrConnectSlow):
		end = 'T'
	case errors.Is(err, httpproxy.ErrBusy):
		return 'R', 'Q'
	case errors.Is(err, httpproxy.ErrDraining):
		end = 'D'
	case errors.Is(err, httpproxy.ErrPanic):
		end = 'I'
	case errors.Is(err, httpproxy.ErrMethod), errors.Is(err, httpproxy.ErrMisdirected), errors.Is(err, httpproxy.ErrExpectation), errors.Is(err, httpproxy.ErrLoop):
		return 'P', 'P'
	case errors.Is(err, httpproxy.ErrBodyLong), http1.AsError(err) != nil && !errors.Is(err, httpproxy.ErrBadResponse):
		end = 'P'
	default:
		end = 'S'
	}
	if phase == '-' {
		phase = 'P'
	}
	return end, phase
}

// account counts the request and writes it into the access log.
func (c *conn) account() {
	x := c.x
	x.choice.End()
	now := c.now()
	class := obs.CodeClass(x.code)
	t := c.l.None
	if x.choice.App != nil {
		t = x.choice.App.Obs
	}
	if t != nil {
		t.Requests[class].Inc()
		if t.Duration[class] != nil {
			t.Duration[class].Observe(time.Duration(now - x.start).Seconds())
		}
	}
	if c.f.cfg.Ring.Enabled() {
		c.record(now)
	}
}

// afterPanic answers 500 where that can still be done.
func (c *conn) afterPanic() {
	x := c.x
	if x == nil {
		return
	}
	if x.up.started && !x.up.joined {
		c.broken = true // a goroutine still has the exchange: leave it to the collector
		c.fire(woken)
		c.x = nil
		return
	}
	if s := c.server.Load(); s != nil {
		s.close()
	}
	if x.begun || x.choice.Server() == nil && x.code != 0 {
		c.broken = true
		x.choice.Fail(httpproxy.ErrPanic)
	} else {
		c.refuse(httpproxy.ErrPanic)
	}
	c.end()
}
