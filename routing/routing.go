// Package routing chooses servers: immutable tables over configured members, policies, leases, live keys. It knows no
// protocol, opens nothing and imports nothing of the module.
//
// One choice: a proxy asks Pool.Acquire with a Request (hash of the key, the server a token names, what was tried);
// the pool loads its table once, the policy walks the partition's choices past servers that may not get the message,
// and the Lease that comes back counts on the server until Done.
package routing

import "errors"

// ErrNoServer says that no member of the pool may get the message.
var ErrNoServer = errors.New("routing: no usable server")

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
