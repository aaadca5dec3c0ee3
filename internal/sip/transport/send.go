package transport

import (
	"errors"
	"net/netip"
)

// Why a message was not taken.
var (
	ErrFlowGone = errors.New("transport: flow is gone")
	ErrFull     = errors.New("transport: write queue is full")
)

// Out is one worker's way out. Datagrams are gathered and leave with Flush; stream messages are copied into the queue of
// their flow at once. Every method copies b before it returns.
type Out struct{}

// Datagram queues b for dst from the listener's socket.
func (o *Out) Datagram(l *Listener, dst netip.AddrPort, b []byte) {}

// OnFlow queues b on a living flow.
func (o *Out) OnFlow(flow uint64, b []byte) error { return ErrFlowGone }

// ToServer queues b on one of the connections to a server (by affinity, a hash of the Call-ID), opening it if there is
// none. It never waits: b waits in the connection's queue while it is opened; a failure comes as a FlowFailed event.
// The listener is the one whose sent-by stands in the Via.
func (o *Out) ToServer(l *Listener, k Kind, dst netip.AddrPort, serverName string, affinity uint32, b []byte) (flow uint64, err error) {
	return 0, ErrFull
}

// Flush sends the gathered datagrams.
func (o *Out) Flush() {}
