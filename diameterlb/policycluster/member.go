package policycluster

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// Kind of a request that was not answered in time; each has a count of its own (diameter.md 5.4).
type Kind uint8

// The kinds, in the order of `TIMEOUTS req/dwr/str`.
const (
	Request Kind = iota
	DWR
	STR
	Kinds
)

// KindNames are the labels of wyegate_policy_timeouts_total, by Kind.
var KindNames = [Kinds]string{"request", "dwr", "str"}

// Member is one server of a cluster, as the relay and the owner of the connection see it. Its methods may be called from
// any goroutine and do not wait.
type Member struct {
	// Sessions pinned to the server, and requests that wait for its answer: kept by the relay.
	Sessions, Pending atomic.Int64

	cluster  *Cluster
	timeouts [Kinds]atomic.Int32 // in a row
	busy     atomic.Int32        // answers 3004 in a row
	full     atomic.Bool
	link     atomic.Pointer[any] // what the owner of the connection left here
	state    atomic.Uint32
	identity atomic.Pointer[Identity]
	address  atomic.Pointer[netip.AddrPort]
}

// Cluster is the name of the cluster.
func (m *Member) Cluster() string { return m.cluster.name }

// Address is the one the member is, or was last, reached at.
func (m *Member) Address() netip.AddrPort { return *m.address.Load() }

// Identity is what the server's CEA said; false before the first one.
func (m *Member) Identity() (Identity, bool) {
	id := m.identity.Load()
	if id == nil {
		return Identity{}, false
	}
	return *id, true
}

// State is the state of the last view.
func (m *Member) State() State { return State(m.state.Load()) }

// SetLink leaves something of the owner's with the member, for Link; the message path needs no map then.
func (m *Member) SetLink(v any) { m.link.Store(&v) }

// Link gives what SetLink left, or nil.
func (m *Member) Link() any {
	if p := m.link.Load(); p != nil {
		return *p
	}
	return nil
}

// Loss is the end of a connection, or of the attempt to have one.
type Loss struct {
	Cause  Cause
	Detail string        // "FIN", "connection refused", "CEA 5010"
	Wait   time.Duration // not dialled again before; 0: as the cluster does (diameter.md 2.6 after_dpr)
	Never  bool          // not dialled again until the cluster or the configuration changes
}

// Up says that CER/CEA is done, with the identity of the CEA.
func (m *Member) Up(id Identity) {
	m.cluster.post(func(now time.Time) { m.cluster.up(m, id, now) })
}

// Down says that the connection ended, was refused, or is to be used no more.
func (m *Member) Down(l Loss) {
	m.cluster.post(func(now time.Time) { m.cluster.down(m, l, now) })
}

// Leaving says that the server has sent DPR: it is lost from now on, although its late answers are still taken. Down
// follows when the connection has ended.
func (m *Member) Leaving(detail string) {
	m.cluster.post(func(now time.Time) { m.cluster.goodbye(m, detail, now) })
}

// Suspected says that a DWR was not answered for one Tw, Recovered that the peer was heard again.
func (m *Member) Suspected() {
	m.cluster.post(func(now time.Time) { m.cluster.suspected(m, now) })
}

// Recovered ends Suspected.
func (m *Member) Recovered() {
	m.timeouts[DWR].Store(0)
	m.cluster.post(func(now time.Time) { m.cluster.recovered(m, now) })
}

// Answered says that a request of that kind was answered: the count of time-outs begins anew.
func (m *Member) Answered(k Kind) {
	if m.timeouts[k].Load() != 0 {
		m.timeouts[k].Store(0)
	}
}

// TimedOut counts a request that got no answer in time. DWR is counted only: the watchdog decides about it.
func (m *Member) TimedOut(k Kind) {
	n := m.timeouts[k].Add(1)
	m.cluster.Timeouts[k].Add(1)
	if k == DWR || n != m.cluster.maxTimeouts[k].Load() {
		return
	}
	cause := RequestTimeouts
	if k == STR {
		cause = STRTimeouts
	}
	m.cluster.post(func(now time.Time) { m.cluster.fail(m, cause, "", now) })
}

// Result is told whether an answer was 3004; some in a row mean congestion (diameter.md 5.2 rule 6).
func (m *Member) Result(tooBusy bool) {
	if !tooBusy {
		if m.busy.Load() != 0 {
			m.busy.Store(0)
		}
		return
	}
	if m.busy.Add(1) == m.cluster.tooBusy.Load() {
		m.cluster.post(func(now time.Time) { m.cluster.congested(m, "3004", now) })
	}
}

// Full is told that the pending table became full, or has room again.
func (m *Member) Full(full bool) {
	if m.full.CompareAndSwap(!full, full) {
		m.cluster.post(func(now time.Time) { m.cluster.fullEdge(m, full, now) })
	}
}
