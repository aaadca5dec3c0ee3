package peer

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/diam/base"
)

// Style is how a watchdog judges silence (diameter.md 2.7).
type Style uint8

// The styles: RFC 3539 with jitter and SUSPECT, or the vendors' fixed interval.
const (
	RFC3539 Style = iota
	Fixed
)

// Watchdog holds the settings of one peer's watchdog.
type Watchdog struct {
	Style        Style
	Interval     time.Duration // 0 with Fixed: no DWR of ours
	Jitter       time.Duration // RFC3539: Interval ± Jitter, drawn anew each time
	AnswerWithin int           // Fixed: percent of Interval
	MaxTimeouts  int           // silent periods until DOWN
	Proving      int           // DWAs that a connection opened again must show
	OnDown       bool          // traffic leaves at DOWN, not at SUSPECT
}

// Duplicate is what a second CER of an open peer meets (diameter.md 2.5).
type Duplicate uint8

// The three ways.
const (
	DuplicateProbe Duplicate = iota
	DuplicateReject
	DuplicateReplace
)

// Timers are the times of a peer (diameter.md 12.2).
type Timers struct {
	Tc             time.Duration // between attempts to connect, ±10 %
	Connect        time.Duration
	Handshake      time.Duration // until CER or CEA
	DuplicateProbe time.Duration
	DPA            time.Duration
	Drain          time.Duration
	ClosingGrace   time.Duration
	QueueWait      time.Duration
	Write          time.Duration
	AfterDPR       [3]time.Duration // by cause of their DPR; 0: never
}

// DefaultTimers are those of diameter.md 12.2.
var DefaultTimers = Timers{
	Tc: 30 * time.Second, Connect: 5 * time.Second, Handshake: 10 * time.Second, DuplicateProbe: time.Second,
	DPA: 5 * time.Second, Drain: 5 * time.Second, ClosingGrace: 5 * time.Second,
	QueueWait: 5 * time.Millisecond, Write: 5 * time.Second,
	AfterDPR: [3]time.Duration{30 * time.Second, 5 * time.Minute, 30 * time.Minute},
}

// DefaultWatchdog is that of RFC 3539.
var DefaultWatchdog = Watchdog{
	Interval: 30 * time.Second, Jitter: 2 * time.Second, AnswerWithin: 25, MaxTimeouts: 2, Proving: 3,
}

// Settings are what peers share by default and each may have of its own.
type Settings struct {
	Timers
	Watchdog        Watchdog
	Duplicate       Duplicate
	Connections     int // most connections at once
	QueueMessages   int
	QueueBytes      int
	MaxPending      int // per connection and direction
	MaxIngressRate  int // messages per second; 0: no bound
	OmitRouteRecord bool
	DPAInFlight     bool // an error in the DPA while messages are in flight
	VerifyHost      bool // TLS: the certificate names the Origin-Host
	RedialAtOnce    bool // the first attempt after a loss does not wait for Tc
}

// DefaultSettings are those of diameter.md 12.2.
var DefaultSettings = Settings{
	Timers: DefaultTimers, Watchdog: DefaultWatchdog, Connections: 1,
	QueueMessages: 4096, QueueBytes: 4 << 20, MaxPending: 16384, VerifyHost: true,
}

// Config is one peer that is known by configuration, or was found by DNS.
type Config struct {
	Name   string // in outputs; also where the identity is not known yet
	Host   string // expected Origin-Host; empty: what the peer shows
	Realm  string // expected Origin-Realm; empty: any
	Dialer Dialer // nil: the peer connects to us
	Local  *base.Node
	Settings
	// Notify learns what happens to the peer, on the machine's goroutine: it must not wait. Nil: nobody does.
	Notify func(Notice)
	// Results learns how its requests end, on readers' goroutines. Nil: nobody does.
	Results Results
	// Lonely says that no other server can do its work: a connection opened again then need not prove itself. Nil: it must.
	Lonely func() bool
	Server bool // counted as side=server; a peer with a Dialer always is
}

// Results learns how the requests that a peer was sent have ended (diameter.md 5.4). It is called on the message path:
// it neither waits nor allocates.
type Results interface {
	// Answered: the answer to a request of this command came, with its Result-Code (0: none was found in it).
	Answered(p *Peer, command, result uint32)
	// TimedOut: none came in time.
	TimedOut(p *Peer, command uint32)
}

// NoticeKind is what happened to a peer.
type NoticeKind uint8

// The kinds. Refused: a connection was not opened (dial, CER, CEA, identity); Down: one that was open has ended.
const (
	Up NoticeKind = iota
	Down
	Refused
	Suspected
	Recovered
	Proving // open again, its proof by DWAs under way
	Proven
	Leaving // a DPR was sent or received: no new requests
	Duplicated
	Queued  // its queue has become full
	Emptied // and is half empty again
)

// Causes of Down and Refused, as diameter.md 5.4 and 13.1 name them.
const (
	CauseFIN      = "fin"
	CauseRST      = "rst"
	CauseWatchdog = "watchdog"
	CauseDPR      = "dpr"      // theirs
	CauseStopped  = "stopped"  // ours
	CauseReplaced = "replaced" // by a newer connection
	CauseFraming  = "framing"
	CauseSlow     = "slow" // a writer made no progress
	CauseDial     = "dial"
	CauseCER      = "cer"
)

// Notice says what happened to a peer.
type Notice struct {
	Peer   *Peer
	Kind   NoticeKind
	Link   *Link // nil where there is none
	Cause  string
	Detail string
	Caps   *base.Capabilities // Up: what the peer showed
	DPR    diam.Cause         // with CauseDPR and Leaving
	Silent time.Duration      // Suspected: since the last message
}

// Rule admits peers that connect to us (diameter.md 12.2 accept).
type Rule struct {
	Host  string // a name, or "*." and the end of one; empty: any
	Realm string // the same
	From  []netip.Prefix
}

// Unknown is what a CER meets that no peer and no rule knows.
type Unknown uint8

// The three ways.
const (
	UnknownReject Unknown = iota
	UnknownDrop
	UnknownAccept
)

// Limits bound what others may open.
type Limits struct {
	MaxMessage  int
	Connections int
	Handshaking int
	PerSource   int
}

// DefaultLimits are those of diameter.md 12.2.
var DefaultLimits = Limits{MaxMessage: 64 << 10, Connections: 4096, Handshaking: 256, PerSource: 64}

// NodeConfig is the whole of a Node.
type NodeConfig struct {
	Local    base.Node
	Addrs    []netip.Addr // Host-IP-Address; empty: that of the connection
	Defaults Settings
	Unknown  Unknown
	Accept   []Rule
	Limits   Limits
	Notify   func(Notice) // all peers', beside their own
	Random   *rand.Rand   // jitter; nil: seeded by the system
	Handler  Handler
}

// Handler gives every open connection somebody who takes its messages.
type Handler interface {
	// Open is called before the first message of a link is delivered, on the machine's goroutine.
	Open(l *Link) Receiver
}

// Receiver takes what is no affair of the peer machine. Message and Flush are called by the reader of the link,
// everything else by its machine.
type Receiver interface {
	// Message has a whole message until it returns.
	Message(h diam.Header, msg []byte)
	// Flush ends what one read has brought.
	Flush()
	// Suspend: no new requests; what is pending goes to another peer, where moved is set.
	Suspend(moved bool)
	// Resume: the link is as good as before.
	Resume()
	// Pending is how many requests wait for an answer of this link.
	Pending() int
	// Closed: the link has ended.
	Closed()
}
