package transport

import (
	"sync/atomic"
	"time"
)

// question is asked of every worker about a connection that has reached its age: is a transaction open on it? Only the
// workers know, and an answer costs nothing while nobody asks.
type question struct {
	at     time.Time
	active int64        // last octet of the flow when it was asked
	free   atomic.Int32 // workers that have none
}

// old is when the age is due: to be asked about, then to be acted on.
func (r *reader) old() time.Time {
	if r.asked != nil {
		return r.asked.at.Add(askAged)
	}
	return r.f.age
}

// settled says that no transaction is open on an old connection and that nothing went over it since that was asked
// (sip-http.md 11.5). Else it asks, once more where it has before.
func (r *reader) settled(now time.Time) bool {
	f := r.f
	active := f.active.Load()
	if q := r.asked; q != nil && int(q.free.Load()) == len(f.hub.inboxes) && q.active == active {
		return true
	}
	q := &question{at: now, active: active}
	r.asked = q
	e := Event{Kind: Aged, Flow: f.id, Remote: f.remote, Do: func() { q.free.Add(1) }}
	for _, in := range f.hub.inboxes {
		in.Post(e) // a queue that is full is asked again
	}
	return false
}
