package load

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller waits for sockets.
type Poller struct {
	fd     int
	events [16]unix.EpollEvent
}

// NewPoller waits for these sockets; what Wait gives are places in the list.
func NewPoller(list ...*Socket) (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("load: epoll: %w", err)
	}
	for i, s := range list {
		if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, s.FD, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			unix.Close(fd)
			return nil, fmt.Errorf("load: epoll: %w", err)
		}
	}
	return &Poller{fd: fd}, nil
}

// Close ends the poller.
func (p *Poller) Close() { unix.Close(p.fd) }

// Wait calls ready for each socket that has something, after the time-out at the latest. The time-out is precise: with
// the milliseconds of epoll_wait an open loop would send in bursts.
func (p *Poller) Wait(timeout time.Duration, ready func(i int)) {
	ts := unix.NsecToTimespec(int64(max(timeout, 0)))
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)), uintptr(len(p.events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if errno != 0 {
		return
	}
	for i := range int(n) {
		ready(int(p.events[i].Fd))
	}
}
