package transport

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// localPlaces bounds how many peers of wildcard sockets a worker remembers.
const localPlaces = 4096

// localTable remembers through which address of ours each peer of a wildcard socket came in, since an answer has to
// leave from there (SX-2). A worker answers only what came to it, so the table is its own. A peer whose place was taken
// by another gets the kernel's choice of address. It has no memory before the first set.
type localTable struct {
	places []struct {
		remote netip.AddrPort
		local  netip.Addr
	}
}

func (t *localTable) set(remote netip.AddrPort, local netip.Addr) {
	if t.places == nil {
		t.places = make([]struct {
			remote netip.AddrPort
			local  netip.Addr
		}, localPlaces) // once per worker, and only where there is a wildcard socket
	}
	p := &t.places[hashAddr(remote)%localPlaces]
	p.remote, p.local = remote, local
}

func (t *localTable) get(remote netip.AddrPort) netip.Addr {
	if t.places == nil {
		return netip.Addr{}
	}
	if p := &t.places[hashAddr(remote)%localPlaces]; p.remote == remote {
		return p.local
	}
	return netip.Addr{}
}

// hashAddr spreads peers over the places of a table. It is not keyed: whoever collides on purpose loses only the comfort
// that the table gives.
func hashAddr(a netip.AddrPort) uint64 {
	b := a.Addr().As16()
	h := uint64(a.Port())
	for i := 0; i < len(b); i += 8 {
		w := *(*uint64)(unsafe.Pointer(&b[i])) // any order of octets does
		h = (h ^ w) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// pktInfo reads the local address out of the control data of one datagram; invalid when there is none.
func pktInfo(b []byte) netip.Addr {
	for len(b) >= unix.SizeofCmsghdr {
		c := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		n := int(c.Len)
		if n < unix.SizeofCmsghdr || n > len(b) {
			break
		}
		data := b[unix.CmsgLen(0):n]
		switch {
		case c.Level == unix.IPPROTO_IP && c.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			return netip.AddrFrom4((*unix.Inet4Pktinfo)(unsafe.Pointer(&data[0])).Spec_dst)
		case c.Level == unix.IPPROTO_IPV6 && c.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			return netip.AddrFrom16((*unix.Inet6Pktinfo)(unsafe.Pointer(&data[0])).Addr).Unmap()
		}
		b = b[min(unix.CmsgSpace(n-unix.CmsgLen(0)), len(b)):]
	}
	return netip.Addr{}
}

// arrival reads out of the control data when the kernel got a datagram, in nanoseconds; now where it does not say, or
// where its clock was set meanwhile.
func arrival(b []byte, now int64) int64 {
	for len(b) >= unix.SizeofCmsghdr {
		c := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		n := int(c.Len)
		if n < unix.SizeofCmsghdr || n > len(b) {
			break
		}
		data := b[unix.CmsgLen(0):n]
		if c.Level == unix.SOL_SOCKET && c.Type == unix.SCM_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			return min((*unix.Timespec)(unsafe.Pointer(&data[0])).Nano(), now)
		}
		b = b[min(unix.CmsgSpace(n-unix.CmsgLen(0)), len(b)):]
	}
	return now
}

// putPktInfo writes control data that makes a datagram leave from an address of ours, and gives its length. b has at
// least ctlOctets.
func putPktInfo(b []byte, from netip.Addr) int {
	c := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	at := unix.CmsgLen(0)
	if from.Is4() {
		c.Level, c.Type = unix.IPPROTO_IP, unix.IP_PKTINFO
		c.SetLen(unix.CmsgLen(unix.SizeofInet4Pktinfo))
		*(*unix.Inet4Pktinfo)(unsafe.Pointer(&b[at])) = unix.Inet4Pktinfo{Spec_dst: from.As4()}
		return unix.CmsgSpace(unix.SizeofInet4Pktinfo)
	}
	c.Level, c.Type = unix.IPPROTO_IPV6, unix.IPV6_PKTINFO
	c.SetLen(unix.CmsgLen(unix.SizeofInet6Pktinfo))
	*(*unix.Inet6Pktinfo)(unsafe.Pointer(&b[at])) = unix.Inet6Pktinfo{Addr: from.As16()}
	return unix.CmsgSpace(unix.SizeofInet6Pktinfo)
}
