// Package transport carries SIP messages between sockets and workers: UDP in batches, streams with framing, flows by
// number, bounded queues. It frames and finds the Call-ID, nothing more; what a message means is sipproxy's business.
//
// The way of a message: a worker reads the UDP socket that is its home, or a reader any other socket or stream; keep-alives
// end there, the source's bucket is asked, streams are framed, and the Call-ID names the worker that owns the message. It
// waits in that worker's Inbox until Receive lends it, with others, to the worker; the worker decides, and sends by its own
// Out: datagrams are gathered until Flush, stream messages copied into the queue of their flow, whose writer sends what
// has gathered.
//
// Hub.Run owns the readers of sockets and the connections to servers; accepted connections run inside their listen.Set.
// No worker ever waits here for a connection, a slow peer or another worker; what is full is an error or a counter.
package transport

import (
	"net/netip"

	"github.com/wyegate/wyegate/internal/limit"
	"github.com/wyegate/wyegate/internal/sip"
)

// Kind is a SIP transport; the numbers are those of the branch MAC (sip-http.md section 5).
type Kind uint8

// The transports.
const (
	UDP Kind = 1 + iota
	TCP
	TLS
	WS
	WSS
)

// Reliable says that the transport repeats for itself.
func (k Kind) Reliable() bool { return k != UDP }

// Secure says that it goes through TLS.
func (k Kind) Secure() bool { return k == TLS || k == WSS }

// String is the transport as Via writes it.
func (k Kind) String() string {
	return [...]string{"", "UDP", "TCP", "TLS", "WS", "WSS"}[k]
}

// Listener is one configured listener as messages know it. It lives as long as its socket: a reload that keeps the
// listener keeps the Listener.
type Listener struct {
	Name string
	Tag  uint16 // low 16 bits of xxhash64 of Name
	Kind Kind
	Addr netip.AddrPort // bound

	settings ListenerConfig
	ep       *endpoint // nil in a Listener that no Hub made
	proxies  limit.Exempt
}

// Inbound is one framed message, lent to the worker until its next Receive.
type Inbound struct {
	Bytes    []byte // one message, cut by Content-Length on streams, the datagram as it came on UDP
	Listener *Listener
	Kind     Kind
	Flow     uint64         // the connection's number; 0 on UDP
	Outgoing bool           // the connection was opened by us, towards a server
	Remote   netip.AddrPort // the socket's peer (v4-mapped folded to v4)
	Source   netip.AddrPort // what the PROXY protocol carried, else Remote
	Local    netip.AddrPort // the address of ours that it came to; what the PROXY protocol carried as destination, where it did
	Bad      *sip.Error     // the stream could not be framed here; Bytes is what there was of the head
}

// EventKind tells events apart.
type EventKind uint8

// What a worker learns beside messages.
const (
	FlowClosed  EventKind = iota // Flow is gone, Err says why; told to every worker
	FlowFailed                   // the connection that ToServer asked for was never opened; told to those who asked; Flow, Remote, Err
	Unreachable                  // ICMP error or a failed send on UDP towards Remote; told to every worker
	Call                         // Do wants to run on the worker
	Aged                         // Flow has reached its age; a worker without a transaction open on it runs Do; told to every worker
)

// Event is something that is no message.
type Event struct {
	Kind   EventKind
	Flow   uint64
	Remote netip.AddrPort
	Err    error
	Do     func()
}
