package sipproxy

import (
	"context"
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/sip/transport"
)

// Inbox is what a worker waits on; *transport.Inbox is one.
type Inbox interface {
	// Receive waits for messages and events until a time (zero: for ever). They are lent until the next call; now is
	// one reading of the clock for the whole batch.
	Receive(ctx context.Context, until time.Time) (msgs []transport.Inbound, events []transport.Event, now time.Time)
	// Wait is how long the oldest message of the last batch with messages had waited since the kernel got it.
	Wait() time.Duration
	// Emptied says whether nothing was waiting, at least once since it was asked last.
	Emptied() bool
	// Post hands an event to the worker; false when its queue is full.
	Post(e transport.Event) bool
}

// Sender is a worker's way out; *transport.Out is one. Every method copies b before it returns.
type Sender interface {
	// About says which dialog the datagrams that follow belong to, by a hash of its Call-ID; 0: nobody knows. Datagrams of
	// different dialogs may overtake each other until Flush.
	About(dialog uint32)
	Datagram(l *transport.Listener, dst netip.AddrPort, b []byte)
	OnFlow(flow uint64, b []byte) error
	ToServer(l *transport.Listener, k transport.Kind, dst netip.AddrPort, serverName string, affinity uint32, b []byte) (flow uint64, err error)
	// Alias notes that a client wants requests to an address of its own on its connection, and OnAlias sends there where the
	// client is host; transport.ErrFlowGone: there is no such connection (SX-8).
	Alias(flow uint64, at netip.AddrPort)
	OnAlias(dst netip.AddrPort, host, b []byte) (flow uint64, err error)
	Flush()
}

// Numbers finds out about telephone numbers for rules that resolve them (dcr.md section 14).
type Numbers interface {
	// Ask starts a query, or joins one under way, and calls done once, on a goroutine of its own, when the answer (or
	// the failure) can be read by the rule set's resolver. False: shed, the number counts as failed at once.
	Ask(service string, number []byte, done func()) bool
}

// NextHop is what a URI says of a next hop outwards (RFC 3263 section 4). Host is lent.
type NextHop struct {
	Host   []byte
	Port   uint16         // 0: the URI has none
	Kind   transport.Kind // 0: the URI has none
	Secure bool           // sips: TLS and nothing else
}

// Endpoint is one place that a next hop stands for.
type Endpoint struct {
	Kind transport.Kind
	Addr netip.AddrPort
}

// Names finds the places that a next hop outwards stands for when it is a name (RFC 3263). Requests of servers alone go
// there.
type Names interface {
	// Lookup appends what is known, in the order in which it is to be tried; one seed gives one order. Not known: Ask,
	// and come again. late wants what is there though its time has ended.
	Lookup(dst []Endpoint, h NextHop, seed uint64, late bool) (list []Endpoint, known bool)
	// Ask starts a query and calls done once, on a goroutine of its own. False: it does not.
	Ask(h NextHop, done func()) bool
}

// addrPort is short for what is in every signature.
type addrPort = netip.AddrPort

var (
	_ Inbox  = (*transport.Inbox)(nil)
	_ Sender = (*transport.Out)(nil)
)
