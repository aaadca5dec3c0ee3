package resolver

import (
	"context"
	"slices"
	"sync"
	"time"
)

// HostsConfig of a Hosts.
type HostsConfig struct {
	Client Client
	File   string // hosts file; empty: /etc/hosts

	// Changed is told when the addresses of a watched name are others than before, the first ones too, on a goroutine of
	// Run. It may wait; the name is not asked for again meanwhile.
	Changed func(name string, a Addresses)
}

// Bounds of refreshing a watched name.
const (
	minRefresh = 5 * time.Second
	maxRefresh = time.Hour
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
	maxWait    = 4 * time.Second // for one answer (sip-http.md section 19: DNS wait)
)

// Hosts keeps the addresses of the names that a configuration has, fresh by their TTL; when nobody answers the last good
// ones stay, marked. Names that are not watched any more are forgotten.
type Hosts struct {
	cfg     HostsConfig
	changed chan struct{}

	mu    sync.Mutex // guards what follows; held for a copy
	want  []string
	names map[string]*hostName
}

// hostName is one watched name.
type hostName struct {
	stop context.CancelFunc // nil until its goroutine runs
	last Addresses
	have bool
}

// NewHosts makes a table of names. It asks nobody before Run.
func NewHosts(c HostsConfig) *Hosts {
	return &Hosts{cfg: c, changed: make(chan struct{}, 1), names: map[string]*hostName{}}
}

// Resolve asks now and waits: for a build that needs an address to begin with. A watched name's last good answer stands
// in when nobody answers.
func (h *Hosts) Resolve(ctx context.Context, name string) (Addresses, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	a, err := h.cfg.lookup(ctx, name)
	if err == nil {
		return a, nil
	}
	if a, ok := h.Addresses(name); ok {
		a.Stale = true
		return a, nil
	}
	return Addresses{}, err
}

// Watch says which names are to be kept fresh from now on. Those that were watched go on.
func (h *Hosts) Watch(names []string) {
	h.mu.Lock()
	h.want = nil
	for _, n := range names {
		h.want = append(h.want, plain(n))
	}
	h.mu.Unlock()
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// Addresses gives what is known of a watched name; false while nothing is. It never waits.
func (h *Hosts) Addresses(name string) (Addresses, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.names[plain(name)]
	if n == nil || !n.have {
		return Addresses{}, false
	}
	return n.last, true
}

// Run keeps names fresh until the context ends, one goroutine each, and waits for them.
func (h *Hosts) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.changed:
			for name, n := range h.reconcile() {
				own, stop := context.WithCancel(ctx)
				h.mu.Lock()
				n.stop = stop
				h.mu.Unlock()
				wg.Go(func() {
					defer stop()
					h.watch(own, name, n)
				})
			}
		}
	}
}

func (h *Hosts) reconcile() map[string]*hostName {
	h.mu.Lock()
	defer h.mu.Unlock()
	begin := map[string]*hostName{}
	for _, name := range h.want {
		if h.names[name] == nil {
			n := &hostName{}
			h.names[name], begin[name] = n, n
		}
	}
	for name, n := range h.names {
		if !slices.Contains(h.want, name) {
			if n.stop != nil {
				n.stop()
			}
			delete(h.names, name)
			delete(begin, name)
		}
	}
	return begin
}

// watch is the goroutine of one name: asked for when its TTL ends, at least 5 s apart; after a failure
// 5 s later, doubling.
func (h *Hosts) watch(ctx context.Context, name string, n *hostName) {
	t := time.NewTimer(0)
	defer t.Stop()
	retry := firstRetry
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		actx, cancel := context.WithTimeout(ctx, maxWait)
		a, err := h.cfg.lookup(actx, name)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			h.keep(n)
			t.Reset(retry)
			retry = min(2*retry, lastRetry)
			continue
		}
		retry = firstRetry
		h.learn(name, n, a)
		t.Reset(min(max(a.TTL, minRefresh), maxRefresh))
	}
}

// keep marks the last good answer.
func (h *Hosts) keep(n *hostName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n.last.Stale = n.have
}

func (h *Hosts) learn(name string, n *hostName, a Addresses) {
	h.mu.Lock()
	changed := !n.have || !slices.Equal(n.last.Addrs, a.Addrs)
	n.last, n.have = a, true
	h.mu.Unlock()
	if changed && h.cfg.Changed != nil {
		h.cfg.Changed(name, a)
	}
}
