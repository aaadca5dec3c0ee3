// Package load is what load generators of any protocol need: UDP sockets that read and write in batches, a poller with
// fine time-outs, and a histogram of latencies. A generator is one thread that never leaves its core, so that it takes
// little and always the same from the machine on which it measures.
//
// A datagram comes in with Socket.Receive, 64 at most for one system call, and is lent until the next one; an answer is
// written into the memory that Socket.Room lends, and goes out with up to 63 others when Socket.Flush is called.
package load

import (
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	batch  = 64   // datagrams of one system call
	octets = 4096 // of one datagram
)

// ErrNotLoopback says that a load was pointed at an address outside of this machine.
var ErrNotLoopback = errors.New("load: only addresses of the loopback interface take load")

// Loopback checks that an address may take load.
func Loopback(a netip.AddrPort) error {
	if !a.Addr().IsLoopback() {
		return fmt.Errorf("%w, not %s", ErrNotLoopback, a)
	}
	return nil
}

// mmsghdr is the kernel's struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// lane is one direction of a socket: the headers of a batch and their memory.
type lane struct {
	hdrs  [batch]mmsghdr
	iovs  [batch]unix.Iovec
	names [batch]unix.RawSockaddrInet4
	bufs  [batch][octets]byte
	n     int
}

func newLane() *lane {
	l := &lane{}
	for i := range batch {
		l.iovs[i].Base = &l.bufs[i][0]
		l.iovs[i].SetLen(octets)
		h := &l.hdrs[i].hdr
		h.Name, h.Iov = (*byte)(unsafe.Pointer(&l.names[i])), &l.iovs[i]
		h.SetIovlen(1)
		h.Namelen = unix.SizeofSockaddrInet4
	}
	return l
}

// Socket is an IPv4 UDP socket on the loopback interface. One goroutine uses it.
type Socket struct {
	FD   int
	Addr netip.AddrPort
	in   *lane
	out  *lane
	room int // octets that Room lent
	Lost int // datagrams that the kernel did not take
}

// Listen opens a socket; port 0 lets the kernel choose.
func Listen(a netip.AddrPort) (*Socket, error) {
	if err := Loopback(a); err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("load: socket: %w", err)
	}
	for _, o := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF} {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, o, 4<<20) // what the kernel cuts it to still does
	}
	s := &Socket{FD: fd, in: newLane(), out: newLane()}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()})
	if err == nil {
		var sa unix.Sockaddr
		if sa, err = unix.Getsockname(fd); err == nil {
			s.Addr = netip.AddrPortFrom(a.Addr(), uint16(sa.(*unix.SockaddrInet4).Port))
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("load: bind %s: %w", a, err)
	}
	return s, nil
}

// Close closes the socket.
func (s *Socket) Close() { unix.Close(s.FD) }

// Receive takes up to 64 datagrams off the socket and says how many; 0: there were none.
func (s *Socket) Receive() int {
	l := s.in
	for i := range l.n { // what the last call has overwritten
		l.hdrs[i].hdr.Namelen = unix.SizeofSockaddrInet4
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(s.FD), uintptr(unsafe.Pointer(&l.hdrs)), batch, unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		n = 0
	}
	l.n = int(n)
	return l.n
}

// Datagram is the i-th of those that Receive took, and who sent it.
func (s *Socket) Datagram(i int) ([]byte, netip.AddrPort) {
	name := &s.in.names[i]
	p := (*[2]byte)(unsafe.Pointer(&name.Port))
	from := netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(p[0])<<8|uint16(p[1]))
	return s.in.bufs[i][:s.in.hdrs[i].n], from
}

// Room lends the memory of the next datagram to write, empty; a batch that is full goes out first.
func (s *Socket) Room() []byte {
	if s.out.n == batch {
		s.Flush()
	}
	return s.out.bufs[s.out.n][:0]
}

// Send queues what was written into Room, n octets of it.
func (s *Socket) Send(n int, to netip.AddrPort) {
	l := s.out
	name := &l.names[l.n]
	name.Family, name.Addr = unix.AF_INET, to.Addr().As4()
	p := (*[2]byte)(unsafe.Pointer(&name.Port))
	p[0], p[1] = byte(to.Port()>>8), byte(to.Port())
	l.hdrs[l.n].hdr.Namelen = unix.SizeofSockaddrInet4
	l.iovs[l.n].SetLen(n)
	l.n++
}

// Flush sends what is queued.
func (s *Socket) Flush() {
	l := s.out
	for at := 0; at < l.n; {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(s.FD), uintptr(unsafe.Pointer(&l.hdrs[at])), uintptr(l.n-at), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0:
			at += int(n)
		case errno != unix.EINTR:
			s.Lost++
			at++
		}
	}
	l.n = 0
}
