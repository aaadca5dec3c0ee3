// Package routing chooses servers: immutable tables over configured members, policies, leases, live keys. It knows no
// protocol, opens nothing and imports nothing of the module.
//
// One choice: a proxy asks Pool.Acquire with a Request (hash of the key, the server a token names, what was tried);
// the pool loads its table once, the policy walks the partition's choices past servers that may not get the message,
// and the Lease that comes back counts on the server until Done, which feeds passive health.
//
// Two things change while a table stands. What was observed of a server and what the operator wants of it sit in the
// Server, which outlives tables and generations (State has the truth table); what follows from all of them together,
// the rank that carries the traffic and whether health is believed at all, is derived again on each such edge and kept
// beside the table. A message reads both and takes no lock, unless its key may be live on another server: then it looks
// into one shard of the bindings.
//
// The package starts no goroutine. Time enters by arguments, by Pool.Tick, which somebody calls a few times a second,
// and by Config.Now on edges; a choice reads no clock.
package routing

import (
	"errors"
	"fmt"
)

// ErrNoServer says that no member of the pool may get the message.
var ErrNoServer = errors.New("routing: no usable server")

// ErrFull is an ErrNoServer: the server of the key has as many messages as max_concurrent allows, and keyed traffic
// does not go elsewhere, since that would split what belongs together (sip-http.md 12.5).
var ErrFull = fmt.Errorf("%w: the key's server is at max_concurrent", ErrNoServer)

// ServiceKind is the kind of an application.
type ServiceKind uint8

// The kinds of operations.md 3.3.
const (
	Converged ServiceKind = iota
	Web
	SIPOnly
)

// Proto names one of a member's addresses.
type Proto uint8

// The protocols a server can be reached by.
const (
	SIP Proto = iota
	HTTP
	numProtos
)

// String is the word of metrics and texts.
func (p Proto) String() string {
	if p == HTTP {
		return "http"
	}
	return "sip"
}

// PolicyKind names a policy.
type PolicyKind uint8

// The policies a pool is asked with. One pool serves both: the request says which.
const (
	HashPolicy   PolicyKind = iota // consistent hash of Request.Hash
	StickyPolicy                   // the server Request.Known names, else round robin
	LeastPolicy                    // least (active+1)/weight, for layer 4
)

// DefaultPolicy is the document "Converged Load Balancing Algorithms" as one pure function.
func DefaultPolicy(kind ServiceKind, proto Proto, haveRules bool) PolicyKind {
	switch {
	case proto == SIP:
		return HashPolicy
	case kind == Converged && haveRules:
		return HashPolicy
	default:
		return StickyPolicy
	}
}

// Request asks a pool for a server.
type Request struct {
	Policy PolicyKind
	Proto  Proto
	Hash   uint64 // xxhash64 of the key; meaningful when HasKey
	HasKey bool
	Known  uint32 // tag of the server that a token, cookie or the memory names; 0: none
	Pinned bool   // Known decides as long as it can serve, in every failback mode
	Recent bool   // Known comes from the memory of a live transaction: it is kept while it takes known traffic
	Avoid  Avoid  // tried already for this request

	// Assume holds tags of servers taken for down: explain asks "and if". Traffic leaves it nil.
	Assume []uint32
}

// Avoid is a small set of server tags. The zero value is empty.
type Avoid struct {
	n    int
	tags [8]uint32
}

// Add puts a tag into the set; beyond eight tags it forgets none and takes no more.
func (a *Avoid) Add(tag uint32) {
	if a.n < len(a.tags) {
		a.tags[a.n] = tag
		a.n++
	}
}

// Has says whether the tag is in the set.
func (a *Avoid) Has(tag uint32) bool {
	for _, t := range a.tags[:a.n] {
		if t == tag {
			return true
		}
	}
	return false
}

// Len is the number of tags in the set.
func (a *Avoid) Len() int { return a.n }

// How says how a lease came to its server: letter 4 of the disposition.
type How uint8

// The ways to a server.
const (
	HowFirst   How = iota // the owner, or next in turn
	HowKnown              // the server that Request.Known named
	HowNext               // a further choice, since the first may not get it
	HowHeld               // the key has live dialogs or sessions there
	HowPanic              // health was ignored
	HowStandby            // a site of higher rank
)

// Outcome of a lease feeds passive health.
type Outcome uint8

// What became of the message on its server.
const (
	OutcomeOK          Outcome = iota // answered, whatever the status
	OutcomeClientFault                // the client's doing; says nothing of the server
	OutcomeRefused                    // connect refused, ICMP unreachable, TLS failure: seen for certain
	OutcomeTimeout                    // no answer, write or connect timeout
	OutcomeServerError                // 503 without Retry-After; 502, 504 of ours by the server's fault
)
