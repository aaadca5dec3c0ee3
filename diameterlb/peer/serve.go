package peer

import (
	"context"
	"time"

	"github.com/wyegate/wyegate/internal/diam/base"
)

// openEvent is what the open connection reports while it is served, and while it closes.
func (m *machine) openEvent(ctx context.Context, e event) {
	switch e.kind {
	case evHeard:
		m.probed()
		m.watchAct(m.watch.heard())
		m.setWatch(time.Now())
	case evDWA:
		m.dwa(e.ids)
	case evDPR:
		m.step(ctx, DPR, e)
	case evDPA:
		if e.ids != m.dpr || m.state != Closing || m.theirs {
			m.p.node.Stats.BadInput.Add("unexpected")
			return
		}
		m.step(ctx, DPA, e)
	}
}

// dwa takes a DWA. One with identifiers that we did not send is any other message (diameter.md 2.7).
func (m *machine) dwa(ids base.IDs) {
	m.probed()
	if ids != m.dwr || !m.watch.pending {
		m.p.node.Stats.BadInput.Add("unexpected")
		m.watchAct(m.watch.heard())
		m.setWatch(time.Now())
		return
	}
	was := m.watch.state
	m.watchAct(m.watch.answered())
	if was == WatchReopen && m.watch.state == WatchOkay {
		m.p.node.Stats.Watchdog.Add("proven")
		m.p.notify(Notice{Kind: Proven, Link: m.open})
	}
	m.setWatch(time.Now())
}

// setWatch arms Tw anew: every message does, and what readers saw without telling is looked up when it is over.
func (m *machine) setWatch(from time.Time) {
	w := m.p.cfg.Watchdog
	if w.Interval == 0 || m.open == nil || m.state == Closing {
		m.at[atWatch] = time.Time{}
		return
	}
	tw := w.Interval
	switch {
	case w.Style == Fixed && m.watch.pending:
		tw = w.Interval * time.Duration(w.AnswerWithin) / 100
	case w.Style == RFC3539 && w.Jitter > 0:
		tw += m.p.node.spread(w.Jitter)
	}
	m.watchSet = from
	m.at[atWatch] = from.Add(tw)
	m.open.listen.Store(m.watch.state == WatchSuspect || m.held != nil)
}

// watchExpired is Tw. What came since it was set has restarted it.
func (m *machine) watchExpired(now time.Time) {
	if m.open == nil {
		return
	}
	if heard := m.open.Heard(); heard.After(m.watchSet) {
		if m.p.cfg.Watchdog.Style == Fixed {
			m.watch.pending = false // any message proves the connection
		}
		m.watchAct(m.watch.heard())
		m.setWatch(heard)
		return
	}
	if m.watch.state == WatchOkay && m.watch.pending || m.watch.state != WatchOkay {
		m.p.node.Stats.Watchdog.Add("timeout")
	}
	l, silent := m.open, now.Sub(m.open.Heard())
	m.watchAct(m.watch.expired())
	if m.watch.state == WatchSuspect && l.listen.CompareAndSwap(false, true) {
		m.p.node.Stats.Watchdog.Add("suspect")
		m.p.notify(Notice{Kind: Suspected, Link: l, Silent: silent})
	}
	m.setWatch(now)
}

// watchAct does what the watchdog asks for.
func (m *machine) watchAct(a watchAction) {
	l := m.open
	if l == nil {
		return
	}
	if a&watchSend != 0 {
		m.dwr = m.ids()
		m.p.node.Stats.Watchdog.Add("dwr")
		l.urgent(l.local.DWR(m.dwr))
	}
	if a&watchFailover != 0 && a&watchClose == 0 {
		l.state.Store(uint32(Suspect))
		l.recv.Suspend(true)
		m.p.publishLinks()
	}
	if a&watchFailback != 0 {
		was := l.State()
		if was == Departing || was == Ended {
			return
		}
		l.state.Store(uint32(Okay))
		l.recv.Resume()
		m.p.publishLinks()
		if was == Suspect {
			m.p.node.Stats.Watchdog.Add("recovered")
			m.p.notify(Notice{Kind: Recovered, Link: l})
		}
	}
	if a&watchClose != 0 {
		m.p.node.Stats.Watchdog.Add("down")
		l.end(CauseWatchdog, true)
	}
}

// second is another CER of a peer that is open (diameter.md 2.5).
func (m *machine) second(ctx context.Context, e event) {
	stats := &m.p.node.Stats.Duplicates
	switch {
	case m.p.cfg.Duplicate == DuplicateReplace:
		stats.Add("replaced")
		m.replace(ctx, e.link, e.ids)
	case m.p.cfg.Duplicate == DuplicateReject || m.held != nil:
		stats.Add("rejected")
		m.p.notify(Notice{Kind: Duplicated, Link: e.link, Detail: "rejected"})
		e.link.end(CauseReplaced, false)
	default:
		m.held, m.hIDs = e.link, e.ids
		m.at[atProbe] = time.Now().Add(m.p.cfg.DuplicateProbe)
		m.open.listen.Store(true)
		m.watchAct(watchSend)
		m.watch.pending = true
	}
}

// probed: the old connection lives, so the new one is refused.
func (m *machine) probed() {
	if m.held == nil {
		return
	}
	l := m.held
	m.held = nil
	m.at[atProbe] = time.Time{}
	m.p.node.Stats.Duplicates.Add("rejected")
	m.p.notify(Notice{Kind: Duplicated, Link: l, Detail: "rejected"})
	l.end(CauseReplaced, false)
}

// probeSilent: it does not, so the new one takes its place.
func (m *machine) probeSilent(ctx context.Context) {
	if m.held == nil || m.open == nil {
		return
	}
	l, ids := m.held, m.hIDs
	m.held = nil
	m.p.node.Stats.Duplicates.Add("accepted")
	m.replace(ctx, l, ids)
}

// replace closes the open connection, whose pending requests fail over, and opens the new one.
func (m *machine) replace(ctx context.Context, l *Link, ids base.IDs) {
	m.p.notify(Notice{Kind: Duplicated, Link: l, Detail: "replaced"})
	old := m.open
	old.end(CauseReplaced, true)
	m.step(ctx, Disconnect, event{link: old})
	m.watch.state = WatchInitial // the peer has just shown that it is there: nothing to prove
	m.step(ctx, RConnCER, event{kind: evCER, link: l, ids: ids})
}

// stop is ours: no new requests, drain, DPR, DPA, close (diameter.md 2.6).
func (m *machine) stop(ctx context.Context, e event) {
	m.stopping, m.cause = true, e.dpr
	m.at[atRedial] = time.Time{}
	switch m.state {
	case ROpen, IOpen:
		m.beginStop(time.Now().Add(e.drain))
		m.drain(ctx, time.Now())
	case Closed, Closing:
	default:
		m.closeI()
		m.closeR()
		m.state = Closed
	}
}

func (m *machine) beginStop(until time.Time) {
	m.drainEnd = until
	m.open.state.Store(uint32(Departing))
	m.open.recv.Suspend(false)
	m.at[atWatch] = time.Time{}
	m.at[atDrained] = time.Now()
	m.p.publishLinks()
	m.p.notify(Notice{Kind: Leaving, Link: m.open, Cause: CauseStopped, DPR: m.cause})
}

// drainStep is how often a draining connection is looked at.
const drainStep = 10 * time.Millisecond

func (m *machine) drain(ctx context.Context, now time.Time) {
	if m.open == nil || m.state == Closing {
		return
	}
	if m.open.recv.Pending() > 0 && now.Before(m.drainEnd) {
		m.at[atDrained] = now.Add(drainStep)
		return
	}
	m.step(ctx, Stop, event{})
}
