package h1

import (
	"errors"
	"fmt"
	"io"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// response reads the response and relays it. With nil it is out, and s is back in the pool or closed.
func (c *conn) response(s *server) error {
	x := c.x
	var n int
	for {
		var err error
		if n, err = c.readHead(s); err != nil {
			return err
		}
		if x.answer.Status == 101 {
			return c.switched(s, n)
		}
		if x.answer.Status >= 200 {
			break
		}
		if err := c.interimAnswer(s); err != nil {
			return err
		}
		x.have = copy(x.resp, x.resp[n:x.have])
	}
	f, stray, err := x.answer.ResponseFraming(x.view.Is("HEAD"))
	if err != nil {
		return fmt.Errorf("%w: %w", httpproxy.ErrBadResponse, err)
	}
	reuse := c.answered() && !stray
	clean, err := c.relay(s, n, f)
	if err != nil {
		return err
	}
	c.dismiss(s, reuse && clean)
	return nil
}

// answered takes note of a final response, and says whether its connection may be used again.
func (c *conn) answered() bool {
	x := c.x
	x.first = c.now()
	x.answer.CutHopByHop()
	if x.answer.Status == 204 {
		x.answer.CutAll(http1.ContentLength, http1.CutHop)
	}
	x.phase = 'D'
	a := &x.answer
	return a.Minor == 1 && !a.WantsClose() || a.Minor == 0 && a.WantsKeepAlive() && !a.WantsClose()
}

// dismiss ends the work with a server whose response is out.
func (c *conn) dismiss(s *server, reuse bool) {
	c.x.phase = '-'
	if reuse && c.x.up.sent() {
		s.release()
	} else {
		s.close()
	}
}

// readHead reads one response head and gives its length. A server that ends without an octet is ErrServerGone.
func (c *conn) readHead(s *server) (int, error) {
	x := c.x
	x.answer.Reset()
	lim := http1.Limits{Block: len(x.resp) - 1}
	for {
		if x.have > 0 {
			n, err := x.answer.ParseResponse(x.resp[:x.have], &lim)
			if err != nil {
				return 0, fmt.Errorf("%w: %w", httpproxy.ErrBadResponse, err)
			}
			if n > 0 {
				return n, nil
			}
		}
		if x.have == len(x.resp) {
			return 0, badResponse("header block too long")
		}
		n, err := s.Read(x.resp[x.have:])
		x.have += n
		if n == 0 {
			return 0, serverLost(err)
		}
	}
}

func badResponse(why string) error { return fmt.Errorf("%w: %s", httpproxy.ErrBadResponse, why) }

// serverLost wraps the end of the server's connection, however it came.
func serverLost(err error) error {
	if httpproxy.Closed(err) {
		return fmt.Errorf("%w: %w", httpproxy.ErrServerGone, err)
	}
	return err
}

// appendStatus writes a status line in our version, without the CRLF.
func appendStatus(dst []byte, h *http1.Head) []byte {
	if h.Minor == 1 && h.Line.End-h.Line.Start > 12 {
		return append(dst, h.Line.Of(h.Buf)...)
	}
	dst = append(append(dst, "HTTP/1.1"...), h.Buf[h.Line.Start+8:h.Line.Start+12]...)
	return append(append(dst, ' '), h.Reason.Of(h.Buf)...)
}

// composeHead writes the head of the final response into out. chunk says that we frame the body ourselves.
func (c *conn) composeHead(chunked bool) {
	x := c.x
	b := append(appendStatus(x.out[:0], &x.answer), crlf...)
	b = x.dec.AppendResponseFields(b, &x.view, &x.choice, &x.answer)
	if chunked {
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	switch {
	case !x.keep:
		b = append(b, "Connection: close\r\n"...)
	case x.req.Minor == 0:
		b = append(b, "Connection: keep-alive\r\n"...)
	}
	x.out = append(b, crlf...)
}

// write sends to the client. A failure is the client's.
func (c *conn) write(b []byte) error {
	n, err := c.client.Write(b)
	c.x.bytesOut += int64(n)
	if err == nil {
		return nil
	}
	return c.clientLost(err)
}

// clientLost names why nothing can be sent to the client any more.
func (c *conn) clientLost(err error) error {
	if isDeadline(err) && c.deadline.Load() == late {
		return fmt.Errorf("%w: reads nothing", httpproxy.ErrClientSlow)
	}
	return httpproxy.ErrClientGone
}

func isEOF(err error) bool { return err == nil || errors.Is(err, io.EOF) }
