package transport

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/internal/websocket"
)

const (
	pingEvery      = 30 * time.Second // sip-http.md 15.2
	pingsInTheDark = 2                // unanswered pings after which the peer is gone
)

// errNoPong says that a peer has left our pings without an answer.
var errNoPong = errors.New("transport: websocket does not answer pings")

// wsState is what a flow over WebSocket has besides.
type wsState struct {
	client bool        // we opened it: our frames are masked
	binary atomic.Bool // the peer's last message came in a binary frame
	early  []byte      // came right behind the handshake; the reader's first octets

	// The reader's own.
	pingAt     time.Time
	unanswered int
}

// mask gives a masking key for what goes to a server.
func (s *wsState) mask() websocket.Mask {
	if !s.client {
		return nil
	}
	return websocket.RandomMask()
}

// appendMessage appends one message, or a keep-alive, as a frame.
func (s *wsState) appendMessage(dst, b []byte) []byte {
	kind := websocket.Text
	if s.binary.Load() {
		kind = websocket.Binary
	}
	return websocket.AppendFrame(dst, kind, b, s.mask())
}

// control queues a control frame, whose payload has at most 125 octets.
func (f *flow) control(kind byte, payload []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Load() > living {
		return ErrFlowGone
	}
	if len(f.queue)+f.writing+len(payload) > f.hub.cfg.Timers.QueueLimit {
		return ErrFull
	}
	if f.queue == nil {
		f.queue = f.hub.free.get()
	}
	f.queue = websocket.AppendFrame(f.queue, kind, payload, f.ws.mask())
	f.kick()
	return nil
}

// goodbye queues a close frame and lets the writer finish; nothing is taken behind it.
func (f *flow) goodbye(code uint16) {
	f.mu.Lock()
	if f.state.Load() <= living {
		f.queue = websocket.AppendClose(f.queue, code, f.ws.mask())
		f.state.Store(draining)
	}
	f.mu.Unlock()
	f.kick()
}

// beat sends a ping when it is time. Not nil: the peer has not answered the last ones.
func (r *reader) beat(now time.Time) error {
	s := r.f.ws
	if s == nil || now.Before(s.pingAt) {
		return nil
	}
	if s.unanswered >= pingsInTheDark {
		return errNoPong
	}
	if s.client {
		if _, ok := r.f.hub.opening(r.f.kind, r.f.remote); !ok { // no server of ours any more
			r.f.goodbye(websocket.CodeGone)
			return nil
		}
	}
	s.unanswered++
	s.pingAt = now.Add(pingEvery)
	if r.f.control(websocket.Ping, nil) == ErrFull {
		return ErrFull
	}
	return nil
}

// CloseWebSockets tells the clients on WebSockets to come again, with a close code, spread evenly over a time (sip-http.md
// 11.3). It returns when the last has ended or has had time to; when ctx ends the rest is told at once.
func (h *Hub) CloseWebSockets(ctx context.Context, code uint16, over time.Duration) {
	var list []*flow
	h.flows.each(func(f *flow) {
		if f.ws != nil && !f.outgoing {
			list = append(list, f)
		}
	})
	if len(list) == 0 {
		return
	}
	gap := over / time.Duration(len(list))
	for i, f := range list {
		if i > 0 && gap > 0 {
			select {
			case <-ctx.Done():
				gap = 0
			case <-time.After(gap/2 + rand.N(gap)): // some jitter, so that clients do not come back in step
			}
		}
		f.goodbye(code)
	}
	h.taken(ctx, list)
}

// taken waits until the connections that were told to go have ended, as long as a peer is given to read what it was sent
// last: what follows a shutdown closes connections whatever is still queued on them.
func (h *Hub) taken(ctx context.Context, list []*flow) {
	enough := time.NewTimer(h.cfg.Timers.Linger)
	defer enough.Stop()
	for _, f := range list {
		select {
		case <-f.gone:
		case <-enough.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// WebSockets is how many connections of clients over WebSocket are open.
func (l *Listener) WebSockets() int {
	if l.Kind < WS {
		return 0
	}
	n := 0
	l.ep.hub.flows.each(func(f *flow) {
		if f.ep == l.ep && f.ws != nil {
			n++
		}
	})
	return n
}
