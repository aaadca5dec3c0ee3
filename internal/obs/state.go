package obs

import "time"

// State is what the engine knows when a scrape comes. It is asked for once per scrape; nothing of it is kept up to date
// in between.
type State struct {
	Version, Revision, GoVersion string

	Generation    uint64
	Unconfirmed   bool
	LastReloadOK  bool
	LastReloadAt  time.Time // of the last one that was taken
	Listeners     []ListenerState
	Servers       []ServerState
	Pools         []PoolState
	Sites         []SiteState
	Certificates  map[string]time.Time     // by name: when it ends
	EnumWaiting   map[string]int           // by service
	SIPShed       uint64                   // refused or dropped because messages waited too long
	SIPLeft       uint64                   // refused because their server asked for less (RFC 7339)
	OverloadDelay map[string]time.Duration // by protocol: sip, http
}

// ListenerState is what the sockets of a listener count by themselves; counts are those since the process began, and one
// that begins anew may fall.
type ListenerState struct {
	Listener, Protocol, Transport string
	Connections                   int
	Websockets                    int // of SIP: they lead to no server
	Accepted                      uint64
	ParseErrors                   [NumParseReasons]uint64 // beside what was counted on the children
	Shed                          [len(OverloadCauses)]uint64
	Handshakes                    [len(HandshakeResults)]uint64
}

// ServerState is one server of one pool.
type ServerState struct {
	Pool, Server string
	Usable       bool
	Weight       float64           // share of the pool's weight, 0-1
	SlowStart    float64           // 1 outside slow start
	Partitions   int               // that it owns
	Admin        string            // a word of AdminStates
	Health       map[string]string // protocol (of those it has an address for) → a word of HealthStates
	Dialogs      int
	Websockets   map[string]int // by listener
	Drain        *DrainState    // nil unless it drains
}

// DrainState is what a draining server still has.
type DrainState struct {
	Dialogs, Sessions, Websockets int
	Deadline                      time.Time // zero: none
}

// PoolState is one pool.
type PoolState struct {
	Pool   string
	Panic  bool
	Usable float64 // share of the weight, 0-1
}

// SiteState is one site.
type SiteState struct {
	Site    string
	Serving bool
}
