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
	u := &r.uri
	if r.hasNext {
		u = &r.next
	}
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

// outwards resolves the next hop of a server's request.
func (w *worker) outwards(r *request, u *sip.URI, x *proxy.Explanation) decision {
	d := decision{verb: doAddress, by: "outward", rule: -1, t: w.outwardTarget(r), host: u.Host}
	d.kind = uriKind(u)
	port, _ := portOf(u.Port, secureURI(u))
	addr, isAddr := sip.ParseHost(u.Host)
	d.addr = netip.AddrPortFrom(addr, port)
	if !isAddr {
		if w.p.cfg.Names == nil {
			x.Note("outward", "the next hop is a name and nothing resolves it")
			return refuse(480, "refused", 'P', 'K')
		}
		var known bool
		d.addr, known = w.p.cfg.Names.Lookup(u.Host, port, d.kind)
		if !known {
			if r.gaveUp {
				return noServer(d)
			}
			d.verb, d.park, d.name = doPark, parkName, nameQuery{u.Host, port, d.kind}
			return d
		}
		if !d.addr.IsValid() {
			x.Note("outward", "the next hop's name has no address")
			return *unreachableAnswer(&d)
		}
		d.addr = fold(d.addr)
	}
	d.out = r.sendBy
	if d.out == nil || !d.out.fits(d.kind, d.addr.Addr()) {
		d.out = r.g.outgoing(r.l, d.kind, d.addr.Addr())
	}
	if !w.mayDial(r, &d) {
		x.Note("outward", "the next hop is no address for a request (SX-3)")
		return refuse(403, "refused", 'P', 'K')
	}
	x.Note("outward", "a server's request is not balanced: Route or Request-URI lead it")
	return d
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

// uriKind is the transport that a URI asks for.
func uriKind(u *sip.URI) transport.Kind {
	word, _ := u.Param("transport")
	k, ok := viaKind(word)
	switch {
	case u.Secure() && k == transport.WS:
		return transport.WSS
	case u.Secure() && k != transport.WSS: // its transport is what TLS runs on (RFC 3261 section 26.2.2)
		return transport.TLS
	case ok:
		return k
	}
	return transport.UDP
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
