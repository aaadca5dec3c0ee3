package transport

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Why a message was not taken.
var (
	ErrFlowGone = errors.New("transport: flow is gone")
	ErrFull     = errors.New("transport: write queue is full")
	ErrKind     = errors.New("transport: no way to open a connection of this kind")
)

// Out is one worker's way out. Datagrams are gathered and leave with Flush; stream messages are copied into the queue of
// their flow at once. Every method copies b before it returns. Only the worker uses it.
type Out struct {
	hub     *Hub
	in      *Inbox // the same worker's
	about   uint64 // dialog of the datagrams that come, as a bit
	batches []*sendBatch
	servers map[serverKey]*serverConns // those used last, so that a message needs no lock to find its connection
}

// serversKnown bounds the worker's own table of connections to servers.
const serversKnown = 4096

// About says which dialog the datagrams that follow belong to, by any hash of its Call-ID; 0: to one that is not known.
// Between two Flushes the order of datagrams is kept within a dialog, and around those of which the dialog is not known.
func (o *Out) About(dialog uint32) {
	if o.about = anyDialog; dialog != 0 {
		o.about = 1 << (dialog % 64)
	}
}

const anyDialog = ^uint64(0)

// Datagram queues b for dst from the listener's socket, or, where dst is a client that a proxy has named, for that proxy.
// On a wildcard socket it leaves from the address that dst has
// last sent to (SX-2). What can never be right as a destination (SX-3) is dropped and counted.
func (o *Out) Datagram(l *Listener, dst netip.AddrPort, b []byte) {
	if l == nil || l.ep == nil {
		return
	}
	if p := l.ep.proxied.Load(); p != nil {
		dst = p.way(dst, o.in.now.UnixNano())
	}
	sb := o.batchFor(l.ep)
	if sb == nil || !sendable(dst) || !sb.add(dst, b, o.about, o.in) {
		l.ep.counters.NotSent.Add(1)
		return
	}
	o.hub.recent.sent(dst, o.in.now.Unix())
}

// Flush sends the gathered datagrams.
func (o *Out) Flush() {
	for _, sb := range o.batches {
		sb.flush()
	}
}

// batchFor finds the batch of an endpoint. There are as many as this worker has UDP listeners to send from: a few.
func (o *Out) batchFor(ep *endpoint) *sendBatch {
	for i, sb := range o.batches {
		if sb.ep == ep {
			if i > 0 { // the one used last is found first
				o.batches[0], o.batches[i] = sb, o.batches[0]
			}
			return sb
		}
	}
	if len(ep.sockets) == 0 {
		return nil
	}
	o.forget()
	sb := newSendBatch(ep, ep.sockets[o.in.id%len(ep.sockets)])
	o.batches = append(o.batches, sb)
	return sb
}

// forget lets go of batches whose endpoint was closed.
func (o *Out) forget() {
	kept := o.batches[:0]
	for _, sb := range o.batches {
		if !sb.ep.closed.Load() {
			kept = append(kept, sb)
		}
	}
	clear(o.batches[len(kept):])
	o.batches = kept
}

// sendable refuses what no datagram of ours may go to: a message cannot make us a source of broadcasts (SX-3).
func sendable(dst netip.AddrPort) bool {
	a := dst.Addr()
	return dst.Port() != 0 && a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a != broadcast
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// OnFlow queues b on a living flow. A client that reads too slowly, so that its queue is full, loses its connection
// (sip-http.md section 12): the error is ErrFull then, else ErrFlowGone.
func (o *Out) OnFlow(id uint64, b []byte) error {
	f := o.hub.flows.get(id)
	if f == nil {
		return ErrFlowGone
	}
	err := f.enqueue(b, o.in.id)
	if err == ErrFull && !f.outgoing {
		f.close(ErrFull)
	}
	return err
}

// CloseAfter closes a flow once everything queued on it has been written: after the answer to a message behind which
// the stream cannot be framed any more (SX-5). From now on the flow takes nothing.
func (o *Out) CloseAfter(id uint64) {
	if f := o.hub.flows.get(id); f != nil {
		f.drain()
	}
}

// ToServer queues b on one of the connections to a server (by affinity, a hash of the Call-ID; over WebSocket the worker's), opening it if there is
// none. It never waits: b waits in the connection's queue while it is opened; a failure comes as a FlowFailed event.
// The listener is the one whose sent-by stands in the Via. ErrFull is a transport error of that server.
func (o *Out) ToServer(l *Listener, k Kind, dst netip.AddrPort, serverName string, affinity uint32, b []byte) (flow uint64, err error) {
	if l == nil || l.ep == nil {
		return 0, ErrFlowGone
	}
	key := serverKey{ep: l.ep, kind: k, dst: dst, name: serverName}
	slot := affinity % connsPerServer
	if k >= WS {
		slot = uint32(o.in.id) % connsPerServer // the connections that are kept
	}
	if c := o.servers[key]; c != nil {
		if f := c.flows[slot].Load(); f != nil {
			if err := f.enqueue(b, o.in.id); err != ErrFlowGone {
				return f.id, err
			}
		}
	}
	f, c, err := o.hub.connect(key, slot)
	if err != nil {
		return 0, err
	}
	if len(o.servers) >= serversKnown {
		clear(o.servers)
	}
	o.servers[key] = c
	return f.id, f.enqueue(b, o.in.id)
}

// isPending says that an error of a send belongs to an earlier datagram: ICMP errors of any destination come back from
// the next call, whoever it sends to.
func isPending(errno unix.Errno) bool {
	return errno == unix.ECONNREFUSED || errno == unix.EHOSTUNREACH || errno == unix.ENETUNREACH || errno == unix.EPROTO ||
		errno == unix.ENOPROTOOPT || errno == unix.EHOSTDOWN || errno == unix.EMSGSIZE || errno == unix.EACCES || errno == unix.EOPNOTSUPP
}
