package sipproxy

import (
	"math"
	"time"
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

const (
	guardLeast  = 0.02 // some of everything is always admitted, so that the end of an overload is seen
	guardSilent = 0.1  // below this share even refusals cost too much: what is shed is dropped
	guardRise   = 0.1  // back to all of it within seconds
)

// guard sheds new work of one worker while messages wait too long. The worker feeds it once per batch, so that it needs
// no clock and no lock. Its signal is the least wait within an interval in which the queue was never empty: a burst that is
// worked off is no overload, and neither is a worker that a busy machine calls late. Shedding would help neither.
type guard struct {
	share float64       // of the offered work that is admitted
	least time.Duration // wait of this interval
	shedder
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
	g.ends, g.least = now.Add(shedInterval), math.MaxInt64
}

// judge sets the share for the next interval, and from what was offered in this one what is shed of each priority.
func (g *guard) judge(target time.Duration) {
	switch {
	case g.least > target:
		g.share = max(guardLeast, g.share*max(0.5, float64(target)/float64(g.least)))
	default:
		g.share = min(1, g.share+guardRise)
	}
	g.plan(g.share, 1-guardLeast)
}

// loss is the share that is left out in percent, which callers that speak RFC 7339 are told.
func (g *guard) loss() int { return int((1-g.share)*100 + 0.5) }

// silent says that what is shed gets no answer any more.
func (g *guard) silent() bool { return g.share < guardSilent }

// shedding refuses a request that the guard does not admit; false: it goes on.
func (w *worker) shedding(r *request) bool {
	if w.guard.admit(r.priorityOf(w.p.proven), r.d) {
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
