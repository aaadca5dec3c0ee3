package peer

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/wyegate/wyegate/internal/diam"
)

// Errors of a write queue.
var (
	ErrFull   = errors.New("peer: queue is full")
	ErrClosed = errors.New("peer: connection is closed")
)

// chunkLen is the most that is handed to the socket at once, but for one longer message: a DWA overtakes all that was
// not handed over yet.
const chunkLen = 64 << 10

// queue is the write queue of one link: messages in order, and a few of ours that go ahead of them.
type queue struct {
	maxMessages, maxBytes int

	mu       sync.Mutex // the lock of architecture.md 4.3; held for one copy
	waiting  []byte     // whole messages from at on
	at       int
	messages int    // in waiting and out
	urgent   []byte // goes before waiting
	out      []byte // being written
	sent     int    // of out
	outCount int    // messages in out, without urgent ones
	busy     bool   // somebody writes out
	closed   bool

	full  atomic.Bool // ErrFull was given, and it is not half empty yet
	depth atomic.Int32
	space chan struct{} // half empty again: for those who wait in Await
	again chan struct{} // the same for the reader of the link
}

// Edit is what a relayed message is changed in (diameter.md 3.1 step 11, 3.2 step 2).
type Edit struct {
	HopByHop uint32
	Flags    diam.Flags
	Tail     []byte // whole AVPs behind the message, such as a Route-Record
}

// put adds a message with its edits: one copy. Errors: ErrFull, ErrClosed.
func (q *queue) put(msg []byte, e Edit) error {
	n := len(msg) + len(e.Tail)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if q.messages >= q.maxMessages || q.bytes()+n > q.maxBytes && q.messages > 0 {
		q.full.Store(true)
		return ErrFull
	}
	if q.at > 0 && len(q.waiting)+n > cap(q.waiting) {
		q.waiting = q.waiting[:copy(q.waiting, q.waiting[q.at:])]
		q.at = 0
	}
	start := len(q.waiting)
	q.waiting = append(q.waiting, msg...)
	q.waiting = append(q.waiting, e.Tail...)
	m := q.waiting[start:]
	m[1], m[2], m[3] = byte(n>>16), byte(n>>8), byte(n)
	diam.SetFlags(m, e.Flags)
	diam.SetHopByHop(m, e.HopByHop)
	q.messages++
	q.depth.Store(int32(q.messages))
	return nil
}

// putUrgent adds a message of ours ahead of all relayed ones. Its bound is that of the few base commands in flight.
func (q *queue) putUrgent(msg []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if len(q.urgent) > maxUrgent {
		return ErrFull
	}
	q.urgent = append(q.urgent, msg...)
	return nil
}

// maxUrgent bounds the reserved place: a peer that sends DWRs and takes no answers.
const maxUrgent = 16 << 10

func (q *queue) bytes() int { return len(q.waiting) - q.at + len(q.out) - q.sent }

// claim makes the caller the one who writes, if there is something to write and nobody does.
func (q *queue) claim() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy || q.closed || len(q.urgent) == 0 && q.at == len(q.waiting) {
		return false
	}
	q.busy = true
	return true
}

// next is what is written next by the one who claimed; after sent bytes of what it gave before. With nil the claim has
// ended. It takes all that is queued, up to a chunk.
func (q *queue) next(sent int) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent += sent
	if q.sent < len(q.out) {
		return q.out[q.sent:]
	}
	q.done()
	if len(q.urgent) > 0 {
		q.out = append(q.out[:0], q.urgent...)
		q.urgent = q.urgent[:0]
		return q.out
	}
	rest := q.waiting[q.at:]
	if len(rest) == 0 || q.closed {
		q.busy = false
		return nil
	}
	if len(rest) <= chunkLen {
		q.outCount = q.messages
		if q.at == 0 { // no copy: the two change places
			q.out, q.waiting = q.waiting, q.out[:0]
			return q.out
		}
		q.out = append(q.out[:0], rest...)
		q.waiting, q.at = q.waiting[:0], 0
		return q.out
	}
	n := 0
	for n == 0 || n < chunkLen {
		size := int(binary.BigEndian.Uint32(rest[n:]) & 0xffffff)
		if n > 0 && n+size > chunkLen || n+size > len(rest) {
			break
		}
		n += size
		q.outCount++
	}
	q.out = append(q.out[:0], rest[:n]...)
	if q.at += n; q.at == len(q.waiting) {
		q.waiting, q.at = q.waiting[:0], 0
	}
	return q.out
}

// advance notes that sent bytes more were written, and leaves the rest to the next holder of the claim.
func (q *queue) advance(sent int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent += sent
}

// done counts out as written.
func (q *queue) done() {
	q.messages -= q.outCount
	q.outCount, q.sent = 0, 0
	q.out = q.out[:0]
	q.depth.Store(int32(q.messages))
	if q.full.Load() && q.messages <= q.maxMessages/2 && q.bytes() <= q.maxBytes/2 {
		q.full.Store(false)
		signal(q.space)
		signal(q.again)
	}
}

// close ends it: nothing is taken or given any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.urgent, q.waiting, q.at = nil, nil, 0
	signal(q.space)
	signal(q.again)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
