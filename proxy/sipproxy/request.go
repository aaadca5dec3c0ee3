package sipproxy

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
)

// class is what the router must know of a method.
type class uint8

const (
	otherMethod class = iota
	invite
	ack
	cancel
	bye
	options
	register
	subscribe // SUBSCRIBE, REFER, NOTIFY: record-routed like INVITE
)

func classOf(method []byte) class {
	switch string(method) {
	case "INVITE":
		return invite
	case "ACK":
		return ack
	case "CANCEL":
		return cancel
	case "BYE":
		return bye
	case "OPTIONS":
		return options
	case "REGISTER":
		return register
	case "SUBSCRIBE", "REFER", "NOTIFY":
		return subscribe
	}
	return otherMethod
}

// request is one request on its way through a worker, read once: rules, router and explain see the same fields. The
// worker owns one and uses it for request after request.
type request struct {
	in   *transport.Inbound
	m    *sip.Msg
	g    *state
	l    *listener
	now  time.Time
	text []byte // method
	class
	method int // index of the method's counters

	id     identity
	d      uint64
	second uint64 // INVITE, ACK, CANCEL: key of the second index
	hop    hop    // where its responses go

	uri       sip.URI // Request-URI after SR-1
	uriText   []byte
	rewritten bool // uriText is not what was received
	swapped   bool // the Request-URI comes from the last Route value (SR-1a)
	pop       int  // own Route values on top
	routes    int  // Route values, without one that swapped took
	next      sip.URI
	nextText  []byte
	hasNext   bool
	sendBy    *listener // named by the second own entry (SR-5)
	entry     sip.URI   // the first own entry

	tok       proxy.Token
	hasTok    bool
	tokTarget *target // of its server part
	bekey     []byte  // of an older balancer

	inside *server
	passed bool // a Via of ours stands below the top: it passed us before
	looped bool // and with the same routing inputs
	loop   uint32
	retag  bool    // SA-3: the default key takes the To tag in place of the From tag
	other  *answer // what was found out while the request was parked
	gaveUp bool    // no further waiting for numbers
}

// answer is what another worker knew about a dialog (SA-6).
type answer struct {
	target, server uint32
	known          bool
}

// methodKey parts the transactions of one d by method: a CANCEL has its own, though its branch is that of its INVITE.
func methodKey(d uint64, method []byte) uint64 {
	switch string(method) {
	case "INVITE", "ACK":
		return nonZero(d)
	}
	return nonZero(d ^ xxhash.Sum64(method))
}

// read fills the request from a message that was parsed and validated.
func (w *worker) read(r *request, in *transport.Inbound, m *sip.Msg, g *state, now time.Time) {
	*r = request{in: in, m: m, g: g, now: now, l: w.listener(g, in.Listener)}
	r.text = m.Bytes(m.Method)
	r.class = classOf(r.text)
	r.method = obs.SIPMethod(r.text)
	v := &m.Values
	r.uri, r.uriText = v.Target, m.Bytes(m.URI)
	r.inside = g.source(in, r.l)
	w.readRoutes(r)
	w.stripMaddr(r)
	r.id = identity{
		branch: v.Via.Branch, host: v.Via.Host, port: v.Via.Port, topVia: v.Via.Value,
		fromTag: v.FromTag, toTag: v.ToTag, callID: v.CallID, cseq: v.CSeq, uri: m.Bytes(m.URI),
		toInKey: r.class != invite && r.class != ack && r.class != cancel,
	}
	k := g.secrets.Writer()
	r.d, w.buf = r.id.hash(k, w.buf)
	if !r.id.toInKey {
		r.second, w.buf = r.id.second(k, w.buf)
	}
	r.hop = replyHop(in, &v.Via, r.symmetric())
	w.loopHash(r)
	w.readVias(r)
}

// symmetric says that responses go to the port that the request came from whether it asked for that or not: the listener
// wants it so, or a proxy is in between, which knows its client by no other port.
func (r *request) symmetric() bool {
	return r.in.Kind == transport.UDP && (r.l.ForceRport || r.in.Source != r.in.Remote)
}

// replyHop is where the response to a request goes by the Via that we forward (SX-1, SX-2).
func replyHop(in *transport.Inbound, v *sip.ViaValue, force bool) hop {
	src := fold(in.Source)
	port := viaPort(v)
	if _, asked := sip.HeaderParam(v.Params, "rport"); (asked || force) && in.Kind == transport.UDP {
		port = src.Port()
	}
	return hop{in.Kind, netip.AddrPortFrom(src.Addr(), port)}
}

// responseHop computes the same from the Via that is on top of a response once ours is off.
func responseHop(v *sip.ViaValue) (hop, bool) {
	k, ok := viaKind(v.Transport)
	if !ok {
		return hop{}, false
	}
	a, ok := v.ReplyTo()
	if k != transport.UDP {
		a = netip.AddrPortFrom(a.Addr(), viaPort(v))
	}
	return hop{k, fold(a)}, ok
}

func viaPort(v *sip.ViaValue) uint16 {
	if p, ok := sip.ParsePort(v.Port); ok {
		return p
	}
	return sip.DefaultPort(v.Transport)
}

func viaKind(word []byte) (transport.Kind, bool) {
	for k := transport.UDP; k <= transport.WSS; k++ {
		if sip.EqualFold(word, k.String()) {
			return k, true
		}
	}
	return 0, false
}

// readRoutes is SR-1: undo what a strict router did, take all leading own entries off, find the token on the way.
func (w *worker) readRoutes(r *request) {
	var last []byte
	if r.m.Count(sip.Route) > 0 {
		for it := r.m.Addrs(sip.Route); it.Next(); {
			r.routes++
			last = it.Addr.URI
		}
	}
	ownURI := r.g.self.uri(&r.uri)
	if ownURI && r.routes > 0 && w.ourEntry(r, &r.uri) {
		w.token(r, &r.uri, proxy.UseRecordRoute, proxy.UsePath)
		if u, err := sip.ParseURI(last); err == nil {
			r.uri, r.uriText, r.swapped, r.rewritten = u, last, true, true
			r.routes--
		}
	}
	n := 0
	if r.routes > 0 {
		for it := r.m.Addrs(sip.Route); it.Next() && n < r.routes; n++ {
			u, err := sip.ParseURI(it.Addr.URI)
			if err != nil || !r.g.self.uri(&u) {
				r.next, r.nextText, r.hasNext = u, it.Addr.URI, true
				break
			}
			if r.pop++; r.pop > 1 || r.swapped {
				r.sendBy = r.g.named(&u)
			} else {
				r.entry = u
			}
			w.token(r, &u, proxy.UseRecordRoute, proxy.UsePath)
		}
	}
	if !r.hasTok && !r.hasNext && r.g.self.uri(&r.uri) {
		w.token(r, &r.uri, proxy.UseRecordRoute, proxy.UseHTTP)
	}
}

// ourEntry says that a Request-URI of ours is one we put into Record-Route, and not one of an application or a user.
func (w *worker) ourEntry(r *request, u *sip.URI) bool {
	if _, lr := u.Param("lr"); !lr || u.User != nil {
		return false
	}
	for _, name := range r.g.tokenNames {
		if _, has := u.Param(name); has {
			return true
		}
	}
	return false
}

// token reads the token of an own URI; the first valid one counts. What is no token is counted and otherwise as if it
// were not there (SA-2).
func (w *worker) token(r *request, u *sip.URI, uses ...proxy.Use) {
	if r.hasTok {
		return
	}
	text := u.User
	found := false
	for _, name := range r.g.tokenNames {
		if v, has := u.Param(name); has {
			text, found = v, true
			break
		}
	}
	if v, has := u.Param("bekey"); has && r.bekey == nil {
		r.bekey = v
	}
	if len(text) == 0 {
		return
	}
	var err error
	for _, use := range uses {
		if err = w.codec.ReadToken(text, r.g.secrets, use, &r.tok); err == nil {
			break
		}
	}
	if err == nil && r.tok.HasServer {
		if r.tokTarget = r.g.targetTag[r.tok.App]; r.tokTarget == nil {
			err = errForeignApp
		}
	}
	if err == nil {
		r.hasTok = true
		return
	}
	r.tok, r.tokTarget = proxy.Token{}, nil
	if found { // a user part is nearly always just a user
		w.countToken(r, err)
	}
}

// stripMaddr takes a maddr that is us off the Request-URI, and with it a port and a transport that belong to it (SR-1b).
func (w *worker) stripMaddr(r *request) {
	v, has := r.uri.Param("maddr")
	if !has || !r.g.self.host(v, r.uri.Port, secureURI(&r.uri)) {
		return
	}
	out := w.uriBuf[:0]
	out = append(append(out, r.uri.Scheme...), ':')
	if r.uri.User != nil {
		out = append(out, r.uri.User...)
		if r.uri.Password != nil {
			out = append(append(out, ':'), r.uri.Password...)
		}
		out = append(out, '@')
	}
	out = append(out, r.uri.Host...)
	for rest := r.uri.Params; len(rest) > 0; {
		end := bytes.IndexByte(rest[1:], ';') + 1
		if end == 0 {
			end = len(rest)
		}
		name, _, _ := bytes.Cut(rest[1:end], []byte("="))
		if !sip.EqualFold(name, "maddr") && !sip.EqualFold(name, "transport") {
			out = append(out, rest[:end]...)
		}
		rest = rest[end:]
	}
	w.uriBuf = out
	if u, err := sip.ParseURI(out); err == nil {
		r.uri, r.uriText, r.rewritten = u, out, true
	}
}

// loopHash computes the loop hash over what is left after our own edits (SV-4).
func (w *worker) loopHash(r *request) {
	w.route = w.route[:0]
	if r.routes > r.pop {
		n := 0
		for it := r.m.Addrs(sip.Route); it.Next() && n < r.routes; n++ {
			if n < r.pop {
				continue
			}
			if len(w.route) > 0 {
				w.route = append(w.route, ',')
			}
			w.route = appendSolid(w.route, it.Addr.Value)
		}
	}
	in := route{
		uri: r.uriText, route: w.route, fromTag: r.id.fromTag, toTag: r.id.toTag, callID: r.id.callID,
		cseq: r.id.cseq, proxyRequire: r.m.Value(sip.ProxyRequire),
	}
	if !r.id.toInKey {
		in.toTag = nil // the ACK to a non-2xx has a To tag, its INVITE had none, and both have one branch (ST-3)
	}
	r.loop, w.buf = in.hash(r.g.secrets.Writer(), w.buf)
}

// appendSolid appends without white space.
func appendSolid(dst, b []byte) []byte {
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			dst = append(dst, c)
		}
	}
	return dst
}

// readVias looks for Via values of ours among those received: the same hash is a loop, another one a spiral (SV-4), and
// either means that we are not the first tier (SH-3).
func (w *worker) readVias(r *request) {
	top := &r.m.Values.Via
	if r.m.Count(sip.Via) == 1 && len(top.Value) == r.m.First(sip.Via).Value.Len() {
		return // one value, and it has none below it: there is no hop to check a branch of ours against
	}
	var mine sip.ViaValue
	pending := false
	for it := r.m.Vias(); it.Next(); {
		if it.Err != nil {
			return
		}
		if pending {
			h, ok := responseHop(&it.Via)
			var b branch
			if ok && w.branches.read(mine.Branch, r.g.secrets, h, &b) {
				r.passed = true
				r.looped = r.looped || b.loop == r.loop
			}
		}
		pending = ourLength(it.Via.Branch) && r.g.sentBy.host(it.Via.Host, it.Via.Port, false)
		mine = it.Via
	}
}

// ourLength says that a branch is as long as ours are, before anything dearer is asked.
func ourLength(b []byte) bool {
	return len(b) == len(cookie)+(branchFixed+branchMAC)*8/5 || len(b) == len(cookie)+(maxBranch*8+4)/5
}

// trusts says whether trust fields of the request's sender are believed by an application (SS-3).
func (r *request) trusts(t *target) bool {
	if r.inside != nil {
		return true
	}
	a := fold(r.in.Source).Addr()
	for _, p := range t.TrustFrom {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// initial says that the request begins something: no To tag and no valid token of ours.
func (r *request) initial() bool { return len(r.id.toTag) == 0 && !r.hasTok }
