package site

import (
	"time"

	"github.com/wyegate/wyegate/diameterlb/policycluster"
	"github.com/wyegate/wyegate/internal/obs"
)

// Heard is told that a server sent a session request or answered one with 2xxx. at is the clock reading of the batch.
// When both sides do so within the window they have split (diameter.md 6.1). It may be called for every message.
func (p *Pair) Heard(m *policycluster.Member, at time.Time) {
	side := primary
	if p.sides[secondary].Has(m) {
		side = secondary
	}
	p.heard[side].Store(at.UnixNano())
	other := p.heard[1-side].Load()
	if other == 0 || at.UnixNano()-other > int64(p.cfg.SplitWindow) {
		return
	}
	if p.split.CompareAndSwap(false, true) {
		p.changed()
	}
}

// splitBrain closes the secondary site with cause 2: the primary wins. After a revert the drained side may still answer,
// which is no split brain.
func (p *Pair) splitBrain(now time.Time) {
	p.heard[primary].Store(0)
	p.heard[secondary].Store(0)
	if p.reverts && p.state == OnPrimary {
		return
	}
	p.Splits.Add(1)
	p.sides[secondary].PostMode(policycluster.OutOfService)
	ev := p.cfg.Primary.Events
	if ev == nil {
		return
	}
	ev.Raise("split_brain", p.cfg.Primary.Name, obs.Critical, map[string]any{
		"cluster": p.cfg.Primary.Name, "addresses": []string{p.address(primary), p.address(secondary)},
		"resolution": p.cfg.Sites[primary] + " serves, " + p.cfg.Sites[secondary] + " is closed",
	})
	ev.Clear("split_brain", p.cfg.Primary.Name)
}

func (p *Pair) address(side int) string {
	c := p.cfg.Primary
	if side == secondary {
		c = p.cfg.Secondary
	}
	if len(c.Addresses) > 0 {
		return c.Addresses[0].String()
	}
	return c.FQDN
}
