package h1

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// desc is a TCP socket that a loop watches in place of the runtime's poller. To goroutines it is a net.Conn with a raw
// way to its descriptor, as a *net.TCPConn is; one goroutine may read while another writes. The loop itself uses the
// descriptor while nobody else may.
type desc struct {
	l             *loop
	fd            int
	slot, gen     uint32
	local, remote net.Addr

	client *conn   // who speaks on it: a client's connection,
	server *server // or a server's

	in, out   chan struct{} // what could not be read or written may go on
	stopIn    atomic.Bool   // reads have failed by now, as behind a deadline that passed
	stopOut   atomic.Bool
	hup       atomic.Bool // the other side has closed its half, or all of it
	closed    atomic.Bool
	readTimer *time.Timer
}

// take takes the socket of t out of the runtime's poller and has l watch it. What comes from here on is told; what came
// before is there to be read. t is closed in any case.
func (d *desc) take(l *loop, t *net.TCPConn, raw syscall.RawConn) error {
	d.l, d.in, d.out = l, make(chan struct{}, 1), make(chan struct{}, 1)
	var dupErr error
	err := raw.Control(func(fd uintptr) { d.fd, dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	_ = t.Close()
	if err != nil {
		return err
	}
	if dupErr != nil {
		return os.NewSyscallError("fcntl", dupErr)
	}
	l.enter(d)
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(d.slot), Pad: int32(d.gen)}
	if err := unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, d.fd, &ev); err != nil {
		_ = d.Close()
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

// told passes on what the kernel said to whoever waits in a goroutine.
func (d *desc) told(events uint32) {
	if events&^uint32(unix.EPOLLOUT) != 0 {
		token(d.in)
	}
	if events&^uint32(unix.EPOLLIN|unix.EPOLLRDHUP) != 0 {
		token(d.out)
	}
}

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// SyscallConn gives the raw way: the desc itself.
func (d *desc) SyscallConn() (syscall.RawConn, error) { return rawDesc{d}, nil }

// rawDesc is the raw way to a desc, with the meaning that net.TCPConn gives it.
type rawDesc struct{ d *desc }

func (r rawDesc) Control(f func(fd uintptr)) error {
	if r.d.closed.Load() {
		return net.ErrClosed
	}
	f(uintptr(r.d.fd))
	return nil
}

func (r rawDesc) Read(f func(fd uintptr) bool) error { return r.d.wait(f, r.d.in, &r.d.stopIn) }

func (r rawDesc) Write(f func(fd uintptr) bool) error { return r.d.wait(f, r.d.out, &r.d.stopOut) }

func (d *desc) wait(f func(fd uintptr) bool, edge chan struct{}, stop *atomic.Bool) error {
	for {
		if d.closed.Load() {
			return net.ErrClosed
		}
		if stop.Load() {
			return os.ErrDeadlineExceeded
		}
		if f(uintptr(d.fd)) {
			return nil
		}
		<-edge
	}
}

// Read reads what there is, waiting for it.
func (d *desc) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	var errno syscall.Errno
	err = d.wait(func(fd uintptr) bool {
		n, errno = rawRead(fd, b)
		return errno != syscall.EAGAIN
	}, d.in, &d.stopIn)
	switch {
	case err != nil:
		return 0, err
	case errno != 0:
		return 0, os.NewSyscallError("read", errno)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write writes all of b.
func (d *desc) Write(b []byte) (done int, err error) {
	for done < len(b) {
		var errno syscall.Errno
		var n int
		err = d.wait(func(fd uintptr) bool {
			n, errno = rawWrite(fd, b[done:])
			return errno != syscall.EAGAIN
		}, d.out, &d.stopOut)
		if err == nil && errno != 0 {
			err = os.NewSyscallError("write", errno)
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// Close closes the socket. Nobody may be using it; a second call does nothing.
func (d *desc) Close() error {
	if d.closed.Swap(true) {
		return net.ErrClosed
	}
	if d.readTimer != nil {
		d.readTimer.Stop()
	}
	d.l.leave(d)
	return unix.Close(d.fd)
}

// CloseWrite ends what we send.
func (d *desc) CloseWrite() error { return unix.Shutdown(d.fd, unix.SHUT_WR) }

// SetLinger says what a close does with octets under way: 0 destroys them, with a reset.
func (d *desc) SetLinger(sec int) error {
	l := unix.Linger{Linger: int32(max(sec, 0))}
	if sec >= 0 {
		l.Onoff = 1
	}
	return unix.SetsockoptLinger(d.fd, unix.SOL_SOCKET, unix.SO_LINGER, &l)
}

// LocalAddr is our end.
func (d *desc) LocalAddr() net.Addr { return d.local }

// RemoteAddr is the other end.
func (d *desc) RemoteAddr() net.Addr { return d.remote }

// SetDeadline with a time in the past wakes both directions; with no time it takes that back.
func (d *desc) SetDeadline(t time.Time) error {
	_ = d.SetWriteDeadline(t)
	return d.SetReadDeadline(t)
}

// SetReadDeadline does so for reads, and knows times to come. Only the goroutine that reads may set one to come.
func (d *desc) SetReadDeadline(t time.Time) error {
	switch {
	case t.IsZero():
		if d.readTimer != nil {
			d.readTimer.Stop()
		}
		d.stopIn.Store(false)
	case time.Until(t) <= 0:
		d.stopIn.Store(true)
		token(d.in)
	default:
		d.stopIn.Store(false)
		d.readTimer = time.AfterFunc(time.Until(t), func() {
			d.stopIn.Store(true)
			token(d.in)
		})
	}
	return nil
}

// SetWriteDeadline wakes who writes, or takes that back. Times to come are not needed: the Front watches the time.
func (d *desc) SetWriteDeadline(t time.Time) error {
	d.stopOut.Store(!t.IsZero())
	token(d.out)
	return nil
}

// surface makes an ordinary connection of the socket, for those who go on with it in another protocol; the desc is
// closed.
func (d *desc) surface() (net.Conn, error) {
	n, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	_ = d.Close()
	f := os.NewFile(uintptr(n), "tcp")
	defer func() { _ = f.Close() }()
	return net.FileConn(f)
}
