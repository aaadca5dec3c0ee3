package h1

import (
	"github.com/wyegate/wyegate/internal/http1"
)

// relay writes the final head and the body behind it, n octets of resp being the received head. clean says that nothing
// is left over on the server's connection. The head goes out with what has come of the body in one write.
func (c *conn) relay(s *server, n int, f http1.Framing) (clean bool, err error) {
	c.prepare(f)
	switch f.Kind {
	case http1.Sized:
		return c.relaySized(s, n, f.Length)
	case http1.Chunked:
		return c.relayChunked(s, n, c.x.req.Minor == 0)
	case http1.UntilClose:
		return false, c.relayRest(s, n, c.x.req.Minor == 0)
	}
	return c.x.have == n, c.lead(n, n)
}

// prepare settles how the response goes out, and writes its head into out.
func (c *conn) prepare(f http1.Framing) {
	x := c.x
	old := x.req.Minor == 0
	x.keep = x.keep && c.stays()
	if !x.up.whole && !x.up.complete.Load() {
		x.keep = false // the body is not at the server: it will not be read to its end
	}
	if old && (f.Kind == http1.Chunked || f.Kind == http1.UntilClose) {
		x.keep = false
	}
	x.framed = !old && (f.Kind == http1.Chunked || f.Kind == http1.UntilClose)
	c.composeHead(x.framed)
	x.code = x.answer.Status
}

// lead writes the head and resp[n:to]. The head is put right before the body in memory where there is room.
func (c *conn) lead(n, to int) error {
	x := c.x
	x.begun = true
	if at := headRoom + n - len(x.out); at >= 0 {
		copy(x.all[at:], x.out)
		return c.write(x.all[at : headRoom+to])
	}
	if err := c.write(x.out); err != nil || to == n {
		return err
	}
	return c.write(x.resp[n:to])
}

func (c *conn) relaySized(s *server, n int, length int64) (clean bool, err error) {
	x := c.x
	to := n + int(min(length, int64(x.have-n)))
	left := length - int64(to-n)
	clean = x.have == to
	if err := c.lead(n, to); err != nil {
		return false, err
	}
	return clean, c.pour(s, left)
}

// pour moves the octets of a body that have not come yet.
func (c *conn) pour(s *server, left int64) error {
	x := c.x
	if left >= spliceLeast && c.client.raw != nil && s.raw != nil {
		done, err := x.sp.copy(c, s, left)
		x.bytesOut += done
		if err != nil {
			return err
		}
		if left -= done; left == 0 {
			return nil
		}
	}
	for left > 0 {
		c.arm(c.f.now(), c.gen.Limits.BodyIdle)
		got, err := s.Read(x.all[:min(left, int64(len(x.all)))])
		if got == 0 {
			return serverLost(err)
		}
		if err := c.write(x.all[:got]); err != nil {
			return err
		}
		left -= int64(got)
	}
	return nil
}

// relayChunked passes chunks on as they came; to a client of HTTP/1.0 only their data.
func (c *conn) relayChunked(s *server, n int, bare bool) (clean bool, err error) {
	x := c.x
	x.down = http1.Chunks{Bare: bare}
	x.backTrailer.Reset()
	from, at := n, n // resp[from:at] is to be written, resp[at:have] to be looked at
	led := false
	flush := func() error {
		if !led {
			led = true
			return c.lead(n, at)
		}
		if at > from {
			return c.write(x.resp[from:at])
		}
		return nil
	}
	for {
		for at < x.have && !x.down.AtTrailers() {
			pass, skip, err := x.down.Step(x.resp[at:x.have])
			if at += pass; err != nil {
				_ = flush()
				return false, badResponse(err.Error())
			}
			if skip > 0 {
				if err := flush(); err != nil {
					return false, err
				}
				at += skip
				from = at
			}
		}
		if x.down.AtTrailers() {
			used, end, err := c.trailers(at, bare)
			if err != nil {
				_ = flush()
				return false, err
			}
			if used > 0 {
				if end == nil && !bare {
					at += used // no fields: the empty line goes out with what is pending
					used = 0
				}
				if err := flush(); err != nil {
					return false, err
				}
				if end != nil {
					if err := c.write(end); err != nil {
						return false, err
					}
				}
				return at+used == x.have, nil
			}
		}
		if err := flush(); err != nil {
			return false, err
		}
		x.have = copy(x.resp, x.resp[at:x.have])
		from, at, n = 0, 0, 0
		if x.have == len(x.resp) {
			return false, badResponse("trailer section too long")
		}
		c.arm(c.f.now(), c.gen.Limits.BodyIdle)
		got, err := s.Read(x.resp[x.have:])
		if got == 0 {
			return false, serverLost(err)
		}
		x.have += got
	}
}

// trailers reads the trailer section at an offset of resp. used is its length, 0 while more is needed; end is what takes
// its place on the wire: nil when there are no fields.
func (c *conn) trailers(at int, bare bool) (used int, end []byte, err error) {
	x := c.x
	lim := http1.Limits{Block: c.gen.Limits.MaxTrailers, Fields: c.gen.Limits.MaxFields}
	used, err = x.backTrailer.ParseTrailers(x.resp[at:x.have], &lim)
	if err != nil {
		return 0, nil, badResponse(err.Error())
	}
	if used == 0 || bare || len(x.backTrailer.Fields) == 0 {
		return used, nil, nil
	}
	x.backTrailer.CutTrailers()
	return used, append(x.backTrailer.AppendFields(nil), crlf...), nil
}

// relayRest relays a body that ends with the connection: in chunks of ours, so that its end can be told from a break;
// to a client of HTTP/1.0 as it is.
func (c *conn) relayRest(s *server, n int, bare bool) error {
	x := c.x
	const tail = 2
	led := false
	for {
		if x.have > n || !led {
			if err := c.chunk(n, led, bare); err != nil {
				return err
			}
			led = true
		}
		n, x.have = 0, 0
		c.arm(c.f.now(), c.gen.Limits.BodyIdle)
		got, err := s.Read(x.resp[:len(x.resp)-tail])
		x.have = got
		if got > 0 {
			continue
		}
		if !isEOF(err) {
			return serverLost(err)
		}
		if bare {
			return nil
		}
		return c.write([]byte("0\r\n\r\n"))
	}
}

// chunk writes resp[n:have], with the head in front unless that is out already.
func (c *conn) chunk(n int, led, bare bool) error {
	x := c.x
	if led {
		x.out = x.out[:0]
	}
	if size := x.have - n; !bare && size > 0 {
		x.out = appendHex(x.out, size)
		x.out = append(x.out, crlf...)
		if x.have+2 > len(x.resp) { // only behind a head that filled the buffer
			if err := c.lead(n, x.have); err != nil {
				return err
			}
			return c.write(crlf)
		}
		x.have += copy(x.resp[x.have:], crlf)
	}
	return c.lead(n, x.have)
}

func appendHex(dst []byte, n int) []byte {
	const hex = "0123456789abcdef"
	var b [16]byte
	i := len(b)
	for ; n > 0; n >>= 4 {
		i--
		b[i] = hex[n&15]
	}
	return append(dst, b[i:]...)
}
