package sipproxy

import (
	"net/netip"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// fromServer is step 5: a request of a server that is not addressed to us is not balanced. A token that applies names
// the flow or the other server; else Route or Request-URI lead outwards. False: it is addressed to us, and an initial
// request like any other (SR-9).
func (w *worker) fromServer(r *request, x *proxy.Explanation) (decision, bool) {
	if r.hasTok && r.tok.Flow != proxy.FlowNone {
		if d, ok := w.byFlow(r, x); ok {
			return d, true
		}
	}
	u := r.outwardURI()
	if !u.SIP() || r.g.self.uri(u) || !r.hasNext && r.g.serves(u.Host) {
		return decision{}, false
	}
	if s := r.g.nextHop(u); s != nil {
		return w.toMember(r, s, x)
	}
	return w.outwards(r, u, x), true
}

// byFlow follows the flow part of a token (6.3).
func (w *worker) byFlow(r *request, x *proxy.Explanation) (decision, bool) {
	d := decision{by: "flow", rule: -1, t: w.outwardTarget(r), out: r.sendBy}
	switch r.tok.Flow {
	case proxy.FlowServer:
		if r.tokTarget == nil {
			return d, false
		}
		to := r.tok.Server
		if r.inside.tag == to {
			to = r.tok.Peer
		}
		s := r.tokTarget.pool.servers[to]
		if s == nil {
			return d, false
		}
		d.t, d.by, d.source = r.tokTarget, "token", proxy.SourceToken
		d.hash, d.hasKey, d.pinned = r.tok.Hash, r.tok.HasKey, r.tok.Pinned
		req := routing.Request{Known: to, Pinned: true, Hash: d.hash, HasKey: d.hasKey}
		x.Note("token", "names the other server of the dialog")
		if !w.acquire(r, &d, &req, x) {
			return noServer(d), true
		}
		return d, true
	case proxy.FlowConnection:
		d.verb, d.flow, d.only = doFlow, r.tok.FlowID, r.tok.OnlyFlow
		x.Note("flow", "a token names the client's connection")
	case proxy.FlowUDP4, proxy.FlowUDP6:
		d.verb, d.kind, d.addr = doAddress, transport.UDP, r.tok.Remote
		d.out = r.g.tagged(r.tok.Listener, d.kind, d.addr.Addr())
		x.Note("flow", "a token names the client's address")
		if d.out == nil {
			return d, false
		}
	}
	return d, true
}

// outwardTarget is the application that a request of a server is counted for.
func (w *worker) outwardTarget(r *request) *target {
	if r.tokTarget != nil {
		return r.tokTarget
	}
	if r.inside != nil && len(r.inside.pool.targets) > 0 {
		return r.inside.pool.targets[0]
	}
	return nil
}

// outwardURI names the next hop of a request that goes outwards.
func (r *request) outwardURI() *sip.URI {
	if r.hasNext {
		return &r.next
	}
	return &r.uri
}

// outwards resolves the next hop of a server's request.
func (w *worker) outwards(r *request, u *sip.URI, x *proxy.Explanation) decision {
	d := decision{verb: doAddress, by: "outward", rule: -1, t: w.outwardTarget(r), host: u.Host}
	h := hopOf(u)
	list, known := w.endpoints(r, h, false)
	switch {
	case len(u.Port) > 0 && h.Port == 0:
		x.Note("outward", "port 0 is no port")
		return refuse(403, "refused", 'P', 'K')
	case !known && w.p.cfg.Names == nil:
		x.Note("outward", "the next hop is a name and nothing resolves it")
		return refuse(480, "refused", 'P', 'K')
	case !known && r.gaveUp:
		return noServer(d)
	case !known:
		d.verb, d.park, d.name = doPark, parkName, h
		return d
	case len(list) == 0:
		x.Note("outward", "the next hop's name has no address")
		return *unreachableAnswer(&d)
	case !w.pickEndpoint(r, &d, list):
		x.Note("outward", "the next hop is no address for a request (SX-3)")
		return refuse(403, "refused", 'P', 'K')
	}
	x.Note("outward", "a server's request is not balanced: Route or Request-URI lead it")
	return d
}

// endpoints gives the places that a next hop stands for, in the order in which this transaction tries them. They are
// lent until the next call.
func (w *worker) endpoints(r *request, h NextHop, late bool) (list []Endpoint, known bool) {
	if a, isAddr := sip.ParseHost(h.Host); isAddr {
		k, port := h.Kind, h.Port
		switch {
		case h.Secure:
			k = transport.TLS
		case k == 0:
			k = transport.UDP
		}
		if port == 0 {
			port = sip.DefaultPort([]byte(k.String()))
		}
		w.places = append(w.places[:0], Endpoint{k, netip.AddrPortFrom(a, port)})
		return w.places, true
	}
	if w.p.cfg.Names == nil {
		return nil, false
	}
	w.places, known = w.p.cfg.Names.Lookup(w.places[:0], h, r.d, late)
	return w.places, known
}

// pickEndpoint takes the first place that a request may go to and that we have a way to.
func (w *worker) pickEndpoint(r *request, d *decision, list []Endpoint) bool {
	for _, p := range list {
		d.kind, d.addr, d.out = p.Kind, fold(p.Addr), r.sendBy
		if d.out == nil || !d.out.fits(d.kind, d.addr.Addr()) {
			d.out = r.g.outgoing(r.l, d.kind, d.addr.Addr())
		}
		if w.mayDial(r, d) && (len(list) == 1 || d.out.reaches(d.kind, d.addr.Addr())) {
			return true
		}
	}
	return false
}

// reaches says whether a message can leave by the listener's socket, or by a connection that needs none.
func (l *listener) reaches(k transport.Kind, to netip.Addr) bool {
	a := l.Listener.Addr.Addr()
	return k.Reliable() || l.Listener.Kind == k && (a.Unmap().Is4() == to.Is4() || a.IsUnspecified() && a.Is6())
}

// nextEndpoint goes on to the next place that the next hop of a request stands for, when the last one failed before any
// response (SX-14).
func (w *worker) nextEndpoint(r *request, d *decision, p *pending) bool {
	if p != nil && (p.cancelled || p.places >= maxPlaces || w.mem.at(p.slot).phase != sent) {
		return false
	}
	h := hopOf(r.outwardURI())
	list, _ := w.endpoints(r, h, true)
	for i, place := range list {
		if place.Kind == d.kind && fold(place.Addr) == d.addr {
			next := *d
			if !w.pickEndpoint(r, &next, list[i+1:]) {
				return false
			}
			*d = next
			return true
		}
	}
	return false
}

// mayDial is SX-3: no broadcast, multicast or unspecified address, no loopback unless we listen there, never one of our
// own listeners.
func (w *worker) mayDial(r *request, d *decision) bool {
	a := d.addr.Addr()
	if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a == broadcast || d.addr.Port() == 0 || r.g.self.addr(d.addr) {
		return false
	}
	return !a.IsLoopback() || d.out.Listener.Addr.Addr().IsLoopback() || d.out.Listener.Addr.Addr().IsUnspecified()
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// hopOf reads what a URI says of its next hop: maddr stands for the host where it is written (RFC 3263 section 4).
func hopOf(u *sip.URI) NextHop {
	h := NextHop{Host: u.Host, Secure: u.Secure()}
	if v, _ := u.Param("maddr"); len(v) > 0 {
		h.Host = v
	}
	h.Port, _ = sip.ParsePort(u.Port)
	word, _ := u.Param("transport")
	h.Kind, _ = viaKind(word)
	switch {
	case h.Secure && h.Kind == transport.WS:
		h.Kind = transport.WSS
	case h.Secure && h.Kind != 0 && h.Kind != transport.WSS: // its transport is what TLS runs on (RFC 3261 section 26.2.2)
		h.Kind = transport.TLS
	}
	return h
}

// dialogKey is the key of a dialog that a server starts outward: the one it names in the field of tell_server, else its
// default key.
func (w *worker) dialogKey(r *request, t *target) uint64 {
	if name := t.Target.TellKey; name != "" {
		for i := range r.m.Fields {
			f := &r.m.Fields[i]
			if sip.EqualFold(r.m.Bytes(f.Name), name) {
				w.bekey, _ = sip.AppendUnescaped(w.bekey[:0], r.m.Bytes(f.Value))
				return xxhash.Sum64(w.bekey)
			}
		}
	}
	w.view.r, w.view.t = r, t
	return proxy.DefaultKey(&w.view, t.keyParts(), &w.scratch).Hash
}
