package sipproxy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// Why a generation cannot be built.
var (
	ErrAdvertise = errors.New("sipproxy: not a host with an optional port")
	ErrNoSecrets = errors.New("sipproxy: no secrets")
)

// GenerationConfig is what a Generation is built from.
type GenerationConfig struct {
	Number    uint64
	Secrets   *proxy.Secrets
	Listeners []ListenerConfig
	Pools     []PoolConfig
	Targets   []TargetConfig
	// Domains are the hosts of the applications, exact or "*.suffix": a Request-URI in one is served here, and an exact
	// one is a name of ours (SR-2).
	Domains []string
	// LocalAddrs are the addresses of this host, for listeners bound to a wildcard.
	LocalAddrs []netip.Addr
	Overload   Overload
}

// ListenerConfig is one SIP listener (operations.md 3.2).
type ListenerConfig struct {
	Listener   *transport.Listener
	Advertise  string   // "host", "host:port", "[v6]:port" in Via and Record-Route; empty: the bound address
	Aliases    []string // further names of ours, with or without port
	Matcher    *proxy.Matcher
	PathHeader bool
	Outbound   bool
	ForceRport bool
	Protected  bool // protected_network: sips may come over a plain transport
	DropBad    bool // bad_requests: drop
	NoServers  bool // servers: false: nobody who comes in here is a server
	TLSURI     bool // tls_uri: transport
	Overload   bool // overload_control of a service behind it: callers that ask are told our load (SH-4)
	Obs        *obs.SIPListener
	Targets    []*obs.SIPTarget // by Target.Number; nil or short: not counted
}

// PoolConfig is one pool that SIP reaches.
type PoolConfig struct {
	Pool         *routing.Pool
	Tries        int                    // connect.tries: servers one request may be offered to; 0: 3
	NoRetryAfter bool                   // honour_retry_after: false
	Obs          map[string]*obs.Server // by name of the server
	Peers        map[string]string      // by name of the server: what the transport's Securer knows it by, over TLS
}

// TargetConfig is one application with what its service says about SIP.
type TargetConfig struct {
	Target        *proxy.Target
	NoRecordRoute bool
	Schemes       []string // nil: sip, sips, tel, urn
	ForeignRefuse bool     // foreign: refuse
	RouteOnly     bool     // from_servers: route-only
	FlowTokens    bool     // flow_tokens: all
	KeepAll       bool     // keep_requests: all
	TrustFrom     []netip.Prefix
	Obs           *obs.Target
}

// Generation is everything SIP needs of one configuration. It is built once and never written after.
type Generation struct {
	number    uint64
	overload  Overload
	secrets   *proxy.Secrets
	listeners []*listener
	byTag     map[uint16]*listener
	targets   []*target
	targetTag map[uint32]*target
	self      *selves // SR-2
	sentBy    *selves // what we write into Via (ST-8)
	served    []string
	suffixes  []string
	servers   map[netip.AddrPort]*server // next hop, whatever the transport
	udp       map[netip.AddrPort]*server // source over UDP, or a connection we opened
	hosts     map[netip.Addr]*server     // source of a stream, where the address alone counts
	names     map[string]*server         // "host:port" as configured
	pools     []*pool

	tokenNames []string // parameters that may hold a token
}

// listener is a ListenerConfig with what is computed from it.
type listener struct {
	ListenerConfig
	host    string // as we write it, IPv6 in brackets
	port    uint16
	sent    string // host:port
	uri     string // "sip:host:port;transport=x"
	secure  string // the entry of a request to a sips URI; empty where there is none
	schemes []string
	bad     *obs.SIPListener // never nil
}

type target struct {
	TargetConfig
	pool  *pool
	param string // ";lr;wg=": what stands in front of a token in our entries
}

type pool struct {
	PoolConfig
	servers map[uint32]*server
	targets []*target
}

// server is one server of a pool with its SIP addresses.
type server struct {
	state *routing.Server
	name  string
	tag   uint32
	pool  *pool
	addrs []serverAddr
	obs   *obs.Server
	until time.Time // gone from the configuration: reachable for its live transactions until then; zero: configured

	throttle *throttle // set by the Swap that puts the generation in force
}

type serverAddr struct {
	kind transport.Kind
	addr netip.AddrPort
	host string // for TLS
}

// NewGeneration builds a generation. It opens nothing and starts nothing.
func NewGeneration(c GenerationConfig) (*Generation, error) {
	if c.Secrets == nil {
		return nil, ErrNoSecrets
	}
	g := &Generation{
		number: c.Number, overload: c.Overload.withDefaults(), secrets: c.Secrets, self: newSelves(), sentBy: newSelves(),
		byTag: map[uint16]*listener{}, targetTag: map[uint32]*target{},
		servers: map[netip.AddrPort]*server{}, udp: map[netip.AddrPort]*server{},
		hosts: map[netip.Addr]*server{}, names: map[string]*server{},
	}
	for _, lc := range c.Listeners {
		if err := g.addListener(lc, c.LocalAddrs); err != nil {
			return nil, err
		}
	}
	g.addDomains(c.Domains)
	for _, pc := range c.Pools {
		g.addPool(pc)
	}
	for _, tc := range c.Targets {
		g.addTarget(tc)
	}
	for _, l := range g.listeners {
		l.schemes = g.schemes(l)
	}
	return g, nil
}

func (g *Generation) addListener(c ListenerConfig, local []netip.Addr) error {
	l := &listener{ListenerConfig: c, bad: c.Obs}
	if l.bad == nil {
		l.bad = &obs.SIPListener{}
	}
	bound := fold(c.Listener.Addr)
	if err := l.advertise(bound, local); err != nil {
		return err
	}
	g.self.add(l.host, l.port)
	g.sentBy.add(l.host, l.port)
	g.self.addAddr(bound)
	if bound.Addr().IsUnspecified() {
		for _, a := range local {
			g.self.addAddr(netip.AddrPortFrom(a, bound.Port()))
		}
	}
	for _, alias := range c.Aliases {
		host, port, ok := splitHostPort(alias)
		if !ok {
			return fmt.Errorf("%w: alias %q", ErrAdvertise, alias)
		}
		if _, isAddr := sip.ParseHost([]byte(host)); isAddr && port == portAny {
			port = bound.Port()
		}
		g.self.add(host, port)
	}
	g.listeners = append(g.listeners, l)
	g.byTag[c.Listener.Tag] = l
	return nil
}

// advertise finds what the listener writes into Via and Record-Route.
func (l *listener) advertise(bound netip.AddrPort, local []netip.Addr) error {
	l.port = bound.Port()
	if l.Advertise != "" {
		host, port, ok := splitHostPort(l.Advertise)
		if !ok {
			return fmt.Errorf("%w: advertise %q", ErrAdvertise, l.Advertise)
		}
		l.host = host
		if port != 0 {
			l.port = port
		}
	} else {
		a := bound.Addr()
		if a.IsUnspecified() {
			a = ownAddress(a, local)
		}
		l.host = a.String()
		if a.Is6() {
			l.host = "[" + l.host + "]"
		}
	}
	l.sent = fmt.Sprintf("%s:%d", l.host, l.port)
	l.uri = "sip:" + l.sent
	if l.Listener.Kind == transport.TLS {
		l.secure = "sips:" + l.sent
	}
	if k := l.Listener.Kind; k == transport.TLS && !l.TLSURI {
		l.uri = l.secure // SX-11
	} else if k != transport.UDP {
		word := strings.ToLower(k.String())
		if k == transport.WSS {
			word = "ws" // RFC 7118 section 5: both write ws
		}
		l.uri += ";transport=" + word
	}
	return nil
}

// ownAddress picks the address that stands for a wildcard: the first of the host's that others can reach.
func ownAddress(wild netip.Addr, local []netip.Addr) netip.Addr {
	for _, a := range local {
		a = a.Unmap()
		if (a.Is4() == wild.Is4() || wild.Is6()) && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			return a
		}
	}
	if wild.Is4() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}

func (g *Generation) addDomains(domains []string) {
	for _, d := range domains {
		d = strings.TrimSuffix(strings.ToLower(d), ".")
		switch {
		case d == "" || d == "*":
		case strings.HasPrefix(d, "*."):
			g.suffixes = append(g.suffixes, d[1:])
		default:
			g.served = append(g.served, d)
			if _, isAddr := sip.ParseHost([]byte(d)); !isAddr {
				g.self.add(d, portAny)
			}
		}
	}
}

func (g *Generation) addPool(c PoolConfig) {
	if c.Tries <= 0 {
		c.Tries = defaultTries
	}
	p := &pool{PoolConfig: c, servers: map[uint32]*server{}}
	g.pools = append(g.pools, p)
	t := c.Pool.Table()
	if t == nil {
		return
	}
	for i := range t.Members {
		m := &t.Members[i]
		s := &server{state: m.Server, name: m.Name, tag: m.Tag, pool: p, obs: c.Obs[m.Name]}
		for _, a := range m.Addresses {
			if k, ok := kindOf(a.Transport); ok && a.Proto == routing.SIP {
				host := a.Host
				if peer := c.Peers[m.Name]; peer != "" && k.Secure() {
					host = peer
				}
				s.addrs = append(s.addrs, serverAddr{k, fold(a.Addr), host})
				g.addAddress(s, k, fold(a.Addr), a.Host)
			}
		}
		p.servers[s.tag] = s
	}
}

func (g *Generation) addAddress(s *server, k transport.Kind, a netip.AddrPort, host string) {
	if _, taken := g.servers[a]; !taken {
		g.servers[a] = s
	}
	if _, taken := g.udp[a]; !taken {
		g.udp[a] = s
	}
	if k.Reliable() && !a.Addr().IsLoopback() && !g.ownAddr(a.Addr()) {
		if _, taken := g.hosts[a.Addr()]; !taken {
			g.hosts[a.Addr()] = s
		}
	}
	if host == "" {
		return
	}
	h, _, ok := splitHostPort(host)
	if _, isAddr := sip.ParseHost([]byte(h)); ok && !isAddr {
		g.names[fmt.Sprintf("%s:%d", strings.ToLower(h), a.Port())] = s
	}
}

// ownAddr says whether one of our sockets has that address, whatever its port: then a source address alone proves
// nothing (decisions.md, who is inside).
func (g *Generation) ownAddr(a netip.Addr) bool {
	for own := range g.self.addrs {
		if own.Addr() == a {
			return true
		}
	}
	return false
}

func (g *Generation) addTarget(c TargetConfig) {
	if c.Schemes == nil {
		c.Schemes = []string{"sip", "sips", "tel", "urn"}
	}
	t := &target{TargetConfig: c}
	if t.Obs == nil {
		t.Obs = &obs.Target{}
	}
	for _, p := range g.pools {
		if p.Pool == c.Target.Pool {
			t.pool = p
			p.targets = append(p.targets, t)
		}
	}
	if t.pool == nil {
		return
	}
	g.targets = append(g.targets, t)
	g.targetTag[c.Target.Tag] = t
	name := c.Target.Tokens.SIPParameter
	if name == "" {
		name = defaultToken
	}
	if !hasWord(g.tokenNames, name) {
		g.tokenNames = append(g.tokenNames, name)
	}
	t.param = ";lr;" + name + "="
}

// schemes joins what the applications behind a listener take.
func (g *Generation) schemes(l *listener) []string {
	var out []string
	for _, t := range g.targets {
		for _, s := range t.Schemes {
			if !hasWord(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

func hasWord(list []string, w string) bool {
	for _, x := range list {
		if strings.EqualFold(x, w) {
			return true
		}
	}
	return false
}

// of finds this generation's view of a target that a Matcher gave.
func (g *Generation) of(t *proxy.Target) *target {
	if t == nil {
		return nil
	}
	return g.targetTag[t.Tag]
}

// serves says whether a host is one of the applications' own, exact or by suffix.
func (g *Generation) serves(host []byte) bool {
	for _, d := range g.served {
		if sip.EqualFold(host, d) {
			return true
		}
	}
	for _, s := range g.suffixes {
		if len(host) > len(s) && sip.EqualFold(host[len(host)-len(s):], s) {
			return true
		}
	}
	return false
}

// source finds the server that a message comes from: over UDP by address and port, on a stream by a connection that we
// opened, or by an address that is neither ours nor a client's (decisions.md).
func (g *Generation) source(in *transport.Inbound, l *listener) *server {
	if l.NoServers && !in.Outgoing {
		return nil
	}
	if in.Kind == transport.UDP || in.Outgoing {
		return g.udp[in.Remote]
	}
	return g.hosts[in.Remote.Addr()]
}

// nextHop finds the pool member that a URI names as the next hop.
func (g *Generation) nextHop(u *sip.URI) *server {
	if !u.SIP() {
		return nil
	}
	port, _ := portOf(u.Port, secureURI(u))
	if a, ok := sip.ParseHost(u.Host); ok {
		return g.servers[netip.AddrPortFrom(a, port)]
	}
	if len(g.names) == 0 || len(u.Host) > maxHostName {
		return nil
	}
	var buf [maxHostName + 8]byte
	name := sip.AppendLower(buf[:0], u.Host)
	name = append(name, ':')
	name = appendPort(name, port)
	return g.names[string(name)]
}

// named finds the listener whose Record-Route entry a URI is; nil when none fits.
func (g *Generation) named(u *sip.URI) *listener {
	port, _ := portOf(u.Port, secureURI(u))
	word, _ := u.Param("transport")
	for _, l := range g.listeners {
		if l.port == port && sip.EqualFold(u.Host, l.host) && kindFits(l.Listener.Kind, word) {
			return l
		}
	}
	return nil
}

// outgoing picks the listener whose socket and name a request leaves with: the one it came in on when transport and
// family fit, else the first that fits and admits servers, else the first with that transport, else the one it came in
// on: then our side of a stream has no name of its own.
func (g *Generation) outgoing(in *listener, k transport.Kind, to netip.Addr) *listener {
	if in.fits(k, to) {
		return in
	}
	var second *listener
	for _, l := range g.listeners {
		if l.fits(k, to) {
			if !l.NoServers {
				return l
			}
			second = l
		}
	}
	if second != nil {
		return second
	}
	for _, l := range g.listeners {
		if l.Listener.Kind == k {
			return l
		}
	}
	return in
}

// tagged finds the listener of a tag for a destination. A listener bound to every address is two, one for each family,
// and both have its tag.
func (g *Generation) tagged(tag uint16, k transport.Kind, to netip.Addr) *listener {
	for _, l := range g.listeners {
		if l.Listener.Tag == tag && l.fits(k, to) {
			return l
		}
	}
	return g.byTag[tag]
}

// fits says whether a message to that address can leave by the listener.
func (l *listener) fits(k transport.Kind, to netip.Addr) bool {
	a := l.Listener.Addr.Addr()
	if l.Listener.Kind != k || a.IsLoopback() != to.IsLoopback() && !a.IsUnspecified() {
		return false
	}
	return a.Unmap().Is4() == to.Is4() || a.IsUnspecified() && a.Is6()
}

// address picks the server's address for a transport; the first one when it has none of that kind.
func (s *server) address(k transport.Kind) *serverAddr {
	for i := range s.addrs {
		if s.addrs[i].kind == k {
			return &s.addrs[i]
		}
	}
	return nil
}

// takesKnown says whether what belongs to the server already may still go there.
func (s *server) takesKnown(now time.Time) bool {
	if !s.until.IsZero() {
		return now.Before(s.until)
	}
	return s.state.TakesKnown(routing.SIP)
}

func kindOf(word string) (transport.Kind, bool) {
	for k := transport.UDP; k <= transport.WSS; k++ {
		if strings.EqualFold(k.String(), word) {
			return k, true
		}
	}
	return 0, false
}

// kindFits compares a transport parameter with a listener; none written means UDP, or TLS for sips.
func kindFits(k transport.Kind, word []byte) bool {
	switch {
	case len(word) == 0:
		return k == transport.UDP || k == transport.TLS
	case sip.EqualFold(word, "ws"):
		return k == transport.WS || k == transport.WSS
	}
	return sip.EqualFold(word, k.String())
}
