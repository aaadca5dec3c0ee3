package h1

import (
	"time"

	"github.com/wyegate/wyegate/internal/http1"
)

// expect waits for what the server says to a head whose client waits for a 100 (HB-2). Its 100 or its final answer are
// left to response; when it says nothing in time, we say 100 ourselves and send the body.
func (c *conn) expect(s *server) error {
	x := c.x
	_ = s.SetReadDeadline(time.Now().Add(c.gen.Limits.ExpectWait))
	n, err := s.Conn.Read(x.resp)
	_ = s.SetReadDeadline(time.Time{})
	x.have = n
	if n > 0 {
		return nil
	}
	if !isDeadline(err) || c.deadline.Load() < 0 {
		return err
	}
	return c.goOn(s)
}

// goOn tells the client to send its body, once, and starts to send it on.
func (c *conn) goOn(s *server) error {
	x := c.x
	if x.view.Expects && !x.continued {
		x.continued = true
		if err := c.write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return err
		}
	}
	if !x.up.whole && !x.up.started {
		x.up.start(c, s)
	}
	return nil
}

// interimAnswer passes a 1xx on (HF-7, HB-2): 100 only where it is awaited, others to clients of HTTP/1.1.
func (c *conn) interimAnswer(s *server) error {
	x := c.x
	if x.interim++; x.interim > maxInterim {
		return badResponse("too many interim responses")
	}
	if x.answer.Status == 100 {
		if x.view.Expects && !x.continued {
			return c.goOn(s)
		}
		return nil
	}
	if x.req.Minor == 0 {
		return nil
	}
	x.answer.CutHopByHop()
	x.answer.CutAll(http1.ContentLength, http1.CutHop)
	x.out = append(appendStatus(x.out[:0], &x.answer), crlf...)
	x.out = append(x.answer.AppendFields(x.out), crlf...)
	return c.write(x.out)
}

const maxInterim = 10
