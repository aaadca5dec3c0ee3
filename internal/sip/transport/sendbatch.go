package transport

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arena is the memory of one batch of datagrams that wait for Flush.
const arena = 128 << 10

// sendBatch gathers the datagrams of one worker for one socket.
type sendBatch struct {
	ep   *endpoint
	sock *udpSocket
	send func(fd uintptr) bool // made once

	n     int
	used  int
	buf   []byte
	hdrs  [batch]mmsghdr
	iovs  [batch]unix.Iovec
	names [batch]unix.RawSockaddrInet6
	about [batch]uint64 // dialog of each, one bit of it; all bits: any
	ctl   []byte        // batch × ctlOctets on wildcard sockets

	groups groups
}

func newSendBatch(ep *endpoint, s *udpSocket) *sendBatch {
	b := &sendBatch{ep: ep, sock: s, buf: make([]byte, arena)}
	if ep.wildcard {
		b.ctl = make([]byte, batch*ctlOctets)
	}
	for i := range batch {
		h := &b.hdrs[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		h.Iov = &b.iovs[i]
		h.SetIovlen(1)
	}
	b.send = b.write
	if !s.segments {
		b.groups.refused = segmentRefused
	}
	return b
}

// add copies a datagram into the batch; a full batch is sent first. False: it can never be sent from this socket.
func (b *sendBatch) add(dst netip.AddrPort, msg []byte, about uint64, in *Inbox) bool {
	if len(msg) == 0 || len(msg) >= datagram {
		return false
	}
	if b.n == batch || b.used+len(msg) > len(b.buf) {
		b.flush()
	}
	n := putAddr(&b.names[b.n], dst, b.sock.v6)
	if n == 0 {
		return false
	}
	h := &b.hdrs[b.n].hdr
	h.Namelen = n
	if b.ctl != nil {
		h.Control, h.Controllen = nil, 0
		if from := in.locals.get(dst); from.IsValid() {
			h.Control = &b.ctl[b.n*ctlOctets]
			h.SetControllen(putPktInfo(b.ctl[b.n*ctlOctets:], from))
		}
	}
	at := b.used
	b.used += copy(b.buf[at:], msg)
	b.iovs[b.n].Base = &b.buf[at]
	b.iovs[b.n].SetLen(len(msg))
	b.about[b.n] = about
	b.n++
	return true
}

func (b *sendBatch) flush() {
	if b.n == 0 {
		return
	}
	if err := b.sock.rc.Write(b.send); err != nil { // the socket is closed
		b.ep.counters.NotSent.Add(uint64(b.n))
	}
	b.n, b.used = 0, 0
}

// write sends the batch with as few calls as the kernel allows, and never waits: what the socket's buffer does not take
// is dropped and counted, as a network would.
func (b *sendBatch) write(fd uintptr) bool {
	if b.groups.divide(b) {
		b.sendGroups(fd)
	} else {
		b.sendEach(fd, 0, b.n)
	}
	return true
}

// sendGroups sends group by group; one that the kernel does not take goes apart.
func (b *sendBatch) sendGroups(fd uintptr) {
	g := &b.groups
	for at := 0; at < g.n; {
		n, errno := b.call(fd, g.hdrs[at:g.n])
		at += n
		if errno == 0 {
			continue
		}
		if g.count[at] > 1 && errno != unix.EAGAIN && !unreachable(errno) {
			g.refused++
		}
		for i := range b.n {
			if int(g.of[i]) == at {
				b.sendEach(fd, i, i+1)
			}
		}
		at++
	}
}

// sendEach sends some datagrams of the batch as they are.
func (b *sendBatch) sendEach(fd uintptr, at, end int) {
	for at < end {
		n, errno := b.call(fd, b.hdrs[at:end])
		at += n
		switch errno {
		case 0:
		case unix.EAGAIN:
			b.ep.counters.NotSent.Add(uint64(end - at))
			return
		default:
			b.failed(at, errno)
			at++
		}
	}
}

// call sends from the start of hdrs and gives how many went and why no more. An error that belongs to an earlier
// datagram (ICMP errors of any destination come back from the next call) is taken off the socket, and the call repeated.
func (b *sendBatch) call(fd uintptr, hdrs []mmsghdr) (sent int, errno unix.Errno) {
	for range maxErrors {
		var n uintptr
		n, _, errno = unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&hdrs[0])), uintptr(len(hdrs)), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0:
			if int(n) < len(hdrs) {
				b.sock.drainErrors(int(fd)) // it stopped at an error, and has taken that off the socket untold
			}
			return int(n), 0
		case errno == unix.EAGAIN || errno == unix.ENOBUFS:
			return 0, unix.EAGAIN
		case errno == unix.EINTR:
		case isPending(errno):
			b.sock.drainErrors(int(fd))
		default:
			return 0, errno
		}
	}
	return 0, errno
}

// failed reports that the datagram at a place of the batch cannot be sent at all (SX-15).
func (b *sendBatch) failed(at int, errno unix.Errno) {
	b.ep.counters.NotSent.Add(1)
	if unreachable(errno) {
		b.ep.hub.tellUnreachable(addrPort(&b.names[at]), errno)
	}
}
