package h1

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// tunnel is an upgraded connection: bytes go both ways untouched, each direction ends when its source ends (HB-4). It
// has no exchange; a piece of memory is taken when bytes have come.
type tunnel struct {
	c      *conn
	s      *server
	choice httpproxy.Choice
	rec    obs.Record
	start  int64
	web    bool // the protocol is websocket
	down   frames
	code   atomic.Int32 // close code: the tunnel is to end
	up, dn atomic.Int64 // octets to the server, to the client
	failed atomic.Bool  // one direction broke
	key    TunnelKey
}

// TunnelKey says what a tunnel leads from and to.
type TunnelKey struct{ Listener, Pool, Server string }

// piece is what a tunnel reads into.
type piece struct{ b [16 << 10]byte }

// switched takes a 101: only when it was asked for and names what was asked for, all else is a broken answer (HF-7).
func (c *conn) switched(s *server, n int) error {
	x := c.x
	x.answer.CutHopByHop()
	named, _ := http1.NextItem(x.answer.Value(http1.Upgrade))
	if x.view.Upgrade == nil || !x.answer.WantsUpgrade() || !equalFold(named, x.view.Upgrade) {
		return badResponse("101 that nobody asked for")
	}
	if x.up.join(); x.up.result != nil {
		return x.up.result
	}
	x.code, x.first, x.keep, x.begun = 101, c.f.now(), false, true
	b := append(appendStatus(x.out[:0], &x.answer), crlf...)
	b = x.answer.AppendFields(b)
	b = append(append(append(b, "Connection: Upgrade\r\nUpgrade: "...), named...), "\r\n\r\n"...)
	t := &tunnel{c: c, s: s, choice: x.choice, start: x.start, web: http1.EqualFold(named, "websocket")}
	m := x.choice.Server()
	t.key = TunnelKey{c.listener, m.Pool, m.Name}
	t.down.pass(x.resp[n:x.have])
	x.out = append(b, x.resp[n:x.have]...)
	c.tunnel.Store(t) // from here on CloseTunnels knows it
	if err := c.write(x.out); err != nil {
		return err
	}
	if early := x.in[x.pos:x.fill]; len(early) > 0 {
		if _, err := s.Write(early); err != nil {
			return err
		}
		t.up.Add(int64(len(early)))
	}
	c.record101(t)
	x.choice = httpproxy.Choice{Rule: -1} // the tunnel has the lease now
	x.pos = x.fill
	c.watch.Store(0)
	c.upgraded = t
	return nil
}

func equalFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if 'A' <= x && x <= 'Z' {
			x |= 0x20
		}
		if 'A' <= y && y <= 'Z' {
			y |= 0x20
		}
		if x != y {
			return false
		}
	}
	return true
}

// run copies until both directions have ended. The exchange is free by then.
func (t *tunnel) run() {
	c := t.c
	c.server.Store(t.s)
	defer c.server.Store(nil)
	defer c.tunnel.Store(nil)
	c.arm(c.f.now(), c.gen.Limits.TunnelIdle)
	t.choice.TunnelBegins(time.Now())
	upDone := make(chan struct{})
	go func() {
		defer close(upDone)
		t.copy(&t.s.sock, &c.client, &t.up, nil)
	}()
	t.copy(&c.client, &t.s.sock, &t.dn, &t.down)
	<-upDone
	why := c.deadline.Load()
	if t.code.Load() != 0 {
		t.sayGoodbye()
	}
	t.s.close()
	t.choice.TunnelEnds(time.Now())
	t.account(why)
	if t.failed.Load() && why >= 0 {
		c.client.reset()
	}
}

func (t *tunnel) guard() {
	if p := recover(); p != nil {
		t.c.f.panics.Add(1)
		t.fail()
	}
}

// copy moves one direction until its source ends; then the other side's half is closed. A break ends both directions,
// and so does a fault of ours: lease and connections are given back behind it.
func (t *tunnel) copy(to, from *sock, count *atomic.Int64, f *frames) {
	defer t.guard()
	r := reader{f: t.c.f, s: from}
	r.step = r.once
	for {
		b, err := r.read()
		if len(b) > 0 {
			t.c.arm(t.c.f.now(), t.c.gen.Limits.TunnelIdle)
			n, e := to.Write(b)
			count.Add(int64(n))
			if f != nil {
				f.pass(b[:n])
			}
			if e != nil {
				err = e
			}
		}
		r.free()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if closeWrite(to) != nil {
				t.fail()
			}
			return
		default:
			t.fail()
			return
		}
	}
}

func (t *tunnel) fail() {
	t.failed.Store(true)
	t.c.interrupt()
}

func closeWrite(s *sock) error {
	if s.tcp != nil {
		return s.tcp.CloseWrite()
	}
	if h, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return errors.ErrUnsupported
}

// reader waits for bytes without holding memory.
type reader struct {
	f    *Front
	s    *sock
	p    *piece
	n    int
	err  error
	step func(fd uintptr) bool
}

func (r *reader) read() ([]byte, error) {
	r.n, r.err = 0, nil
	if r.s.raw == nil {
		r.take()
		r.n, r.err = r.s.Read(r.p.b[:])
		return r.p.b[:r.n], r.err
	}
	if err := r.s.step(r.step, r.s.waitRead); err != nil {
		return nil, err
	}
	if r.err == nil && r.n == 0 {
		return nil, io.EOF
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.p.b[:r.n], nil
}

func (r *reader) take() {
	if r.p == nil {
		if r.p = r.f.pieces.get(); r.p == nil {
			r.p = new(piece)
		}
	}
}

func (r *reader) free() {
	if r.p != nil {
		r.f.pieces.put(r.p)
		r.p = nil
	}
}

func (r *reader) once(fd uintptr) bool {
	r.take()
	n, err := rawRead(fd, r.p.b[:])
	if err == syscall.EAGAIN {
		r.free()
		return false
	}
	if err != 0 {
		r.err = err
		return true
	}
	r.n = n
	return true
}

// sayGoodbye sends a close frame where one can stand, and lets the client answer (RFC 6455 7.4.1).
func (t *tunnel) sayGoodbye() {
	c := t.c
	code := t.code.Load()
	c.deadline.Store(c.f.now() + int64(c.gen.Limits.Linger))
	c.client.calm()
	if t.web && t.down.between() {
		if _, err := c.client.Write([]byte{0x88, 2, byte(code >> 8), byte(code)}); err != nil {
			return
		}
	}
	if closeWrite(&c.client) != nil {
		return
	}
	var b [512]byte
	for left := lingerOctets; left > 0; {
		n, err := c.client.Read(b[:])
		if err != nil {
			return
		}
		left -= n
	}
}

// account counts the tunnel and writes its line when it has ended.
func (t *tunnel) account(why int64) {
	c := t.c
	now := c.f.now()
	if o := t.choice.App.Obs; o != nil {
		class := obs.CodeClass(101)
		o.Requests[class].Inc()
		if o.Duration[class] != nil {
			o.Duration[class].Observe(time.Duration(now - t.start).Seconds())
		}
	}
	if !c.f.cfg.Ring.Enabled() {
		return
	}
	r := &t.rec
	switch {
	case t.code.Load() != 0:
		r.Disp[0], r.Disp[1] = 'D', 'D'
	case why == late:
		r.Disp[0], r.Disp[1] = 'T', 'D'
	case why == woken, t.failed.Load():
		r.Disp[0], r.Disp[1] = 'C', 'D'
	}
	r.Final = time.Duration(now - t.start)
	r.BytesIn += t.up.Load()
	r.BytesOut += t.dn.Load()
	c.f.cfg.Ring.Put(r)
}

// Tunnels counts the open tunnels.
func (f *Front) Tunnels() map[TunnelKey]int {
	out := map[TunnelKey]int{}
	f.conns.each(func(c *conn) {
		if t := c.tunnel.Load(); t != nil {
			out[t.key]++
		}
	})
	return out
}

// CloseTunnels closes the tunnels that match, spread evenly over a time: WebSockets with a close frame that has the code
// (1012: come again), others by closing them. It returns when the last has been told, or ctx ends.
func (f *Front) CloseTunnels(ctx context.Context, match func(TunnelKey) bool, code uint16, over time.Duration) {
	var list []*tunnel
	f.conns.each(func(c *conn) {
		if t := c.tunnel.Load(); t != nil && match(t.key) {
			list = append(list, t)
		}
	})
	if len(list) == 0 {
		return
	}
	gap := over / time.Duration(len(list))
	for i, t := range list {
		if i > 0 && gap > 0 {
			select {
			case <-ctx.Done():
				gap = 0 // the rest at once
			case <-time.After(gap):
			}
		}
		t.code.Store(int32(code))
		t.c.fire(woken)
	}
}
