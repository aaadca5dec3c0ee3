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
	EnumWaiting   map[string]int                         // by service
	OverloadDelay map[string]time.Duration               // by protocol: sip, http
	Shed          map[string][len(OverloadCauses)]uint64 // by protocol: counts of packages that count by themselves
	LogDropped    map[string]uint64                      // by log: access, main
}

// ListenerState is for listeners whose sockets count by themselves. A listener that counts on the children of
// Metrics.HTTPListener or Metrics.SIPListener is left out of State.Listeners.
type ListenerState struct {
	Listener, Transport string
	Connections         int
	Accepted            uint64                  // since the process began
	ParseErrors         [NumParseReasons]uint64 // since the process began; beside what was counted on the children
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
