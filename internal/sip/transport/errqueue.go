package transport

import (
	"net/netip"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rememberSent is how long after a datagram an ICMP error about its destination is believed (SX-15).
const rememberSent = 32 * time.Second

// errorsAtOnce bounds what one look into an error queue reads.
const errorsAtOnce = 64

// drainErrors reads the socket's error queue (IP_RECVERR) and tells the workers which destinations are unreachable. A
// forged ICMP error only needs our well-known port to be right, so only destinations that we have sent to lately count.
func (s *udpSocket) drainErrors(fd int) {
	var name unix.RawSockaddrInet6
	var ctl [512]byte
	for range errorsAtOnce {
		h := unix.Msghdr{Name: (*byte)(unsafe.Pointer(&name)), Namelen: unix.SizeofSockaddrInet6, Control: &ctl[0]}
		h.SetControllen(len(ctl))
		_, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&h)), unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return
		}
		err, icmp := extendedError(ctl[:h.Controllen])
		if dst := addrPort(&name); icmp && unreachable(err) && s.hub.recent.has(dst, time.Now()) {
			s.ep.counters.Unreachable.Add(1)
			s.hub.tellUnreachable(dst, err)
		}
	}
}

// extendedError finds the kernel's struct sock_extended_err in control data, and says whether ICMP was the cause.
func extendedError(b []byte) (err unix.Errno, icmp bool) {
	for len(b) >= unix.SizeofCmsghdr {
		c := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		n := int(c.Len)
		if n < unix.SizeofCmsghdr || n > len(b) {
			break
		}
		ours := c.Level == unix.IPPROTO_IP && c.Type == unix.IP_RECVERR || c.Level == unix.IPPROTO_IPV6 && c.Type == unix.IPV6_RECVERR
		if data := b[unix.CmsgLen(0):n]; ours && len(data) >= int(unsafe.Sizeof(unix.SockExtendedErr{})) {
			e := (*unix.SockExtendedErr)(unsafe.Pointer(&data[0]))
			return unix.Errno(e.Errno), e.Origin == unix.SO_EE_ORIGIN_ICMP || e.Origin == unix.SO_EE_ORIGIN_ICMP6
		}
		b = b[min(unix.CmsgSpace(n-unix.CmsgLen(0)), len(b)):]
	}
	return 0, false
}

// unreachable says which errors mean that nothing will come from a destination. A message that was too long for the
// path does not: the next one is sent in fragments.
func unreachable(err unix.Errno) bool {
	switch err {
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EHOSTDOWN, unix.ENETDOWN, unix.ENOPROTOOPT, unix.EOPNOTSUPP, unix.EACCES, unix.EPERM:
		return true
	}
	return false
}

// recentPlaces bounds how many destinations are remembered.
const recentPlaces = 1 << 16

// recent remembers to whom datagrams were sent in the last seconds: a word per destination, its hash and the second.
// Where two destinations share a place the later one has it, so an error may be overlooked, never invented. (A second
// destination with the same 48 bits of hash is the exception that costs one probe.)
type recent struct {
	words [recentPlaces]atomic.Uint64
}

// sent is called per datagram; it stores at most once a second per destination.
func (r *recent) sent(dst netip.AddrPort, seconds int64) {
	h := hashAddr(dst)
	word := (h>>16)<<16 | uint64(uint16(seconds))
	if p := &r.words[(h>>20)&(recentPlaces-1)]; p.Load() != word {
		p.Store(word)
	}
}

func (r *recent) has(dst netip.AddrPort, now time.Time) bool {
	h := hashAddr(dst)
	word := r.words[(h>>20)&(recentPlaces-1)].Load()
	age := uint16(now.Unix()) - uint16(word)
	return word>>16 == h>>16 && time.Duration(age)*time.Second <= rememberSent
}
