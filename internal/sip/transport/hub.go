package transport

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/internal/limit"
	"github.com/wyegate/wyegate/internal/listen"
	"github.com/wyegate/wyegate/internal/sip"
)

// maxWorkers is how many workers a word of bits can name.
const maxWorkers = 64

// Dialer opens a connection to a server. source is the zero Addr where the kernel may choose; serverName is the name to
// verify, for kinds with TLS. It returns when the context ends.
type Dialer func(ctx context.Context, k Kind, source netip.Addr, dst netip.AddrPort, serverName string) (net.Conn, error)

// Securer puts TLS on a connection to a server that serverName stands for, and has checked who it is when it returns. It
// returns when the context ends; on an error the connection is closed by the caller.
type Securer func(ctx context.Context, c net.Conn, serverName string) (net.Conn, error)

// Config of a Hub. It is read once; what a reload may change is in Settings.
type Config struct {
	Node     uint16  // the node's tag: low 16 bits of xxhash64 of its name; first two octets of every flow number
	Workers  int     // 0: one per CPU that Go uses; 64 at most
	Dial     Dialer  // nil: TCP by package net
	Secure   Securer // nil: what Dial gives for kinds with TLS is secure already
	Timers   Timers
	Settings Settings
	// Identities gives what a client's checked certificate stands for: SIP domains, else DNS names, and addresses as
	// URIs write them. Nil: no connection of a client gets an alias (SX-8).
	Identities func(*x509.Certificate) []string
}

// Settings may change with every generation.
type Settings struct {
	Rates       *limit.Rates  // nil: no limit. Servers belong into its exempt list
	MaxHead     int           // octets of a head on a stream; 0: 64 KiB
	MaxBody     int           // octets of a body on a stream; 0: 1 MiB
	ConnectTime time.Duration // for a connection to a server; 0: 2 s
	// Source gives the local address for a connection to a server; nil, or a zero Addr: the kernel chooses.
	Source func(k Kind, dst netip.AddrPort) netip.Addr
}

// Hub owns what the SIP transports share: the workers' inboxes, endpoints, flows and connections to servers.
type Hub struct {
	cfg     Config
	plain   bool // Dial is ours, and gives TCP
	inboxes []*Inbox
	outs    []*Out
	flows   *flows
	free    buffers
	recent  *recent
	aliases aliases
	group   group

	rates    atomic.Pointer[limit.Rates]
	settings atomic.Pointer[Settings]
	kept     atomic.Pointer[[]WebSocketServer] // nil: none
	wildcard atomic.Bool                       // some endpoint is bound to the unspecified address
	large    atomic.Int64                      // octets of large messages that wait in inboxes

	mu        sync.Mutex // endpoints and servers: reload, accept and connect, never a message
	endpoints map[*listen.Socket]*endpoint
	servers   map[serverKey]*serverConns
}

// New lays out a hub. It opens and starts nothing.
func New(cfg Config) *Hub {
	if cfg.Workers <= 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	cfg.Workers = min(cfg.Workers, maxWorkers)
	cfg.Timers.setDefaults()
	plain := false
	if cfg.Dial == nil {
		cfg.Dial, plain = dialTCP, true
	}
	h := &Hub{
		cfg: cfg, plain: plain, flows: newFlows(cfg.Node), free: newBuffers(), recent: new(recent),
		endpoints: map[*listen.Socket]*endpoint{}, servers: map[serverKey]*serverConns{},
	}
	h.Set(cfg.Settings)
	for i := range cfg.Workers {
		in := newInbox(h, i)
		h.inboxes = append(h.inboxes, in)
		h.outs = append(h.outs, &Out{hub: h, in: in, about: anyDialog, servers: map[serverKey]*serverConns{}})
	}
	return h
}

// Set changes the settings for what comes from now on. Flows that are open keep the bounds they began with.
func (h *Hub) Set(s Settings) {
	if s.ConnectTime <= 0 {
		s.ConnectTime = 2 * time.Second
	}
	h.rates.Store(s.Rates)
	h.settings.Store(&s)
}

// Workers is the number of workers.
func (h *Hub) Workers() int { return len(h.inboxes) }

// Inbox is the queue of the i-th worker.
func (h *Hub) Inbox(i int) *Inbox { return h.inboxes[i] }

// Out is the way out of the i-th worker.
func (h *Hub) Out(i int) *Out { return h.outs[i] }

// Worker is the number of the worker that owns a Call-ID.
func (h *Hub) Worker(callID []byte) int { return int(xxhash.Sum64(callID) % uint64(len(h.inboxes))) }

// Wait is how long the oldest message of the batch that a worker took last had waited since the kernel got it: of the
// worker where it was longest. It is what the overload guard watches (sip-http.md section 12.1).
func (h *Hub) Wait() time.Duration {
	var longest int64
	for _, in := range h.inboxes {
		longest = max(longest, in.wait.Load())
	}
	return time.Duration(longest)
}

// Run reads sockets and serves connections to servers until the context ends; then it closes every flow and waits for
// what it started. Sockets belong to the listen.Set and are closed there.
func (h *Hub) Run(ctx context.Context) error {
	h.group.open(ctx)
	<-ctx.Done()
	h.flows.each(func(f *flow) { f.close(net.ErrClosed) })
	h.group.wait()
	return nil
}

// workerFor names the worker for a message that was not indexed yet. Without a Call-ID the source decides, so that such
// messages do not all meet at one worker.
func (h *Hub) workerFor(b []byte, source netip.AddrPort) int {
	if len(h.inboxes) == 1 {
		return 0
	}
	if id := sip.FindCallID(b); id != nil {
		return h.Worker(id)
	}
	return int(hashAddr(source) >> 32 % uint64(len(h.inboxes)))
}

// put hands a message that came at since (nanoseconds) to a worker; false: its inbox is full.
func (h *Hub) put(m *Inbound, worker int, since int64) bool {
	in := h.inboxes[worker]
	if in.put(m, since) {
		return true
	}
	in.dropped.Add(1)
	return false
}

// wake wakes the workers whose bits are set.
func (h *Hub) wake(workers uint64) {
	for i := 0; workers != 0; i, workers = i+1, workers>>1 {
		if workers&1 != 0 {
			h.inboxes[i].notify()
		}
	}
}

// tellUnreachable leaves room in the queues of events: whoever provokes ICMP errors must not keep a FlowClosed out.
func (h *Hub) tellUnreachable(dst netip.AddrPort, err error) {
	for _, in := range h.inboxes {
		if in.events.crowded() {
			in.lost.Add(1)
			continue
		}
		in.Post(Event{Kind: Unreachable, Remote: dst, Err: err})
	}
}

// errNotRunning says that the Hub's Run has not begun, or has ended.
var errNotRunning = errors.New("transport: hub is not running")

// group is the goroutines of Run. What is asked for before Run begins starts with it; after its end nothing starts.
type group struct {
	mu      sync.Mutex
	ctx     context.Context
	waiting []func(context.Context)
	over    bool
	running sync.WaitGroup
}

func (g *group) open(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ctx = ctx
	for _, f := range g.waiting {
		g.running.Go(func() { f(ctx) })
	}
	g.waiting = nil
}

// start runs f in the group; false: the group is over.
func (g *group) start(f func(context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.over:
		return false
	case g.ctx == nil:
		g.waiting = append(g.waiting, f)
	default:
		g.running.Go(func() { f(g.ctx) })
	}
	return true
}

func (g *group) wait() {
	g.mu.Lock()
	g.over = true
	g.mu.Unlock()
	g.running.Wait()
}
