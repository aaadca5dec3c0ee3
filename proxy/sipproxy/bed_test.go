package sipproxy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// packet is one message that the proxy sent.
type packet struct {
	to       string // address, "flow N" into a client's connection
	kind     transport.Kind
	listener string
	flow     uint64 // of a connection to a server
	text     string
	name     string // that a connection was opened for
}

// net is a network without sockets: it notes what is sent, and refuses what a test says.
type fakeNet struct {
	sent   []packet
	flows  map[uint64]bool // living flows of clients
	refuse map[string]error
	next   uint64
	closed []uint64

	aliases []string          // what clients asked for, "flow address"
	alias   map[string]uint64 // flows by "address host"
}

func (n *fakeNet) About(uint32) {}

func (n *fakeNet) Datagram(l *transport.Listener, dst netip.AddrPort, b []byte) {
	n.sent = append(n.sent, packet{to: dst.String(), kind: transport.UDP, listener: l.Name, text: string(b)})
}

func (n *fakeNet) OnFlow(flow uint64, b []byte) error {
	if !n.flows[flow] {
		return transport.ErrFlowGone
	}
	n.sent = append(n.sent, packet{to: fmt.Sprintf("flow %d", flow), kind: transport.TCP, flow: flow, text: string(b)})
	return nil
}

func (n *fakeNet) ToServer(l *transport.Listener, k transport.Kind, dst netip.AddrPort, name string, _ uint32, b []byte) (uint64, error) {
	if err := n.refuse[dst.String()]; err != nil {
		return 0, err
	}
	n.next++
	n.sent = append(n.sent, packet{dst.String(), k, l.Name, 1000 + n.next, string(b), name})
	return 1000 + n.next, nil
}

func (n *fakeNet) Alias(flow uint64, at netip.AddrPort) {
	n.aliases = append(n.aliases, fmt.Sprint(flow, " ", at))
}

func (n *fakeNet) OnAlias(dst netip.AddrPort, host, b []byte) (uint64, error) {
	if flow := n.alias[dst.String()+" "+string(host)]; flow != 0 {
		return flow, n.OnFlow(flow, b)
	}
	return 0, transport.ErrFlowGone
}

func (n *fakeNet) Flush()                 {}
func (n *fakeNet) CloseAfter(flow uint64) { n.closed = append(n.closed, flow) }

// bed is a proxy with one worker, a clock that only tests move, and servers and clients made of text.
type bed struct {
	t     testing.TB
	p     *Proxy
	w     *worker
	net   *fakeNet
	now   time.Time
	reg   *routing.Registry
	pool  *routing.Pool
	gen   *Generation
	socks map[string]*transport.Listener
	ring  *obs.Ring
	opt   bedOptions
}

// bedOptions says how a bed differs from the plain one: servers as1 to as3 at 10.20.1.11 to .13 over UDP, listeners
// sip-udp and sip-tcp on 203.0.113.10:5060, one application that takes everything.
type bedOptions struct {
	servers   []string // "name transport address", several addresses with "+"
	target    func(*TargetConfig)
	listener  func(*ListenerConfig)
	listeners []string // "name transport address"
	passive   routing.Passive
	policy    func(*routing.Config)
	secret    string
	config    func(*Config)
	domains   []string
	matcher   func(*proxy.Matcher, *proxy.Target)
	number    uint64
	peers     map[string]string // names of servers over TLS
}

func newBed(t testing.TB, o bedOptions) *bed {
	t.Helper()
	if o.servers == nil {
		o.servers = []string{"as1 udp 10.20.1.11:5060", "as2 udp 10.20.1.12:5060", "as3 udp 10.20.1.13:5060"}
	}
	if o.listeners == nil {
		o.listeners = []string{"sip-udp udp 203.0.113.10:5060", "sip-tcp tcp 203.0.113.10:5060"}
	}
	b := &bed{
		t: t, net: &fakeNet{flows: map[uint64]bool{}, refuse: map[string]error{}}, now: time.Unix(1_800_000_000, 0),
		reg: &routing.Registry{}, socks: map[string]*transport.Listener{}, ring: obs.NewRing(1024, nil), opt: o,
	}
	for _, l := range o.listeners {
		f := strings.Fields(l)
		k, _ := kindOf(f[1])
		b.socks[f[0]] = &transport.Listener{Name: f[0], Tag: uint16(xxhash.Sum64String(f[0])), Kind: k, Addr: netip.MustParseAddrPort(f[2])}
	}
	c := Config{Ports: []Port{{In: nil, Out: b.net, Log: b.ring}}, Panic: func(v any, stack []byte) { t.Errorf("panic: %v\n%s", v, stack) }}
	if o.config != nil {
		o.config(&c)
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	b.p, b.w = p, p.workers[0]
	b.p.Swap(b.build(), b.now, false)
	b.settle()
	return b
}

// build makes a generation from the bed's options; a test changes those and swaps.
func (b *bed) build() *Generation {
	b.t.Helper()
	var members []routing.Member
	for _, s := range b.opt.servers {
		f := strings.Fields(s)
		m := routing.Member{Server: b.reg.Server("app", f[0]), Weight: 100}
		for i, a := range strings.Split(f[2], "+") {
			m.Addresses = append(m.Addresses, routing.Address{Proto: routing.SIP, Transport: strings.Split(f[1], "+")[i], Addr: netip.MustParseAddrPort(a)})
		}
		members = append(members, m)
	}
	table, err := routing.NewTable(members, routing.HashSettings{Partitions: 1021, Replicas: 40})
	if err != nil {
		b.t.Fatal(err)
	}
	rc := routing.Config{Passive: b.opt.passive, PanicRefuse: true, Now: func() time.Time { return b.now }}
	if b.opt.policy != nil {
		b.opt.policy(&rc)
	}
	b.pool = routing.NewPool(b.reg, "app", rc, table)
	b.pool.Activate()
	target := &proxy.Target{Service: "voice", Application: "main", Name: "voice/main", Tag: tag32("voice/main"), Kind: routing.Converged, Pool: b.pool, SIPKey: callerParts}
	tc := TargetConfig{Target: target}
	if b.opt.target != nil {
		b.opt.target(&tc)
	}
	var m proxy.Matcher
	if b.opt.matcher != nil {
		b.opt.matcher(&m, target)
	} else {
		m.Add(proxy.Pattern{}, target)
	}
	secret := b.opt.secret
	if secret == "" {
		secret = "wyegate test secret"
	}
	secrets, err := proxy.NewSecrets([]proxy.Secret{{Bytes: []byte(secret)}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.opt.number++
	g := GenerationConfig{Number: b.opt.number, Secrets: secrets, Pools: []PoolConfig{{Pool: b.pool, Peers: b.opt.peers}}, Targets: []TargetConfig{tc}, Domains: b.opt.domains}
	for _, l := range b.opt.listeners {
		lc := ListenerConfig{Listener: b.socks[strings.Fields(l)[0]], Matcher: &m, PathHeader: true}
		if b.opt.listener != nil {
			b.opt.listener(&lc)
		}
		g.Listeners = append(g.Listeners, lc)
	}
	b.gen, err = NewGeneration(g)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.gen
}

// restart makes a new process with the same configuration and secrets: nothing is remembered.
func (b *bed) restart() {
	b.t.Helper()
	p, err := New(b.p.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.p, b.w = p, p.workers[0]
	b.p.Swap(b.build(), b.now, false)
	b.settle()
}

func (b *bed) settle() { b.pass(0) }

// pass moves the clock and does what is due on the way, in steps as a worker would be woken.
func (b *bed) pass(d time.Duration) []packet {
	end := b.now.Add(d)
	b.net.sent = nil
	for {
		b.w.now = b.now
		b.w.batch(nil, nil)
		next := b.w.until()
		if next.IsZero() || next.After(end) {
			break
		}
		if next.After(b.now) {
			b.now = next
		}
	}
	b.now = end
	b.w.now = b.now
	b.w.batch(nil, nil)
	return b.net.sent
}

// from is where a message comes from.
type from struct {
	listener string
	remote   string
	flow     uint64 // streams
	outgoing bool
}

func udp(remote string) from { return from{listener: "sip-udp", remote: remote} }
func tcp(flow uint64, remote string) from {
	return from{listener: "sip-tcp", remote: remote, flow: flow}
}

// in gives one message to the proxy and returns what it sends because of it.
func (b *bed) in(f from, text string) []packet {
	b.t.Helper()
	l := b.socks[f.listener]
	remote := netip.MustParseAddrPort(f.remote)
	if f.flow != 0 && !f.outgoing {
		b.net.flows[f.flow] = true
	}
	b.net.sent = nil
	b.w.now = b.now
	b.w.batch([]transport.Inbound{{Bytes: []byte(text), Listener: l, Kind: l.Kind, Flow: f.flow, Outgoing: f.outgoing, Remote: remote, Source: remote, Local: l.Addr}}, nil)
	sent := b.net.sent
	for i := range sent {
		b.wellFormed(sent[i].text)
	}
	return sent
}

func (b *bed) event(e transport.Event) []packet {
	b.net.sent = nil
	b.w.now = b.now
	b.w.batch(nil, []transport.Event{e})
	return b.net.sent
}

// wellFormed holds for whatever leaves.
func (b *bed) wellFormed(text string) {
	b.t.Helper()
	var m sip.Msg
	if err := m.Parse([]byte(text)); err != nil {
		b.t.Errorf("sent what does not parse: %v\n%s", err, text)
	}
	if bad := sip.Validate(&m, &sip.Options{}); bad != nil && bad != sip.ErrTooManyHops {
		b.t.Errorf("sent what is not valid: %v\n%s", bad, text)
	}
}

// one wants exactly one message.
func (b *bed) one(sent []packet) packet {
	b.t.Helper()
	if len(sent) != 1 {
		b.t.Fatalf("%d messages were sent, want 1: %v", len(sent), sent)
	}
	return sent[0]
}

func (b *bed) none(sent []packet) {
	b.t.Helper()
	if len(sent) != 0 {
		b.t.Fatalf("sent what should not be: %v", sent)
	}
}

// server sends a text from the server that a packet went to.
func (b *bed) from(p packet, text string) []packet {
	b.t.Helper()
	if p.kind == transport.UDP {
		return b.in(from{listener: p.listener, remote: p.to}, text)
	}
	return b.in(from{listener: p.listener, remote: p.to, flow: p.flow, outgoing: true}, text)
}

// values gives the values of a field, one per line, as they stand.
func values(text, name string) (out []string) {
	head, _, _ := strings.Cut(text, "\r\n\r\n")
	for _, line := range strings.Split(head, "\r\n")[1:] {
		n, v, _ := strings.Cut(line, ":")
		if strings.EqualFold(strings.TrimSpace(n), name) {
			out = append(out, strings.TrimSpace(v))
		}
	}
	return out
}

func value(text, name string) string {
	if v := values(text, name); len(v) > 0 {
		return v[0]
	}
	return ""
}

func startLine(text string) string {
	line, _, _ := strings.Cut(text, "\r\n")
	return line
}

func status(text string) string {
	f := strings.SplitN(startLine(text), " ", 3)
	if len(f) < 2 || f[0] != "SIP/2.0" {
		return ""
	}
	return f[1]
}

// branchOf gives the branch of the top Via.
func branchOf(text string) string {
	_, b, _ := strings.Cut(value(text, "Via"), "branch=")
	b, _, _ = strings.Cut(b, ";")
	return b
}

// respond makes the response of a UAS to a request: Vias, Record-Route, tags as RFC 3261 8.2.6.2.
func respond(req string, code int, toTag string, extra ...string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "SIP/2.0 %d X\r\n", code)
	for _, v := range values(req, "Via") {
		fmt.Fprintf(&s, "Via: %s\r\n", v)
	}
	for _, v := range values(req, "Record-Route") {
		fmt.Fprintf(&s, "Record-Route: %s\r\n", v)
	}
	to := value(req, "To")
	if toTag != "" && !strings.Contains(to, "tag=") {
		to += ";tag=" + toTag
	}
	fmt.Fprintf(&s, "From: %s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %s\r\n", value(req, "From"), to, value(req, "Call-ID"), value(req, "CSeq"))
	for _, e := range extra {
		s.WriteString(e + "\r\n")
	}
	s.WriteString("Content-Length: 0\r\n\r\n")
	return s.String()
}

// ua is what a user agent writes its requests from.
type ua struct {
	via     string // "UDP 192.0.2.7:5070"
	from    string // tag
	to      string // tag
	callID  string
	uri     string
	routes  []string
	branch  string
	extra   []string
	swapped bool // the callee speaks: From and To change places
}

func (u *ua) request(method string, cseq int) string {
	uri := u.uri
	if uri == "" {
		uri = "sip:team@ex.com"
	}
	tagged := func(who, tag string) string {
		if tag == "" {
			return who
		}
		return who + ";tag=" + tag
	}
	a, b := "<sip:alice@ex.com>", "<sip:team@ex.com>"
	if u.swapped {
		a, b = b, a
	}
	of := method
	if method == "ACK" || method == "CANCEL" {
		of = "INVITE"
	}
	branch := u.branch
	if branch == "" {
		branch = fmt.Sprintf("z9hG4bK%s-%s-%d", u.callID, of, cseq)
		if method == "ACK" && u.to != "" && len(u.routes) > 0 {
			branch += "-ack"
		}
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s %s SIP/2.0\r\nVia: SIP/2.0/%s;branch=%s\r\n", method, uri, u.via, branch)
	for _, r := range u.routes {
		fmt.Fprintf(&s, "Route: %s\r\n", r)
	}
	fmt.Fprintf(&s, "Max-Forwards: 70\r\nFrom: %s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %d %s\r\n", tagged(a, u.from), tagged(b, u.to), u.callID, cseq, method)
	for _, e := range u.extra {
		s.WriteString(e + "\r\n")
	}
	s.WriteString("Content-Length: 0\r\n\r\n")
	return s.String()
}

// alice calls over UDP, trunk over TCP.
func alice(callID string) *ua { return &ua{via: "UDP 192.0.2.7:5070", from: "a1", callID: callID} }
func trunk(callID string) *ua { return &ua{via: "TCP 192.0.2.8:5070", from: "a1", callID: callID} }

var (
	aliceAt = udp("192.0.2.7:5070")
	trunkAt = tcp(7, "192.0.2.8:40000")
)

// lines gives what the access log has, and empties it.
func (b *bed) lines() (out []*obs.Record) {
	for b.ring.Take(func(r *obs.Record) { c := *r; out = append(out, &c) }) {
	}
	return out
}

// routeSet is the route set of a UAC: Record-Route from bottom to top.
func routeSet(text string) (out []string) {
	rr := values(text, "Record-Route")
	for i := len(rr) - 1; i >= 0; i-- {
		out = append(out, rr[i])
	}
	return out
}

// down takes a server down, as probes would.
func (b *bed) down(name string) {
	b.pool.SetHealth(b.reg.Server("app", name), routing.SIP, routing.Down, "test", b.now)
}

func (b *bed) up(name string) {
	b.pool.SetHealth(b.reg.Server("app", name), routing.SIP, routing.Up, "test", b.now)
}

// nameAt gives the server of an address.
func (b *bed) nameAt(addr string) string {
	for _, s := range b.opt.servers {
		if f := strings.Fields(s); strings.Contains(f[2], addr) {
			return f[0]
		}
	}
	return addr
}

func addrPortOf(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
