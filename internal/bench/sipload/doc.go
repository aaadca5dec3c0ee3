// Package sipload plays the two ends around a SIP proxy on UDP: callers behind one socket, servers behind others, all in
// one thread. It measures what the proxy does, and checks that it does it.
//
// One dialog: the caller sends INVITE to the proxy; the server that gets it answers 180 and 200 with the Record-Route it
// received and a Contact of its own; the caller builds its route set from that 200, as RFC 3261 section 12.1.2 says, and
// sends ACK and BYE to the Contact through it; the 200 to the BYE ends it. The state of a unit is a slot whose number
// and generation stand in its Call-ID, so nothing is looked up by name.
//
// In a closed loop a window of units is always under way, and the rate is the proxy's own. In an open loop units begin
// at a given rate, and their latency counts from the moment at which they should have begun.
package sipload

import (
	"encoding"
	"fmt"
	"net/netip"
	"time"
)

// Mode is what one unit of load is.
type Mode int

// The modes, with the messages of a unit that pass the proxy.
const (
	Options Mode = iota // OPTIONS, 200: 2
	Call                // INVITE, 200, ACK, BYE, 200, without Route: 5
	Dialog              // INVITE, 180, 200, then ACK, BYE, 200 through the route set: 6
)

var modes = []struct {
	name     string
	messages int
}{{"options", 2}, {"call", 5}, {"dialog", 6}}

// String is the name of the mode.
func (m Mode) String() string { return modes[m].name }

// Messages is how many messages of one unit pass the proxy.
func (m Mode) Messages() int { return modes[m].messages }

// MarshalText writes the name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the name.
func (m *Mode) UnmarshalText(b []byte) error {
	for i, known := range modes {
		if known.name == string(b) {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("sipload: no mode %q", b)
}

var _ encoding.TextUnmarshaler = (*Mode)(nil)

// Load is one run.
type Load struct {
	Proxy    netip.AddrPort
	Mode     Mode
	Window   int           // units under way at most; 0: 64
	Rate     float64       // units a second; 0: a closed loop
	Time     time.Duration // after this no unit begins
	Patience time.Duration // after this a unit is lost; 0: 2 s
}

// Result is what a run has shown.
type Result struct {
	Units    int     `json:"units"`    // that ended as they should
	Messages int     `json:"messages"` // of these, through the proxy
	Lost     int     `json:"lost"`     // units that did not end in time, or were refused
	Moved    int     `json:"moved"`    // messages that reached another server than the first one of their unit
	Unlike   int     `json:"unlike"`   // messages that came out of the proxy as they should not: Via, Route
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"rate"` // messages a second
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	P999     float64 `json:"p999_us"`
}
