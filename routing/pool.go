package routing

import (
	"sync/atomic"
	"time"
)

// Scope says whose health decides.
type Scope uint8

// The words of health.scope.
const (
	ScopeServer  Scope = iota // a server is usable only if all its addresses in use are
	ScopeAddress              // each protocol by itself
)

// Failback says where a key goes whose owner is back (sip-http.md 11.2).
type Failback uint8

// The words of failback.mode.
const (
	WhenIdle  Failback = iota // new traffic of a live key stays where its dialogs are, until they end or MaxWait
	Immediate                 // to the owner, running dialogs too
	Never                     // dialogs stay, new traffic goes to the owner
)

// Config is what a generation says about a pool. Durations of 0 switch their feature off unless said otherwise.
type Config struct {
	Scope Scope
	InUse [numProtos]bool // protocols that reach the pool; none set: all that its members have addresses for

	Failback Failback
	MaxWait  time.Duration // when-idle: after this time with its owner back a key returns with live dialogs; 0: no limit
	Settle   time.Duration // 64*T1: how long Immediate leaves dialogs after a change; 0: 32 s

	SlowStart   time.Duration
	MinUsable   int  // percent of the weight below which health is not believed
	PanicRefuse bool // panic.action: refuse
	DrainMoves  bool // drain.live_keys: move
	BoundedLoad int  // percent of the mean load per weight that a keyed server may have; 0: none

	Passive Passive

	RevertHold   time.Duration // how long a lower site rank must be usable before traffic returns
	RevertManual bool          // it never returns by itself

	// OnChange is told each change of a server's state, on the goroutine that caused it, which may be a message's: it
	// must not wait. No lock is held.
	OnChange func(Change)
	// OnSuspect is told the first failure in a row and each refused connect: a burst of probes is due. The same rules.
	OnSuspect func(s *Server, p Proto)
	// OnSite is told that the traffic goes to another site rank. The same rules.
	OnSite func(SiteMove)
	// Now is the clock of edges; nil: time.Now.
	Now func() time.Time
}

// Passive are the keys of health.passive.
type Passive struct {
	ConsecutiveFailures int // 0: failures of traffic count for nothing
	EjectFor            time.Duration
	MaxEjected          int  // percent of the pool's servers
	IgnoreRetryAfter    bool // honour_retry_after: false
}

// Change is one edge of a server's state.
type Change struct {
	Server *Server
	Proto  Proto // meaningless for a change of the admin state
	Admin  bool  // the operator's doing, not health
	From   string
	To     string // words of metrics: ready drain maint, unknown up down draining ejected
	Cause  string
	At     time.Time

	Out bool       // it was taken out, or began a rest
	By  EjectCause // meaningful when Out
}

// Pool hands out leases over its current table. A new generation makes a new Pool; states, counts, live keys and turns
// are shared with the pools of that name before it.
type Pool struct {
	Name string

	cfg    Config
	shared *shared
	view   atomic.Pointer[view]
}

// view is a table with what follows from it and the states of its servers.
type view struct {
	*Table
	derived atomic.Uint64
	settled atomic.Int64 // when the pool began to use it, Unix nanoseconds
}

// NewPool makes a pool over a table. It changes nothing that another pool of that name shows. r keeps what outlives
// generations.
func NewPool(r *Registry, name string, c Config, t *Table) *Pool {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Settle == 0 {
		c.Settle = 32 * time.Second
	}
	p := &Pool{Name: name, cfg: c, shared: r.shared(name)}
	p.view.Store(&view{Table: t})
	return p
}

// Config gives the settings the pool was made with.
func (p *Pool) Config() Config { return p.cfg }

// Table gives the current table.
func (p *Pool) Table() *Table {
	if v := p.view.Load(); v != nil {
		return v.Table
	}
	return nil
}

// SetTable swaps the table: an operator's change of weight, or new addresses of a name. Live keys whose owner changed
// are counted as moved.
func (p *Pool) SetTable(t *Table) {
	v := &view{Table: t}
	v.settled.Store(p.cfg.Now().UnixNano())
	p.view.Store(v)
	p.shared.epoch.Add(1)
	p.shared.recount(t)
}

// Activate is called once when the pool's generation comes into force, after the pools before it: from here on live
// keys are counted by its table.
func (p *Pool) Activate() {
	v := p.view.Load()
	v.settled.Store(p.cfg.Now().UnixNano())
	p.shared.epoch.Add(1)
	p.shared.recount(v.Table)
}

// Acquire takes a server. Avoid in the request makes failover the same call once more. The lease must be given back
// with Done. Errors are ErrNoServer and ErrFull, which is one too.
func (p *Pool) Acquire(r *Request) (Lease, error) {
	v := p.view.Load()
	if v == nil || v.Table == nil {
		return Lease{}, ErrNoServer
	}
	turn := turns{p.shared}
	for range len(v.Members) + 1 {
		c := p.choose(v, r, turn)
		if c.err != nil {
			return Lease{}, c.err
		}
		m := &v.Members[c.member]
		n := m.active.Add(1)
		if m.MaxConcurrent == 0 || n <= int64(m.MaxConcurrent) || c.how == HowKnown && r.Proto == SIP {
			return Lease{Member: m, How: c.how, pool: p, proto: r.Proto}, nil
		}
		m.active.Add(-1) // another message took the last place meanwhile: choose again
	}
	return Lease{}, ErrFull
}

// turns draws the turns of round robin.
type turns struct{ *shared }

func (t turns) next() uint64   { return t.rotor.Add(1) - 1 }
func (t turns) detour() uint64 { return t.shared.detour.Add(1) - 1 }

// Lease is one message, transaction or connection counted on a member.
type Lease struct {
	Member *Member
	How    How

	pool  *Pool
	proto Proto
}

// Done gives the lease back and feeds passive health; a second call does nothing.
func (l *Lease) Done(o Outcome) {
	if l.pool == nil {
		return
	}
	p := l.pool
	l.pool = nil
	l.Member.active.Add(-1)
	p.Report(l.Member.Server, l.proto, o)
}
