package routing

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Admin is what the operator wants of a server.
type Admin uint32

// The words of operations.md 8.1.
const (
	Ready Admin = iota
	Drain
	Maint
)

// String is the word of metrics and texts.
func (a Admin) String() string {
	return [...]string{"ready", "drain", "maint", "?"}[a&3]
}

// Health is what was observed of a server.
type Health uint32

// Busy is up but wants no new traffic (shown as draining); an ejected server is Down with a reason.
const (
	Unknown Health = iota
	Up
	Busy
	Down
)

// String is the word of metrics: Busy is shown as draining. An ejected server is Down here; State.Word tells.
func (h Health) String() string {
	return [...]string{"unknown", "up", "draining", "down"}[h&3]
}

// Address is one way to a member.
type Address struct {
	Proto     Proto
	Transport string         // "udp", "tcp", "tls", "ws", "wss" for SIP; "tcp", "tls" for HTTP
	Addr      netip.AddrPort // resolved
	Host      string         // as configured, for names and TLS
}

// Server outlives generations: name, states and counts of one server of one pool.
type Server struct {
	Name string
	Pool string
	Tag  uint32 // low 32 bits of xxhash64 of Name
	State

	active    atomic.Int64
	live      [numLive]atomic.Int64
	liveKeys  atomic.Int64
	ejections [numProtos][numEjects]atomic.Int64

	failures [numProtos]atomic.Int32  // in a row, without a success between
	ramp     [numProtos]atomic.Uint32 // slow start: what of its partitions is still held back, of 2^32; 0: nothing
	backAt   [numProtos]atomic.Int64  // when it last came back to use, Unix nanoseconds; 0: it was never away

	shared *shared // what its pool's generations have in common; nil in a Server that no Registry made

	mu     sync.Mutex // taken on edges only, a leaf; guards detail and the writing of State
	detail [numProtos]detail
	intent intent
}

// detail is what edges leave behind for those who ask.
type detail struct {
	since      time.Time
	cause      string
	ejectUntil time.Time
	holdUntil  time.Time
}

type intent struct {
	since time.Time
	cause string
}

// Live is a kind of what keeps a draining server busy.
type Live uint8

// The kinds that a drain counts down, each with its gauge.
const (
	Dialogs Live = iota
	Sessions
	WebSockets
	numLive
)

// EjectCause says why a server was taken out, or given a rest.
type EjectCause uint8

// The causes of wyegate_server_ejections_total, in the order of its words.
const (
	EjectRefused     EjectCause = iota // connect refused, ICMP unreachable, TLS failure
	EjectTimeout                       // consecutive_failures, the last a silence
	EjectServerError                   // consecutive_failures, the last a 503, or a 502 or 504 by the server's fault
	EjectProbes                        // probes missed
	EjectRetryAfter                    // it asked for a rest
	numEjects
)

// String is the word of the label cause.
func (c EjectCause) String() string {
	return [...]string{"refused", "timeout", "server_error", "probes", "retry_after"}[c]
}

// Tag is the tag of a name: low 32 bits of xxhash64 (sip-http.md 5). 0 is no tag; a configuration in which a name gives
// 0, or two names the same, is refused (WG124).
func Tag(name string) uint32 { return uint32(xxhash.Sum64String(name)) }

// Active is the number of leases out on the server.
func (s *Server) Active() int64 { return s.active.Load() }

// AddLive counts dialogs, sessions or WebSockets that begin (+1) and end (-1) on the server.
func (s *Server) AddLive(k Live, delta int64) { s.live[k].Add(delta) }

// Live is the number of dialogs, sessions or WebSockets on the server; never below zero.
func (s *Server) Live(k Live) int64 { return max(0, s.live[k].Load()) }

// LiveKeys is the number of live keys bound to the server.
func (s *Server) LiveKeys() int64 { return max(0, s.liveKeys.Load()) }

// Ejections counts how often the server was taken out, by protocol and cause.
func (s *Server) Ejections(p Proto, c EjectCause) int64 { return s.ejections[p][c].Load() }

// SlowStart is the share of its own partitions the server gets now for a protocol, 0 to 1.
func (s *Server) SlowStart(p Proto) float64 {
	return 1 - float64(s.ramp[p].Load())/(1<<32-1)
}

// HealthDetail is the last change of health for people.
type HealthDetail struct {
	Health  Health
	Ejected bool      // Down by passive health
	Refused bool      // its last connect was refused
	Held    bool      // it asked for a rest (Retry-After)
	Since   time.Time // of the last change; zero: never changed
	Cause   string    // of the last change: "503×4", "refused", "timeout"
}

// Detail gives the last change of health for a protocol.
func (s *Server) Detail(p Proto) HealthDetail {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.word(p)
	d := &s.detail[p]
	return HealthDetail{
		Health: w.health(), Ejected: w&ejected != 0, Refused: w&refused != 0, Held: w&held != 0,
		Since: d.since, Cause: d.cause,
	}
}

// Intent gives the admin state with the time and the cause of its last change (who set it, or "file").
func (s *Server) Intent() (a Admin, since time.Time, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Admin(), s.intent.since, s.intent.cause
}
