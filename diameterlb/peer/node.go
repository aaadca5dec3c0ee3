package peer

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/limit"
)

// Node is this Diameter node: its peers, and what becomes of connections that others open.
type Node struct {
	cfg   NodeConfig
	log   *slog.Logger
	Stats Stats

	running     sync.WaitGroup
	caps        *limit.Caps
	handshaking atomic.Int32
	ends        atomic.Uint32 // End-to-End identifiers

	drawing sync.Mutex
	rng     *rand.Rand

	mu      sync.Mutex
	ctx     context.Context // nil before Run
	peers   []*Peer
	byHost  atomic.Pointer[map[string][]*Peer] // lower case; immutable
	panicAt atomic.Int64
}

// NewNode makes a node without peers. It starts nothing: Run does. A nil logger discards.
func NewNode(cfg NodeConfig, log *slog.Logger) *Node {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	n := &Node{cfg: cfg, log: log, rng: cfg.Random, caps: limit.NewCaps(cfg.Limits.Connections, cfg.Limits.PerSource, limit.Exempt{})}
	if n.rng == nil {
		n.rng = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	// RFC 6733 3: the high 12 bits from the time, the rest random, so that a restart does not repeat them.
	n.ends.Store(uint32(time.Now().Unix())<<20 | n.random()&(1<<20-1))
	n.byHost.Store(&map[string][]*Peer{})
	return n
}

// Run runs the peers that are there and those that Add brings, until the context ends; then it waits for all of them.
func (n *Node) Run(ctx context.Context) error {
	n.mu.Lock()
	n.ctx = ctx
	for _, p := range n.peers {
		n.startPeer(p)
	}
	n.mu.Unlock()
	<-ctx.Done()
	n.running.Wait()
	return nil
}

// Add makes a peer known; it is dialled at once where it has a Dialer.
func (n *Node) Add(cfg Config) *Peer {
	p := newPeer(n, cfg)
	n.mu.Lock()
	n.peers = append(n.peers, p)
	if n.ctx != nil {
		n.startPeer(p)
	}
	n.mu.Unlock()
	n.index(p)
	return p
}

// Remove leaves a peer with a DPR and forgets it: nothing of it lingers.
func (n *Node) Remove(p *Peer, cause diam.Cause, drain time.Duration) {
	n.forget(p)
	p.Stop(cause, drain)
}

func (n *Node) forget(p *Peer) {
	n.mu.Lock()
	n.peers = slices.DeleteFunc(n.peers, func(o *Peer) bool { return o == p })
	n.mu.Unlock()
	n.index(nil)
}

func (n *Node) startPeer(p *Peer) {
	ctx, cancel := context.WithCancel(n.ctx)
	p.stop = cancel
	n.running.Go(func() { p.run(ctx) })
}

// start runs the reader and the writer of a connection we dialled.
func (n *Node) start(l *Link) {
	n.running.Go(l.read)
	n.running.Go(l.write)
}

// index brings the map of identities up to date.
func (n *Node) index(*Peer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := make(map[string][]*Peer, len(n.peers))
	for _, p := range n.peers {
		if h := strings.ToLower(p.Host()); h != "" {
			m[h] = append(m[h], p)
		}
	}
	n.byHost.Store(&m)
}

// Peers are all peers, in the order they became known.
func (n *Node) Peers() []*Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.peers)
}

// maxIdentity is the longest DiameterIdentity that can be that of a peer.
const maxIdentity = 255

// Find gives the peers with that Origin-Host, ASCII without case; two only where both sides of a site pair share one.
// It does not allocate.
func (n *Node) Find(host []byte) []*Peer {
	var buf [maxIdentity]byte
	if len(host) > len(buf) {
		return nil
	}
	for i, c := range host {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	return (*n.byHost.Load())[string(buf[:len(host)])]
}

// Local is what we are where a peer has no other view of us.
func (n *Node) Local() *NodeConfig { return &n.cfg }

func (n *Node) random() uint32 {
	n.drawing.Lock()
	defer n.drawing.Unlock()
	return n.rng.Uint32()
}

// spread draws from [-d, d].
func (n *Node) spread(d time.Duration) time.Duration {
	n.drawing.Lock()
	defer n.drawing.Unlock()
	return time.Duration(n.rng.Int64N(int64(2*d)+1)) - d
}

// jitter is d ± 10 %.
func (n *Node) jitter(d time.Duration) time.Duration {
	if d < 10 {
		return d
	}
	return d + n.spread(d/10)
}

func (n *Node) endToEnd() uint32 { return n.ends.Add(1) }

// addrs are what CER and CEA show on a connection: what is configured, else its own address.
func (n *Node) addrs(c Conn) []netip.Addr {
	if len(n.cfg.Addrs) > 0 {
		return n.cfg.Addrs
	}
	var out []netip.Addr
	for _, a := range c.Local() {
		out = append(out, a.Addr().Unmap())
	}
	if len(out) == 0 {
		out = append(out, netip.IPv4Unspecified()) // a fake without addresses: the AVP is required
	}
	return out
}

// panicked logs a defect, at most once a second: a message that hits it may come often.
func (n *Node) panicked(r any, stack []byte) {
	now := time.Now().UnixNano()
	if last := n.panicAt.Load(); now-last < int64(time.Second) || !n.panicAt.CompareAndSwap(last, now) {
		return
	}
	n.log.Error("message dropped: defect in its handling", slog.Any("panic", r), slog.String("stack", string(stack)))
}
