package proxy

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"net/netip"
)

// Use is the carrier a token was made for; a token for one use is none for another.
type Use uint8

// The uses of sip-http.md 6.1.
const (
	UseRecordRoute Use = 1 + iota
	UsePath
	UseHTTP
)

// FlowKind says what the flow part of a token names.
type FlowKind uint8

// The kinds of sip-http.md 6.1.
const (
	FlowNone       FlowKind = iota
	FlowConnection          // a connection by its number
	FlowUDP4                // a remote IPv4 address on one of our sockets
	FlowUDP6                // a remote IPv6 address on one of our sockets
	FlowServer              // another server, by tag
)

// Token is what stands sealed in a Record-Route, a Path, a cookie or a path parameter: server and key, a flow, or both.
type Token struct {
	HasServer bool // application, server and hash are in it
	HasKey    bool
	Pinned    bool
	OnlyFlow  bool // flow gone: 430, never a new connection

	App    uint32
	Server uint32
	Hash   uint64

	Flow     FlowKind
	FlowID   uint64 // FlowConnection
	Listener uint16 // FlowUDP4, FlowUDP6
	Remote   netip.AddrPort
	Peer     uint32 // FlowServer: tag of the server that sent the request
}

// Why a text is no token. The word is the reason label of wyegate_tokens_refused_total.
var (
	ErrTokenMalformed = errors.New("malformed")
	ErrTokenVersion   = errors.New("version")
	ErrTokenSecret    = errors.New("secret")
	ErrTokenMAC       = errors.New("mac")
)

const (
	tokenVersion = 1
	serverPart   = 16
	maxFlowPart  = 20
	tokenMAC     = 8
	maxToken     = 2 + serverPart + maxFlowPart + tokenMAC

	flagServer   = 0x80
	flagKey      = 0x40
	flagPinned   = 0x20
	flagOnlyFlow = 0x10
)

// Codec is the memory a worker seals and opens tokens in, so that the cipher's interface costs no allocation. It must
// not be shared.
type Codec struct {
	in    [MACBlocks]byte
	mac   [16]byte
	block [16]byte
	pad   [16]byte
	raw   [maxToken]byte
}

func flowLen(k FlowKind) (int, bool) {
	switch k {
	case FlowNone:
		return 0, true
	case FlowConnection:
		return 8, true
	case FlowUDP4:
		return 8, true
	case FlowUDP6:
		return 20, true
	case FlowServer:
		return 4, true
	}
	return 0, false
}

// AppendToken seals t for a use and appends its text. The same inputs give the same text on every node.
func (c *Codec) AppendToken(dst []byte, s *Secrets, use Use, t *Token) []byte {
	k := s.Writer()
	b := c.raw[:0]
	flags := byte(t.Flow) & 0x0f
	if t.HasServer {
		flags |= flagServer
	}
	if t.HasKey {
		flags |= flagKey
	}
	if t.Pinned {
		flags |= flagPinned
	}
	if t.OnlyFlow {
		flags |= flagOnlyFlow
	}
	b = append(b, tokenVersion<<4|k.Number, flags)
	if t.HasServer {
		b = binary.BigEndian.AppendUint32(b, t.App)
		b = binary.BigEndian.AppendUint32(b, t.Server)
		h := t.Hash
		if !t.HasKey {
			h = 0
		}
		b = binary.BigEndian.AppendUint64(b, h)
	}
	switch t.Flow {
	case FlowConnection:
		b = binary.BigEndian.AppendUint64(b, t.FlowID)
	case FlowUDP4:
		b = binary.BigEndian.AppendUint16(b, t.Listener)
		a := t.Remote.Addr().As4()
		b = append(b, a[:]...)
		b = binary.BigEndian.AppendUint16(b, t.Remote.Port())
	case FlowUDP6:
		b = binary.BigEndian.AppendUint16(b, t.Listener)
		a := t.Remote.Addr().As16()
		b = append(b, a[:]...)
		b = binary.BigEndian.AppendUint16(b, t.Remote.Port())
	case FlowServer:
		b = binary.BigEndian.AppendUint32(b, t.Peer)
	}
	c.seal(k, use, b, t.HasServer)
	mac := c.mac[:tokenMAC]
	c.mask(k, mac, b[2:])
	b = append(b, mac...)
	return AppendBase32(dst, b)
}

// ReadToken opens a text. The error is one of the ErrToken values; the caller compares App with its own applications.
func (c *Codec) ReadToken(text []byte, s *Secrets, use Use, t *Token) error {
	*t = Token{}
	n, ok := DecodeBase32(c.raw[:], text)
	if !ok || n < 2+tokenMAC {
		return ErrTokenMalformed
	}
	b := c.raw[:n]
	if b[0]>>4 != tokenVersion {
		return ErrTokenVersion
	}
	k := s.ByNumber(b[0] & 15)
	if k == nil {
		return ErrTokenSecret
	}
	flags := b[1]
	fl, ok := flowLen(FlowKind(flags & 0x0f))
	want := 2 + fl + tokenMAC
	if flags&flagServer != 0 {
		want += serverPart
	} else if flags&(flagKey|flagPinned) != 0 {
		return ErrTokenMalformed
	}
	if !ok || n != want {
		return ErrTokenMalformed
	}
	body, mac := b[:n-tokenMAC], b[n-tokenMAC:]
	c.mask(k, mac, body[2:])
	c.seal(k, use, body, flags&flagServer != 0)
	if subtle.ConstantTimeCompare(c.mac[:tokenMAC], mac) != 1 {
		return ErrTokenMAC
	}
	t.HasServer = flags&flagServer != 0
	t.HasKey = flags&flagKey != 0
	t.Pinned = flags&flagPinned != 0
	t.OnlyFlow = flags&flagOnlyFlow != 0
	t.Flow = FlowKind(flags & 0x0f)
	p := body[2:]
	if t.HasServer {
		t.App = binary.BigEndian.Uint32(p)
		t.Server = binary.BigEndian.Uint32(p[4:])
		t.Hash = binary.BigEndian.Uint64(p[8:])
		p = p[serverPart:]
	}
	switch t.Flow {
	case FlowConnection:
		t.FlowID = binary.BigEndian.Uint64(p)
	case FlowUDP4:
		t.Listener = binary.BigEndian.Uint16(p)
		t.Remote = netip.AddrPortFrom(netip.AddrFrom4([4]byte(p[2:6])), binary.BigEndian.Uint16(p[6:]))
	case FlowUDP6:
		t.Listener = binary.BigEndian.Uint16(p)
		t.Remote = netip.AddrPortFrom(netip.AddrFrom16([16]byte(p[2:18])), binary.BigEndian.Uint16(p[18:]))
	case FlowServer:
		t.Peer = binary.BigEndian.Uint32(p)
	}
	return nil
}

// seal computes the MAC over the unmasked token b (octets 0-1, server part, flow part) into c.mac.
func (c *Codec) seal(k *Keys, use Use, b []byte, hasServer bool) {
	clear(c.in[:])
	c.in[0] = byte(use)
	copy(c.in[1:3], b[:2])
	rest := b[2:]
	if hasServer {
		copy(c.in[3:3+serverPart], rest[:serverPart])
		rest = rest[serverPart:]
	}
	copy(c.in[3+serverPart:], rest)
	CBCMAC(k.Token, &c.mac, &c.in)
}

// mask hides server and flow part: XOR with AES(Km, MAC | zeros | block number).
func (c *Codec) mask(k *Keys, mac, p []byte) {
	clear(c.block[:])
	copy(c.block[:tokenMAC], mac)
	for n := byte(0); len(p) > 0; n++ {
		c.block[15] = n
		k.Mask.Encrypt(c.pad[:], c.block[:])
		m := subtle.XORBytes(p, p, c.pad[:])
		p = p[m:]
	}
}
