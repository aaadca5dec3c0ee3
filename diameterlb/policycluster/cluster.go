package policycluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/internal/resolver"
)

// Cluster is one cluster of policy servers. New makes it, Run keeps it, Candidates asks it.
type Cluster struct {
	// Counters for the metrics of diameter.md 13.1.
	Failovers, Replacements [Causes]atomic.Uint64
	Timeouts                [Kinds]atomic.Uint64
	Queries                 [2]atomic.Uint64 // answered, failed
	// Took is told how long after its cause a failover had its first request on the new server; set before Run, or nil.
	Took func(time.Duration)
	// Changed is called after each new view on the goroutine of Run, and must not wait; set before Run, or nil.
	Changed func()

	name        string
	peers       Peers
	watch       *resolver.Watch // nil: literals
	view        atomic.Pointer[view]
	turn        atomic.Uint32
	maxTimeouts [Kinds]atomic.Int32
	tooBusy     atomic.Int32
	farewell    atomic.Int32

	mu    sync.Mutex
	inbox []func(now time.Time)
	wake  chan struct{}
	done  chan struct{}

	// What follows belongs to the goroutine of Run.
	cfg     Config
	rand    *rand.Rand
	slots   []*slot // by rank; those no longer listed last
	leaving []*slot // closed for good, their Down is awaited
	held    bool    // a site above keeps the active role away
	why     string  // of the site: why the role comes here next
	started time.Time
	startTo time.Time // until then a better rank wins the active role
	first   *slot     // the best rank at the start, while it has not been reached
	gone    *departure
	none    time.Time // since when there is no active one; zero: there is
	names   names
	rested  map[string]time.Time
	askAt   time.Time // Random: the next query because of a shortage
}

// departure is the loss of the active role until somebody has it again.
type departure struct {
	from   *slot
	cause  Cause
	detail string
	at     time.Time
}

// ErrStopped says that the cluster does not run.
var ErrStopped = errors.New("policycluster: stopped")

// New makes a cluster that has no servers before Run.
func New(cfg Config, peers Peers) *Cluster {
	c := &Cluster{
		name: cfg.Name, peers: peers, wake: make(chan struct{}, 1), done: make(chan struct{}),
		rested: map[string]time.Time{}, rand: rand.New(rand.NewPCG(cfg.Seed, xxhash.Sum64String(cfg.Name))),
	}
	c.take(cfg)
	c.view.Store(&view{})
	if cfg.FQDN != "" {
		c.watch = resolver.NewWatch(c.watched())
	}
	return c
}

// take makes a configuration the one in force.
func (c *Cluster) take(cfg Config) {
	c.cfg = cfg
	c.maxTimeouts[Request].Store(int32(cfg.MaxTimeouts))
	c.maxTimeouts[STR].Store(int32(cfg.STRMaxTimeouts))
	if cfg.Selection == Random {
		c.tooBusy.Store(int32(cfg.TooBusy))
	}
}

// Name is the name in the configuration.
func (c *Cluster) Name() string { return c.name }

// Run keeps the cluster until the context ends; then it closes all connections and gives the context's error. The owner
// of the connections is still told to close them and ends them on its own.
func (c *Cluster) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(c.done)
	c.start(time.Now())
	if c.watch != nil {
		wg.Go(func() { _ = c.watch.Run(ctx) })
	}
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		now := time.Now()
		for _, f := range c.taken() {
			f(now)
		}
		c.settle(now)
		t.Reset(c.next(now))
		select {
		case <-ctx.Done():
			c.farewells()
			return ctx.Err()
		case <-c.wake:
		case <-t.C:
		}
	}
}

func (c *Cluster) start(now time.Time) {
	c.started = now
	c.startTo = now.Add(c.cfg.StartWait)
	c.none = now
	if c.watch == nil {
		c.names.servers = c.cfg.literals()
	} else if c.cfg.Cache != nil {
		if set, at, ok := c.cfg.Cache.Load(); ok {
			c.watch.Keep(set)
			c.names.set, c.names.have, c.names.at = set, true, at
			c.names.servers = c.cfg.servers(set)
		}
	}
	if c.cfg.Selection == Failover && len(c.names.servers) > 0 {
		c.adopt(c.names.servers, now)
	}
}

// Retire says that the cluster leaves the configuration: its connections end with cause 2, not 0, when Run ends.
func (c *Cluster) Retire() { c.farewell.Store(DoNotWant) }

func (c *Cluster) farewells() {
	for _, s := range c.slots {
		if s.conn == dialing || s.conn == connected {
			c.peers.Close(s.Member, Closing{DPR: int(c.farewell.Load()), Drain: c.cfg.DrainTimeout})
		}
	}
	c.view.Store(&view{})
}

// post hands an edge to Run. The inbox is bounded by its senders: a member sends one Up and one Down for each Open, each
// threshold once until it is reset, and a command waits for its end.
func (c *Cluster) post(f func(now time.Time)) {
	c.mu.Lock()
	c.inbox = append(c.inbox, f)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Cluster) taken() []func(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.inbox
	c.inbox = nil
	return list
}

// do runs f on the goroutine of Run and waits for it.
func (c *Cluster) do(ctx context.Context, f func(now time.Time)) error {
	ran := make(chan struct{})
	c.post(func(now time.Time) { f(now); close(ran) })
	select {
	case <-ran:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return ErrStopped
	}
}

// settle brings connections and roles to what the state asks for, and publishes it. It may run at any time.
func (c *Cluster) settle(now time.Time) {
	if c.cfg.Mode == OutOfService {
		c.outOfService(now)
	} else if c.cfg.Selection == Random {
		c.settleRandom(now)
	} else {
		c.settleFailover(now)
	}
	c.slots = removeIf(c.slots, func(s *slot) bool { return s.forgotten })
	c.report(now)
	c.publish()
}

// outOfService closes everything that a mode change has not closed yet.
func (c *Cluster) outOfService(now time.Time) {
	for _, s := range c.slots {
		if s.conn == dialing || s.conn == connected {
			c.closeSlot(s, Closing{DPR: DoNotWant, Drain: c.cfg.DryUpTimeout})
		}
		if s.state != Unused {
			s.become(Inactive, Manual.String(), "out of service", now)
		}
	}
}

// next is the time until something is due without an event.
func (c *Cluster) next(now time.Time) time.Duration {
	due := now.Add(time.Hour)
	soon := func(t time.Time) {
		if !t.IsZero() && t.After(now) && t.Before(due) {
			due = t
		}
	}
	for _, s := range c.slots {
		soon(s.retryAt)
		soon(s.fullAt)
		if c.cfg.Revert && s.conn == connected {
			soon(s.upAt.Add(c.cfg.RevertHold))
		}
	}
	soon(c.startTo)
	soon(c.askAt)
	soon(c.names.majorAt())
	return due.Sub(now)
}
