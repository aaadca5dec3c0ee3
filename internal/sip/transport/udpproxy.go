package transport

import (
	"hash/maphash"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wyegate/wyegate/internal/listen"
)

const (
	proxiedSets = 1 << 14
	proxiedWays = 4               // clients of one set
	proxiedIdle = 5 * time.Minute // sip-http.md section 14
)

// proxied knows through which proxy the clients of a UDP listener came, since what goes to them must go back through it.
// Readers of sockets write, workers read, and nobody waits. A set that is full forgets the client that was silent longest.
type proxied [proxiedSets][proxiedWays]atomic.Pointer[throughProxy]

type throughProxy struct {
	client, proxy netip.AddrPort
	heard         atomic.Int64 // when a datagram last came, in nanoseconds
}

var proxiedSeed = maphash.MakeSeed()

func (p *proxied) set(client netip.AddrPort) *[proxiedWays]atomic.Pointer[throughProxy] {
	return &p[maphash.Comparable(proxiedSeed, client)%proxiedSets]
}

// note remembers that a client came through a proxy.
func (p *proxied) note(client, proxy netip.AddrPort, now int64) {
	set := p.set(client)
	oldest, since := &set[0], now
	for i := range set {
		t := set[i].Load()
		switch {
		case t == nil && since > 0:
			oldest, since = &set[i], 0
		case t == nil:
		case t.client == client && t.proxy == proxy:
			t.heard.Store(now)
			return
		case t.client == client: // the proxy has opened another socket for it
			oldest, since = &set[i], -1
		case t.heard.Load() < since:
			oldest, since = &set[i], t.heard.Load()
		}
	}
	t := &throughProxy{client: client, proxy: proxy}
	t.heard.Store(now)
	oldest.Store(t)
}

// way is where to send what is meant for dst: the proxy that has named it lately, else dst itself.
func (p *proxied) way(dst netip.AddrPort, now int64) netip.AddrPort {
	set := p.set(dst)
	for i := range set {
		if t := set[i].Load(); t != nil && t.client == dst && now-t.heard.Load() < int64(proxiedIdle) {
			return t.proxy
		}
	}
	return dst
}

// unwrap takes the header off a datagram that came to a listener behind a proxy. Servers send none, and the proxy's own
// health checks name nobody. False: it has none, or one that is broken, or the peer may not send one.
func (l *Listener) unwrap(b []byte, remote, local netip.AddrPort, now int64) (rest []byte, source, at netip.AddrPort, ok bool) {
	if slices.Contains(l.settings.Servers, remote) {
		return b, remote, local, true
	}
	if !l.proxies.Has(remote.Addr()) { // an answer of somebody whom we have asked: a server known by name, a next hop outwards
		return b, remote, local, l.ep.hub.recent.has(remote, time.Unix(0, now))
	}
	h, n, err := listen.ParseProxyDatagram(b)
	if err != nil {
		return b, remote, local, false
	}
	if !h.Source.IsValid() {
		return b[n:], remote, local, true
	}
	l.ep.proxied.Load().note(h.Source, remote, now)
	return b[n:], h.Source, h.Destination, true
}
