package h1

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loops are the event loops of a Front, one for each processor. They start with the first plain TCP connection, and end
// with Run, once no descriptor is left.
type loops struct {
	mu      sync.Mutex
	running sync.WaitGroup
	list    []*loop // nil: not started
	none    bool    // they can't be made, or Run has ended
}

// endLoops asks the loops to end, and waits until they have. No more start.
func (f *Front) endLoops() {
	v := &f.loops
	v.mu.Lock()
	v.none = true
	for _, l := range v.list {
		l.end()
	}
	v.mu.Unlock()
	v.running.Wait()
}

// loopOf gives the loop of the connection with that number; nil when there is none.
func (f *Front) loopOf(number uint32) *loop {
	v := &f.loops
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.none {
		return nil
	}
	if v.list == nil {
		if err := f.startLoops(); err != nil {
			v.none = true
			f.log.Warn("no event loops: connections are served by goroutines", "err", err)
			return nil
		}
	}
	return v.list[number%uint32(len(v.list))]
}

func (f *Front) startLoops() error {
	v := &f.loops
	for i := range f.homes {
		l, err := f.newLoop(i)
		if err != nil {
			for _, l := range v.list {
				l.free()
			}
			v.list = nil
			return err
		}
		v.list = append(v.list, l)
	}
	for _, l := range v.list {
		v.running.Go(l.serve)
	}
	return nil
}

func loopsWanted() int { return runtime.GOMAXPROCS(0) }

// loop watches sockets with an epoll of its own and serves what is plain itself: a request that has come whole, to a
// pooled connection, and a response of known size back (fast_linux.go). All else it leaves to the goroutine of the
// connection, which waits meanwhile. One goroutine runs it and owns what is not atomic.
//
// It costs a request what it costs a program in C: four system calls, and a share of one that waits.
type loop struct {
	f      *Front
	home   int // its place among the pools' stacks of idle connections
	ep     int
	bell   int // an eventfd: something was posted
	file   *os.File
	raw    syscall.RawConn
	step   func(fd uintptr) bool
	now    int64 // time of the Front, read once for each batch
	slept  int64 // when it last waited in the runtime's poller
	n      int
	kick   bool // others are to have a turn
	waited bool // since the last batch
	ready  [256]unix.EpollEvent

	on    *conn       // what it works on
	spare []*exchange // light ones
	out   []byte      // what exchanges borrow while the loop works on them
	all   []byte

	asleep atomic.Bool
	ending atomic.Bool
	posted atomic.Pointer[conn] // connections that wait to be looked at, by conn.behind

	mu    sync.Mutex // of the table's size and its free places
	slots atomic.Pointer[[]*atomic.Pointer[desc]]
	holes []uint32
	open  int
	gens  uint32
}

const bellSlot = ^uint32(0)

func (f *Front) newLoop(i int) (*loop, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(ep)
		return nil, os.NewSyscallError("eventfd", err)
	}
	l := &loop{f: f, home: i, ep: ep, bell: bell}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: -1}
	if err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, bell, &ev); err == nil {
		err = unix.SetNonblock(ep, true)
	}
	if err == nil {
		l.file = os.NewFile(uintptr(ep), "epoll")
		l.raw, err = l.file.SyscallConn()
	}
	if err != nil {
		_ = unix.Close(bell)
		_ = unix.Close(ep)
		return nil, fmt.Errorf("h1: event loop: %w", err)
	}
	l.slots.Store(&[]*atomic.Pointer[desc]{})
	l.step = l.poll
	l.out = make([]byte, 0, 32<<10)
	l.all = make([]byte, headRoom+loopRoom)
	return l, nil
}

// loopRoom is how many octets of a response a loop takes at once.
const loopRoom = 128 << 10

func (l *loop) free() {
	_ = unix.Close(l.bell)
	_ = l.file.Close()
}

// enter gives d a place in the table.
func (l *loop) enter(d *desc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slots := *l.slots.Load()
	if len(l.holes) == 0 {
		n := len(slots)
		slots = append(slots[:n:n], make([]*atomic.Pointer[desc], max(64, n/2))...)
		for i := n; i < len(slots); i++ {
			slots[i] = new(atomic.Pointer[desc])
			l.holes = append(l.holes, uint32(i))
		}
		l.slots.Store(&slots)
	}
	d.slot = l.holes[len(l.holes)-1]
	l.holes = l.holes[:len(l.holes)-1]
	l.gens++
	d.gen = l.gens
	l.open++
	slots[d.slot].Store(d)
}

func (l *loop) leave(d *desc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	(*l.slots.Load())[d.slot].Store(nil)
	l.holes = append(l.holes, d.slot)
	if l.open--; l.open == 0 && l.ending.Load() {
		l.ring()
	}
}

// end asks the loop to end. The lock keeps the bell open until it was rung.
func (l *loop) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending.Store(true)
	l.ring()
}

// ring wakes the loop.
func (l *loop) ring() {
	one := [8]byte{1}
	_, _ = unix.Write(l.bell, one[:])
}

// post has the loop look at c, which it owns from now on.
func (l *loop) post(c *conn) {
	if c.queued.Swap(true) {
		return
	}
	for {
		head := l.posted.Load()
		c.behind = head
		if l.posted.CompareAndSwap(head, c) {
			break
		}
	}
	if l.asleep.Load() {
		l.ring()
	}
}

// turnAfter is how long a busy loop keeps the processor before others have a turn: the runtime looks at its own sockets
// only when it finds nothing to run.
const turnAfter = int64(1e6)

// serve runs the loop until Run has ended and no socket is left.
func (l *loop) serve() {
	defer l.free()
	for {
		l.asleep.Store(true)
		if l.posted.Load() == nil {
			if l.done() {
				return
			}
			l.kick = l.now-l.slept > turnAfter
			if err := l.raw.Read(l.step); err != nil {
				return // closed: nobody does
			}
		}
		l.asleep.Store(false)
		if l.now = l.f.now(); l.waited {
			l.waited, l.slept = false, l.now
		}
		for i := range l.ready[:l.n] {
			l.event(&l.ready[i])
		}
		l.n = 0
		for c := l.posted.Swap(nil); c != nil; {
			next := c.behind
			c.behind = nil
			c.queued.Store(false)
			l.look(c)
			c = next
		}
	}
}

func (l *loop) done() bool {
	if !l.ending.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open == 0
}

// poll asks for events. Where others are to have a turn it rings its own bell first, so that the wait ends at once.
func (l *loop) poll(uintptr) bool {
	if l.kick {
		l.kick, l.waited = false, true
		l.ring()
		return false
	}
	n, _, err := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.ep), uintptr(unsafe.Pointer(&l.ready[0])), uintptr(len(l.ready)), 0, 0, 0)
	if err != 0 {
		n = 0
	}
	l.n = int(n)
	if n == 0 {
		l.waited = true
	}
	return n > 0
}

func (l *loop) event(e *unix.EpollEvent) {
	slot := uint32(e.Fd)
	slots := *l.slots.Load()
	if slot == bellSlot || int(slot) >= len(slots) {
		return
	}
	d := slots[slot].Load()
	if d == nil || d.gen != uint32(e.Pad) {
		return // of one who has left
	}
	if e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		d.hup.Store(true)
	}
	switch {
	case d.client != nil && d.client.lent.Load():
		l.clientEvent(d.client, e.Events)
	case d.server != nil && d.server.fast != nil:
		l.serverEvent(d.server.fast)
	case d.server != nil && d.server.state.Load() == resting:
		l.stirred(d.server, e.Events)
	default:
		d.told(e.Events)
	}
}

// stirred closes a connection that said something while it was idle, or was closed (HF-7).
func (l *loop) stirred(s *server, events uint32) {
	if events&^uint32(unix.EPOLLOUT) != 0 && rawQuiet(uintptr(s.desc.fd)) != nil && s.state.CompareAndSwap(resting, closed) {
		_ = s.Conn.Close()
	}
}
