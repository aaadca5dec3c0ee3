package h1

import (
	"errors"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// request answers the request in the exchange. It gives false when the connection is to end.
func (c *conn) request() bool {
	x := c.x
	c.listens() // it may have waited for this request for long
	if c.websocket() {
		return false
	}
	if err := c.decide(); err != nil {
		c.refuse(err)
		return !c.closing
	}
	err := c.attempts()
	c.watch.Store(0)
	switch {
	case err == nil && c.upgraded != nil:
		c.closing = true
	case err != nil && x.begun:
		c.abort(err)
	case err != nil:
		c.refuse(err)
	default:
		c.finish()
	}
	return !c.closing
}

// decide runs the gate and the decision.
func (c *conn) decide() error {
	x := c.x
	v := &x.view
	err := c.l.Admit(v)
	h := v.Head
	x.keep = h.Minor == 1 && !h.WantsClose() || h.Minor == 0 && h.WantsKeepAlive() && !h.WantsClose()
	if err == http1.ErrBothLengths {
		err = c.lenient(err)
	}
	if err != nil {
		return err
	}
	if max := c.gen.Limits.MaxBody; max > 0 && v.Framing.Kind == http1.Sized && v.Framing.Length > max {
		return httpproxy.ErrBodyLong
	}
	return x.dec.Decide(c.gen, c.l, v, &x.choice, nil)
}

// lenient lets a message with both lengths pass where the service wants that: chunked wins, and the connection closes
// behind the answer (HF-1).
func (c *conn) lenient(err error) error {
	x := c.x
	app := c.l.Match(&x.view)
	if app == nil || !app.Service.LenientFraming {
		return err
	}
	x.req.ChunkedWins()
	x.view.Framing, err = x.req.RequestFraming()
	x.keep = false
	return err
}

// attempts offers the request to servers until one answers or it may not be offered again (HB-3, 9.7).
func (c *conn) attempts() error {
	x := c.x
	for {
		err := c.attempt()
		if err == nil {
			return nil
		}
		if !errors.Is(err, errRetry) {
			return err
		}
		if e := x.dec.Next(&x.view, &x.choice, errors.Unwrap(err)); e != nil {
			return e
		}
	}
}

// retry marks an error of an attempt that may be made again elsewhere.
type retry struct{ cause error }

func (r retry) Error() string        { return r.cause.Error() }
func (r retry) Unwrap() error        { return r.cause }
func (r retry) Is(target error) bool { return target == errRetry }

var errRetry = errors.New("h1: may be tried again")

// attempt offers the request to the leased server, over a pooled connection or a new one.
func (c *conn) attempt() error {
	x := c.x
	if err := c.compose(); err != nil {
		return err
	}
	for {
		s, err := c.connection(x.same)
		if err != nil {
			x.phase = 'C'
			if errors.Is(err, httpproxy.ErrBusy) {
				x.phase = 'Q'
				return err
			}
			return retry{err} // no octet was sent: any method, any body
		}
		used := s.used > 0
		err = c.exchangeOn(s, used)
		if err == nil {
			return nil
		}
		s.close()
		switch {
		case errors.Is(err, errStale):
			continue // nothing was sent; the next of the pool, at last a new one
		case !c.repeatable(err):
			return err
		case used && !x.same:
			x.same = true // it was closed while our request was under way: no fault of the server's
			continue
		}
		return retry{err}
	}
}

// repeatable says whether a request that a server may have seen can be sent again: it is idempotent, all of its body is
// still here, and nothing has come back.
func (c *conn) repeatable(err error) bool {
	x := c.x
	return !x.begun && x.have == 0 && x.interim == 0 && !x.up.started && x.view.Idempotent() && x.view.Upgrade == nil &&
		(httpproxy.Closed(err) || errors.Is(err, httpproxy.ErrServerGone))
}

// exchangeOn sends the request over s and relays the response. When it gives nil the response is out, whole, and s is
// back in the pool or closed.
func (c *conn) exchangeOn(s *server, used bool) error {
	x := c.x
	s.owner = c
	c.server.Store(s)
	defer c.server.Store(nil)
	x.have = 0
	now := c.f.now()
	c.arm(now, c.gen.Limits.ResponseTimeout)
	c.watch.Store(now + watchAfter)
	x.phase = 'W'
	s.used++
	err := c.send(s, used)
	if err == nil {
		err = c.response(s)
	}
	if err = c.endUpload(err); err != nil {
		return c.blame(err)
	}
	return nil
}

// send gets the request under way: all of it in one write where it has come whole, and the first octets of the answer
// with it.
func (c *conn) send(s *server, used bool) error {
	x := c.x
	if s.raw == nil && used && !s.quiet() {
		return errStale
	}
	if x.up.whole {
		n, sent, err := s.roundTrip(x.out, x.resp, used)
		if x.have = n; err != nil && used && !sent && !isDeadline(err) {
			return errStale
		}
		return err
	}
	if s.raw != nil && used && !s.quiet() {
		return errStale
	}
	if _, err := s.Write(x.out); err != nil {
		return err
	}
	if x.view.Expects && !x.up.partly {
		return c.expect(s)
	}
	x.up.start(c, s)
	return nil
}

// compose writes the request into out: head, and of the body what has come.
func (c *conn) compose() error {
	x := c.x
	v := &x.view
	b := append(x.out[:0], v.Method...)
	b = append(append(append(b, ' '), v.Target...), " HTTP/1.1\r\n"...)
	b = x.dec.AppendRequestFields(b, v, &x.choice)
	if v.Framing.Kind == http1.Chunked {
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	switch {
	case v.Upgrade != nil:
		b = append(append(append(b, "Connection: Upgrade\r\nUpgrade: "...), v.Upgrade...), "\r\n"...)
	case v.Head.TakesTrailers():
		b = append(b, "Connection: TE\r\nTE: trailers\r\n"...)
	}
	x.out = append(b, "\r\n"...)
	return c.takeBody()
}

// blame names what ended an attempt, for status, log and the server's health.
func (c *conn) blame(err error) error {
	switch d := c.deadline.Load(); {
	case errors.Is(err, errStale):
		return err
	case d == left, d == woken:
		return httpproxy.ErrClientGone
	case isDeadline(err):
		return httpproxy.ErrServerSlow
	}
	return err
}

// connection gives a connection to the leased server. fresh asks for a new one.
func (c *conn) connection(fresh bool) (*server, error) {
	x := c.x
	now := c.f.now()
	s, err := c.f.servers.get(c, fresh)
	if s == nil || s.used == 0 {
		x.connect += c.f.now() - now
	}
	return s, err
}
