package sipproxy

import (
	"crypto/subtle"
	"encoding/binary"
	"net/netip"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
)

const (
	cookie        = "z9hG4bK"
	branchVersion = 1
	branchFixed   = 18 // octets in front of the flow
	branchFlow    = 8
	branchMAC     = 7
	maxBranch     = branchFixed + branchFlow + branchMAC
)

// branch is what our Via branch carries (sip-http.md section 5): all that a response needs to find its way back, and
// which attempt it answers, without any memory of ours.
type branch struct {
	d        uint64 // transaction identity
	server   uint32 // tag of the server; 0 outwards
	listener uint16 // tag of the listener that the request came in on
	loop     uint32 // 24 bits: routing inputs
	hasFlow  bool
	flow     uint64 // connection of a stream client
}

// hop is where the response to a request goes, computed from the Via below ours (SX-2). It is under the MAC of the
// branch: a response can never take us anywhere but to the requester.
type hop struct {
	kind transport.Kind
	addr netip.AddrPort
}

// branchCodec is the memory a worker makes and checks branches in.
type branchCodec struct {
	in    [proxy.MACBlocks]byte
	mac   [16]byte
	block [16]byte
	raw   [maxBranch]byte
}

// append writes the cookie and the branch. The same inputs give the same text on every node and after every restart.
func (c *branchCodec) append(dst []byte, s *proxy.Secrets, b *branch, h hop) []byte {
	k := s.Writer()
	p := c.raw[:0]
	p = append(p, branchVersion<<4|k.Number)
	p = binary.BigEndian.AppendUint64(p, b.d)
	p = binary.BigEndian.AppendUint32(p, b.server)
	p = binary.BigEndian.AppendUint16(p, b.listener)
	p = append(p, byte(b.loop>>16), byte(b.loop>>8), byte(b.loop))
	if b.hasFlow {
		p = binary.BigEndian.AppendUint64(p, b.flow)
	}
	c.seal(k, p, h)
	p = append(p, c.mac[:branchMAC]...)
	dst = append(dst, cookie...)
	return proxy.AppendBase32(dst, p)
}

// read opens a branch value and checks that it was made here, by a node that shares a secret with us, for a requester
// that is answered at h.
func (c *branchCodec) read(text []byte, s *proxy.Secrets, h hop, b *branch) bool {
	if !hasCookie(text) {
		return false
	}
	n, ok := proxy.DecodeBase32(c.raw[:], text[len(cookie):])
	if !ok || n != branchFixed+branchMAC && n != maxBranch || c.raw[0]>>4 != branchVersion {
		return false
	}
	k := s.ByNumber(c.raw[0] & 15)
	if k == nil {
		return false
	}
	p := c.raw[:n-branchMAC]
	c.seal(k, p, h)
	if subtle.ConstantTimeCompare(c.mac[:branchMAC], c.raw[n-branchMAC:n]) != 1 {
		return false
	}
	*b = branch{
		d:        binary.BigEndian.Uint64(p[1:]),
		server:   binary.BigEndian.Uint32(p[9:]),
		listener: binary.BigEndian.Uint16(p[13:]),
		loop:     uint32(p[15])<<16 | uint32(p[16])<<8 | uint32(p[17]),
	}
	if len(p) > branchFixed {
		b.hasFlow, b.flow = true, binary.BigEndian.Uint64(p[branchFixed:])
	}
	return true
}

// seal computes the MAC over octets 0-17, the flow or zeros, and the requester's address.
func (c *branchCodec) seal(k *proxy.Keys, p []byte, h hop) {
	clear(c.in[:])
	copy(c.in[:], p)
	c.in[26] = byte(h.kind)
	binary.BigEndian.PutUint16(c.in[27:], h.addr.Port())
	a := h.addr.Addr().As16()
	copy(c.in[29:45], a[:])
	proxy.CBCMAC(k.Branch, &c.mac, &c.in)
}

// appendToTag writes the To tag of our own answers (ST-6): every retransmission and every node gives the same.
func (c *branchCodec) appendToTag(dst []byte, k *proxy.Keys, d uint64) []byte {
	clear(c.block[:])
	binary.BigEndian.PutUint64(c.block[:], d)
	k.ToTag.Encrypt(c.mac[:], c.block[:])
	return proxy.AppendBase32(dst, c.mac[:8])
}

// ownToTag says whether a tag is the one we give to the transaction d, under any secret in force. The ACK to our own
// answer is known by it.
func (c *branchCodec) ownToTag(tag []byte, s *proxy.Secrets, d uint64) bool {
	var text [16]byte
	for n := range uint8(16) {
		k := s.ByNumber(n)
		if k != nil && string(c.appendToTag(text[:0], k, d)) == string(tag) {
			return true
		}
	}
	return false
}

// hasCookie says whether a branch is one of RFC 3261. A bare cookie is as good as none (ST-2).
func hasCookie(b []byte) bool {
	return len(b) > len(cookie) && sip.EqualFold(b[:len(cookie)], cookie)
}

// identity are the fields that name a transaction (ST-1, ST-2).
type identity struct {
	branch   []byte // of the top Via as received; nil when absent
	host     []byte // sent-by of the top Via
	port     []byte // as written; nil when not
	topVia   []byte // whole first Via value
	fromTag  []byte
	toTag    []byte
	callID   []byte
	cseq     uint32
	uri      []byte // Request-URI as received
	toInKey  bool   // the To tag counts: not for INVITE, ACK and CANCEL
	fallback bool   // set by hash: no cookie
}

// hash gives d. A retransmission, the CANCEL and the ACK to a non-2xx give what their INVITE gave, on every node. buf
// is scratch that comes back grown.
func (id *identity) hash(k *proxy.Keys, buf []byte) (uint64, []byte) {
	buf = append(buf[:0], k.Transaction[:]...)
	id.fallback = !hasCookie(id.branch)
	if !id.fallback {
		buf = append(buf, 'c')
		buf = appendField(buf, id.branch)
		at := len(buf)
		buf = append(buf, 0, 0)
		buf = sip.AppendLower(buf, id.host)
		if id.port != nil {
			buf = append(append(buf, ':'), id.port...)
		}
		setLen(buf, at)
		buf = appendField(buf, id.callID)
		buf = appendNumber(buf, id.cseq)
		return xxhash.Sum64(buf), buf
	}
	buf = append(buf, 'f')
	at := len(buf)
	buf = append(buf, 0, 0)
	for _, c := range id.topVia {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			buf = append(buf, c)
		}
	}
	setLen(buf, at)
	buf = appendField(buf, id.fromTag)
	buf = appendField(buf, id.callID)
	buf = appendNumber(buf, id.cseq)
	buf = appendField(buf, id.uri)
	if id.toInKey {
		buf = appendField(buf, id.toTag)
	}
	return xxhash.Sum64(buf), buf
}

// second gives the key of the memory's second index: an INVITE by Call-ID, From tag and CSeq number (ST-7).
func (id *identity) second(k *proxy.Keys, buf []byte) (uint64, []byte) {
	buf = append(buf[:0], k.Transaction[:]...)
	buf = append(buf, 's')
	buf = appendField(buf, id.callID)
	buf = appendField(buf, id.fromTag)
	buf = appendNumber(buf, id.cseq)
	return nonZero(xxhash.Sum64(buf)), buf
}

// route are the inputs of the loop check after our own edits (SV-4).
type route struct {
	uri          []byte
	route        []byte // what is left of Route, without white space, comma-separated
	fromTag      []byte
	toTag        []byte
	callID       []byte
	cseq         uint32
	proxyRequire []byte
}

// hash gives the 24 bits that stand in the branch.
func (r *route) hash(k *proxy.Keys, buf []byte) (uint32, []byte) {
	buf = append(buf[:0], k.Transaction[:]...)
	buf = append(buf, 'l')
	buf = appendField(buf, r.uri)
	buf = appendField(buf, r.route)
	buf = appendField(buf, r.fromTag)
	buf = appendField(buf, r.toTag)
	buf = appendField(buf, r.callID)
	buf = appendNumber(buf, r.cseq)
	buf = appendField(buf, r.proxyRequire)
	return uint32(xxhash.Sum64(buf)) & 0xffffff, buf
}

// hintKey names one side of a dialog: Call-ID and the tag of that side.
func hintKey(k *proxy.Keys, callID, tag, buf []byte) (uint64, []byte) {
	buf = append(buf[:0], k.Transaction[:]...)
	buf = append(buf, 'h')
	buf = appendField(buf, callID)
	buf = appendField(buf, tag)
	return nonZero(xxhash.Sum64(buf)), buf
}

func nonZero(h uint64) uint64 {
	if h == 0 {
		return 1
	}
	return h
}

// appendField writes a field with its length in front: two octets, big endian.
func appendField(dst, f []byte) []byte {
	dst = append(dst, byte(len(f)>>8), byte(len(f)))
	return append(dst, f...)
}

func appendNumber(dst []byte, n uint32) []byte {
	at := len(dst)
	dst = append(dst, 0, 0)
	dst = strconv.AppendUint(dst, uint64(n), 10)
	setLen(dst, at)
	return dst
}

// setLen writes the length of what was appended behind the two octets at at.
func setLen(b []byte, at int) {
	binary.BigEndian.PutUint16(b[at:], uint16(len(b)-at-2))
}
