package routing

import (
	"errors"
	"fmt"
)

// ErrGuard says that a change would do too much at once; whoever means it says so with force (operations.md 4.2).
var ErrGuard = errors.New("routing: too much at once")

// Guard limits what one change can do to a pool.
type Guard struct {
	MaxRemovePercent int // servers of the pool that may leave at once; 0: 50
}

// Check compares a pool with what is to take its place; next is nil when the pool leaves the configuration, which is
// for others to judge.
func (g Guard) Check(old, next *Pool) error {
	if old == nil || next == nil || old.Table() == nil || next.Table() == nil {
		return nil
	}
	limit := g.MaxRemovePercent
	if limit == 0 {
		limit = 50
	}
	before, after := old.Table(), next.Table()
	removed := 0
	for i := range before.Members {
		if after.ByName(before.Members[i].Name) == nil {
			removed++
		}
	}
	if removed*100 > len(before.Members)*limit {
		return fmt.Errorf("%w: pool %q: would take %d of %d servers out of service; say --force to do so",
			ErrGuard, old.Name, removed, len(before.Members))
	}
	was, is := old.usableServers(), next.usableServers()
	if was > 0 && is == 0 {
		return fmt.Errorf("%w: pool %q: would have no usable server; say --force to do so", ErrGuard, old.Name)
	}
	for pr := range numProtos {
		if next.panics(pr) && !old.panics(pr) {
			return fmt.Errorf("%w: pool %q: would fall below panic.min_usable for %s; say --force to do so", ErrGuard, old.Name, pr)
		}
	}
	return nil
}

func (p *Pool) usableServers() int {
	n := 0
	for i, t := 0, p.Table(); i < len(t.Members); i++ {
		if p.Usable(&t.Members[i]) {
			n++
		}
	}
	return n
}

// panics works it out without a trace left: the pool may never come into force.
func (p *Pool) panics(pr Proto) bool { return p.assume(p.Table(), nil).panic(pr) }
