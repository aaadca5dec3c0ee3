package h1

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const haveRaw = true

// The calls below never block: the sockets of the runtime's poller don't. So the scheduler need not be told, which would
// cost as much as the call's own entry.

func rawRead(fd uintptr, b []byte) (int, syscall.Errno) {
	if len(b) == 0 {
		return 0, 0
	}
	for {
		n, _, err := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
		if err != syscall.EINTR {
			return int(n), err
		}
	}
}

func rawWrite(fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, err := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
		if err != syscall.EINTR {
			return int(n), err
		}
	}
}

// rawQuiet says whether nothing has come and nobody has closed. Anything else is errStale.
func rawQuiet(fd uintptr) error {
	var b [1]byte
	_, _, err := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b[0])), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	if err == syscall.EAGAIN {
		return nil
	}
	return errStale
}

// gone asks the kernel whether the other side has closed its half, without waiting.
func gone(raw syscall.RawConn) bool {
	closed := false
	err := raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		closed = err == nil && n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return err != nil || closed
}

// tuneServer bounds how long written octets may stay unacknowledged (section 10: TCP_USER_TIMEOUT 5 s).
func tuneServer(fd uintptr) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 5000)
}
