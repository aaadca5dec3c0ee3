package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/certs"
	"github.com/wyegate/wyegate/internal/listen"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/proxy/httpproxy"
	"github.com/wyegate/wyegate/proxy/httpproxy/h1"
	"github.com/wyegate/wyegate/proxy/httpproxy/h2"
	"github.com/wyegate/wyegate/proxy/sipproxy"
	"github.com/wyegate/wyegate/routing"
)

// Options are what the command line says about a run.
type Options struct {
	File    string // wyegate.yaml
	Version admin.Version
	Resume  bool // run --resume: the last confirmed generation where the file is unchanged or wrong
	Log     *slog.Logger
	Level   *slog.LevelVar // of Log; nil: it stays as it is

	resolvers []string // in place of the host's, as host:port
}

// Engine is the running node. It outlives every generation.
type Engine struct {
	// Set by New, never written again.
	opts     Options
	name     string // of the node
	log      *slog.Logger
	started  time.Time
	registry *routing.Registry
	sockets  *listen.Set
	hub      *transport.Hub
	sip      *sipproxy.Proxy
	front    *h1.Front
	http2    *h2.Front
	metrics  *obs.Metrics
	gather   *prometheus.Registry
	access   *obs.AccessLog // nil: off
	events   *obs.Events
	certs    *certs.Store
	fixed    []setting
	names    *hostNames
	enum     *enum
	probes   *probes
	state    *stateDir
	rates    *rates

	apply    sync.Mutex                 // one apply, override or rollback at a time
	current  atomic.Pointer[Generation] // written under apply, read by anybody
	draining atomic.Bool
	wake     chan struct{} // what is watched has changed

	// Each with a lock of its own.
	reloads reloads
	feed    feed
	rate    rate
	moved   movedKeys
	overdue overdue
	disk    onDisk

	// Owned by New and Run.
	endpoints []*admin.Endpoint
	closers   sync.WaitGroup  // what closes WebSockets at a deadline; started by tick, waited for after it
	closeCtx  context.Context // of closers
}

// Generation is what one configuration became, in force or not.
type Generation struct {
	*Draft
	SIP       *sipproxy.Generation
	HTTP      *httpproxy.Generation
	secrets   *proxy.Secrets
	listeners []boundListener
	shields   *shields
	digest    string
	by        string
	note      string
	at        time.Time
	confirmed bool
	undo      *time.Timer
	undoneAt  time.Time
}

// boundListener is a listener with its sockets, one or two.
type boundListener struct {
	def     *config.Listener
	sockets []*listen.Socket
	sip     []*transport.Listener
}

// New reads the configuration, opens its sockets and makes the first generation. Nothing is served before Run. The
// problems are those of a configuration that is refused; then there is no Engine.
func New(o Options) (*Engine, []config.Problem, error) {
	file, err := filepath.Abs(o.File)
	if err != nil {
		return nil, nil, err
	}
	o.File = file
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	cfg, problems := LoadFile(file)
	if cfg == nil {
		return nil, problems, nil
	}
	e := &Engine{
		opts: o, name: cfg.Node.Name, log: o.Log, started: time.Now(), registry: &routing.Registry{},
		wake: make(chan struct{}, 1), feed: newFeed(),
	}
	if config.HasErrors(problems) {
		if _, problems = Build(cfg, Env{Registry: &routing.Registry{}}, problems); !o.Resume {
			return nil, problems, nil
		}
	}
	if e.state, err = openState(cfg.Node.StateDir.Abs); err != nil {
		return nil, problems, err
	}
	if cfg, problems = e.startConfig(cfg, problems); cfg == nil {
		return nil, problems, nil
	}
	if err := e.assemble(cfg); err != nil {
		return nil, problems, err
	}
	draft, all := Build(cfg, e.env(cfg, nil), problems)
	if draft == nil {
		e.closeEndpoints()
		return nil, all, nil
	}
	if err := e.first(draft); err != nil {
		e.closeEndpoints()
		return nil, all, err
	}
	return e, all, nil
}

// assemble makes the parts that live as long as the process.
func (e *Engine) assemble(cfg *config.Config) error {
	var err error
	e.fixed = fixedOf(cfg)
	e.gather = prometheus.NewRegistry()
	e.gather.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if e.metrics, err = obs.NewMetrics(e.gather); err != nil {
		return err
	}
	e.events = obs.NewEvents(e.name, e.log, time.Now)
	if e.access, err = e.openAccess(cfg); err != nil {
		return err
	}
	if n, err := listen.RaiseFileLimit(wantedFiles); err != nil {
		e.log.Warn("file descriptor limit", slog.Uint64("limit", n), slog.Any(obs.KeyErr, err))
	}
	e.certs = e.newCerts()
	e.sockets = listen.New(e.log)
	e.names = newHostNames(e.log, e.opts.resolvers, e.readdress)
	e.enum = newEnum(e.metrics, e.log)
	e.rates = newRates()
	e.hub = transport.New(transport.Config{
		Node: uint16(xxhash.Sum64String(e.name)), Settings: e.rates.settings(cfg), Secure: e.secure,
		Identities: certs.Identities,
	})
	ports := make([]sipproxy.Port, e.hub.Workers())
	for i := range ports {
		ports[i] = sipproxy.Port{In: e.hub.Inbox(i), Out: e.hub.Out(i), Log: e.access.NewRing()}
	}
	e.sip, err = sipproxy.New(sipproxy.Config{
		Ports: ports, Owner: e.hub.Worker, Numbers: e.enum, Names: e.names, Panic: e.panicked,
		Probe: e.answered, Unreachable: e.unreachable,
	})
	if err != nil {
		return err
	}
	e.front = e.newFront()
	e.http2 = e.newHTTP2()
	e.probes = newProbes(e)
	e.metrics.Watch(e.scrape)
	return e.openEndpoints(cfg)
}

// wantedFiles is the limit of descriptors a front door asks for.
const wantedFiles = 1 << 20

func (e *Engine) panicked(v any, stack []byte) {
	e.log.Error("panic in the message path; the message is dropped", slog.Any("panic", v), slog.String("stack", string(stack)))
}

func (e *Engine) openAccess(cfg *config.Config) (*obs.AccessLog, error) {
	if cfg.Logging.Access.IsZero() {
		return nil, nil
	}
	return obs.NewAccessLog(e.accessConfig(cfg))
}

func (e *Engine) accessConfig(cfg *config.Config) obs.AccessConfig {
	l := cfg.Logging
	c := obs.AccessConfig{
		Path: l.Access.Abs, Node: e.name, Dropped: e.metrics.LogDropped("access"), Log: e.log,
		Sample: map[string]float64{
			"status_1xx": l.Sample.Status1xx, "status_2xx": l.Sample.Status2xx, "status_3xx": l.Sample.Status3xx,
		},
	}
	if l.AccessFormat == "line" {
		c.Format = obs.FormatLine
	}
	return c
}

// Run serves until the context ends, then drains and closes. A second end of patience is the context of stop: when it
// ends, Run ends at once. ErrDeadline says that something was still under way when shutdown.deadline had passed.
func (e *Engine) Run(ctx, stop context.Context) error {
	run, cancel := context.WithCancel(context.Background())
	defer cancel()
	e.closeCtx = run
	var running sync.WaitGroup
	var failed error
	var once sync.Once
	serve := func(what string, f func(context.Context) error) {
		running.Go(func() {
			if err := f(run); err != nil && !errors.Is(err, context.Canceled) {
				once.Do(func() { failed = fmt.Errorf("%s: %w", what, err) })
				cancel()
			}
		})
	}
	serve("sip transport", e.hub.Run)
	serve("sip", e.sip.Run)
	serve("http", e.front.Run)
	serve("sockets", e.sockets.Run)
	serve("health", e.probes.Run)
	serve("enum", e.enum.Run)
	serve("names", e.names.Run)
	serve("watch", e.watch)
	serve("certificates", e.certs.Run)
	serve("tick", e.tick)
	logged := make(chan struct{})
	last, endLog := context.WithCancel(context.Background())
	defer endLog()
	go func() {
		defer close(logged)
		if e.access != nil {
			_ = e.access.Run(last) // it ends with its context; what it could not write is counted
		}
	}()
	api := e.newAPI()
	for _, ep := range e.endpoints {
		serve("admin", func(ctx context.Context) error { return api.Serve(ctx, ep) })
	}
	e.log.Info("serving", slog.String(obs.KeyNode, e.name), slog.Uint64("generation", e.current.Load().Number))
	var overdue error
	select {
	case <-ctx.Done():
		overdue = e.shutdown(stop)
	case <-run.Done():
	}
	cancel()
	running.Wait()
	e.stopUndo()
	e.closers.Wait()
	endLog()
	<-logged
	if failed == nil {
		failed = overdue
	}
	return failed
}

// ErrDeadline says that shutdown.deadline passed with something still under way.
var ErrDeadline = errors.New("engine: shutdown deadline passed")

// shutdown is architecture.md 4.8: not ready, then no new connections, then wait for what is under way.
func (e *Engine) shutdown(stop context.Context) error {
	cfg := e.current.Load().Config
	e.draining.Store(true)
	e.sip.Drain(true)
	e.front.Drain(true)
	e.http2.Drain(true)
	if !wait(stop, cfg.Node.Shutdown.Delay) {
		return nil
	}
	e.sockets.StopAccepting()
	deadline := time.Now().Add(cfg.Node.Shutdown.Deadline)
	closing, ended := context.WithDeadline(stop, deadline)
	defer ended()
	var tunnels sync.WaitGroup
	defer tunnels.Wait()
	tunnels.Go(func() {
		every := func(h1.TunnelKey) bool { return true }
		e.front.CloseTunnels(closing, every, closeCode(cfg), cfg.Node.Shutdown.Deadline/2)
	})
	tunnels.Go(func() { e.hub.CloseWebSockets(closing, closeCode(cfg), cfg.Node.Shutdown.Deadline/2) })
	told := time.Now()
	for calls, conns := e.underWay(); calls+conns > 0; calls, conns = e.underWay() {
		if now := time.Now(); now.After(deadline) {
			return fmt.Errorf("%w: %d transactions and %d connections end with the node", ErrDeadline, calls, conns)
		} else if now.Sub(told) >= progressEvery {
			told = now
			e.log.Info("waiting for what is under way", slog.Int("transactions", calls), slog.Int("connections", conns))
		}
		if !wait(stop, 50*time.Millisecond) {
			return nil
		}
	}
	return nil
}

// progressEvery is the time between two lines about a shutdown that waits.
const progressEvery = 5 * time.Second

func (e *Engine) underWay() (transactions, connections int) {
	return e.sip.Open(), e.front.Open() + e.http2.Open()
}

// closeCode is the code that WebSockets are closed with when the node leaves: that of the first pool that names one.
func closeCode(cfg *config.Config) uint16 {
	for _, p := range cfg.Pools {
		if p.Drain.WSSCloseCode != 0 {
			return uint16(p.Drain.WSSCloseCode)
		}
	}
	return 1012
}

// wait says false when the context ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tick gives pools the time for what ends by itself (ejections, slow start, holds, drains) and makes events of edges.
func (e *Engine) tick(ctx context.Context) error {
	t := time.NewTicker(250 * time.Millisecond)
	defer t.Stop()
	var sampled time.Time
	for {
		select {
		case now := <-t.C:
			g := e.current.Load()
			for _, p := range g.pools {
				p.Tick(now)
			}
			e.deadlines(g, now)
			if now.Sub(sampled) >= rateEvery {
				sampled = now
				e.rate.sample(g, e.metrics, now)
			}
			if n := e.feed.lost.Swap(0); n > 0 {
				e.log.Warn("edges of servers are missing among the events; status has the level", slog.Uint64("count", n))
			}
		case c := <-e.feed.edges:
			e.note(c)
		case m := <-e.feed.moves:
			e.noteMove(m)
		case <-ctx.Done():
			return nil
		}
	}
}
