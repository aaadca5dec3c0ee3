package site

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/diameterlb/policycluster"
	"github.com/wyegate/wyegate/internal/obs"
)

// Check is how much of the identity both sides must share.
type Check uint8

// The checks of diameter.md 12.2 `site.identity_check`.
const (
	Strict Check = iota // Origin-Host and Origin-Realm
	Host
	Off
)

// Cause of a site switch: the label of wyegate_policy_site_switches_total.
type Cause uint8

// The causes.
const (
	NoServer Cause = iota // no usable server at the site before
	Revert                // hold over
	Manual                // command
	Split                 // split brain
	Causes
)

// String is the metric label.
func (c Cause) String() string {
	return [...]string{"no_server", "revert", "manual", "split_brain"}[min(c, Causes-1)]
}

// Config of a pair.
type Config struct {
	Primary, Secondary policycluster.Config
	Sites              [2]string // names of the primary and the secondary site
	ManualRevert       bool
	RevertHold         time.Duration
	Warm               bool // the secondary is connected while it does not serve
	Check              Check
	PreferSecondary    bool
	SplitWindow        time.Duration
	StartWait          time.Duration
}

// side indexes: the primary site and the secondary site, whichever is preferred.
const (
	primary = iota
	secondary
)

// Pair is a policy cluster with a primary and a secondary address.
type Pair struct {
	Switches [2][Causes]atomic.Uint64 // by the site that serves then
	Splits   atomic.Uint64

	cfg     Config
	sides   [2]*policycluster.Cluster
	serving atomic.Int32
	heard   [2]atomic.Int64 // last proof that the side serves, Unix nanoseconds; 0: none
	split   atomic.Bool

	poke chan struct{}
	cmds chan func(now time.Time)
	done chan struct{}

	// What follows belongs to the goroutine of Run.
	pref    int // the side that is primary in the table
	state   State
	since   [2]time.Time
	why     [2]string
	holdAt  time.Time // when holding began
	wait    time.Time // in Down: until then the primary takes the place of a secondary that was up first
	learnt  bool
	reverts bool // the last switch was a revert: answers of the drained side are no split brain
}

// New makes a pair; the configurations of its sides need no names of sites, modes or expectations.
func New(cfg Config, peers policycluster.Peers) *Pair {
	p := &Pair{cfg: cfg, poke: make(chan struct{}, 1), cmds: make(chan func(time.Time)), done: make(chan struct{})}
	if cfg.PreferSecondary {
		p.pref = secondary
	}
	cfgs := [2]policycluster.Config{cfg.Primary, cfg.Secondary}
	for i := range cfgs {
		c := &cfgs[i]
		c.OneIdentity = true
		switch cfg.Check {
		case Host:
			c.Expect.Realm = ""
		case Off:
			c.Expect = policycluster.Identity{}
		}
		if i != p.pref && !cfg.Warm {
			c.Mode = policycluster.OutOfService
		}
		p.sides[i] = policycluster.New(*c, peers)
		p.sides[i].Hold(i != p.pref, "")
		p.sides[i].Changed = p.changed
	}
	p.serving.Store(int32(p.pref))
	return p
}

// changed is called by the goroutines of the clusters.
func (p *Pair) changed() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// Side is the cluster of the primary (0) or secondary (1) address.
func (p *Pair) Side(i int) *policycluster.Cluster { return p.sides[i&1] }

// Run keeps both sides until the context ends.
func (p *Pair) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(p.done)
	for _, c := range p.sides {
		wg.Go(func() { _ = c.Run(ctx) })
	}
	now := time.Now()
	p.since = [2]time.Time{now, now}
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.poke:
		case <-t.C:
		case f := <-p.cmds:
			f(time.Now())
		}
		now := time.Now()
		p.look(now)
		t.Reset(p.due(now))
	}
}

// due is when the hold ends.
func (p *Pair) due(now time.Time) time.Duration {
	if p.state == Holding && !p.cfg.ManualRevert {
		return max(p.holdAt.Add(p.cfg.RevertHold).Sub(now), 0)
	}
	return time.Hour
}

// look turns levels into events until nothing moves: a level that began and ended between two looks is no event.
func (p *Pair) look(now time.Time) {
	p.learn()
	for {
		e, ok := p.event(now)
		if !ok {
			return
		}
		to, ok := next(p.state, e)
		if !ok {
			return
		}
		p.enter(to, e, now)
	}
}

// event is what the levels mean in the state of the moment.
func (p *Pair) event(now time.Time) (event, bool) {
	first, other := p.sides[p.pref], p.sides[1-p.pref]
	if p.split.CompareAndSwap(true, false) && (p.state == Holding || p.state == OnSecondary || p.state == OnPrimary) {
		p.splitBrain(now)
		return splitBrain, true
	}
	switch p.state {
	case OnPrimary:
		return primaryOut, first.Out()
	case Connecting, Down:
		if first.Up() {
			return primaryUp, true
		}
		return secondaryUp, other.Up()
	case OnSecondary:
		if !other.Up() {
			return secondaryOut, true
		}
		return primaryUp, first.Up()
	}
	switch {
	case !first.Up():
		return primaryOut, true
	case !other.Up():
		return secondaryOut, true
	}
	over := !p.cfg.ManualRevert && !p.holdAt.Add(p.cfg.RevertHold).After(now) || now.Before(p.wait)
	return holdOver, over
}

// enter carries a transition out.
func (p *Pair) enter(to State, on event, now time.Time) {
	from := p.state
	p.state = to
	first, other := p.pref, 1-p.pref
	switch to {
	case Connecting:
		p.mark(other, "no server usable at "+p.cfg.Sites[first], now)
		p.open(other)
	case OnSecondary:
		p.heard[first].Store(0)
		if from == Holding {
			p.mark(first, "lost again", now)
			return
		}
		if from == Down {
			p.wait = now.Add(p.cfg.StartWait)
		}
		p.serve(other, NoServer, "site failover", now)
	case Holding:
		p.holdAt = now
		p.mark(first, "usable again", now)
	case Down:
		p.open(first)
		p.mark(other, "lost", now)
	case OnPrimary:
		p.wait = time.Time{}
		p.back(from, on, now)
	}
}

// back is the way to the preferred side.
func (p *Pair) back(from State, on event, now time.Time) {
	first, other := p.pref, 1-p.pref
	if int(p.serving.Load()) == first { // it came up before the secondary was needed, or the secondary was cut off
		p.close(other)
		p.mark(first, "usable again", now)
		return
	}
	cause := Revert
	switch on {
	case splitBrain:
		cause = Split
	case revertNow:
		cause = Manual
	case secondaryOut, primaryUp:
		cause = NoServer
	}
	p.serve(first, cause, "site revert", now)
	p.close(other)
}

// serve moves the active role to a side and reports it.
func (p *Pair) serve(to int, cause Cause, why string, now time.Time) {
	if int(p.serving.Load()) == to { // it was lost and is back before the other side came
		p.mark(to, "usable again", now)
		return
	}
	p.reverts = cause == Revert || cause == Manual
	p.heard[1-to].Store(0)
	p.sides[1-to].Hold(true, "")
	p.sides[to].Hold(false, why)
	p.serving.Store(int32(to))
	p.Switches[to][cause].Add(1)
	since := p.since[1-to]
	p.mark(to, "no server usable at "+p.cfg.Sites[1-to], now)
	if why == "site revert" {
		p.why[to] = "reverted from " + p.cfg.Sites[1-to]
	}
	p.mark(1-to, why, now)
	ev := p.cfg.Primary.Events
	if ev == nil {
		return
	}
	name, sev := "policy_site_failover", obs.Major
	if why == "site revert" {
		name, sev = "policy_site_revert", obs.Info
	}
	ev.Note(name, sev, map[string]any{
		"cluster": p.cfg.Primary.Name, "from": p.cfg.Sites[1-to], "to": p.cfg.Sites[to], "held": now.Sub(since).Seconds(),
		"cause": cause.String(),
	})
}

// mark notes why a side is as it is.
func (p *Pair) mark(side int, why string, now time.Time) { p.since[side], p.why[side] = now, why }

// open has a side connect, close lets it go unless it is to be kept warm; neither waits.
func (p *Pair) open(side int) { p.sides[side].PostMode(policycluster.ModeActive) }

func (p *Pair) close(side int) {
	if !p.cfg.Warm {
		p.sides[side].PostMode(policycluster.OutOfService)
	}
}

// learn takes the identity of the first primary CEA as that of the pair.
func (p *Pair) learn() {
	if p.learnt || p.cfg.Check == Off || p.cfg.Primary.Expect.Host != "" {
		return
	}
	id, ok := p.sides[p.pref].Identity()
	if !ok {
		return
	}
	p.learnt = true
	if p.cfg.Check == Host {
		id.Realm = ""
	}
	for _, c := range p.sides {
		c.SetExpect(id)
	}
}
