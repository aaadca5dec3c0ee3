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
	in   *Inbox                // the worker, while flush runs

	n     int
	used  int
	buf   []byte
	hdrs  [batch]mmsghdr
	iovs  [batch]unix.Iovec
	names [batch]unix.RawSockaddrInet6
	ctl   []byte // batch × ctlOctets on wildcard sockets
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
	return b
}

// add copies a datagram into the batch; a full batch is sent first. False: it can never be sent from this socket.
func (b *sendBatch) add(dst netip.AddrPort, msg []byte, in *Inbox) bool {
	if len(msg) == 0 || len(msg) >= datagram {
		return false
	}
	if b.n == batch || b.used+len(msg) > len(b.buf) {
		b.flush(in)
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
	b.n++
	return true
}

func (b *sendBatch) flush(in *Inbox) {
	if b.n == 0 {
		return
	}
	b.in = in
	if err := b.sock.rc.Write(b.send); err != nil { // the socket is closed
		b.ep.counters.NotSent.Add(uint64(b.n))
	}
	b.n, b.used = 0, 0
}

// write sends the batch with as few calls as the kernel allows, and never waits: what the socket's buffer does not take
// is dropped and counted, as a network would.
func (b *sendBatch) write(fd uintptr) bool {
	errs := 0
	for at := 0; at < b.n; {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&b.hdrs[at])), uintptr(b.n-at), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0:
			if at += int(n); at < b.n {
				b.sock.drainErrors(int(fd)) // sendmmsg stopped at an error, and has taken it off the socket untold
			}
			errs = 0
		case errno == unix.EINTR:
		case errno == unix.EAGAIN || errno == unix.ENOBUFS:
			b.ep.counters.NotSent.Add(uint64(b.n - at))
			return true
		case isPending(errno) && errs < maxErrors:
			// Most likely an ICMP error about an earlier destination; reading it off the queue lets this one go.
			errs++
			b.sock.drainErrors(int(fd))
		default:
			b.failed(at, errno)
			at++
			errs = 0
		}
	}
	return true
}

// failed reports that the datagram at a place of the batch cannot be sent at all (SX-15).
func (b *sendBatch) failed(at int, errno unix.Errno) {
	b.ep.counters.NotSent.Add(1)
	if unreachable(errno) {
		b.ep.hub.tellUnreachable(addrPort(&b.names[at]), errno)
	}
}
