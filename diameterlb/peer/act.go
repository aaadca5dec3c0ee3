package peer

import (
	"context"
	"time"

	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/diam/base"
)

// act does one action of a transition.
func (m *machine) act(ctx context.Context, a Action, e event) {
	switch a {
	case Dial:
		m.dial(ctx)
	case Accept:
		m.r, m.rIDs = e.link, e.ids
	case SendCER:
		m.i.local = m.p.local()
		m.i.urgent(m.i.local.CER(m.ids(), m.p.node.addrs(m.i.conn)))
	case Elect:
		m.elect(ctx)
	case CloseI:
		m.closeI()
	case SendCEA:
		if m.r != nil {
			m.r.urgent(m.r.local.CEA(m.rIDs, m.p.node.addrs(m.r.conn), base.Refusal{}))
		}
	case CloseR:
		m.closeR()
	case Reject:
		e.link.end(CauseReplaced, false)
	case SecondCER:
		m.second(ctx, e)
	case SendDPR:
		m.dpr = m.ids()
		m.at[atState] = time.Now().Add(m.p.cfg.DPA)
		m.open.urgent(m.open.local.DPR(m.dpr, m.cause))
		m.p.node.Stats.Hangups[1].Add(causeWord(m.cause))
	case SendDPA:
		m.sendDPA(e)
	case ProcessCER, ProcessCEA, Serve:
		// Both were checked by the reader of the connection before the machine hears of them: what is refused there
		// never moves it. Serving is the reader's as well.
	}
}

// ids are identifiers of our own, unique on a connection for the few requests that are ours.
func (m *machine) ids() base.IDs {
	m.next++
	return base.IDs{HopByHop: m.next, EndToEnd: m.p.node.endToEnd()}
}

func (m *machine) dial(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, m.p.cfg.Connect)
	m.dialling = cancel
	m.p.node.running.Go(func() {
		defer cancel()
		c, err := m.p.cfg.Dialer.Dial(within)
		if err != nil {
			m.post(event{kind: evDialled, err: err})
			return
		}
		l := newLink(m.p.node, c, Server, &m.p.cfg.Settings)
		l.peer = m.p
		l.m.Store(m)
		m.post(event{kind: evDialled, link: l})
	})
}

func (m *machine) closeI() {
	if m.dialling != nil {
		m.dialling()
		m.dialling = nil
	}
	if m.i != nil {
		l := m.i
		m.i = nil
		m.drop(l)
	}
}

func (m *machine) closeR() {
	if m.r != nil {
		l := m.r
		m.r = nil
		m.drop(l)
	}
}

// drop closes a link, and lets go of what it carried.
func (m *machine) drop(l *Link) {
	l.end(CauseStopped, false)
	if l == m.open {
		m.closed(l.Cause())
	}
}

// elect compares the identities: the higher one keeps what it accepted (RFC 6733 5.6.4). The loser waits for the CEA to
// its own CER.
func (m *machine) elect(ctx context.Context) {
	if diam.CompareIdentity(m.p.local().Host, m.r.caps.Host) > 0 {
		m.p.node.Stats.Elections.Add("won")
		m.step(ctx, ElectionWon, event{})
		return
	}
	m.p.node.Stats.Elections.Add("lost")
}

// opened gives the connection that the machine has settled on to its receiver.
func (m *machine) opened() {
	l := m.i
	if m.state == ROpen {
		l = m.r
	}
	m.open = l
	m.theirs = false
	m.at[atRedial] = time.Time{}
	prove := m.p.cfg.Dialer != nil && !m.p.lonely()
	action := m.watch.up(prove)
	l.state.Store(uint32(Okay))
	if m.watch.state == WatchReopen {
		l.state.Store(uint32(Reopening))
	}
	l.recv = m.p.node.cfg.Handler.Open(l)
	m.visible.Store(l)
	m.p.publishLinks()
	m.setWatch(time.Now())
	close(l.opened)
	m.p.opened(l)
	if m.watch.state == WatchReopen {
		m.p.node.Stats.Watchdog.Add("reopen")
		m.p.notify(Notice{Kind: Proving, Link: l})
	}
	m.watchAct(action &^ watchFailback)
	if m.stopping {
		m.beginStop(time.Now())
	}
}

// closed is the end of the connection that carried traffic.
func (m *machine) closed(cause string) {
	l := m.open
	m.open = nil
	if m.i == l {
		m.i = nil
	}
	if m.r == l {
		m.r = nil
	}
	if m.theirs {
		cause = CauseDPR
	}
	m.last = cause
	m.watch.down()
	m.at[atWatch], m.at[atDrained], m.at[atProbe] = time.Time{}, time.Time{}, time.Time{}
	m.visible.Store(nil)
	m.p.publishLinks()
	l.recv.Closed()
	m.p.ended(l, cause, m.heardDPR)
}

// sendDPA answers their DPR: the DPA leaves before anything is closed, and late answers are still taken (diameter.md
// 2.6 rule 3).
func (m *machine) sendDPA(e event) {
	m.theirs = true
	m.heardDPR = e.dpr
	m.p.node.Stats.Hangups[0].Add(causeWord(e.dpr))
	result := diam.ResultSuccess
	if m.p.cfg.DPAInFlight && m.open.recv.Pending() > 0 {
		result = diam.ResultUnableToComply
	}
	m.open.urgent(m.open.local.DPA(e.ids, result))
	m.open.state.Store(uint32(Departing))
	m.open.recv.Suspend(false)
	m.at[atState] = time.Now().Add(m.p.cfg.ClosingGrace)
	m.at[atWatch] = time.Time{}
	m.p.notify(Notice{Kind: Leaving, Link: m.open, Cause: CauseDPR, DPR: e.dpr})
}

func causeWord(c diam.Cause) string {
	switch c {
	case diam.CauseRebooting:
		return "rebooting"
	case diam.CauseBusy:
		return "busy"
	}
	return "do_not_want"
}
