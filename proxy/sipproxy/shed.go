package sipproxy

import (
	"time"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
)

// priority is the order in which work is shed, the first first (sip-http.md 12.2).
type priority uint8

const (
	foreignOptions priority = iota
	newRegister
	newOther
	unprovenInvite // its sender's address may be invented
	newInvite
	inDialog // and Resource-Priority
	emergency
	priorities
	neverShed = priorities // ACK, CANCEL, BYE; answers and copies of what was admitted never come here
)

// shedInterval is how long a plan holds; what was offered in one makes the plan of the next.
const shedInterval = 500 * time.Millisecond

// shedder leaves out a share of the requests of one worker, those of least priority first. No lock, no clock.
type shedder struct {
	ends    time.Time
	offered [priorities]uint32
	shed    [priorities]uint32 // a request whose hash lies below is shed
}

// plan sets what is shed of each priority so that share of what was offered remains; of none more than most.
func (s *shedder) plan(share, most float64) {
	total := 0.0
	for _, n := range s.offered {
		total += float64(n)
	}
	left := (1 - share) * total
	for p, n := range s.offered {
		take := min(left, float64(n))
		left -= take
		s.shed[p] = 0
		if take > 0 {
			s.shed[p] = portion(min(take/float64(n), most))
		}
		s.offered[p] = 0
	}
}

// portion is a share as a bound for hashes.
func portion(share float64) uint32 { return uint32(min(share*(1<<32), 1<<32-1)) }

// admit counts a request, and says whether it may go on. hash is the same for every copy of a request.
func (s *shedder) admit(p priority, hash uint64) bool {
	if p == neverShed {
		return true
	}
	s.offered[p]++
	return uint32(hash>>32) >= s.shed[p]
}

// priorityOf sorts a request that begins a transaction, from the index alone. A flood of calls from invented addresses must
// not cost the calls of those who are there: senders over a connection, and hosts that are proven.
func (r *request) priorityOf(p *proven) priority {
	switch {
	case r.class == ack, r.class == cancel, r.class == bye, r.inside != nil && r.class == options:
		return neverShed
	case sip.EqualFold(r.uri.Scheme, "urn"):
		return emergency
	case r.id.toTag != nil || r.m.First(sip.ResourcePriority) != nil:
		return inDialog
	case r.class == options:
		return foreignOptions
	case r.class == register:
		return newRegister
	case r.class == invite && r.in.Kind == transport.UDP && r.inside == nil && !p.has(r.in.Source.Addr()):
		return unprovenInvite
	case r.class == invite:
		return newInvite
	}
	return newOther
}
