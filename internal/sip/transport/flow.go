package transport

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wyegate/wyegate/internal/listen"
)

// state of a flow; it only goes forward.
type state = uint32

const (
	dialling state = iota // to a server: what is queued waits for the connection
	living
	draining // what is queued is written, then the connection is closed; nothing more is taken
	closed
)

// flow is one connection. Its reader and its writer run inside the call of Serve or the dial that made it; workers only
// touch the write queue.
type flow struct {
	id       uint64
	hub      *Hub
	ep       *endpoint
	kind     Kind
	outgoing bool
	remote   netip.AddrPort // the socket's peer
	source   netip.AddrPort // what a PROXY header carried, else remote
	local    netip.AddrPort
	key      serverKey // outgoing only
	slot     uint32    // outgoing only
	ws       *wsState  // WS and WSS only

	state atomic.Uint32 // written under mu

	mu      sync.Mutex // held for one copy (architecture.md 4.2)
	conn    net.Conn
	queue   []byte
	writing int    // octets taken by the writer and not written yet
	asked   uint64 // workers that queued while dialling
	wake    chan struct{}
	gone    chan struct{} // closed with the flow

	active atomic.Int64 // last octet in either direction, in nanoseconds
	age    time.Time    // when the flow is old; zero: never

	alias atomic.Pointer[alias] // the address whose requests it carries; nil: none
}

// enqueue copies b into the write queue.
func (f *flow) enqueue(b []byte, worker int) error {
	f.mu.Lock()
	if f.state.Load() > living {
		f.mu.Unlock()
		return ErrFlowGone
	}
	if len(f.queue)+f.writing+len(b) > f.hub.cfg.Timers.QueueLimit {
		f.mu.Unlock()
		return ErrFull
	}
	if f.queue == nil {
		f.queue = f.hub.free.get()
	}
	if f.ws != nil {
		f.queue = f.ws.appendMessage(f.queue, b)
	} else {
		f.queue = append(f.queue, b...)
	}
	f.asked |= 1 << worker
	f.mu.Unlock()
	f.kick()
	return nil
}

// kick wakes the writer.
func (f *flow) kick() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// drain lets the writer finish and close.
func (f *flow) drain() {
	f.mu.Lock()
	if f.state.Load() <= living {
		f.state.Store(draining)
	}
	f.mu.Unlock()
	f.kick()
}

// close ends the flow at once, from any goroutine; the first call says why.
func (f *flow) close(why error) {
	f.mu.Lock()
	was := f.state.Swap(closed)
	if was == closed {
		f.mu.Unlock()
		return
	}
	conn, asked := f.conn, f.asked
	f.mu.Unlock()
	close(f.gone)
	if conn != nil && why == ErrFull { // a worker comes here: TLS would wait for its farewell to be taken
		conn = socketOf(conn)
	}
	if conn != nil {
		_ = conn.Close()
	}
	f.hub.flows.remove(f)
	if f.outgoing {
		f.hub.disconnected(f)
	}
	if f.alias.Load() != nil {
		f.hub.aliases.drop(f)
	}
	f.report(was, asked, why)
}

// report tells the workers that the flow is gone: all of them, or, of a connection that never was, those who asked.
func (f *flow) report(was state, asked uint64, why error) {
	e := Event{Kind: FlowClosed, Flow: f.id, Remote: f.remote, Err: why}
	if was == dialling {
		e.Kind = FlowFailed
	}
	for i, in := range f.hub.inboxes {
		if was != dialling || asked>>i&1 != 0 {
			f.post(in, e)
		}
	}
}

// post is patient about a server's connection, whose end moves requests: no worker comes here for one, so this may wait.
func (f *flow) post(in *Inbox, e Event) {
	for range fullTries {
		if in.Post(e) || !f.outgoing {
			return
		}
		<-time.After(fullRetry)
	}
}

// Serve has an accepted stream connection until it ends: of a stream listener, or one that came another way, the end of a
// pipe. It is closed when Serve returns, and when the context ends.
func (h *Hub) Serve(ctx context.Context, l *Listener, c net.Conn) { h.serve(ctx, h.accepted(l, c)) }

// accepted makes the flow of a connection that came to a listener.
func (h *Hub) accepted(l *Listener, c net.Conn) *flow {
	f := &flow{
		hub: h, ep: l.ep, kind: l.Kind, conn: c, wake: make(chan struct{}, 1), gone: make(chan struct{}),
		remote: peerOf(c), source: addrOf(c.RemoteAddr()), local: addrOf(c.LocalAddr()),
	}
	f.state.Store(living)
	if a := l.settings.MaxAge; a > 0 {
		spread := (2*rand.Float64() - 1) * l.settings.AgeJitter
		f.age = time.Now().Add(a + time.Duration(spread*float64(a)))
	}
	return f
}

func (h *Hub) serve(ctx context.Context, f *flow) {
	if !h.flows.add(f) {
		_ = f.conn.Close()
		return
	}
	stop := context.AfterFunc(ctx, func() { f.close(net.ErrClosed) })
	defer stop()
	f.run()
}

// run reads and writes until the flow is closed.
func (f *flow) run() {
	setUserTimeout(f.conn)
	f.touch(time.Now())
	var writer sync.WaitGroup
	writer.Go(f.write)
	f.close(f.read())
	writer.Wait()
	f.mu.Lock()
	q := f.queue
	f.queue = nil
	f.mu.Unlock()
	f.hub.free.put(q)
}

func (f *flow) touch(now time.Time) { f.active.Store(now.UnixNano()) }

// write sends what is queued, all that has gathered in one call.
func (f *flow) write() {
	for {
		b, last := f.takeQueue()
		if len(b) > 0 {
			if err := f.writeAll(b); err != nil {
				f.close(err)
				return
			}
			continue
		}
		if last {
			f.linger()
			return
		}
		select {
		case <-f.wake:
		case <-f.gone:
			return
		}
	}
}

// takeQueue swaps the queue out. last: nothing will follow.
func (f *flow) takeQueue() (b []byte, last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Load() == closed {
		return nil, false
	}
	b = f.queue
	f.queue, f.writing = nil, len(b)
	return b, f.state.Load() == draining
}

func (f *flow) writeAll(b []byte) error {
	now := time.Now()
	_ = f.conn.SetWriteDeadline(now.Add(f.hub.cfg.Timers.Write)) // fails only on a closed connection, and so will Write
	_, err := f.conn.Write(b)
	f.touch(now)
	f.mu.Lock()
	f.writing = 0
	f.mu.Unlock()
	f.hub.free.put(b)
	return err
}

// linger gives the peer time to read what was written last: closing with octets unread would reset the connection and
// take the answer with it. The reader throws away what still comes, and closes.
func (f *flow) linger() {
	if c, ok := inner(f.conn).(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
	}
	_ = f.conn.SetReadDeadline(past) // the reader looks up and sees the state
}

// inner is the connection below a PROXY header.
func inner(c net.Conn) net.Conn {
	if p, ok := c.(*listen.Conn); ok {
		return p.NetConn()
	}
	return c
}

// socketOf is the socket below everything that wraps a connection: PROXY header, TLS, WebSocket.
func socketOf(c net.Conn) net.Conn {
	for {
		below, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = below.NetConn()
	}
}

func peerOf(c net.Conn) netip.AddrPort { return addrOf(socketOf(c).RemoteAddr()) }

// addrOf is the address of a TCP peer, v4-mapped folded; the zero one for connections that are no sockets.
func addrOf(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// userTimeout bounds how long sent octets may stay without an acknowledgement (sip-http.md section 10).
const userTimeout = 5 * time.Second

func setUserTimeout(c net.Conn) {
	tcp, ok := socketOf(c).(*net.TCPConn)
	if !ok {
		return
	}
	if rc, err := tcp.SyscallConn(); err == nil {
		_ = rc.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout/time.Millisecond))
		})
	}
}

// errors that say why a flow was closed.
var (
	errTooSlow  = errors.New("transport: message was not complete in time")
	errIdle     = errors.New("transport: connection was idle")
	errAged     = errors.New("transport: connection has reached its age")
	errUnframed = errors.New("transport: stream cannot be framed")
	errFinished = errors.New("transport: closed after the last message")
)
