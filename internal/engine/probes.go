package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/health"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/routing"
)

// probes joins the health prober with the sockets of traffic and the metrics.
type probes struct {
	e      *Engine
	prober *health.Prober
	checks atomic.Pointer[probeSet]
}

// probeSet is what one generation watches.
type probeSet struct {
	pools    []string
	sockets  map[string]*transport.Listener
	counters map[[2]string]*obs.Server
}

func newProbes(e *Engine) *probes {
	p := &probes{e: e}
	p.checks.Store(&probeSet{})
	p.prober = health.New(health.Config{UDP: p, Parse: parseProbe, Dial: p.dial, Result: p.result})
	return p
}

// Run watches until the context ends.
func (p *probes) Run(ctx context.Context) error { return p.prober.Run(ctx) }

// want makes the checks of a generation those that are made. A SIP server over UDP is asked from the first UDP socket of
// its family that belongs to a listener whose services reach the pool.
func (p *probes) want(g *Generation) {
	set := &probeSet{sockets: map[string]*transport.Listener{}, counters: map[[2]string]*obs.Server{}}
	var checks []health.Check
	for _, name := range g.poolNames() {
		pl := g.pools[name]
		set.pools = append(set.pools, name)
		for i := range pl.Table().Members {
			m := &pl.Table().Members[i]
			set.counters[[2]string{name, m.Name}] = p.e.metrics.Server(name, m.Name)
			for _, a := range m.Addresses {
				if !a.Addr.IsValid() {
					continue
				}
				c := health.Check{Pool: pl.Pool, Server: m.Server, Address: a}
				switch {
				case a.Proto == routing.HTTP:
					c.Settings = httpSettings(&pl.def.Health)
				default:
					c.Settings = sipSettings(&pl.def.Health)
					if a.Transport == "udp" {
						l := g.probeSocket(name, a.Addr.Addr())
						if l == nil {
							continue // no socket of ours reaches it: only traffic could tell
						}
						c.Socket = l.Name
						set.sockets[l.Name] = l
					}
				}
				checks = append(checks, c)
			}
		}
	}
	p.checks.Store(set)
	p.prober.Swap(checks)
}

// probeSocket falls back to any UDP socket of the family: calls of a pool that only streams reach leave by one, too.
func (g *Generation) probeSocket(pool string, to netip.Addr) (any *transport.Listener) {
	for _, l := range g.listeners {
		reaches := g.reaches(l.def, pool)
		for _, tr := range l.sip {
			if tr.Kind != transport.UDP || tr.Addr.Addr().Is4() != to.Is4() {
				continue
			}
			if reaches {
				return tr
			}
			if any == nil {
				any = tr
			}
		}
	}
	return any
}

// reaches says whether requests of a listener may go to a pool.
func (d *Draft) reaches(l *config.Listener, pool string) bool {
	for _, t := range d.targets {
		if t.Pool.Name == pool && l.Offers(t.Service) && takes(t.app, l.Protocol) {
			return true
		}
	}
	return false
}

func sipSettings(h *config.Health) health.Settings {
	s := times(&h.Active.SIP.ProbeTimes)
	s.OK, s.Method, s.MaxForwards = ranges(h.Active.SIP.OK), h.Active.SIP.Method, h.Active.SIP.MaxForwards
	s.DownOn503 = h.Active.Treat503OnOptions == "down"
	return s
}

func httpSettings(h *config.Health) health.Settings {
	s := times(&h.Active.HTTP.ProbeTimes)
	s.OK, s.Path, s.Drains = ranges(h.Active.HTTP.OK), h.Active.HTTP.Path, ranges(h.Active.HTTP.DrainStatus)
	return s
}

func times(t *config.ProbeTimes) health.Settings {
	return health.Settings{
		Interval: t.Interval, DownInterval: t.DownInterval, Jitter: percent(t.Jitter), Timeout: t.Timeout, Fall: t.Fall, Rise: t.Rise,
	}
}

func ranges(list []config.StatusRange) []health.Range {
	out := make([]health.Range, 0, len(list))
	for _, r := range list {
		out = append(out, health.Range{From: r.From, To: r.To})
	}
	return out
}

var errNoSocket = errors.New("engine: no such socket")

// SendProbe implements health.Sender: the first worker sends it, since datagrams leave by workers alone.
func (p *probes) SendProbe(socket string, to netip.AddrPort, b []byte) error {
	l := p.checks.Load().sockets[socket]
	if l == nil {
		return errNoSocket
	}
	b = bytes.Clone(b)
	out := p.e.hub.Out(0)
	if !p.e.hub.Inbox(0).Post(transport.Event{Kind: transport.Call, Do: func() {
		out.Datagram(l, to, b)
		out.Flush()
	}}) {
		return errors.New("engine: worker is busy")
	}
	return nil
}

// SentBy implements health.Sender.
func (p *probes) SentBy(socket string) string {
	if g := p.e.current.Load(); g != nil {
		if s := g.SIP.SentBy(socket); s != "" {
			return s
		}
	}
	if l := p.checks.Load().sockets[socket]; l != nil {
		return l.Addr.String()
	}
	return ""
}

func (p *probes) result(s *routing.Server, proto routing.Proto, r health.Result) {
	if c := p.checks.Load().counters[[2]string{s.Pool, s.Name}]; c != nil {
		c.Checks[proto][r].Inc()
	}
}

// ready says which pool has not heard of each of its servers yet: one result or one time-out.
func (p *probes) ready() error {
	for _, name := range p.checks.Load().pools {
		if !p.prober.Ready(name) {
			return fmt.Errorf("pool %q: some servers have not been probed yet", name)
		}
	}
	return nil
}

// dial opens a connection as traffic would.
func (p *probes) dial(ctx context.Context, a routing.Address) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", a.Addr.String())
	if err == nil {
		if head := p.e.current.Load().ownHeader(a); head != nil {
			if _, err = c.Write(head); err != nil {
				_ = c.Close()
				return nil, err
			}
		}
	}
	k := transport.TCP // of a request of HTTP as well
	if a.Proto == routing.SIP || a.Transport == "tls" {
		k = sipKind(a.Transport)
	}
	if err != nil || k == transport.TCP {
		return c, err
	}
	g, plain := p.e.current.Load(), c
	if k.Secure() {
		c, err = p.e.secure(ctx, c, g.peerOf(a))
	}
	if err == nil && k >= transport.WS {
		c, err = g.webSocketTo(ctx, c, a)
	}
	if err != nil {
		_ = plain.Close()
		return nil, err
	}
	return c, nil
}

// last gives the last answer of a server's probe, for people.
func (p *probes) last(pool, server string, proto routing.Proto) string {
	for _, s := range p.prober.Statuses() {
		if s.Pool == pool && s.Server == server && s.Proto == proto {
			if s.Why == "" {
				return s.Text
			}
			return s.Text + " (" + s.Why + ")"
		}
	}
	return ""
}

// parseProbe reads the response to an OPTIONS with the parser that traffic is read with.
func parseProbe(b []byte) (health.Answer, int, error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return health.Answer{}, 0, nil
	}
	var m sip.Msg
	if err := m.Parse(b[:end+4]); err != nil {
		return health.Answer{}, 0, err
	}
	n := end + 4
	if f := m.First(sip.ContentLength); f != nil {
		length, err := sip.ParseContentLength(m.Bytes(f.Value))
		if err != nil {
			return health.Answer{}, 0, err
		}
		if len(b) < n+length {
			return health.Answer{}, 0, nil
		}
		n += length
	}
	via, _, err := sip.NextVia(m.Value(sip.Via))
	if err != nil || m.Request {
		return health.Answer{}, 0, errors.New("engine: the answer to a probe is no response")
	}
	a := health.Answer{
		Status: m.Status, Reason: string(m.Bytes(m.Reason)), Branch: string(via.Branch), CallID: string(m.Value(sip.CallID)),
	}
	if f := m.First(sip.RetryAfter); f != nil {
		if r, err := sip.ParseRetryAfter(m.Bytes(f.Value)); err == nil {
			a.RetryAfter = time.Duration(r.Delta) * time.Second
		}
	}
	return a, n, nil
}
