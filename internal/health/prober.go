package health

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/routing"
)

// Prober watches servers over all generations. A generation tells it by Swap whom.
type Prober struct {
	cfg     Config
	changed chan struct{} // there is something in want
	waiting waiting

	mu     sync.Mutex // guards what follows; held for no exchange
	want   []Check
	probes map[key]*probe
}

// key is what must be equal for a probe to live on over a reload: its counts and its state go on.
type key struct {
	pool, server, socket string
	proto                routing.Proto
	transport, address   string
}

func (c *Check) key() key {
	return key{c.Pool.Name, c.Server.Name, c.Socket, c.Address.Proto, c.Address.Transport, c.Address.Addr.String()}
}

// probe is one check with its goroutine.
type probe struct {
	check  atomic.Pointer[Check]
	stop   context.CancelFunc
	nudge  chan struct{} // a burst is due
	number uint32        // in the branch: answers to a probe that was replaced meet nobody

	// Guarded by Prober.mu.
	state routing.Health
	last  Status
	done  bool // had a result, or a time-out

	// Owned by the goroutine.
	track tracker
	conn  net.Conn // of SIP over a stream, kept between probes
	burst time.Time
}

// New makes a prober. It asks nobody before Run.
func New(c Config) *Prober {
	if c.Dial == nil {
		c.Dial = dial
	}
	return &Prober{cfg: c, changed: make(chan struct{}, 1), probes: map[key]*probe{}}
}

func dial(ctx context.Context, a routing.Address) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", a.Addr.String())
}

// Swap says what is to be watched from now on. Checks that were there before, by pool, server, protocol, socket and
// address, go on with what they have counted; those that are no longer there end.
func (p *Prober) Swap(checks []Check) {
	checks = slices.Clone(checks)
	for i := range checks {
		checks[i].Settings = checks[i].filled()
	}
	p.mu.Lock()
	p.want = checks
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Run watches until the context ends, and waits for what it started.
func (p *Prober) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	number := uint32(0)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.changed:
			begin, moved := p.reconcile(&number)
			for _, c := range moved {
				c.Pool.SetHealth(c.Server, c.Address.Proto, routing.Unknown, "address changed", time.Now())
			}
			for _, pr := range begin {
				pctx, stop := context.WithCancel(ctx)
				pr.stop = stop
				wg.Go(func() {
					defer stop()
					p.watch(pctx, pr)
				})
			}
		}
	}
}

// reconcile ends what is no longer wanted and gives what is new, and those checks among it whose server has moved to
// another address: what was found out at the old one says nothing.
func (p *Prober) reconcile(number *uint32) (begin []*probe, moved []*Check) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := make(map[key]*probe, len(p.want))
	for i := range p.want {
		c := &p.want[i]
		k := c.key()
		pr := p.probes[k]
		if pr == nil {
			pr = keep[k]
		}
		if pr == nil {
			*number++
			pr = &probe{nudge: make(chan struct{}, 1), number: *number}
			pr.last = Status{Pool: k.pool, Server: k.server, Proto: k.proto, Socket: k.socket, Address: k.address, Text: "not asked yet"}
			if p.hasMoved(k) {
				moved = append(moved, c)
			} else if h := c.Server.Health(k.proto); h != routing.Unknown {
				pr.state, pr.track.state = h, h
			}
			begin = append(begin, pr)
		}
		pr.check.Store(c)
		keep[k] = pr
	}
	for k, pr := range p.probes {
		if keep[k] == nil {
			pr.stop()
		}
	}
	p.probes = keep
	return begin, moved
}

// hasMoved says that the server's protocol was watched, and at other addresses only. p.mu is held.
func (p *Prober) hasMoved(k key) bool {
	watched := false
	for old := range p.probes {
		if old.pool == k.pool && old.server == k.server && old.proto == k.proto {
			if old.transport == k.transport && old.address == k.address {
				return false
			}
			watched = true
		}
	}
	return watched
}

// watch is the goroutine of one check.
func (p *Prober) watch(ctx context.Context, pr *probe) {
	defer func() {
		if pr.conn != nil {
			_ = pr.conn.Close()
		}
	}()
	t := time.NewTimer(p.first(pr))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-pr.nudge:
			p.suspected(ctx, pr)
			t.Reset(pr.interval())
			continue
		}
		start := time.Now()
		c := pr.check.Load()
		o := p.exchange(ctx, pr, c, &pr.conn)
		if ctx.Err() != nil {
			return
		}
		p.observe(pr, c, o, start)
		t.Reset(max(0, pr.interval()-time.Since(start)))
	}
}

// first is the wait before the first probe: none for a server nobody knows anything of, so that a start is quick.
func (p *Prober) first(pr *probe) time.Duration {
	c := pr.check.Load()
	if c.Server.Health(c.Address.Proto) == routing.Unknown {
		return 0
	}
	return rand.N(pr.interval())
}

// interval is the jittered time to the next probe.
func (pr *probe) interval() time.Duration {
	c := pr.check.Load()
	d := c.Interval
	if pr.track.state == routing.Down || c.Server.Health(c.Address.Proto) == routing.Down {
		d = c.DownInterval
	}
	if spread := d * time.Duration(c.Jitter) / 100; spread > 0 {
		d += rand.N(spread) - spread/2
	}
	return d
}

// suspected answers the first failure that traffic met: 3 probes 0.5 s apart, and all silent is down. A server that is
// down already is only asked again sooner.
func (p *Prober) suspected(ctx context.Context, pr *probe) {
	c := pr.check.Load()
	if c.Server.Health(c.Address.Proto) == routing.Down || time.Since(pr.burst) < c.DownInterval {
		return
	}
	pr.burst = time.Now()
	const shots, apart = 3, 500 * time.Millisecond
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	results := make(chan outcome, shots)
	var wg sync.WaitGroup
	defer wg.Wait()
	fired := time.NewTimer(0)
	defer fired.Stop()
	var last outcome
	for sent, back := 0, 0; back < shots; {
		select {
		case <-ctx.Done():
			return
		case <-fired.C:
			sent++
			wg.Go(func() {
				var own net.Conn
				o := p.exchange(ctx, pr, c, &own)
				if own != nil {
					_ = own.Close()
				}
				results <- o
			})
			if sent < shots {
				fired.Reset(apart)
			}
		case last = <-results:
			if ctx.Err() != nil {
				return
			}
			back++
			if last.result == OK || last.result == Busy {
				stop()
				p.observe(pr, c, last, pr.burst)
				return
			}
			p.note(pr, c, last, pr.burst, "burst after a failure of traffic")
		}
	}
	pr.track.misses = max(pr.track.misses, shots)
	if pr.track.silent() {
		p.tell(pr, c, last)
	}
}

// observe counts one outcome and tells routing of an edge.
func (p *Prober) observe(pr *probe, c *Check, o outcome, start time.Time) {
	proto := c.Address.Proto
	now := seen{health: c.Server.Health(proto), out: c.Server.OutByTraffic(proto)}
	edge, why := pr.track.observe(o, c.Settings, now)
	p.note(pr, c, o, start, why)
	if edge || o.refused && pr.track.state == routing.Down && !now.out {
		p.tell(pr, c, o)
	}
	if o.rest > 0 {
		c.Pool.Hold(c.Server, proto, o.rest, time.Now())
	}
}

// note keeps the answer for status and counts it.
func (p *Prober) note(pr *probe, c *Check, o outcome, start time.Time, why string) {
	proto := c.Address.Proto
	if p.cfg.Result != nil {
		p.cfg.Result(c.Server, proto, o.result)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &pr.last
	s.At, s.Took = start, time.Since(start)
	s.Text, s.From, s.Result, s.Why = o.text, o.from, o.result, why
	pr.done = true
}

// tell joins what all sockets say about the server's protocol, the worst of them, and tells routing.
func (p *Prober) tell(pr *probe, c *Check, o outcome) {
	proto := c.Address.Proto
	p.mu.Lock()
	pr.state = pr.track.state
	worst := pr.state
	for k, other := range p.probes {
		if other != pr && k.pool == c.Pool.Name && k.server == c.Server.Name && k.proto == proto {
			worst = max(worst, other.state)
		}
	}
	current := p.probes[c.key()] == pr
	p.mu.Unlock()
	if !current {
		return // replaced meanwhile
	}
	cause := pr.track.cause(o)
	if worst == routing.Down && o.refused {
		c.Pool.SetRefused(c.Server, proto, cause, time.Now())
		return
	}
	c.Pool.SetHealth(c.Server, proto, worst, cause, time.Now())
}

// Suspect asks for a burst of probes: traffic has failed for the first time in a row. It never waits.
func (p *Prober) Suspect(s *routing.Server, proto routing.Proto) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, pr := range p.probes {
		if k.pool == s.Pool && k.server == s.Name && k.proto == proto {
			select {
			case pr.nudge <- struct{}{}:
			default:
			}
		}
	}
}

// Statuses gives the last answers, sorted by pool, server, protocol and socket.
func (p *Prober) Statuses() []Status {
	p.mu.Lock()
	out := make([]Status, 0, len(p.probes))
	for _, pr := range p.probes {
		out = append(out, pr.last)
	}
	p.mu.Unlock()
	slices.SortFunc(out, func(a, b Status) int {
		if c := strings.Compare(a.Pool+"\x00"+a.Server, b.Pool+"\x00"+b.Server); c != 0 {
			return c
		}
		if a.Proto != b.Proto {
			return int(a.Proto) - int(b.Proto)
		}
		return strings.Compare(a.Socket+a.Address, b.Socket+b.Address)
	})
	return out
}

// Ready says whether each server of a pool had one result or one time-out.
func (p *Prober) Ready(pool string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, pr := range p.probes {
		if k.pool == pool && !pr.done {
			return false
		}
	}
	return true
}
