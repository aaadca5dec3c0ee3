// Package health asks servers whether they are there: OPTIONS for SIP, GET or a connect for HTTP, and tells routing what
// it found (sip-http.md section 10, SH-1 and SH-2).
//
// One probe: the goroutine of a server, protocol and local socket wakes at its jittered interval, or at once when
// traffic failed for the first time (Suspect); it makes one exchange, bounded by its time-out; the tracker counts hits
// and misses; an edge goes to the pool. An OPTIONS over UDP leaves by the socket that traffic uses, so the answer comes
// in among traffic and is handed over by Answered; it counts only if branch, Call-ID and source are those of a probe
// that still waits. What comes later, or after the check was replaced, finds nobody and revives nobody.
//
// Run owns all goroutines. Nothing here is on the message path: Suspect, Answered and Unreachable never wait.
package health

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/routing"
)

// Check is one server address to be watched, with this generation's settings.
type Check struct {
	Pool    *routing.Pool
	Server  *routing.Server
	Address routing.Address
	Socket  string // name of the UDP listener whose socket asks; empty where the probe has a connection of its own

	Settings
}

// Settings are the keys of health.active for one protocol. Zero durations and counts stand for the defaults.
type Settings struct {
	Interval     time.Duration // from the start of one probe to the start of the next: 5 s
	DownInterval time.Duration // the same while the server is down: 2 s
	Jitter       int           // percent of the interval it is spread over
	Timeout      time.Duration // for the whole exchange: 2 s
	Fall         int           // misses in a row until it is down: 3
	Rise         int           // hits in a row until a server that is down is up: 2
	OK           []Range       // codes that are alive; none: SIP any final but 503, HTTP 200-399

	Method      string // SIP: OPTIONS
	MaxForwards int    // SIP: 0, so that the server itself answers
	DownOn503   bool   // SIP: treat_503_on_options_as: down

	Path   string  // HTTP: GET it; empty: a TCP connect is the probe
	Host   string  // HTTP: the Host field; empty: the address
	Text   string  // HTTP: must stand in the first 64 KiB of the body
	Drains []Range // HTTP: codes by which the server asks for a drain
}

// Range is a range of status codes, both ends in it.
type Range struct{ From, To int }

func in(list []Range, code int) bool {
	for _, r := range list {
		if code >= r.From && code <= r.To {
			return true
		}
	}
	return false
}

func (s Settings) filled() Settings {
	for _, d := range []struct {
		p   *time.Duration
		def time.Duration
	}{{&s.Interval, 5 * time.Second}, {&s.DownInterval, 2 * time.Second}, {&s.Timeout, 2 * time.Second}} {
		if *d.p <= 0 {
			*d.p = d.def
		}
	}
	if s.Fall <= 0 {
		s.Fall = 3
	}
	if s.Rise <= 0 {
		s.Rise = 2
	}
	if s.Method == "" {
		s.Method = "OPTIONS"
	}
	return s
}

// Sender sends OPTIONS from the sockets that traffic uses. Both methods may be called by many goroutines.
type Sender interface {
	// SendProbe sends one datagram from a listener's socket. It never waits.
	SendProbe(socket string, to netip.AddrPort, b []byte) error
	// SentBy is the host and port that a Via of that listener names.
	SentBy(socket string) string
}

// Answer is what a probe wants to know of a SIP response.
type Answer struct {
	Status     int
	Reason     string
	Branch     string // of the top Via
	CallID     string
	RetryAfter time.Duration // 0: none, or one that cannot be read
}

// Parser reads the SIP response at the start of b, which came over a stream or as a datagram. n is its length; 0 says
// that more octets are needed.
type Parser func(b []byte) (a Answer, n int, err error)

// Result is the outcome of one exchange, in the order of the words of wyegate_server_health_checks_total.
type Result uint8

// The results: ok, busy, fail, timeout.
const (
	OK Result = iota
	Busy
	Fail
	Timeout
)

// Config of a Prober.
type Config struct {
	UDP   Sender // nil: no probe by UDP works
	Parse Parser // nil: no probe by SIP works
	// Dial opens a connection to an address as traffic would, TLS included; nil: TCP by package net.
	Dial func(ctx context.Context, a routing.Address) (net.Conn, error)
	// Result is told each exchange, for metrics. It must not wait.
	Result func(s *routing.Server, p routing.Proto, r Result)
}

// Status is the last answer of one check, as `status` shows it.
type Status struct {
	Pool    string
	Server  string
	Proto   routing.Proto
	Address string
	Socket  string
	At      time.Time
	Took    time.Duration
	Text    string // "200 OK", "timeout", "refused"
	From    string // source of the answer; empty: there was none
	Result  Result
	Why     string // why it counted, or did not: "hit", "hit 1 of 2", "miss 2 of 3"
}
