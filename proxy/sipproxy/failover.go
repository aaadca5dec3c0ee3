package sipproxy

import (
	"errors"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/routing"
)

// failed is a transport error at once (SX-15): the next choice while the request may still move, else an answer. True:
// d is to be tried.
func (w *worker) failed(r *request, d *decision, slot uint32, p *pending, err error) bool {
	if d.verb == doFlow {
		switch {
		case d.only || !errors.Is(err, transport.ErrFlowGone):
		case w.afterFlow(r, d):
			return true
		case d.verb == doPark:
			w.park(r, methodKey(r.d, r.text), d)
			return false
		}
		gone := refuse(430, "flow", 'S', 'C')
		gone.t, gone.source = d.t, d.source
		w.settle(r, slot, &gone)
		return false
	}
	if d.s != nil && p != nil && d.verb == doServer {
		d.lease = routing.Lease{}
		p.lease.Done(routing.OutcomeTimeout)
		if w.nextChoice(r, d, slot, p) {
			return true
		}
	}
	if d.verb == doAddress && w.nextEndpoint(r, d, p) {
		if slot != 0 {
			w.moveAway(w.mem.at(slot), p)
		}
		return true
	}
	w.settle(r, slot, unreachableAnswer(d))
	return false
}

func unreachableAnswer(d *decision) *decision {
	gone := refuse(503, d.by, 'S', 'C')
	gone.rest, gone.t, gone.source, gone.rule = true, d.t, d.source, d.rule
	return &gone
}

// afterFlow goes on by Route or Request-URI when a flow is gone that need not be the only way (6.4). Where that is a name
// which nobody has asked for yet, d says so.
func (w *worker) afterFlow(r *request, d *decision) bool {
	u := r.outwardURI()
	if !u.SIP() || r.g.self.uri(u) {
		return false
	}
	next := w.outwards(r, u, nil)
	if next.verb != doAddress && next.verb != doPark {
		return false
	}
	next.by = d.by
	*d = next
	return d.verb == doAddress
}

// nextChoice finds another server for a request that may move: at most connect.tries of them, each once.
func (w *worker) nextChoice(r *request, d *decision, slot uint32, p *pending) bool {
	if p.cancelled || p.avoid.Len() >= d.t.pool.Tries || !d.hasKey || slot != 0 && w.mem.at(slot).phase != sent {
		return false
	}
	req := routing.Request{Hash: d.hash, HasKey: true, Avoid: p.avoid}
	was := d.s
	next := *d
	next.out, next.kind, next.addr = nil, 0, addrPort{}
	if !w.acquire(r, &next, &req, nil) {
		return false
	}
	if slot != 0 {
		w.moveAway(w.mem.at(slot), p)
	}
	if was != nil && was.obs != nil {
		count(was.obs.Failovers[obs.SIP])
	}
	*d = next
	w.place(r, d)
	return true
}

// moveAway notes the attempt that a request leaves behind; its late responses are known by the server in the branch
// (9.5). The received bytes are kept from here on, those of UDP clients too.
func (w *worker) moveAway(e *entry, p *pending) {
	if p == nil || e.place != toServer && e.place != toAddress {
		return
	}
	p.lease.Done(routing.OutcomeClientFault)
	if len(p.left) < maxLeft { // a failover is rare, and pays for its own memory
		p.left = append(p.left, *w.attemptOf(e, p))
	}
}
