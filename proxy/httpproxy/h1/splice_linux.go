package h1

import (
	"io"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// spliceLeast is from how many octets on the rest of a body goes through a pipe in the kernel instead of our memory.
const spliceLeast = 48 << 10

const (
	pipeSize  = 256 << 10
	pipesKept = 64
)

// pipe is a pipe of the kernel, empty between two uses.
type pipe struct{ r, w int }

// pipes keeps pipes for the next body.
type pipes struct {
	list freeList[pipe]
	kept atomic.Int32
}

func (l *pipes) get() (*pipe, error) {
	if p := l.list.get(); p != nil {
		l.kept.Add(-1)
		return p, nil
	}
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	_, _ = unix.FcntlInt(uintptr(fd[1]), unix.F_SETPIPE_SZ, pipeSize) // refused: it stays smaller
	return &pipe{fd[0], fd[1]}, nil
}

// put keeps an empty pipe; dirty ones and those too many are closed.
func (l *pipes) put(p *pipe, clean bool) {
	if clean && l.kept.Add(1) <= pipesKept && l.list.put(p) {
		return
	}
	if clean {
		l.kept.Add(-1)
	}
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}

func (l *pipes) init() { l.list.init() }

// closeAll closes what is kept.
func (l *pipes) closeAll() {
	for p := l.list.get(); p != nil; p = l.list.get() {
		l.kept.Add(-1)
		_ = unix.Close(p.r)
		_ = unix.Close(p.w)
	}
}

// splicer moves a body from one socket to the other without copying it through our memory. Its steps are made once.
type splicer struct {
	p               *pipe
	want            int64
	n, held         int // of the last step; in the pipe
	err             error
	inStep, outStep func(fd uintptr) bool
}

func (sp *splicer) init() { sp.inStep, sp.outStep = sp.in, sp.outOnce }

func (sp *splicer) in(fd uintptr) bool {
	n, err := unix.Splice(int(fd), nil, sp.p.w, nil, int(min(sp.want, pipeSize)), unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
	if err == syscall.EAGAIN {
		return false
	}
	sp.n, sp.err = int(n), err
	return true
}

func (sp *splicer) outOnce(fd uintptr) bool {
	flags := unix.SPLICE_F_NONBLOCK | unix.SPLICE_F_MOVE
	if sp.want > 0 {
		flags |= unix.SPLICE_F_MORE
	}
	for sp.held > 0 {
		n, err := unix.Splice(sp.p.r, nil, int(fd), nil, sp.held, flags)
		if err == syscall.EAGAIN {
			return false
		}
		if err != nil {
			sp.err = err
			return true
		}
		sp.held -= int(n)
		sp.n += int(n)
	}
	return true
}

// copy moves left octets from s to the client, and says how many went. 0 without an error: there is no pipe to be had.
func (sp *splicer) copy(c *conn, s *server, left int64) (done int64, err error) {
	p, err := c.f.pipes.get()
	if err != nil {
		return 0, nil
	}
	sp.p = p
	defer func() {
		c.f.pipes.put(p, sp.held == 0)
		sp.p = nil
	}()
	sp.held = 0
	for left > 0 {
		c.arm(c.f.now(), c.gen.Limits.BodyIdle)
		sp.want, sp.n, sp.err = left, 0, nil
		if err := s.step(sp.inStep, s.waitRead); err != nil {
			return done, err
		}
		if sp.err != nil || sp.n == 0 {
			if sp.err == nil {
				sp.err = io.EOF
			}
			return done, serverLost(sp.err)
		}
		left -= int64(sp.n)
		sp.held, sp.want, sp.n = sp.n, left, 0
		err := c.client.step(sp.outStep, c.client.waitWrite)
		done += int64(sp.n)
		if err == nil {
			err = sp.err
		}
		if err != nil {
			return done, c.clientLost(err)
		}
	}
	return done, nil
}
