package h2

import (
	"time"

	"golang.org/x/net/http2"
)

// What a client may send within 10 s before the connection ends with ENHANCE_YOUR_CALM (H2-2). A peer that measures its
// line with pings stays far below.
const (
	maxResets   = 100  // streams that ended in a reset, by the client or over its faults, before their answer did
	maxSettings = 100  // SETTINGS frames: each is acknowledged
	maxControl  = 1000 // frames that carry nothing: PING, PRIORITY, empty DATA, kinds that nobody knows
	within      = 10 * time.Second
)

// recent holds the times of the last events, maxResets of them, and has no memory before the first.
type recent struct {
	times []time.Time
	at    int
}

// add says whether more than maxResets events, this one among them, have come within the span.
func (r *recent) add(t time.Time) bool {
	if r.times == nil {
		r.times = make([]time.Time, maxResets)
	}
	before := r.times[r.at]
	r.times[r.at] = t
	r.at = (r.at + 1) % maxResets
	return !before.IsZero() && t.Sub(before) <= within
}

// spell counts events of a span that begins with the first of them: coarser than recent, and two words.
type spell struct {
	n     int
	began time.Time
}

func (s *spell) add(t time.Time, limit int) bool {
	if t.Sub(s.began) > within {
		s.began, s.n = t, 0
	}
	s.n++
	return s.n > limit
}

// countReset counts a reset stream, and ends the connection when there were too many.
func (c *conn) countReset() {
	c.mu.Lock()
	over := c.resets.add(time.Now())
	c.mu.Unlock()
	if over {
		c.fail(http2.ErrCodeEnhanceYourCalm)
	}
}

// count counts a frame that only its sender needs.
func (c *conn) count(s *spell, limit int) {
	if s.add(time.Now(), limit) {
		c.fail(http2.ErrCodeEnhanceYourCalm)
	}
}
