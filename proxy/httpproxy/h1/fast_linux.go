package h1

import (
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// stage says where a goroutine takes over from the loop.
type stage uint8

const (
	stageHead    stage = iota // the head has not come whole, or nothing was decided
	stageRefused              // fast.err answers the request
	stageChosen               // a server was chosen, nothing was sent
	stageSent                 // fast.server has the request, or is to get the rest of it
	stageRelay                // the response is under way; behind what is stashed, fast.left octets are owed
	stageOver                 // the response is out but for what is stashed, or broke off with fast.err
	stageEnd                  // the connection is to end
	stagePanic                // a fault of ours
)

// fast is what the loop knows of a request that it serves itself.
type fast struct {
	loop   *loop // at work on it in this moment
	server *server
	err    error
	left   int64 // octets of the response's body that have not come
	unsent bool  // out holds octets that server has not got
	relays bool  // the head of the response is out
	reuse  bool  // server may be used again
	more   bool  // octets have come behind the request
}

const lightRoom = 4 << 10 // octets of a light exchange's in

// adopt has a loop watch the socket of a plain connection, where there is one.
func (f *Front) adopt(c *conn) error {
	if c.client.raw == nil {
		return nil
	}
	l := f.loopOf(c.number)
	if l == nil {
		return nil
	}
	c.turn = make(chan stage, 1)
	return c.client.adopt(l, &desc{client: c, local: c.client.LocalAddr(), remote: c.client.RemoteAddr()})
}

// adopt has l watch the socket through d. With an error the connection is closed.
func (s *sock) adopt(l *loop, d *desc) error {
	if err := d.take(l, s.tcp, s.raw); err != nil {
		return err
	}
	s.tcp, s.desc, s.Conn = nil, d, d
	s.setRaw(rawDesc{d})
	return nil
}

// adoptServer does the same with a connection to a server: the loop of the client that it was opened for has it.
func (s *server) adopt(c *conn) error {
	if c.client.desc == nil {
		return nil
	}
	l := c.client.desc.l
	s.home = l.home + 1
	return s.sock.adopt(l, &desc{server: s, local: s.LocalAddr(), remote: s.RemoteAddr()})
}

func (c *conn) home() int {
	if c.client.desc == nil {
		return 0
	}
	return c.client.desc.l.home + 1
}

// now is the time: the loop's while it is at work.
func (c *conn) now() int64 {
	if l := c.fast.loop; l != nil {
		return l.now
	}
	return c.f.now()
}

// ordinary makes an ordinary connection of a socket that a loop has.
func (s *sock) ordinary() bool {
	d := s.desc
	if d == nil {
		return true
	}
	nc, err := d.surface()
	if err != nil {
		return false
	}
	s.desc, s.Conn = nil, nc
	if !sameAddr(d.remote, nc.RemoteAddr()) || !sameAddr(d.local, nc.LocalAddr()) {
		s.Conn = &readdressed{nc, d.local, d.remote}
	}
	return true
}

func sameAddr(a, b net.Addr) bool { return a.String() == b.String() }

// takeTurns serves a connection whose socket a loop has: the loop does what is plain, this goroutine the rest.
func (c *conn) takeTurns() {
	for c.listens() {
		c.arm(c.f.now(), c.gen.Limits.IdleTimeout)
		c.idle.Store(true)
		c.lent.Store(true)
		c.client.desc.l.post(c)
		if !c.goOnFrom(<-c.turn) {
			break
		}
	}
	c.end()
}

// goOnFrom does what the loop left, and what has come behind it. It gives false when the connection is to end.
func (c *conn) goOnFrom(s stage) bool {
	ok := c.resume(s)
	for ok && c.x != nil {
		ok = c.listens() && c.receive() && c.request() && c.next()
	}
	return ok
}

func (c *conn) resume(s stage) bool {
	f := &c.fast
	srv, err := f.server, f.err
	f.server, f.err, f.relays = nil, nil, false
	switch s {
	case stageHead:
		return (c.x != nil || c.deadline.Load() >= 0) && c.listens() && c.receive() && c.request() && c.next()
	case stageRefused:
		c.refuse(err)
		return !c.closing && c.next()
	case stageChosen:
		return c.settle(c.attempts(nil)) && c.next()
	case stageSent:
		return c.settle(c.attempts(srv)) && c.next()
	case stageRelay:
		return c.settle(c.relayRestOf(srv)) && c.next()
	case stageOver:
		if err == nil {
			err = c.flush()
		}
		return c.settle(err) && c.next()
	case stagePanic:
		if srv != nil {
			c.server.Store(srv)
		}
		c.afterPanic()
	}
	return false
}

// flush writes what the loop could not.
func (c *conn) flush() error {
	b := c.client.stash
	c.client.stash = nil
	if len(b) == 0 {
		return nil
	}
	_, err := c.client.Write(b)
	if err != nil {
		return c.clientLost(err)
	}
	return nil
}

// relayRestOf ends a response of known size that the loop has begun.
func (c *conn) relayRestOf(s *server) error {
	c.server.Store(s)
	defer c.server.Store(nil)
	err := c.flush()
	if err == nil {
		err = c.pour(s, c.fast.left)
	}
	if err != nil {
		s.close()
		return c.blame(err)
	}
	c.dismiss(s, c.fast.reuse)
	return nil
}

// hand gives c to its goroutine.
func (l *loop) hand(c *conn, st stage) {
	f := &c.fast
	l.on, f.loop, c.client.inTurn = nil, nil, false
	if s := f.server; s != nil {
		s.fast = nil
		c.server.Store(s)
		if c.deadline.Load() < 0 { // it was fired while only the loop knew of the server
			s.wake()
		}
	}
	switch x := c.x; {
	case x == nil:
	case st == stageHead && x.fill == 0:
		l.drop(c)
	case st == stageHead:
		full := c.f.exchange(c)
		full.fill = copy(full.in, x.in[:x.fill])
		full.begin(c)
		full.start = x.start
		if f.more {
			f.more = false
			if n, errno := rawRead(uintptr(c.client.desc.fd), full.in[full.fill:]); errno == 0 {
				full.fill += n
			}
		}
		l.drop(c)
		c.x, c.heading = full, true
	default:
		x.own(c.f)
	}
	c.idle.Store(false)
	c.lent.Store(false)
	c.turn <- st
}

// own gives a light exchange memory of its own, with what the loop's memory held for it.
func (x *exchange) own(f *Front) {
	if !x.light || x.back != nil {
		return
	}
	b := f.backing.get()
	if need := max(len(x.out), x.have+headRoom); b == nil || cap(b.out) < len(x.out) || len(b.all) < need+headRoom {
		b = f.newBacking(need, need)
	}
	b.out = append(b.out[:0], x.out...)
	copy(b.all[headRoom:], x.resp[:x.have])
	x.back, x.out, x.all, x.resp = b, b.out, b.all, b.all[headRoom:]
}

// lightExchange gives memory for a plain request.
func (l *loop) lightExchange() *exchange {
	var x *exchange
	if n := len(l.spare); n > 0 {
		x = l.spare[n-1]
		l.spare = l.spare[:n-1]
	} else if x = l.f.light.get(); x == nil {
		x = newExchange(lightRoom)
		x.light = true
	}
	x.fill = 0
	x.out, x.all, x.resp = l.out, l.all, l.all[headRoom:]
	return x
}

// drop takes the exchange of an idle connection.
func (l *loop) drop(c *conn) {
	x := c.x
	c.x = nil
	if x.light && x.back == nil && len(l.spare) < spareMost {
		l.spare = append(l.spare, x)
		return
	}
	l.f.giveBack(x)
}

const spareMost = 1024

// look sees to a connection that was posted: it was lent, or is to be woken.
func (l *loop) look(c *conn) {
	switch f := &c.fast; {
	case !c.lent.Load():
	case c.deadline.Load() < 0:
		st := stageHead
		if f.relays {
			st = stageRelay
		} else if f.server != nil {
			st = stageSent
		}
		l.hand(c, st)
	case f.server == nil:
		l.work(c, (*conn).fastRead)
	}
}

// clientEvent is called when something has come from a client.
func (l *loop) clientEvent(c *conn, events uint32) {
	switch f := &c.fast; {
	case f.server == nil:
		l.work(c, (*conn).fastRead)
	default:
		f.more = true
	}
}

// serverEvent is called when something has come from the server of c.
func (l *loop) serverEvent(c *conn) {
	if c.fast.relays {
		l.work(c, (*conn).pump)
	} else {
		l.work(c, (*conn).fastResponse)
	}
}

// work runs one step for c. A fault of ours ends that connection, and no other.
func (l *loop) work(c *conn, step func(*conn)) {
	defer func() {
		if p := recover(); p != nil {
			c.f.panics.Add(1)
			c.f.log.Error("http connection failed", slog.String("listener", c.listener), slog.Any("err", p), slog.String("stack", string(debug.Stack())))
			if l.on == c {
				l.hand(c, stagePanic)
			}
		}
	}()
	l.on, c.fast.loop, c.client.inTurn = c, l, true
	step(c)
	if l.on == c { // else the goroutine has it by now
		l.on, c.fast.loop, c.client.inTurn = nil, nil, false
	}
}

// fastRead takes what has come of a request.
func (c *conn) fastRead() {
	l := c.fast.loop
	if c.x == nil {
		c.x = l.lightExchange()
	}
	x := c.x
	room := x.in[x.fill:]
	n, errno := rawRead(uintptr(c.client.desc.fd), room)
	if errno == syscall.EAGAIN {
		if x.fill == 0 {
			l.drop(c)
		}
		return
	}
	if errno != 0 || n == 0 {
		l.hand(c, stageHead)
		return
	}
	x.fill += n
	c.fast.more = n == len(room) || c.client.desc.hup.Load()
	c.idle.Store(false)
	c.fastHead()
}

// fastHead serves a request whose head has come whole.
func (c *conn) fastHead() {
	l, x := c.fast.loop, c.x
	if !c.listens() {
		l.hand(c, stageHead)
		return
	}
	first := !c.heading
	if first {
		c.heading = true
		x.begin(c)
	}
	n, err := x.req.ParseRequest(x.in[:x.fill], &x.headLimits)
	if n == 0 && err == nil {
		if first {
			c.arm(x.start, c.gen.Limits.HeaderTimeout)
		}
		if x.fill < len(x.in) {
			if c.fast.more {
				c.fastRead()
			}
			return
		}
	}
	if n == 0 || err != nil {
		l.hand(c, stageHead)
		return
	}
	x.head, x.pos = n, n
	c.heading = false
	c.fastRequest()
}

// fastRequest decides on a request. What is not plain goes to the goroutine undecided.
func (c *conn) fastRequest() {
	l, x := c.fast.loop, c.x
	if ws := c.l.WebSocket; ws != nil && ws.Rules.Asks(&x.req) {
		l.hand(c, stageHead)
		return
	}
	err := c.admit()
	if err == nil {
		if !x.plain() {
			l.hand(c, stageHead)
			return
		}
		x.dec.NoWait = true
		err = x.dec.Decide(c.gen, c.l, &x.view, &x.choice, nil)
		x.dec.NoWait = false
	}
	switch {
	case err == httpproxy.ErrWait:
		l.hand(c, stageHead)
	case err != nil:
		c.fast.err = err
		l.hand(c, stageRefused)
	default:
		c.fastSend()
	}
}

// plain says whether a request has come whole and asks for nothing but its response.
func (x *exchange) plain() bool {
	v := &x.view
	switch {
	case v.Expects, v.Head.WantsUpgrade(), v.Framing.Kind == http1.Chunked:
		return false
	}
	return v.Framing.Kind != http1.Sized || v.Framing.Length <= int64(x.fill-x.head)
}

// fastSend sends the request over an idle connection. Without one the goroutine opens it.
func (c *conn) fastSend() {
	l, x := c.fast.loop, c.x
	a, ok := x.choice.Address(0)
	if !ok || a.TLS || x.choice.App.Connect.Announce != nil {
		l.hand(c, stageChosen)
		return
	}
	p := c.f.servers.pool(address{addr: a.Addr, host: a.Host})
	p.used.Store(x.start)
	if c.compose() != nil {
		l.hand(c, stageChosen)
		return
	}
	for {
		s := p.take(l.home + 1)
		if s == nil {
			l.hand(c, stageChosen)
			return
		}
		if (s.wary || !x.view.Idempotent()) && !s.quiet() {
			s.close()
			continue
		}
		s.wary = false
		n, errno := rawWrite(uintptr(s.desc.fd), x.out)
		if errno != 0 && errno != syscall.EAGAIN {
			s.close() // nothing was sent
			continue
		}
		c.underWay(s)
		c.fast.server = s
		if errno == 0 && n == len(x.out) {
			s.fast = c
			return
		}
		if errno == 0 {
			x.out = x.out[n:]
		}
		c.fast.unsent = true
		l.hand(c, stageSent)
		return
	}
}

// fastResponse relays a response that has come whole, and begins one of known size.
func (c *conn) fastResponse() {
	l, x, s := c.fast.loop, c.x, c.fast.server
	n, errno := rawRead(uintptr(s.desc.fd), x.resp)
	if errno == syscall.EAGAIN {
		return
	}
	if errno != 0 || n == 0 {
		l.hand(c, stageSent)
		return
	}
	x.have = n
	x.answer.Reset()
	lim := http1.Limits{Block: respSize - 1}
	m, err := x.answer.ParseResponse(x.resp[:n], &lim)
	if m == 0 || err != nil || x.answer.Status < 200 {
		l.hand(c, stageSent)
		return
	}
	f, stray, err := x.answer.ResponseFraming(x.view.Is("HEAD"))
	if err != nil || f.Kind == http1.UntilClose || f.Kind == http1.Chunked && !wholeChunks(x.resp[m:n], c.gen.Limits.MaxTrailers) {
		l.hand(c, stageSent)
		return
	}
	reuse := c.answered() && !stray
	if left := f.Length - int64(n-m); f.Kind == http1.Sized && left > 0 {
		c.prepare(f)
		c.fast.left, c.fast.reuse, c.fast.relays = left, reuse, true
		if err := c.lead(m, n); err != nil {
			c.fastFail(err)
			return
		}
		c.pump()
		return
	}
	clean, err := c.relay(s, m, f)
	if err != nil {
		c.fastFail(err)
		return
	}
	c.fastDone(reuse && clean)
}

// wholeChunks says whether a chunked body has come to its end, as far as can be told without reading trailers.
func wholeChunks(b []byte, trailers int) bool {
	var ch http1.Chunks
	for !ch.AtTrailers() {
		if len(b) == 0 {
			return false
		}
		pass, skip, err := ch.Step(b)
		if err != nil {
			return false
		}
		if pass+skip == 0 {
			return false
		}
		b = b[pass+skip:]
	}
	return len(b) >= 2 && b[0] == '\r' && b[1] == '\n'
}

// pump moves octets of a body from the server to the client until one of them has to be waited for.
func (c *conn) pump() {
	f, l, x := &c.fast, c.fast.loop, c.x
	s := f.server
	for f.left > 0 {
		if len(c.client.stash) > 0 {
			l.hand(c, stageRelay)
			return
		}
		c.arm(l.now, c.gen.Limits.BodyIdle)
		room := x.all[:min(f.left, int64(len(x.all)))]
		n, errno := rawRead(uintptr(s.desc.fd), room)
		if errno == syscall.EAGAIN {
			return
		}
		if errno != 0 || n == 0 {
			err := io.EOF
			if errno != 0 {
				err = os.NewSyscallError("read", errno)
			}
			c.fastFail(serverLost(err))
			return
		}
		f.left -= int64(n)
		if err := c.write(room[:n]); err != nil {
			c.fastFail(err)
			return
		}
		if n < len(room) && len(c.client.stash) == 0 && !s.desc.hup.Load() {
			return // all that there was; the end of the connection would have been told with it
		}
	}
	c.fastDone(f.reuse)
}

// fastFail ends a response that broke off.
func (c *conn) fastFail(err error) {
	s := c.fast.server
	s.fast = nil
	c.fast.server, c.fast.relays, c.fast.err = nil, false, c.blame(err)
	s.close()
	c.fast.loop.hand(c, stageOver)
}

// fastDone ends a request whose response is out, but for what the client did not take, and looks for the next.
func (c *conn) fastDone(reuse bool) {
	f, l, x := &c.fast, c.fast.loop, c.x
	s := f.server
	s.fast = nil
	f.server, f.relays = nil, false
	x.phase = '-'
	if reuse {
		s.rest(l.now)
	} else {
		s.close()
	}
	if len(c.client.stash) > 0 {
		c.arm(l.now, c.gen.Limits.BodyIdle)
		l.hand(c, stageOver)
		return
	}
	if !c.settle(nil) {
		l.hand(c, stageEnd)
		return
	}
	if x.pos < x.fill {
		x.fill = copy(x.in, x.in[x.pos:x.fill])
		c.fastHead()
		return
	}
	l.drop(c)
	c.arm(l.now, c.gen.Limits.IdleTimeout)
	c.idle.Store(true)
	if f.more || c.client.desc.hup.Load() {
		f.more = false
		c.fastRead()
	}
}
