package site

import (
	"context"
	"fmt"
	"time"

	"github.com/wyegate/wyegate/diameterlb/policycluster"
)

// Candidates are those of the side that serves; see policycluster.
func (p *Pair) Candidates(dst []*policycluster.Member, host string) []*policycluster.Member {
	return p.sides[p.serving.Load()].Candidates(dst, host)
}

// Usable says whether new requests find a server.
func (p *Pair) Usable() bool { return p.sides[p.serving.Load()].Usable() }

// Serving is the name of the site whose servers have the requests.
func (p *Pair) Serving() string { return p.cfg.Sites[p.serving.Load()] }

// Name is the cluster's name.
func (p *Pair) Name() string { return p.cfg.Primary.Name }

// do runs f on the goroutine of Run.
func (p *Pair) do(ctx context.Context, f func(now time.Time)) error {
	ran := make(chan struct{})
	select {
	case p.cmds <- func(now time.Time) { f(now); close(ran) }:
		<-ran
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.done:
		return policycluster.ErrStopped
	}
}

// Reverted is what a revert by hand did.
type Reverted struct {
	From, To  string
	Hold, Cut time.Duration // the hold, and how much of it had passed
}

// Revert ends the hold now. The error is a policycluster.Refused when nothing is held.
func (p *Pair) Revert(ctx context.Context) (Reverted, error) {
	var r Reverted
	var bad error
	err := p.do(ctx, func(now time.Time) {
		if p.state != Holding {
			bad = &policycluster.Refused{Text: fmt.Sprintf("%s is %s; only a site that holds can be reverted", p.Name(), p.state)}
			return
		}
		r = Reverted{From: p.cfg.Sites[1-p.pref], To: p.cfg.Sites[p.pref], Hold: p.cfg.RevertHold, Cut: now.Sub(p.holdAt)}
		to, _ := next(p.state, revertNow)
		p.enter(to, revertNow, now)
	})
	if err != nil {
		return r, err
	}
	return r, bad
}

// Prefer turns the preference about: no connection closes now, and the site that serves goes on until the preferred one
// is usable for the hold. It gives the name of the site preferred before.
func (p *Pair) Prefer(ctx context.Context, site string) (from string, err error) {
	var bad error
	err = p.do(ctx, func(now time.Time) {
		from = p.cfg.Sites[p.pref]
		switch site {
		case from:
		case p.cfg.Sites[1-p.pref]:
			p.flip(now)
		default:
			bad = fmt.Errorf("%w: %s", policycluster.ErrUnknown, site)
		}
	})
	if err == nil {
		err = bad
	}
	return from, err
}

// flip names the states from the other side: who serves does not change.
func (p *Pair) flip(now time.Time) {
	p.pref = 1 - p.pref
	p.open(p.pref)
	switch p.state {
	case OnPrimary:
		p.state = OnSecondary
	case OnSecondary, Holding:
		p.state = OnPrimary
	case Connecting:
		p.state = Down
	}
	p.mark(p.pref, "preferred", now)
}

// Status is the status of the serving side's cluster with the servers of both sides and the two sites.
func (p *Pair) Status(ctx context.Context) (policycluster.Status, error) {
	st, err := p.sides[primary].Status(ctx)
	if err != nil {
		return st, err
	}
	other, err := p.sides[secondary].Status(ctx)
	if err != nil {
		return st, err
	}
	for _, s := range other.Servers {
		s.Priority, s.Weight, s.Rank = nil, nil, 0
		st.Servers = append(st.Servers, s)
	}
	st.Connected += other.Connected
	st.Mode = policycluster.ModeActive.String()
	if p.serving.Load() == secondary {
		st.Since = other.Since
	}
	ups := [2]int{st.Connected - other.Connected, other.Connected}
	err = p.do(ctx, func(now time.Time) {
		for i, role := range [2]string{"primary", "secondary"} {
			st.Sites = append(st.Sites, p.siteStatus(i, role, ups[i], now))
		}
	})
	return st, err
}

func (p *Pair) siteStatus(i int, role string, up int, now time.Time) policycluster.SiteStatus {
	s := policycluster.SiteStatus{Site: p.cfg.Sites[i], Role: role, Since: p.since[i], LastChange: p.why[i]}
	serves := int(p.serving.Load()) == i
	switch {
	case p.state == Down, serves && p.state == Connecting:
		s.State = "inactive"
	case serves:
		s.State = "active"
	case p.state == Holding:
		s.State = "holding"
		if !p.cfg.ManualRevert {
			at := p.holdAt.Add(p.cfg.RevertHold)
			s.RevertAt = &at
			s.LastChange = fmt.Sprintf("usable again; takes over in %s (revert auto)", at.Sub(now).Round(time.Second))
		} else {
			s.LastChange = "usable again; revert manual"
		}
	case p.state == Connecting:
		s.State = "connecting"
	case up > 0:
		s.State = "standby"
	case i == p.pref || p.cfg.Warm:
		s.State = "inactive"
	default:
		s.State = "unused"
	}
	return s
}
