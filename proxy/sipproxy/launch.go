package sipproxy

import (
	"errors"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip/transport"
)

// launch composes and sends. A request too large for UDP goes by TCP where the server has an address for it (SX-9).
func (w *worker) launch(r *request, d *decision, p *pending) error {
	if d.out == nil {
		return errNoWay
	}
	b := w.compose(r, d)
	if d.verb == doServer && d.kind == transport.UDP && len(b) > mtuLimit {
		if a := d.s.address(transport.TCP); a != nil && w.now.After(w.noTCP[hop{transport.TCP, a.addr}]) {
			d.kind, d.addr = a.kind, a.addr
			d.out = r.g.outgoing(r.l, d.kind, d.addr.Addr())
			b = w.compose(r, d)
			if p != nil {
				p.larger, p.dst = true, hop{d.kind, d.addr}
				e := w.mem.at(p.slot)
				e.kind, e.out = d.kind, d.out.Listener.Tag
				w.arm(r, d, p)
			}
		}
	}
	if d.s != nil && d.verb == doServer && d.s.obs != nil {
		count(d.s.obs.Requests[obs.SIP])
	}
	return w.transmit(r, d, p, b)
}

// transmit hands the bytes to the network.
func (w *worker) transmit(r *request, d *decision, p *pending, b []byte) error {
	switch {
	case d.verb == doFlow:
		err := w.port.Out.OnFlow(d.flow, b)
		if p != nil && p.req != nil && err == nil { // where nothing is kept, nothing could be done about its end
			w.sentInto(p, d.flow)
		}
		return err
	case d.kind == transport.UDP:
		w.port.Out.Datagram(d.out.Listener, d.addr, b)
		return nil
	}
	if d.verb == doServer && r.g.self.addr(d.addr) {
		return errNoWay // never to a listener of our own (SV-4)
	}
	if d.verb == doAddress && d.kind == transport.TLS {
		flow, err := w.port.Out.OnAlias(d.addr, d.host, b)
		if !errors.Is(err, transport.ErrFlowGone) {
			if p != nil && flow != 0 {
				w.sentInto(p, flow)
			}
			return err
		}
	}
	flow, err := w.port.Out.ToServer(d.out.Listener, d.kind, d.addr, w.serverName(d), affinity(r.id.callID), b)
	if p != nil && flow != 0 {
		w.sentInto(p, flow)
	}
	return err
}

// sentInto notes the connection that a request waits on.
func (w *worker) sentInto(p *pending, flow uint64) {
	p.flow = flow
	if flow != w.lastFlow {
		w.lastFlow = flow
		w.flows[flow] = struct{}{}
	}
}

func (w *worker) serverName(d *decision) string {
	if d.s != nil {
		if a := d.s.address(d.kind); a != nil {
			return a.host
		}
		return ""
	}
	if d.kind == transport.TLS {
		return string(d.host) // a handshake follows: this allocation is nothing beside it
	}
	return ""
}

var (
	errNoWay      = errors.New("sipproxy: no way there")
	errForeignApp = errors.New("sipproxy: token of an unknown application")
)
