package resolver

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// ErrEmptySet says that DNS answered and that the answer has no server to connect to (diameter.md 5.1).
var ErrEmptySet = errors.New("resolver: no server in the answer")

// Target is one server of a set. A name with several addresses is one server with alternatives, in order of trial.
type Target struct {
	Host     string // lower case, no final dot; of an A/AAAA set the name that was asked for
	Port     uint16 // 0: DNS says nothing of a port
	Priority uint16 // the lower the better; never compared by weight across priorities (RFC 2782)
	Weight   uint16
	Addrs    []netip.Addr
}

// Set is what a name stands for, by priority, then by host and port, so that equal answers are equal sets.
type Set struct {
	Targets []Target
	TTL     time.Duration // the smallest of all records, within the bounds of the configuration
	SRV     bool          // the targets stood in SRV records; else they are the addresses of the host
	From    string        // the resolver that answered last, as host:port
	Took    time.Duration // from the question to the last answer
}

// Same says whether two answers name the same servers with the same ranks; TTLs, and who answered, may differ.
func (s Set) Same(o Set) bool {
	return s.SRV == o.SRV && slices.EqualFunc(s.Targets, o.Targets, func(a, b Target) bool {
		return a.Host == b.Host && a.Port == b.Port && a.Priority == b.Priority && a.Weight == b.Weight && slices.Equal(a.Addrs, b.Addrs)
	})
}

// Family limits addresses to those of one IP version.
type Family uint8

// The families of diameter.md 5.1 rule 3.
const (
	AnyFamily Family = iota
	IPv4
	IPv6
)

// WatchConfig describes one watched set. Zero values stand for the defaults of diameter.md 12.2.
type WatchConfig struct {
	Client   Client        // resolvers by priority and the local address of queries; Client.Wait 0: 2 s here
	SRV      string        // name of SRV records; empty: Host is asked for addresses only
	Host     string        // asked for addresses when there are no SRV records; empty: that is a failed answer
	MinTTL   time.Duration // 5 s
	MaxTTL   time.Duration // 1 day
	Retry    time.Duration // first wait after a failure: 5 s, times Factor after each one that follows
	Factor   int           // 2
	RetryMax time.Duration // 640 s; below 0: no bound
	Family   Family        // other addresses are left out

	// Asked: after the first query only Refresh asks, whatever the TTL and however a query ends. Failed is told 0 as wait.
	Asked bool
	// Query answers in place of the resolvers; nil: they are asked.
	Query func(ctx context.Context) (Set, error)

	// Learnt is told each good answer, changed or not; Failed each failure with the wait until the next query. Both are
	// called on the goroutine of Run and must not wait.
	Learnt func(Set)
	Failed func(err error, again time.Duration)
}

func (c WatchConfig) filled() WatchConfig {
	fill := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	fill(&c.Client.Wait, 2*time.Second)
	fill(&c.MinTTL, 5*time.Second)
	fill(&c.MaxTTL, 24*time.Hour)
	fill(&c.Retry, 5*time.Second)
	fill(&c.RetryMax, 640*time.Second)
	if c.Factor == 0 {
		c.Factor = 2
	}
	return c
}

// asker asks for one name; Client is the one that uses the network.
type asker interface {
	exchange(ctx context.Context, name string, qtype uint16) (*dns.Msg, error)
}

// Watch keeps one set of servers fresh: asked for when the TTL ends, when Refresh is called, and after a failure 5 s
// later, doubling. The last good answer stands while nobody answers.
type Watch struct {
	cfg WatchConfig
	ask asker
	now chan struct{}

	from string // who answered last; of Run's goroutine

	mu   sync.Mutex
	last Set
	have bool
}

// NewWatch makes a watch. It asks nobody before Run.
func NewWatch(c WatchConfig) *Watch {
	w := &Watch{cfg: c.filled(), now: make(chan struct{}, 1)}
	w.cfg.Client.heard = func(addr string) { w.from = addr }
	w.ask = &w.cfg.Client
	return w
}

// Keep gives the watch an answer from before, for the time until the first query succeeds. It is called before Run.
func (w *Watch) Keep(s Set) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.have = s, true
}

// Last gives the last good answer; false before the first. It never waits for the network.
func (w *Watch) Last() (Set, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.have
}

// Refresh asks for a query at once. Calls before that query begins share it.
func (w *Watch) Refresh() {
	select {
	case w.now <- struct{}{}:
	default:
	}
}

// Run asks until the context ends, and gives its error. A query by Refresh that fails does not shorten the wait that
// failures have come to.
func (w *Watch) Run(ctx context.Context) error {
	t := time.NewTimer(0)
	defer t.Stop()
	retry := w.cfg.Retry
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		case <-w.now:
		}
		began := time.Now()
		set, err := w.once(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			again := w.arm(t, retry)
			if w.cfg.Failed != nil {
				w.cfg.Failed(err, again)
			}
			retry = w.longer(retry)
			continue
		}
		retry = w.cfg.Retry
		set.From, set.Took = w.from, time.Since(began)
		w.mu.Lock()
		w.last, w.have = set, true
		w.mu.Unlock()
		w.arm(t, set.TTL)
		if w.cfg.Learnt != nil {
			w.cfg.Learnt(set)
		}
	}
}

func (w *Watch) once(ctx context.Context) (Set, error) {
	if w.cfg.Query != nil {
		return w.cfg.Query(ctx)
	}
	return w.query(ctx)
}

// arm sets the timer of the next query, unless the owner does the timing.
func (w *Watch) arm(t *time.Timer, d time.Duration) time.Duration {
	if w.cfg.Asked {
		t.Stop()
		return 0
	}
	t.Reset(d)
	return d
}

// longer makes a wait grow up to its bound; without one it stops growing where it would overflow.
func (w *Watch) longer(d time.Duration) time.Duration {
	next := time.Duration(w.cfg.Factor) * d
	if w.cfg.RetryMax > 0 {
		return min(next, w.cfg.RetryMax)
	}
	if next < d {
		return d
	}
	return next
}
