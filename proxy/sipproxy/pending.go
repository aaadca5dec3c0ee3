package sipproxy

import (
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/routing"
)

// pending is what a transaction has while it waits for its final response, and longer where something is kept for it:
// the lease, the line of the access log, the received bytes (sip-http.md section 9). It is found from its entry.
type pending struct {
	slot   uint32 // entry; 0: free
	next   uint32 // chain of the free ones
	serial uint32 // changes with each use, so that old timers miss
	class  class
	method int

	g     *state // generation it was sent under
	t     *target
	s     *server
	lease routing.Lease
	avoid routing.Avoid // servers tried
	flow  uint64        // connection towards the server
	dst   hop           // where it was sent to
	line  *obs.Record
	start time.Time

	in  transport.Inbound // where the request came from; Bytes is req
	req []byte            // kept request; nil: not kept
	aux []byte            // kept ACK, or kept final response

	left        []leftAttempt // at most maxLeft: late responses of further ones are dropped
	status      int           // of the last final response that went to the client
	source      byte          // third letter of the disposition
	how         routing.How
	cancelled   bool
	holdsCancel bool  // the CANCEL was answered here and goes out with the first provisional (ST-10)
	retried     bool  // a 503 was retried
	again       bool  // the connection was opened again
	places      uint8 // outward: places tried
	lost        bool  // a transport error, and nothing kept to send elsewhere: the client's next copy moves
	passed      bool  // it passed us before: no retries (SH-3)
	larger      bool  // went by TCP for its size (SX-9)
	acked       bool
	over        bool // it has had its final response
	silent      bool // counted as a passive failure already

	resend   time.Time // next copy; zero: none
	interval time.Duration
	trying   time.Time // 100 of ours
	giveUp   time.Time // 408 of ours
	wake     time.Time // earliest of them, as the timers know it
}

// leftAttempt is a server that a request was moved away from.
type leftAttempt struct {
	tag       uint32 // server; 0: it went outwards
	out       *listener
	dst       hop
	cancelled bool
}

const (
	maxLeft      = 3
	maxPlaces    = 8 // of a next hop outwards that one request tries (SX-14)
	pendingChunk = 256
)

// pendings hands out pending structures by number, in chunks that are made when they are first needed. Their number is
// bounded by far less than the memory's: a pending is nine entries large, and a flood of requests that nobody answers
// would otherwise take all that a node has (SS-5).
type pendings struct {
	chunks []*[pendingChunk]pending
	used   uint32
	free   uint32
	count  int
	max    int
}

func (ps *pendings) at(i uint32) *pending { return &ps.chunks[i/pendingChunk][i%pendingChunk] }

// take gives a number; 0: there is none. The last quarter is for requests that are held because their client would not
// send them again.
func (ps *pendings) take(held bool) uint32 {
	most := ps.max
	if !held {
		most -= ps.max / 4
	}
	if ps.count >= most {
		return 0
	}
	ps.count++
	i := ps.free
	if i != 0 {
		ps.free = ps.at(i).next
	} else {
		ps.used++
		i = ps.used
		if int(i/pendingChunk) == len(ps.chunks) {
			ps.chunks = append(ps.chunks, new([pendingChunk]pending))
		}
	}
	p := ps.at(i)
	*p = pending{serial: p.serial + 1}
	return i
}

func (ps *pendings) give(i uint32) {
	ps.count--
	p := ps.at(i)
	*p = pending{serial: p.serial + 1, next: ps.free}
	ps.free = i
}

// alarm is one wake-up of a pending.
type alarm struct {
	at     time.Time
	index  uint32
	serial uint32
}

// alarms is a heap by time. Only kept transactions have one, so their number is bounded by the arena.
type alarms []alarm

func (h *alarms) push(a alarm) {
	s := append(*h, a)
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s[i].at.Before(s[up].at) {
			break
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
	*h = s
}

func (h *alarms) pop() alarm {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(s); c++ {
			if s[c].at.Before(s[least].at) {
				least = c
			}
		}
		if least == i {
			break
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
	*h = s
	return top
}

// queue holds alarms that all have the same delay: they come due in the order in which they were put.
type queue struct {
	ring []alarm
	head int
	n    int
}

func (q *queue) put(a alarm) {
	if q.n == len(q.ring) {
		ring := make([]alarm, max(64, 2*len(q.ring)))
		for i := range q.n {
			ring[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = a
	q.n++
}

func (q *queue) first() *alarm {
	if q.n == 0 {
		return nil
	}
	return &q.ring[q.head]
}

func (q *queue) drop() {
	q.head = (q.head + 1) % len(q.ring)
	q.n--
}
