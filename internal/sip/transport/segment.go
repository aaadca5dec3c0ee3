package transport

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	segmentsAtOnce = 64   // the kernel's own bound
	segmentOctets  = 60e3 // of one group: below what one datagram may carry with all headers
	segmentLargest = 1400 // a larger datagram may need fragments, which segmentation does not make
	segmentRefused = 8    // groups that the kernel refused before it is no longer asked
	groupsLookedAt = 16   // open groups that a datagram is compared with
)

// groups gathers the datagrams of one batch that the kernel may take in one piece (UDP_SEGMENT): same destination, same
// length. SIP messages of one kind often are: probes, answers, requests with tokens of one length. Towards one
// destination the order within a dialog stays, and all order around what belongs to no dialog that is known; between
// destinations, and between dialogs, there is none.
type groups struct {
	refused int // on sockets of kernels without it: segmentRefused from the start

	n     int
	of    [batch]uint8 // group of each datagram
	count [batch]uint8
	total [batch]int
	first [batch]uint8  // datagram that began the group
	about [batch]uint64 // dialogs of its datagrams
	hdrs  [batch]mmsghdr
	iovs  [batch]unix.Iovec
	ctl   [batch * segmentCtl]byte
}

// segmentCtl is the control data of a group: the length of its segments.
const segmentCtl = 24

// divide forms the groups of a batch, and says whether that spares anything.
func (g *groups) divide(b *sendBatch) bool {
	if g.refused >= segmentRefused || b.ctl != nil || b.n < 3 {
		return false
	}
	g.n = 0
	for i := range b.n {
		j := g.find(b, i)
		if j < 0 {
			j = g.n
			g.n++
			g.count[j], g.total[j], g.first[j], g.about[j] = 0, 0, uint8(i), 0
		}
		g.of[i] = uint8(j)
		g.count[j]++
		g.total[j] += int(b.iovs[i].Len)
		g.about[j] |= b.about[i]
	}
	if g.n > b.n*3/4 {
		return false
	}
	g.lay(b)
	return true
}

// find gives the group that the datagram may join; -1: it begins one. It never joins a group in front of one of the same
// destination in which its dialog stands: it would overtake.
func (g *groups) find(b *sendBatch, i int) int {
	n, between := b.iovs[i].Len, uint64(0)
	for j := g.n - 1; j >= 0 && j >= g.n-groupsLookedAt && between&b.about[i] == 0; j-- {
		f := int(g.first[j])
		if b.names[f].Port != b.names[i].Port || b.hdrs[f].hdr.Namelen != b.hdrs[i].hdr.Namelen || b.names[f] != b.names[i] {
			continue
		}
		if n == b.iovs[f].Len && n <= segmentLargest && int(g.count[j]) < segmentsAtOnce && g.total[j]+int(n) <= segmentOctets {
			return j
		}
		between |= g.about[j]
	}
	return -1
}

// lay writes the headers of the groups, their pieces one behind the other.
func (g *groups) lay(b *sendBatch) {
	var at [batch]int
	sum := 0
	for j := range g.n {
		at[j] = sum
		f := g.first[j]
		h := &g.hdrs[j].hdr
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&b.names[f])), b.hdrs[f].hdr.Namelen
		h.Iov = &g.iovs[sum]
		h.SetIovlen(int(g.count[j]))
		h.Control = nil
		h.SetControllen(0)
		if g.count[j] > 1 {
			c := (*unix.Cmsghdr)(unsafe.Pointer(&g.ctl[j*segmentCtl]))
			c.Level, c.Type = unix.SOL_UDP, unix.UDP_SEGMENT
			c.SetLen(unix.CmsgLen(2))
			*(*uint16)(unsafe.Pointer(&g.ctl[j*segmentCtl+unix.CmsgLen(0)])) = uint16(b.iovs[f].Len)
			h.Control = &g.ctl[j*segmentCtl]
			h.SetControllen(unix.CmsgSpace(2))
		}
		sum += int(g.count[j])
	}
	for i := range b.n {
		j := g.of[i]
		g.iovs[at[j]] = b.iovs[i]
		at[j]++
	}
}
