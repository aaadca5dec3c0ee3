package engine

import (
	"log/slog"
	"sync/atomic"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/routing"
)

// feed takes edges from the goroutines that cause them to the one that makes events of them. Both channels are bounded:
// an edge that finds no room is counted, and the level is in status and metrics all the same.
type feed struct {
	edges chan routing.Change
	moves chan routing.SiteMove
	lost  atomic.Uint64 // since the last look
}

func newFeed() feed {
	return feed{edges: make(chan routing.Change, 1024), moves: make(chan routing.SiteMove, 64)}
}

// serverChanged is told each edge of a server, on the goroutine that caused it: it hands it on and does not wait.
func (e *Engine) serverChanged(c routing.Change) {
	if !c.Admin && c.To == "down" || c.To == "ejected" {
		e.sip.ServerDown(c.Server)
	}
	select {
	case e.feed.edges <- c:
	default:
		e.feed.lost.Add(1)
	}
}

func (e *Engine) serverSuspect(s *routing.Server, p routing.Proto) { e.probes.prober.Suspect(s, p) }

// note writes an edge into the event feed: a ready server that went down is minor, everything else is for information.
func (e *Engine) note(c routing.Change) {
	sev := obs.Info
	if !c.Admin && (c.To == "down" || c.To == "ejected") && c.Server.Admin() == routing.Ready {
		sev = obs.Minor
	}
	fields := map[string]any{
		"pool": c.Server.Pool, "server": c.Server.Name, "from": c.From, "to": c.To, "cause": c.Cause,
	}
	kind := "admin"
	if !c.Admin {
		kind = obs.Protocols[c.Proto]
		fields["protocol"] = kind
	}
	condition := c.Server.Pool + "/" + c.Server.Name + "/" + kind
	if sev == obs.Minor {
		e.events.Raise("server_state", condition, sev, fields)
	} else {
		e.events.Clear("server_state", condition)
		e.events.Note("server_state", sev, fields)
	}
	if c.Out {
		e.metrics.Server(c.Server.Pool, c.Server.Name).Ejections[c.Proto][c.By].Inc()
	}
	e.panics()
}

// siteMoved is told that a pool's traffic goes to another site rank; the same rules as for serverChanged.
func (e *Engine) siteMoved(m routing.SiteMove) {
	select {
	case e.feed.moves <- m:
	default:
		e.feed.lost.Add(1)
	}
}

// Indices of obs.SiteCauses.
const (
	siteNoServer = iota
	siteRevert
)

func (e *Engine) noteMove(m routing.SiteMove) {
	cause := siteNoServer
	if m.Revert {
		cause = siteRevert
	}
	for _, s := range e.current.Load().Config.Sites {
		if s.Rank == m.To {
			e.metrics.SiteSwitches(s.Name, cause).Inc()
			e.log.Warn("site serves", slog.String("site", s.Name), slog.String("cause", obs.SiteCauses[cause]))
		}
	}
}

// panics raises and clears the condition of each pool.
func (e *Engine) panics() {
	for _, p := range e.Pools() {
		if p.Panic {
			e.events.Raise("pool_panic", p.Pool, obs.Major, map[string]any{"pool": p.Pool, "usable_ratio": p.UsableRatio})
		} else {
			e.events.Clear("pool_panic", p.Pool)
		}
	}
}
