package policycluster

import (
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/resolver"
)

// Identity is a DiameterIdentity with its realm; Host is in lower case.
type Identity struct{ Host, Realm string }

// Disconnect-Cause values a cluster closes with (RFC 6733 5.4.3).
const (
	Rebooting  = 0
	DoNotWant  = 2
	noDPR      = -1
	maxHistory = 20 // answers kept for `policy dns`
)

// Closing says how a connection ends.
type Closing struct {
	DPR   int           // Disconnect-Cause; below 0: no DPR, and what is pending fails over at once
	Drain time.Duration // with DPR: how long requests that wait for an answer may take before it is sent
}

// Abrupt says that there is no DPR.
func (c Closing) Abrupt() bool { return c.DPR < 0 }

// Peers holds the connections. Both methods return without waiting. Each Open is followed by at most one Up and exactly
// one Down of that member, also after Close, and Open is not called again before the Down.
type Peers interface {
	// Open dials once; a connect or CER/CEA that fails is a Down with CERFailed.
	Open(m *Member, to netip.AddrPort)
	Close(m *Member, how Closing)
	// Release moves what is pending at the member to others, or answers 3002; the connection stays.
	Release(m *Member)
}

// Events takes what operators are told (diameter.md 13.2); obs.Events is one.
type Events interface {
	Note(name string, sev obs.Severity, fields map[string]any)
	Raise(name, condition string, sev obs.Severity, fields map[string]any)
	Clear(name, condition string)
}

// Cache keeps the last good answer over a restart. Both are called on the goroutine of Run.
type Cache interface {
	Load() (set resolver.Set, at time.Time, ok bool)
	Store(set resolver.Set, at time.Time)
}

// Config of a cluster. Times of 0 mean 0, not a default: the configuration fills them (diameter.md 12.2).
type Config struct {
	Name      string
	FQDN      string           // asked for; empty: Addresses
	Addresses []netip.AddrPort // literals, by rank
	Selection Selection
	Mode      Mode

	Port       uint16 // 0: of DNS, else 3868
	PortAlways bool   // Port beats SRV

	MaxConnections int // servers wanted
	MonitorLimit   int // of those, connected and watched; Failover only
	HighestWeight  bool
	Share          LoadShare
	KeepRemoved    bool // a healthy server that left DNS stays

	MaxTimeouts, STRMaxTimeouts int  // in a row; 0: never
	SuspectStays                bool // the active one keeps its role while suspect (watchdog.failover_on: down)

	Reconnect, StartWait, DrainTimeout, DryUpTimeout time.Duration
	Revert                                           bool // to a better rank after RevertHold
	RevertHold                                       time.Duration

	Pinning       bool
	Expect        Identity
	OneIdentity   bool          // servers of a site pair share one
	TooBusy       int           // 3004 answers in a row that mean congestion; 0: never
	FullFor       time.Duration // a full pending table that long is congestion
	RechooseAfter time.Duration
	ShortageRetry time.Duration

	DNS   resolver.WatchConfig // Learnt, Failed and Asked are set here
	Cache Cache                // nil: none
	Seed  uint64               // of the node: draws differ between nodes and stay the same on one
	Events
}

// wanted is how many servers `policy list` shows as WANT.
func (c *Config) wanted() int { return c.MaxConnections }

// limit is how many ranks are open at the same time.
func (c *Config) limit() int {
	if c.Selection == Random {
		return c.MaxConnections
	}
	return min(c.MaxConnections, c.MonitorLimit)
}

func (c *Config) port(dns uint16) uint16 {
	switch {
	case c.PortAlways && c.Port != 0:
		return c.Port
	case dns != 0:
		return dns
	case c.Port != 0:
		return c.Port
	}
	return 3868
}
