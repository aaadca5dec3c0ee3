package site

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/wyegate/wyegate/diameterlb/policycluster"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/resolver"
)

// rtt is what a connect with CER/CEA takes, and DPR with DPA.
const rtt = 10 * time.Millisecond

// fakePeers answers Open and Close as the script says.
type fakePeers struct {
	mu      sync.Mutex
	how     map[string]string // address → ok [IDENTITY] | refuse | silent | cea CODE
	after   map[string]time.Duration
	members map[string]*policycluster.Member // with a connection or an attempt
	opened  map[string]int
	closed  map[string]string // how the last Close was
	freed   int               // Release calls
}

func newFakePeers() *fakePeers {
	return &fakePeers{
		how: map[string]string{}, after: map[string]time.Duration{}, members: map[string]*policycluster.Member{},
		opened: map[string]int{}, closed: map[string]string{},
	}
}

// Open follows the script once the round trip is over.
func (f *fakePeers) Open(m *policycluster.Member, to netip.AddrPort) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := to.Addr().String()
	if old := f.members[at]; old != nil {
		panic("opened twice without a Down: " + at)
	}
	f.members[at] = m
	f.opened[at]++
	wait := f.after[at]
	if f.how[at] == "silent" {
		wait = 5 * time.Second
	}
	time.AfterFunc(max(wait, rtt), func() { f.done(m, at) })
}

func (f *fakePeers) done(m *policycluster.Member, at string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members[at] != m {
		return // closed meanwhile
	}
	var word, arg string
	_, _ = fmt.Sscan(f.how[at], &word, &arg)
	switch word {
	case "", "ok":
		if arg == "" {
			arg = "ps-" + at
		}
		m.Up(policycluster.Identity{Host: arg, Realm: "test"})
		return
	case "refuse":
		word = "connection refused"
	case "silent":
		word = "timeout"
	case "cea":
		word = "CEA " + arg
	}
	delete(f.members, at)
	m.Down(policycluster.Loss{Cause: policycluster.CERFailed, Detail: word})
}

// Close ends a connection after one round trip, or at once without DPR.
func (f *fakePeers) Close(m *policycluster.Member, how policycluster.Closing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := m.Address().Addr().String()
	f.closed[at] = fmt.Sprintf("dpr%d", how.DPR)
	wait := rtt
	if how.Abrupt() {
		f.closed[at], wait = "abrupt", 0
	}
	if m.Pending.Load() > 0 {
		wait += how.Drain
	}
	time.AfterFunc(wait, func() { f.lose(at, m, policycluster.Loss{Detail: "closed"}) })
}

// Release counts.
func (f *fakePeers) Release(*policycluster.Member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.freed++
}

// lose ends the connection of an address; with m not nil only when it is still that member's.
func (f *fakePeers) lose(at string, m *policycluster.Member, l policycluster.Loss) {
	f.mu.Lock()
	defer f.mu.Unlock()
	have := f.members[at]
	if have == nil || m != nil && have != m {
		return
	}
	delete(f.members, at)
	have.Down(l)
}

func (f *fakePeers) member(at string) *policycluster.Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[at]
}

// fakeDNS gives the answer of the script, or its error.
type fakeDNS struct {
	mu      sync.Mutex
	set     resolver.Set
	err     error
	queries int
	at      []time.Duration
	began   time.Time
}

func (d *fakeDNS) query(context.Context) (resolver.Set, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queries++
	d.at = append(d.at, time.Since(d.began))
	return d.set, d.err
}

func (d *fakeDNS) answer(set resolver.Set, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set, d.err = set, err
}

var errServfail = errors.New("127.0.0.1:53 says SERVFAIL")

// fakeEvents counts events and keeps which conditions hold.
type fakeEvents struct {
	mu     sync.Mutex
	count  map[string]int
	open   map[string]obs.Severity // name/condition
	fields map[string]map[string]any
}

func newFakeEvents() *fakeEvents {
	return &fakeEvents{count: map[string]int{}, open: map[string]obs.Severity{}, fields: map[string]map[string]any{}}
}

// Note counts.
func (e *fakeEvents) Note(name string, _ obs.Severity, f map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count[name]++
	e.fields[name] = f
}

// Raise counts a condition that did not hold.
func (e *fakeEvents) Raise(name, condition string, sev obs.Severity, f map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, held := e.open[name+" "+condition]; held {
		return
	}
	e.open[name+" "+condition] = sev
	e.count[name]++
	e.fields[name] = f
}

// Clear ends it.
func (e *fakeEvents) Clear(name, condition string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, name+" "+condition)
}

// fakeCache is the state directory.
type fakeCache struct {
	set resolver.Set
	at  time.Time
	ok  bool
}

// Load gives what was stored.
func (c *fakeCache) Load() (resolver.Set, time.Time, bool) { return c.set, c.at, c.ok }

// Store keeps it.
func (c *fakeCache) Store(s resolver.Set, at time.Time) { c.set, c.at, c.ok = s, at, true }
