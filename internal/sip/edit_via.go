package sip

import (
	"net/netip"
	"strconv"
)

var (
	lineVia = []byte("Via: ")
	lineEnd = []byte("\r\n")
)

// PushVia puts a Via line of its own with the one value above all received ones (ST-1).
func (e *Edits) PushVia(value []byte) {
	at := e.m.start.End + 2
	if f := e.m.First(Via); f != nil {
		at = f.Line.Start
	}
	e.set(op{at: at, rank: putVia, put: e.text(lineVia, value, lineEnd)})
}

// PopVia takes exactly one Via value away, the top one, whatever line it shares and however it is folded (ST-8). It is
// false when there is none that can be read.
func (e *Edits) PopVia() bool {
	f := e.m.First(Via)
	if f == nil {
		return false
	}
	b := e.m.Bytes(f.Value)
	var v ViaValue
	end, ok := v.parse(b)
	if !ok {
		return false
	}
	next := skipSpace(b, min(end+1, len(b)))
	if next == len(b) {
		e.cut(f.Line)
	} else {
		e.cut(Span{f.Value.Start, f.Value.Start + uint32(next)})
	}
	return true
}

// StampVia writes into the top Via where the request came from: received, and rport when it is asked for (SX-1). src has
// no zone; a v4-mapped address counts as IPv4. With force, rport is written unasked. It gives the address to which a
// response goes by the Via as it is then; false when the top Via cannot be read.
func (e *Edits) StampVia(src netip.AddrPort, force bool) (netip.AddrPort, bool) {
	var s stamp
	if !s.make(e.m, src, force) {
		return netip.AddrPort{}, false
	}
	for _, o := range s.ops[:s.n] {
		o.put = e.text(o.put.Of(s.text[:]))
		if o.rank == replace {
			e.set(o)
		} else {
			e.add(o)
		}
	}
	return s.reply, true
}

// stamp is what SX-1 changes in the top Via: at most two edits, in order.
type stamp struct {
	ops   [2]op // put is a piece of text
	n     int
	text  [96]byte
	used  uint32
	reply netip.AddrPort
}

func (s *stamp) make(m *Msg, src netip.AddrPort, force bool) bool {
	f := m.First(Via)
	if f == nil {
		return false
	}
	v := m.Values.Via
	ok := v.Value != nil // Validate has read it
	if !ok {
		v = ViaValue{}
		_, ok = v.parse(m.Bytes(f.Value))
	}
	if len(v.Host) == 0 {
		return false
	}
	src = netip.AddrPortFrom(src.Addr().Unmap().WithZone(""), src.Port())
	host, isAddr := ParseHost(v.Host)
	received, rport := sourceParams(v.Params)
	hasReceived, hasRport := received.name != nil, rport.name != nil
	wantPort := hasRport || force
	s.reply = netip.AddrPortFrom(src.Addr(), v.sentByPort())
	end := m.at(v.Value) + uint32(len(v.Value))
	if !ok { // parameters that cannot be read: right behind the sent-by is always a place
		hasReceived, hasRport = false, false
		end = m.at(v.Host) + uint32(len(v.Host))
		if v.Port != nil {
			end = m.at(v.Port) + uint32(len(v.Port))
		}
	}
	if wantPort {
		s.reply = src
		at, cut, before := end, uint32(0), ";rport="
		if hasRport && rport.value != nil {
			at, cut, before = m.at(rport.value), uint32(len(rport.value)), ""
		} else if hasRport {
			at, before = m.at(rport.name)+uint32(len(rport.name)), "="
		}
		s.port(at, cut, before, src.Port())
	}
	if wantPort || hasReceived || !isAddr || host != src.Addr() {
		at, cut, before := end, uint32(0), ";received="
		if hasReceived && received.value != nil {
			at, cut, before = m.at(received.value), uint32(len(received.value)), ""
		} else if hasReceived {
			at, before = m.at(received.name)+uint32(len(received.name)), "="
		}
		s.address(at, cut, before, src.Addr())
	}
	if s.n == 2 && s.ops[1].at < s.ops[0].at {
		s.ops[0], s.ops[1] = s.ops[1], s.ops[0]
	}
	return true
}

func (s *stamp) port(at, cut uint32, before string, port uint16) {
	text := append(s.text[s.used:s.used], before...)
	s.put(at, cut, len(strconv.AppendUint(text, uint64(port), 10)))
}

func (s *stamp) address(at, cut uint32, before string, addr netip.Addr) {
	text := append(s.text[s.used:s.used], before...)
	s.put(at, cut, len(addr.AppendTo(text)))
}

// put takes the next n octets of text as one edit. The one without a cut stands, at one place, behind what is there.
func (s *stamp) put(at, cut uint32, n int) {
	r := replace
	if cut == 0 {
		r = putReceived
	}
	s.ops[s.n] = op{at: at, cut: cut, rank: r, put: Span{s.used, s.used + uint32(n)}}
	s.n++
	s.used += uint32(n)
}

// edits gives the edits for splice, n of them. By value: what is stored through a pointer counts as escaping.
func (s *stamp) edits() (list [2]Edit) {
	for i, o := range s.ops[:s.n] {
		list[i] = Edit{o.at, o.cut, o.put.Of(s.text[:])}
	}
	return list
}

// param is one header parameter; value is nil when there is no '='.
type param struct{ name, value []byte }

// sourceParams finds received and rport among the parameters of a Via; the name is nil where there is none.
func sourceParams(b []byte) (received, rport param) {
	for i := 0; i < len(b) && b[i] == ';'; {
		name, value, _, next, ok := nextParam(b, i)
		switch {
		case len(name) == 8 && received.name == nil && EqualFold(name, "received"):
			received = param{name, value}
		case len(name) == 5 && rport.name == nil && EqualFold(name, "rport"):
			rport = param{name, value}
		}
		if !ok {
			break
		}
		i = next
	}
	return received, rport
}

// DefaultPort is the port of a Via or URI that names none, by its transport: 5061 for TLS, 80 and 443 for WebSocket
// (RFC 7118 section 5.2), else 5060.
func DefaultPort(transport []byte) uint16 {
	switch {
	case EqualFold(transport, "TLS"):
		return 5061
	case EqualFold(transport, "WS"):
		return 80
	case EqualFold(transport, "WSS"):
		return 443
	}
	return 5060
}

func (v *ViaValue) sentByPort() uint16 {
	if p, ok := ParsePort(v.Port); ok {
		return p
	}
	return DefaultPort(v.Transport)
}

// Received gives the address of the received parameter, written with brackets or without (SX-13).
func (v *ViaValue) Received() (netip.Addr, bool) {
	received, _ := sourceParams(v.Params)
	return ParseHost(received.value)
}

// ReplyTo gives the address to which a response with this Via on top goes over UDP (SX-2): received with rport, else
// received with the port of the sent-by, else the sent-by. It is false when that is a name. maddr is not looked at.
func (v *ViaValue) ReplyTo() (netip.AddrPort, bool) {
	port := v.sentByPort()
	received, rport := sourceParams(v.Params)
	addr, ok := ParseHost(received.value)
	if !ok {
		addr, ok = ParseHost(v.Host)
		return netip.AddrPortFrom(addr, port), ok
	}
	if n, ok := ParsePort(rport.value); ok {
		port = n
	}
	return netip.AddrPortFrom(addr, port), true
}
