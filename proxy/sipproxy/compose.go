package sipproxy

import (
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
)

// compose writes the request that leaves for a decision: the edits are made anew from the received bytes, so every
// attempt gets the same ones, with only server and branch differing (SR-11).
func (w *worker) compose(r *request, d *decision) []byte {
	e := &w.edits
	e.Reset(r.m)
	e.StampVia(fold(r.in.Source), r.symmetric())
	w.value = w.appendVia(w.value[:0], r, d)
	e.PushVia(w.value)
	e.DecrementHops()
	w.editRoutes(r)
	w.recordRoute(r, d)
	w.editTrust(r, d)
	if r.in.Kind >= transport.WS || r.in.Kind == transport.UDP && d.kind.Reliable() {
		e.Frame() // it came whole; where it goes its length must be said
	}
	w.out = e.Append(w.out[:0])
	return w.out
}

// appendVia writes our Via: the advertised address of the outgoing listener, the transport really used, the branch, and
// to servers the offers of SX-8 and SH-4.
func (w *worker) appendVia(dst []byte, r *request, d *decision) []byte {
	dst = append(dst, "SIP/2.0/"...)
	dst = append(dst, d.kind.String()...)
	dst = append(dst, ' ')
	dst = append(dst, d.out.sent...)
	dst = append(dst, ";branch="...)
	dst = w.appendBranch(dst, r, d.serverTag())
	if d.verb == doServer {
		if d.kind != transport.UDP && d.kind != transport.TCP { // a way back that the server has no other of (RFC 5923 section 5)
			dst = append(dst, ";alias"...)
		}
		dst = append(dst, offer...)
	}
	return dst
}

func (w *worker) appendBranch(dst []byte, r *request, server uint32) []byte {
	b := branch{d: r.d, server: server, listener: r.l.Listener.Tag, loop: r.loop}
	if r.in.Kind.Reliable() {
		b.hasFlow, b.flow = true, r.in.Flow
	}
	return w.branches.append(dst, r.g.secrets, &b, r.hop)
}

func (d *decision) serverTag() uint32 {
	if d.verb == doServer && d.s != nil {
		return d.s.tag
	}
	return 0
}

// editRoutes takes own Routes off, undoes a strict router before us and prepares for one behind us.
func (w *worker) editRoutes(r *request) {
	e := &w.edits
	if r.swapped {
		e.DropLastRoute()
	}
	pop := r.pop
	uri := r.uriText
	if r.hasNext && r.next.SIP() {
		if _, lr := r.next.Param("lr"); !lr { // SR-3
			e.AppendRoute(uri)
			pop++
			uri = r.nextText
		}
	}
	if pop > 0 {
		e.PopRoutes(pop)
	}
	if r.rewritten || pop > r.pop {
		e.SetRequestURI(uri)
	}
}

// recordRoute is SR-4 to SR-6: our entry, or a pair of them where the two sides differ in socket, or a Path.
func (w *worker) recordRoute(r *request, d *decision) {
	switch r.class {
	case invite, subscribe:
		if d.t == nil || d.t.NoRecordRoute {
			return
		}
		tok := w.dialogToken(r, d)
		w.token2 = w.codec.AppendToken(w.token2[:0], r.g.secrets, proxy.UseRecordRoute, &tok)
		w.edits.AddRecordRoute(w.entry(d.out, d.t, r.uri.Secure()))
		if d.out != r.l {
			w.edits.AddRecordRoute(w.entry(r.l, d.t, r.uri.Secure()))
		}
	case register:
		if r.inside != nil || !r.l.PathHeader || d.t == nil || !supportsPath(r.m) {
			return
		}
		tok := w.flowPart(r, d)
		w.token2 = w.codec.AppendToken(w.token2[:0], r.g.secrets, proxy.UsePath, &tok)
		v := w.entry(r.l, d.t, r.uri.Secure())
		if r.l.Outbound {
			v = append(v[:len(v)-1], ";ob>"...)
			w.value = v
		}
		w.edits.AddPath(v)
	}
}

// entry writes "<sip:host:port;transport=x;lr;wg=TOKEN>" of a listener; secure: in a request to a sips URI.
func (w *worker) entry(l *listener, t *target, secure bool) []byte {
	v := append(w.value[:0], '<')
	if secure && l.secure != "" {
		v = append(v, l.secure...)
	} else {
		v = append(v, l.uri...)
	}
	v = append(v, t.param...)
	v = append(v, w.token2...)
	w.value = append(v, '>')
	return w.value
}

func supportsPath(m *sip.Msg) bool {
	for it := m.Tokens(sip.Supported); it.Next(); {
		if sip.EqualFold(it.Token, "path") {
			return true
		}
	}
	return false
}

// dialogToken is what travels in Record-Route (6.3): application, server, key hash, and the other side's flow.
func (w *worker) dialogToken(r *request, d *decision) proxy.Token {
	var tok proxy.Token
	if d.verb == doServer {
		tok = w.flowPart(r, d)
		tok.Server, tok.Hash, tok.HasKey, tok.Pinned = d.s.tag, d.hash, d.hasKey, d.pinned
		if !d.hasKey {
			tok.Hash, tok.HasKey = w.dialogKey(r, d.t), true
		}
	} else {
		tok = w.outwardToken(r, d)
	}
	tok.HasServer, tok.App = true, d.t.Target.Tag
	return tok
}

// outwardToken is the token of a dialog that a server starts outward: that server, pinned, and the key it names.
func (w *worker) outwardToken(r *request, d *decision) proxy.Token {
	var tok proxy.Token
	switch {
	case d.verb == doFlow:
		tok.Flow, tok.FlowID, tok.OnlyFlow = proxy.FlowConnection, d.flow, d.only
	case d.kind == transport.UDP && d.t.FlowTokens:
		udpFlow(&tok, d.out, d.addr)
	}
	if r.hasTok && r.tok.HasServer && r.tokTarget == d.t {
		tok.Server, tok.Hash, tok.HasKey, tok.Pinned = r.tok.Server, r.tok.Hash, r.tok.HasKey, r.tok.Pinned
		return tok
	}
	if r.inside != nil {
		tok.Server = r.inside.tag
	}
	tok.Pinned, tok.HasKey, tok.Hash = true, true, w.dialogKey(r, d.t)
	return tok
}

// flowPart names the way back to who sent the request: a stream client's connection, a UDP client's address where
// flow_tokens says so, another server.
func (w *worker) flowPart(r *request, d *decision) proxy.Token {
	var tok proxy.Token
	switch {
	case r.inside != nil:
		if d.s != nil && r.inside.pool == d.s.pool {
			tok.Flow, tok.Peer = proxy.FlowServer, r.inside.tag
		}
	case r.in.Kind.Reliable():
		tok.Flow, tok.FlowID = proxy.FlowConnection, r.in.Flow
		tok.OnlyFlow = r.in.Kind >= transport.WS || r.l.Outbound && usesOutbound(r.m)
	case d.t.FlowTokens:
		udpFlow(&tok, r.l, fold(r.in.Remote))
	}
	return tok
}

func udpFlow(tok *proxy.Token, l *listener, a addrPort) {
	tok.Flow, tok.Listener, tok.Remote = proxy.FlowUDP4, l.Listener.Tag, a
	if a.Addr().Is6() {
		tok.Flow = proxy.FlowUDP6
	}
}

// usesOutbound says that the UA keeps its flow by RFC 5626: ob or reg-id in its Contact.
func usesOutbound(m *sip.Msg) bool {
	for it := m.Addrs(sip.Contact); it.Next(); {
		if it.Err != nil {
			continue
		}
		if _, has := sip.HeaderParam(it.Addr.Params, "reg-id"); has {
			return true
		}
		if u, err := sip.ParseURI(it.Addr.URI); err == nil {
			if _, ob := u.Param("ob"); ob {
				return true
			}
		}
	}
	return false
}

// editTrust takes off what strangers must not say, and tells the server key and token (dcr.md 5.6, SS-3). A server's own
// fields of tell_server never leave.
func (w *worker) editTrust(r *request, d *decision) {
	if d.t == nil {
		return
	}
	key, token := w.tells(r, d)
	w.takeOff(r, d.t, key, token)
	e := &w.edits
	if key {
		w.value = appendParamChars(w.value[:0], d.key)
		e.Set(d.t.Target.TellKey, w.value)
	}
	if token {
		tok := proxy.Token{HasServer: true, App: d.t.Target.Tag, Server: d.s.tag, Hash: d.hash, HasKey: d.hasKey, Pinned: d.pinned}
		w.value = w.codec.AppendToken(w.value[:0], r.g.secrets, proxy.UseRecordRoute, &tok)
		e.Set(d.t.Target.TellToken, w.value)
	}
}

// tells says which fields of tell_server the request gets.
func (w *worker) tells(r *request, d *decision) (key, token bool) {
	t := d.t.Target
	if d.verb != doServer {
		return false, false
	}
	if t.TellKey != "" && d.key == nil && d.by == "memory" && r.initial() {
		d.key = w.keyFor(r, d.t, nil).Bytes // a copy says what the first one said
	}
	return t.TellKey != "" && d.key != nil, t.TellToken != ""
}

// takeOff removes guarded fields, but for those that get a value of ours: Set puts that in their place.
func (w *worker) takeOff(r *request, t *target, key, token bool) {
	told := t.Target.TellKey != "" || t.Target.TellToken != ""
	trusted := r.trusts(t)
	if trusted && !told {
		return
	}
	for i := range r.m.Fields {
		f := &r.m.Fields[i]
		name := r.m.Bytes(f.Name)
		switch {
		case told && sip.EqualFold(name, t.Target.TellKey):
			if !key {
				w.edits.RemoveName(t.Target.TellKey)
			}
		case told && sip.EqualFold(name, t.Target.TellToken):
			if !token {
				w.edits.RemoveName(t.Target.TellToken)
			}
		case !trusted && t.guarded(r.m, f):
			w.edits.RemoveName(string(name))
		}
	}
}

// appendParamChars escapes everything that is no paramchar of RFC 3261.
func appendParamChars(dst, key []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range key {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			dst = append(dst, c)
		default:
			if inParam[c] {
				dst = append(dst, c)
			} else {
				dst = append(dst, '%', hex[c>>4], hex[c&15])
			}
		}
	}
	return dst
}

// inParam are the marks of param-unreserved and unreserved.
var inParam = func() (t [256]bool) {
	for _, c := range "-_.!~*'()[]/:&+$" {
		t[c] = true
	}
	return t
}()
