package sipproxy

import (
	"math"
	"time"

	"github.com/wyegate/wyegate/internal/sip"
)

// Overload is limits.sip.overload: what happens when messages wait too long between socket and worker.
type Overload struct {
	Target     time.Duration // longest wait; 0: 50 ms
	Status     int           // of a refusal; 0: 503
	RetryAfter time.Duration // 0: 5 s
	Jitter     time.Duration // up to this much more, the same for every copy
}

func (o Overload) withDefaults() Overload {
	if o.Target <= 0 {
		o = Overload{Target: 50 * time.Millisecond, Status: 503, RetryAfter: 5 * time.Second, Jitter: 10 * time.Second}
	}
	return o
}

// priority is the order in which work is shed, the first first (sip-http.md 12.2).
type priority uint8

const (
	foreignOptions priority = iota
	newRegister
	newOther
	newInvite
	inDialog // and Resource-Priority
	emergency
	priorities
	neverShed = priorities // ACK, CANCEL, BYE; answers and copies of what was admitted never come here
)

const (
	guardInterval = 500 * time.Millisecond
	guardLeast    = 0.02 // some of everything is always admitted, so that the end of an overload is seen
	guardSilent   = 0.1  // below this share even refusals cost too much: what is shed is dropped
	guardRise     = 0.1  // back to all of it within seconds
)

// guard sheds new work of one worker while messages wait too long. The worker feeds it once per batch, so that it needs
// no clock and no lock. Its signal is the least wait within an interval in which the queue was never empty: a burst that is
// worked off is no overload, and neither is a worker that a busy machine calls late. Shedding would help neither.
type guard struct {
	share   float64 // of the offered work that is admitted
	ends    time.Time
	least   time.Duration // of this interval
	offered [priorities]uint32
	shed    [priorities]uint32 // a request whose hash lies below is shed
}

// note takes the wait of a batch; emptied says that nothing waited, at least once since the batch before.
func (g *guard) note(now time.Time, wait, target time.Duration, emptied bool) {
	if emptied {
		wait = 0
	}
	g.least = min(g.least, wait)
	if now.Before(g.ends) {
		return
	}
	if !g.ends.IsZero() {
		g.judge(target)
	}
	g.ends, g.least = now.Add(guardInterval), math.MaxInt64
}

// judge sets the share for the next interval, and from what was offered in this one what is shed of each priority.
func (g *guard) judge(target time.Duration) {
	switch {
	case g.least > target:
		g.share = max(guardLeast, g.share*max(0.5, float64(target)/float64(g.least)))
	default:
		g.share = min(1, g.share+guardRise)
	}
	total := 0.0
	for _, n := range g.offered {
		total += float64(n)
	}
	left := (1 - g.share) * total
	for p, n := range g.offered {
		take := min(left, float64(n))
		left -= take
		g.shed[p] = 0
		if take > 0 {
			g.shed[p] = uint32(min(take/float64(n), 1-guardLeast) * (1 << 32))
		}
		g.offered[p] = 0
	}
}

// admit counts a request, and says whether it may go on. hash is the same for every copy of a request.
func (g *guard) admit(p priority, hash uint64) bool {
	if p == neverShed {
		return true
	}
	g.offered[p]++
	return uint32(hash>>32) >= g.shed[p]
}

// silent says that what is shed gets no answer any more.
func (g *guard) silent() bool { return g.share < guardSilent }

// priorityOf sorts a request that begins a transaction, from the index alone.
func (r *request) priorityOf() priority {
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
	case r.class == invite:
		return newInvite
	}
	return newOther
}

// shedding refuses a request that the guard does not admit; false: it goes on.
func (w *worker) shedding(r *request) bool {
	if w.guard.admit(r.priorityOf(), r.d) {
		return false
	}
	w.turnedAway.Add(1)
	if w.guard.silent() {
		return true
	}
	d := refuse(r.g.overload.Status, "refused", 'R', 'K')
	d.rest, d.after = true, uint64(r.g.overload.RetryAfter/time.Second)
	if j := uint64(r.g.overload.Jitter / time.Second); j > 0 {
		d.after += r.d % (j + 1)
	}
	w.answer(r, &d)
	return true
}

// Shed is how many requests were refused, or dropped, because messages waited too long.
func (p *Proxy) Shed() uint64 {
	n := uint64(0)
	for _, w := range p.workers {
		n += w.turnedAway.Load()
	}
	return n
}
