package health

import (
	"fmt"
	"time"

	"github.com/wyegate/wyegate/routing"
)

// outcome is what one exchange came to.
type outcome struct {
	result  Result
	refused bool          // nobody listens there: not even panic sends traffic
	brief   string        // for causes: "503", "timeout", "refused"
	text    string        // for people: "503 Service Unavailable"
	from    string        // source of the answer
	rest    time.Duration // Retry-After of a 503
}

// tracker counts hits and misses in a row and says when they make an edge. It belongs to one goroutine.
type tracker struct {
	state  routing.Health // what probes of this check say
	hits   int
	misses int
}

// seen is what routing says of the server at the moment.
type seen struct {
	health routing.Health
	out    bool // by traffic: ejected, or a refused connect
}

// observe takes one outcome. edge says that health is to be told.
func (t *tracker) observe(o outcome, s Settings, now seen) (edge bool, why string) {
	if now.out && t.state != routing.Down {
		t.state, t.hits = routing.Down, 0 // traffic took it out: rise hits bring it back, not the one at hand alone
	}
	if o.result == OK || o.result == Busy {
		return t.hit(o, s, now)
	}
	t.hits = 0
	t.misses++
	if t.misses < s.Fall {
		return false, fmt.Sprintf("miss %d of %d", t.misses, s.Fall)
	}
	edge = t.state != routing.Down || now.health != routing.Down
	t.state = routing.Down
	return edge, fmt.Sprintf("miss %d, down after %d", t.misses, s.Fall)
}

func (t *tracker) hit(o outcome, s Settings, now seen) (edge bool, why string) {
	t.misses = 0
	t.hits++
	want := routing.Up
	if o.result == Busy {
		want = routing.Busy
	}
	if t.state == routing.Down && t.hits < s.Rise {
		return false, fmt.Sprintf("hit %d of %d", t.hits, s.Rise)
	}
	// A server that is down though this check has had its hits: another socket's check may have ended meanwhile.
	edge = t.state != want || now.health == routing.Down && t.hits >= s.Rise
	t.state = want
	return edge, "hit"
}

// silent is a burst that nobody answered: down, whatever was counted before.
func (t *tracker) silent() (edge bool) {
	edge = t.state != routing.Down
	t.state, t.hits = routing.Down, 0
	return edge
}

// cause is the text that an edge leaves: "503×3".
func (t *tracker) cause(o outcome) string {
	if t.state == routing.Down && t.misses > 1 {
		return fmt.Sprintf("%s×%d", o.brief, t.misses)
	}
	return o.brief
}
