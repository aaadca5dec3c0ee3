package transport

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wyegate/wyegate/internal/sip"
)

const (
	batch     = 64       // datagrams in one system call
	datagram  = 64 << 10 // octets: one more than the largest there is, so none is cut (SX-9)
	ctlOctets = 128      // control data of one datagram: its local address, and when the kernel got it
	maxErrors = 8        // tries of one call, each after an error of the socket was taken off it
)

// mmsghdr is the kernel's struct mmsghdr, which package unix does not have.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// udpSocket is one socket of a UDP endpoint and what it needs to read a batch. Exactly one goroutine reads it: the worker
// whose home it is, or its own reader. Memory of the datagrams is touched by the kernel page by page, as they need it.
type udpSocket struct {
	ep       *endpoint
	hub      *Hub
	index    int // among the sockets of the endpoint
	conn     *net.UDPConn
	rc       syscall.RawConn
	recv     func(fd uintptr) bool // made once: a closure per call would allocate
	v6       bool                  // the socket's family
	segments bool                  // the kernel cuts one piece into datagrams (UDP_SEGMENT)

	// Owned by the reading goroutine.
	reader  *Inbox // the worker that reads, nil for a reader of its own
	wait    bool   // an empty socket may be waited for
	got     int    // datagrams of the last batch
	used    int    // headers that the kernel has written to since rearm
	hdrs    [batch]mmsghdr
	iovs    [batch]unix.Iovec
	names   [batch]unix.RawSockaddrInet6 // large enough for both families
	ctl     []byte                       // batch × ctlOctets on wildcard sockets, else nil
	stamp   [ctlOctets]byte              // control data of the first datagram on other sockets
	bufs    []byte                       // batch × datagram
	touched uint64                       // workers that got something out of this batch
}

func newUDPSocket(ep *endpoint, index int, conn *net.UDPConn) (*udpSocket, error) {
	rc, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &udpSocket{ep: ep, hub: ep.hub, index: index, conn: conn, rc: rc, v6: ep.addr.Addr().Is6(), bufs: make([]byte, batch*datagram), used: batch}
	if ep.wildcard {
		s.ctl = make([]byte, batch*ctlOctets)
	}
	for i := range batch {
		s.iovs[i].Base = &s.bufs[i*datagram]
		s.iovs[i].SetLen(datagram)
		h := &s.hdrs[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&s.names[i]))
		h.Iov = &s.iovs[i]
		h.SetIovlen(1)
	}
	s.recv = s.receive
	var inner error
	if err := rc.Control(func(fd uintptr) { inner = s.options(int(fd)) }); err != nil {
		return nil, err
	}
	return s, inner
}

// options asks for ICMP errors (SX-15), for the time of arrival (sip-http.md section 12.1) and, on a wildcard socket, for the address that each datagram came to (SX-2).
func (s *udpSocket) options(fd int) error {
	_, err := unix.GetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT)
	s.segments = err == nil
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return err
	}
	if s.v6 {
		err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
		if s.ctl != nil {
			err = errors.Join(err, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1))
		}
		return err
	}
	err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
	if s.ctl != nil {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1))
	}
	return err
}

// receive is one recvmmsg; true ends the call of RawConn.Read around it. The call never waits in the kernel, so it is a
// raw one: the scheduler need not be told.
func (s *udpSocket) receive(fd uintptr) bool {
	s.rearm()
	for range maxErrors {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&s.hdrs)), batch, unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0:
			s.got, s.used = int(n), int(n)
			return true
		case errno == unix.EAGAIN && s.reader != nil:
			return !s.reader.mayPark(s)
		case errno == unix.EAGAIN:
			return false
		case errno != unix.EINTR:
			s.drainErrors(int(fd)) // an ICMP error of some destination, not of this socket
		}
	}
	return true // the caller comes again
}

// rearm sets what the last recvmmsg has overwritten in the headers that it used.
func (s *udpSocket) rearm() {
	for i := range s.used {
		h := &s.hdrs[i].hdr
		h.Namelen = unix.SizeofSockaddrInet6
		switch {
		case s.ctl != nil:
			h.Control = &s.ctl[i*ctlOctets]
			h.SetControllen(ctlOctets)
		case i == 0: // the oldest of a batch alone is asked how long it has waited
			h.Control = &s.stamp[0]
			h.SetControllen(ctlOctets)
		}
	}
	s.used = 0
}

// sort looks at each datagram of a batch as little as it can: keep-alives end here, the source's bucket is asked, and
// the Call-ID names the worker (SX-6, SS-5). What belongs to the worker in, which reads its home, goes straight to it.
func (s *udpSocket) sort(now time.Time, in *Inbox) {
	l, rates, nanos := s.ep.current.Load(), s.hub.rates.Load(), now.UnixNano()
	since := nanos
	if h := &s.hdrs[0].hdr; s.got > 0 {
		since = arrival(unsafe.Slice(h.Control, h.Controllen), nanos)
	}
	for i := range s.got {
		b := s.bufs[i*datagram:][:s.hdrs[i].n:datagram]
		remote, local := addrPort(&s.names[i]), s.local(i)
		source := remote
		if len(l.settings.ProxyFrom) > 0 {
			var ok bool
			if b, source, local, ok = l.unwrap(b, remote, local, nanos); !ok {
				s.ep.socket.Stats.BadHeader.Add(1)
				continue
			}
		}
		if len(b) == 0 || b[0] <= '\r' && sip.KeepAlive(b) {
			s.ep.counters.KeepAlives.Add(1)
			continue
		}
		switch {
		case !rates.Allow(source.Addr(), nanos):
			s.ep.counters.Limited.Add(1)
			continue
		case b[0] < 4:
			s.stun(b, source, remote, s.local(i))
			continue
		}
		m := Inbound{Bytes: b, Listener: l, Kind: UDP, Remote: remote, Source: source, Local: local}
		if w := s.hub.workerFor(b, remote); in != nil && w == in.id {
			in.take(&m, since)
		} else if s.hub.put(&m, w, since) {
			s.touched |= 1 << w
		} else {
			s.ep.counters.Dropped.Add(1)
		}
	}
	s.got = 0
	s.hub.wake(s.touched)
	s.touched = 0
}

// local is the address of ours that the i-th datagram came to.
func (s *udpSocket) local(i int) netip.AddrPort {
	if s.ctl == nil {
		return s.ep.addr
	}
	h := &s.hdrs[i].hdr
	if a := pktInfo(s.ctl[i*ctlOctets:][:h.Controllen]); a.IsValid() {
		return netip.AddrPortFrom(a, s.ep.addr.Port())
	}
	return s.ep.addr
}

// addrPort reads a socket address of either family; v4-mapped ones become IPv4 (SX-13).
func addrPort(n *unix.RawSockaddrInet6) netip.AddrPort {
	if n.Family == unix.AF_INET {
		n4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(n))
		return netip.AddrPortFrom(netip.AddrFrom4(n4.Addr), swap16(n4.Port))
	}
	return netip.AddrPortFrom(netip.AddrFrom16(n.Addr).Unmap(), swap16(n.Port))
}

// putAddr writes a socket address for a socket of the given family and gives its length; 0: the family does not fit.
func putAddr(n *unix.RawSockaddrInet6, a netip.AddrPort, v6 bool) uint32 {
	if ip := a.Addr(); ip.Is4() && !v6 {
		n4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(n))
		*n4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: swap16(a.Port()), Addr: ip.As4()}
		return unix.SizeofSockaddrInet4
	} else if ip.Is6() && v6 {
		*n = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: swap16(a.Port()), Addr: ip.As16()}
		return unix.SizeofSockaddrInet6
	}
	return 0
}

// swap16 turns a port between the wire's order and ours.
func swap16(p uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&p))
	return uint16(b[0])<<8 | uint16(b[1])
}

// settle makes the socket the home of its worker when that has none, as after a reload that closed the one it had.
func (s *udpSocket) settle() bool {
	in := s.hub.inboxes[s.index%len(s.hub.inboxes)]
	if in.home.Load() != nil || !in.home.CompareAndSwap(nil, s) {
		return false
	}
	in.notify()
	return true
}

// run reads the socket on a goroutine of its own, for sockets that are no worker's home.
func (s *udpSocket) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetReadDeadline(past) })
	defer stop()
	s.reader, s.wait = nil, true
	for !s.settle() && ctx.Err() == nil {
		err := s.rc.Read(s.recv)
		if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if s.got > 0 {
			s.sort(time.Now(), nil)
		}
	}
}
