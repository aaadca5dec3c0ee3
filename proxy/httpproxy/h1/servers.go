package h1

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// servers are the pools of connections to servers, by address. The map is copied when one is added: a request only
// reads it.
type servers struct {
	front *Front
	pools atomic.Pointer[map[address]*pool]
	mu    sync.Mutex // one who adds or removes at a time
}

// address is what a pooled connection belongs to.
type address struct {
	addr netip.AddrPort
	host string // where addr is not known, or TLS names it
	tls  bool
	peer string // what TLS checks the server against (SX-8)
}

// pool holds the connections to one address: at most a fixed number, each in a slot. free and idle are stacks of slots;
// a connection that was closed while idle stays on the stack, marked, until it is popped.
type pool struct {
	at      address
	conns   []atomic.Pointer[server]
	free    stack
	idle    []stack // by home: connections of the runtime's poller, then those of each loop
	waiting atomic.Int32
	wake    chan struct{}
	used    atomic.Int64 // time of the Front of the last request
	gone    atomic.Bool  // nobody will look at it again
}

// server is one connection to a server. One goroutine at a time owns it; while it is idle nobody does.
type server struct {
	sock
	pool *pool
	f    *Front
	slot int
	home int        // among the pool's idle stacks
	fast *conn      // a loop serves this one over it; owned by the loop
	wary bool       // a goroutine had it last: what came meanwhile the loop does not know
	told netip.Addr // the client that was announced; such a connection stays with that client's
	used int        // requests it was used for
	life time.Duration

	state atomic.Int32
	since atomic.Int64 // idle since
}

const (
	busy int32 = iota
	resting
	closed
)

func (v *servers) pool(a address) *pool {
	if m := v.pools.Load(); m != nil {
		if p := (*m)[a]; p != nil {
			return p
		}
	}
	return v.add(a)
}

func (v *servers) add(a address) *pool {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := map[address]*pool{}
	if m := v.pools.Load(); m != nil {
		if p := (*m)[a]; p != nil {
			return p
		}
		maps.Copy(next, *m)
	}
	n := v.front.cfg.PerServer
	p := &pool{at: a, conns: make([]atomic.Pointer[server], n), free: newStack(n), idle: make([]stack, v.front.homes+1), wake: make(chan struct{}, n)}
	for i := range p.idle {
		p.idle[i] = newStack(n)
	}
	for i := n - 1; i >= 0; i-- {
		p.free.push(i)
	}
	next[a] = p
	v.pools.Store(&next)
	return p
}

// get gives a connection for the choice's server: the one that was idle last, or a new one; fresh asks for a new one. A
// server's further addresses are tried in order when a connect fails.
func (v *servers) get(c *conn, fresh bool) (*server, error) {
	ch := &c.x.choice
	var err error
	for n := 0; ; n++ {
		a, ok := ch.Address(n)
		if !ok {
			if err == nil {
				err = fmt.Errorf("%w: server has no http address", httpproxy.ErrConnect)
			}
			return nil, err
		}
		p := v.pool(address{a.Addr, a.Host, a.TLS, a.Peer})
		s, e := p.get(c, fresh)
		if e == nil || errors.Is(e, httpproxy.ErrBusy) {
			return s, e
		}
		err = e
	}
}

func (p *pool) get(c *conn, fresh bool) (*server, error) {
	p.used.Store(c.x.start)
	own := c.x.choice.App.Connect.Announce != nil
	for {
		if own && !fresh {
			if s := c.takeOwn(p); s != nil {
				return s, nil
			}
		} else if !fresh {
			if s := p.take(c.home()); s != nil {
				return s, nil
			}
		}
		slot, ok := p.free.pop()
		if !ok {
			if s := p.steal(); s != nil && !fresh && !own {
				return s, nil
			} else if s != nil {
				s.close()
				continue
			}
			if err := p.await(c); err != nil {
				return nil, err
			}
			fresh = false
			continue
		}
		s, err := p.dial(c, slot)
		if err != nil {
			p.giveBack(slot)
			return nil, err
		}
		return s, nil
	}
}

// steal takes an idle connection of any home: no more can be opened.
func (p *pool) steal() *server {
	for home := range p.idle {
		if s := p.take(home); s != nil {
			return s
		}
	}
	return nil
}

// take pops an idle connection. Those that were closed meanwhile give their slots back.
func (p *pool) take(home int) *server {
	for {
		slot, ok := p.idle[home].pop()
		if !ok {
			return nil
		}
		s := p.conns[slot].Load()
		if s.state.CompareAndSwap(resting, busy) {
			return s
		}
		p.giveBack(slot)
	}
}

func (p *pool) giveBack(slot int) {
	p.free.push(slot)
	p.signal()
}

func (p *pool) signal() {
	if p.waiting.Load() > 0 {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// await waits until a connection may be free. Nobody waits long: the answer is 503.
func (p *pool) await(c *conn) error {
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	for i := range p.idle {
		if slot, ok := p.idle[i].pop(); ok {
			p.idle[i].push(slot) // it came between two looks
			return nil
		}
	}
	t := time.NewTimer(c.f.cfg.ServerWait)
	defer t.Stop()
	select {
	case <-p.wake:
		return nil
	case <-t.C:
		return httpproxy.ErrBusy
	}
}

// dial opens a connection in a slot: dual stack where the address is a name, from the configured source address.
func (p *pool) dial(c *conn, slot int) (*server, error) {
	cfg := c.x.choice.App.Connect
	d := net.Dialer{Timeout: cfg.Timeout, KeepAlive: 30 * time.Second}
	for _, src := range cfg.Source {
		if p.at.addr.IsValid() && src.Is4() == p.at.addr.Addr().Unmap().Is4() {
			d.LocalAddr = &net.TCPAddr{IP: src.AsSlice()}
		}
	}
	to := p.at.host
	if p.at.addr.IsValid() {
		to = p.at.addr.String()
	}
	ctx, cancel := context.WithTimeout(context.Background(), cfg.Timeout)
	defer cancel()
	nc, err := d.DialContext(ctx, "tcp", to)
	if err == nil && cfg.Announce != nil {
		err = c.announce(nc, cfg)
	}
	if err == nil && p.at.tls {
		nc, err = p.secure(c.f, nc)
	}
	if err != nil {
		if isTimeout(err) {
			return nil, fmt.Errorf("%w: %w", httpproxy.ErrConnectSlow, err)
		}
		return nil, fmt.Errorf("%w: %w", httpproxy.ErrConnect, err)
	}
	s := &server{pool: p, f: c.f, slot: slot, life: cfg.Idle}
	if cfg.Announce != nil {
		s.told = c.x.view.Client
	}
	s.init(nc)
	s.owner = c
	if s.raw != nil {
		_ = s.raw.Control(tuneServer)
		if err := s.adopt(c); err != nil {
			return nil, fmt.Errorf("%w: %w", httpproxy.ErrConnect, err)
		}
	}
	p.conns[slot].Store(s)
	return s, nil
}

// handshakeTime is what a server has for its handshake (sip-http.md section 19).
const handshakeTime = 3 * time.Second

// secure makes the handshake with a server whose certificate must be good and its own (sip-http.md 13.4).
func (p *pool) secure(f *Front, nc net.Conn) (net.Conn, error) {
	if f.cfg.TLS == nil {
		_ = nc.Close()
		return nil, errors.New("h1: no way to speak TLS to a server")
	}
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	t, err := f.cfg.TLS(ctx, nc, p.at.peer)
	if err != nil {
		_ = nc.Close()
	}
	return t, err
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// quiet says whether nothing has come on a pooled connection and nobody has closed it.
func (s *server) quiet() bool {
	if s.raw == nil {
		_ = s.SetReadDeadline(past)
		var b [1]byte
		n, err := s.Conn.Read(b[:])
		_ = s.SetReadDeadline(time.Time{})
		return n == 0 && isDeadline(err) && (s.below == nil || silent(s.below))
	}
	return silent(s.raw)
}

func silent(raw syscall.RawConn) bool {
	ok := false
	err := raw.Control(func(fd uintptr) { ok = rawQuiet(fd) == nil })
	return err == nil && ok
}

// release puts the connection back for the next request.
func (s *server) release() {
	if s.pool.gone.Load() {
		s.close()
		return
	}
	if s.told.IsValid() {
		s.owner.keepOwn(s)
		return
	}
	s.owner = nil
	s.wary = true
	s.rest(s.f.now())
}

func (s *server) rest(now int64) {
	s.since.Store(now)
	s.state.Store(resting)
	s.pool.idle[s.home].push(s.slot)
	s.pool.signal()
	if s.f.ended.Load() && s.state.CompareAndSwap(resting, closed) {
		_ = s.Conn.Close()
	}
}

// close ends the connection and frees its slot. A second call does nothing.
func (s *server) close() {
	if s.state.CompareAndSwap(busy, closed) {
		_ = s.Conn.Close()
		s.pool.giveBack(s.slot)
	}
}

// poolLife is how long a pool without requests and connections is kept.
const poolLife = int64(10 * time.Minute)

// closeIdle closes what was idle too long, and forgets pools that nobody uses. It is called from Run alone.
func (v *servers) closeIdle(now int64) {
	m := v.pools.Load()
	if m == nil {
		return
	}
	for a, p := range *m {
		if p.closeIdle(now) == 0 && now-p.used.Load() > poolLife {
			p.gone.Store(true)
			v.remove(a)
		}
	}
}

func (p *pool) closeIdle(now int64) (open int) {
	for i := range p.conns {
		s := p.conns[i].Load()
		if s == nil {
			continue
		}
		if s.state.Load() != closed {
			open++
		}
		if now-s.since.Load() > int64(s.life) && s.state.CompareAndSwap(resting, closed) {
			_ = s.Conn.Close()
			open--
		}
	}
	return open
}

func (v *servers) remove(a address) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := maps.Clone(*v.pools.Load())
	delete(next, a)
	v.pools.Store(&next)
}
