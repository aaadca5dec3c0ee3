package peer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/diam/base"
)

// eventKind is what a link tells its machine, beside the events of RFC 6733 5.6 that follow from it.
type eventKind uint8

const (
	evStart eventKind = iota
	evStop
	evCER     // a connection we accepted has shown its CER, and it was found good
	evDialled // link, or err
	evCEA
	evNotCEA
	evClosed
	evHeard // a message, while the machine listens
	evDWA
	evDPR
	evDPA
)

type event struct {
	kind  eventKind
	link  *Link
	ids   base.IDs
	dpr   diam.Cause
	drain time.Duration // evStop
	err   error
}

// mailbox takes events from readers, dialers and the machine itself without making any of them wait.
type mailbox struct {
	mu     sync.Mutex
	events []event
	closed bool
	wake   chan struct{}
}

// maxMail bounds what a peer can put there by itself; what it has in excess it asked for too often.
const maxMail = 256

// put says false when nobody will ever take it.
func (b *mailbox) put(e event) bool {
	b.mu.Lock()
	ok := !b.closed
	if ok && (len(b.events) < maxMail || e.kind == evClosed || e.kind == evDialled || e.kind == evStop) {
		b.events = append(b.events, e)
	}
	b.mu.Unlock()
	signal(b.wake)
	return ok
}

// close gives what nobody will take.
func (b *mailbox) close() []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.events
}

func (b *mailbox) take(into []event) []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	into = append(into[:0], b.events...)
	b.events = b.events[:0]
	return into
}

// deadline is one of the times a machine waits for.
type deadline uint8

const (
	atRedial  deadline = iota // Tc, or what a DPR asks for
	atState                   // Wait-I-CEA, Wait-Returns, Closing
	atWatch                   // Tw
	atProbe                   // the old connection has not answered while a new one waits
	atDrained                 // look again whether requests are pending
	numDeadlines
)

// machine is one instance of RFC 6733 5.6: at most one open connection. Its goroutine owns every field.
type machine struct {
	p   *Peer
	box mailbox

	visible atomic.Pointer[Link] // open, for Peer.publishLinks
	waiting atomic.Bool          // a CER was sent here that it has not seen yet

	state State
	i, r  *Link // the connection we dialled, the one we accepted
	rIDs  base.IDs
	open  *Link // the one that carries traffic
	held  *Link // a second CER, while the first connection is probed
	hIDs  base.IDs

	at       [numDeadlines]time.Time
	timer    *time.Timer
	watch    watchdog
	watchSet time.Time // when Tw was set
	dwr      base.IDs
	dpr      base.IDs
	next     uint32 // our own identifiers
	dialling context.CancelFunc
	stopping bool       // by us: no dialling any more
	cause    diam.Cause // of our DPR
	drainEnd time.Time
	theirs   bool // Closing because of their DPR
	heardDPR diam.Cause
	last     string // cause of the last end
	since    time.Time
}

func newMachine(p *Peer) *machine {
	m := &machine{p: p, since: time.Now(), next: p.node.random()}
	m.box.wake = make(chan struct{}, 1)
	m.watch.cfg = p.cfg.Watchdog
	return m
}

// post tells the machine of e. A link that it will never hear of is closed.
func (m *machine) post(e event) {
	if !m.box.put(e) && e.link != nil && e.kind != evClosed {
		e.link.end(CauseStopped, false)
	}
}

// run lives as long as the peer. At the end of the context it leaves as it is told by Stop, or at once.
func (m *machine) run(ctx context.Context) {
	m.timer = time.NewTimer(time.Hour)
	defer m.timer.Stop()
	var batch []event
	for {
		m.arm()
		select {
		case <-m.box.wake:
			batch = m.box.take(batch)
			for _, e := range batch {
				m.handle(ctx, e)
			}
		case <-m.timer.C:
			m.expire(ctx, time.Now())
		case <-ctx.Done():
			m.cut()
			return
		}
		m.publish()
		if m.stopping && m.state == Closed {
			m.cut()
			return
		}
	}
}

// cut ends everything at once.
func (m *machine) cut() {
	if m.dialling != nil {
		m.dialling()
	}
	for _, e := range m.box.close() {
		if e.link != nil {
			e.link.end(CauseStopped, false)
		}
	}
	for _, l := range []*Link{m.i, m.r, m.open, m.held} {
		if l != nil {
			l.end(CauseStopped, false)
		}
	}
	if m.open != nil {
		m.closed(m.open.Cause())
	}
	m.state = Closed
	m.publish()
}

// arm sets the timer to the nearest deadline.
func (m *machine) arm() {
	var nearest time.Time
	for _, t := range m.at {
		if !t.IsZero() && (nearest.IsZero() || t.Before(nearest)) {
			nearest = t
		}
	}
	if nearest.IsZero() {
		m.timer.Stop()
		return
	}
	m.timer.Reset(max(0, time.Until(nearest)))
}

// expire acts on every deadline that is over.
func (m *machine) expire(ctx context.Context, now time.Time) {
	for d := range m.at {
		if m.at[d].IsZero() || now.Before(m.at[d]) {
			continue
		}
		m.at[d] = time.Time{}
		switch deadline(d) {
		case atRedial:
			m.step(ctx, Start, event{})
		case atState:
			m.step(ctx, Timeout, event{})
		case atWatch:
			m.watchExpired(now)
		case atProbe:
			m.probeSilent(ctx)
		case atDrained:
			m.drain(ctx, now)
		}
	}
}

// handle makes events of the RFC out of what links report. What comes from a connection that the machine has let go of
// means nothing.
func (m *machine) handle(ctx context.Context, e event) {
	switch e.kind {
	case evStart:
		m.step(ctx, Start, e)
	case evStop:
		m.stop(ctx, e)
	case evCER:
		m.waiting.Store(false)
		m.step(ctx, RConnCER, e)
	case evDialled:
		m.dialled(ctx, e)
	case evCEA:
		if e.link == m.i {
			m.step(ctx, ICEA, e)
		}
	case evNotCEA:
		if e.link == m.i {
			m.step(ctx, INotCEA, e)
		}
	case evClosed:
		m.linkClosed(ctx, e.link)
	default:
		if e.link == m.open && m.open != nil {
			m.openEvent(ctx, e)
		}
	}
}

func (m *machine) dialled(ctx context.Context, e event) {
	m.dialling = nil
	if e.err != nil {
		m.p.failed(CauseDial, e.err.Error())
		m.step(ctx, IRefused, e)
		return
	}
	if m.state != WaitConnAck && m.state != WaitConnAckElect {
		e.link.end(CauseStopped, false)
		return
	}
	m.i = e.link
	m.p.node.start(m.i)
	m.step(ctx, IConnected, e)
}

func (m *machine) linkClosed(ctx context.Context, l *Link) {
	switch l {
	case m.open:
		m.step(ctx, Disconnect, event{link: l})
	case m.held:
		m.held = nil
		m.at[atProbe] = time.Time{}
	case m.i:
		m.p.failed(CauseCER, "closed before CEA: "+l.Cause())
		m.step(ctx, IDisconnect, event{link: l})
	case m.r:
		m.step(ctx, RDisconnect, event{link: l})
	}
}

// step takes one transition and does its actions in the order of their constants.
func (m *machine) step(ctx context.Context, on Event, e event) {
	if on == Start && (m.stopping || m.p.cfg.Dialer == nil) {
		return
	}
	do, to, ok := Next(m.state, on)
	if !ok {
		m.unlisted(ctx, on, e)
		return
	}
	from := m.state
	if to != from {
		m.state, m.since = to, time.Now()
		m.at[atState] = time.Time{}
	}
	for a := Action(1); a <= lastAction; a <<= 1 {
		if do&a != 0 {
			m.act(ctx, a, e)
		}
	}
	if m.state != to && from != to {
		return // an action went on by itself: an election was won
	}
	m.entered(from, to)
}

// unlisted is a pair that RFC 6733 does not list. Nothing changes; but a connection that nobody wants is not left open.
func (m *machine) unlisted(ctx context.Context, on Event, e event) {
	if on != RConnCER {
		return
	}
	if m.state == Closing && !m.stopping {
		// The peer said goodbye and is back before its old connection was seen to end.
		m.open.end(CauseReplaced, false)
		m.step(ctx, Disconnect, event{link: m.open})
		m.step(ctx, RConnCER, e)
		return
	}
	e.link.end(CauseStopped, false)
}

// entered arms what a state waits for.
func (m *machine) entered(from, to State) {
	now := time.Now()
	switch to {
	case WaitICEA, WaitReturns:
		if from != to {
			m.at[atState] = now.Add(m.p.cfg.Handshake)
		}
	case ROpen, IOpen:
		if from != to {
			m.opened()
		}
	case Closed:
		if from != to {
			m.redial(from)
		}
	}
}

// redial sets when the next attempt is made.
func (m *machine) redial(from State) {
	if m.stopping || m.p.cfg.Dialer == nil {
		return
	}
	wait := m.p.node.jitter(m.p.cfg.Tc)
	switch {
	case m.theirs:
		wait = m.p.cfg.AfterDPR[min(int(m.heardDPR), len(m.p.cfg.AfterDPR)-1)]
		if wait == 0 {
			return // never: only they come back
		}
	case m.p.cfg.RedialAtOnce && (from == IOpen || from == ROpen):
		wait = 0
	}
	m.at[atRedial] = time.Now().Add(wait)
}
