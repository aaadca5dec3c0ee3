package policycluster

// State of a member (diameter.md 5.3).
type State uint8

// The states. Only a member that is inactive or unused has no connection past CER/CEA.
const (
	Unused   State = iota // listed and not opened
	Inactive              // no usable connection
	Standby               // connected, without session traffic but that of its own sessions
	Active                // carries session traffic
	Suspect               // owes a DWA
	states
)

// String is the word of diameter.md 0.
func (s State) String() string {
	return [...]string{"unused", "inactive", "standby", "active", "suspect"}[min(s, states-1)]
}

// usable says whether requests of sessions pinned to the member may go there.
func (s State) usable() bool { return s == Standby || s == Active || s == Suspect }

// Cause says why the active role moved, or why a member was lost (diameter.md 5.4).
type Cause uint8

// The causes, in the order of the label values of wyegate_policy_failovers_total.
const (
	Closed          Cause = iota // FIN, RST, DPR received
	CERFailed                    // connect or CER/CEA failed, or another identity than expected
	RequestTimeouts              // max_timeouts in a row, neither DWR nor STR
	DWRTimeouts                  // watchdog
	STRTimeouts                  // str_max_timeouts in a row
	Congestion                   // selection Random only
	DNSRemoved                   // no longer in the answer
	Manual                       // command, mode change
	Causes
)

// String is the metric label.
func (c Cause) String() string {
	return [...]string{
		"closed", "cer_failed", "request_timeouts", "dwr_timeouts", "str_timeouts", "congestion", "dns_removed", "manual",
	}[min(c, Causes-1)]
}

// Change is why a member is in its state: what `policy show` prints as LAST CHANGE.
type Change struct {
	Cause  string `json:"cause"`
	Detail string `json:"detail"`
}

// String joins the two.
func (c Change) String() string {
	if c.Detail == "" {
		return c.Cause
	}
	return c.Cause + ": " + c.Detail
}

// Words of Change beside those of Cause (diameter.md 11.2).
const (
	changeStart     = "start"
	changePicked    = "picked"
	changeConnected = "connected"
	changeBeyond    = "beyond max_connections"
	changeReplaced  = "replaced "
	changeUnlisted  = "not in DNS answer"
)

// Selection is how servers are found and which is active.
type Selection uint8

// The two selections of diameter.md 5.
const (
	Failover Selection = iota
	Random
)

// String is the word of the configuration.
func (s Selection) String() string { return [...]string{"failover", "random"}[s&1] }

// Mode of a cluster among others of a route (diameter.md 5.2).
type Mode uint8

// The modes.
const (
	ModeActive Mode = iota
	ModeStandby
	ModeAlternate
	OutOfService
)

// Modes are the words of the configuration, by Mode.
var Modes = [...]string{"active", "standby", "alternate", "out_of_service"}

// String is the word of the configuration.
func (m Mode) String() string { return Modes[m&3] }

// LoadShare spreads requests over active members.
type LoadShare uint8

// The shares of diameter.md 12.2; least-connections counts what this node sends, and so equals least-pending here.
const (
	ShareNone LoadShare = iota
	RoundRobin
	LeastPending
)
