package sipproxy

import (
	"bytes"
	"fmt"
	"net/netip"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// verb is what is to be done with a request.
type verb uint8

const (
	doServer  verb = iota // forward to a server of a pool
	doAddress             // forward outwards
	doFlow                // forward into a client's connection
	doAnswer              // answer it here
	doPark                // wait for a number, a name or another worker
	doDrop
)

// decision is where a request goes and why. A lease in it is counted: whoever gets it gives it back or keeps it.
type decision struct {
	verb verb
	by   string // word of Explanation.Decided

	t      *target
	s      *server
	lease  routing.Lease
	hash   uint64
	hasKey bool
	key    []byte // lent: until the worker's scratch is used again
	pinned bool
	source proxy.KeySource
	rule   int
	how    routing.How
	retag  bool // a 481 is tried once more with the other tag (SA-3)
	moved  bool // not where the transaction was before (section 9)

	kind transport.Kind // doAddress
	addr netip.AddrPort
	flow uint64 // doFlow
	host []byte // name of an outward next hop, for TLS
	out  *listener
	only bool // flow gone: 430, never a new connection

	status int
	rest   bool   // with Retry-After
	after  uint64 // of that many seconds; 0: as SH-7 says
	disp   [2]byte
	park   parkFor
	number []byte
	name   NextHop
}

func refuse(status int, by string, who, phase byte) decision {
	return decision{verb: doAnswer, status: status, by: by, rule: -1, disp: [2]byte{who, phase}}
}

// noServer is SH-7: 503 with Retry-After at once; nothing for an ACK.
func noServer(d decision) decision {
	d.verb, d.status, d.rest, d.by, d.disp = doAnswer, 503, true, "refused", [2]byte{'R', 'Q'}
	d.s = nil
	return d
}

// decide is section 3 of sip-http.md, from step 5 on: where a request goes and why. Traffic, live explain and offline
// explain all ask it; only the first has an explanation that is nil, and only it takes leases. e is what the memory has
// of the transaction, nil when nothing is known or nothing is asked.
func (w *worker) decide(r *request, e *entry, x *proxy.Explanation) decision {
	x.Note("source", sourceText(r, x))
	if e != nil {
		if d, ok := w.remembered(r, e, x); ok {
			return d
		}
	}
	if r.inside != nil {
		if d, ok := w.fromServer(r, x); ok {
			return d
		}
	}
	if s := w.addressed(r); s != nil {
		if d, ok := w.toMember(r, s, x); ok {
			return d
		}
	}
	if r.hasTok && r.tok.HasServer {
		if d, ok := w.byToken(r, r.tokTarget, x); ok {
			return d
		}
	}
	if d, ok := w.byDialog(r, x); ok {
		return d
	}
	if r.asksUs() {
		x.Note("local", "OPTIONS to wyegate itself")
		return w.ownOptions(r)
	}
	return w.byKey(r, nil, x)
}

func sourceText(r *request, x *proxy.Explanation) string {
	if x == nil {
		return ""
	}
	if r.inside != nil {
		return "comes from server " + r.inside.name
	}
	return "comes from outside"
}

// remembered keeps a transaction where it is (ST-4), subject to section 9: what has no response yet leaves a server that
// cannot take it any more.
func (w *worker) remembered(r *request, e *entry, x *proxy.Explanation) (decision, bool) {
	d := decision{by: "memory", rule: -1, out: r.g.byTag[e.out], kind: e.kind}
	switch e.place {
	case toAddress:
		d.verb, d.addr, d.host = doAddress, e.addr(), r.outwardURI().Host
		d.out = r.g.tagged(e.out, e.kind, d.addr.Addr())
		d.t = w.outwardTarget(r)
		if w.lost(r, e) {
			if d.moved = w.nextEndpoint(r, &d, w.pendingOf(e)); d.moved {
				x.Note("memory", "the transaction goes outwards, to the next place that its next hop stands for")
				return d, true
			}
			x.Note("memory", "there is no way to where the transaction goes")
			return *unreachableAnswer(&d), true
		}
		x.Note("memory", "the transaction goes outwards")
		return d, d.out != nil
	case toFlow:
		d.verb, d.flow = doFlow, e.flow()
		d.t = w.outwardTarget(r)
		x.Note("memory", "the transaction goes into a connection")
		return d, true
	case toNobody:
		return d, false
	}
	d.t, d.s = r.g.targetTag[e.target()], r.g.server(e.target(), e.server())
	d.hash, d.hasKey, d.pinned = e.hash(), e.has(flagKey), e.has(flagPinned)
	if d.t == nil {
		return d, false
	}
	lost := w.lost(r, e)
	if d.s != nil && (e.phase != sent || r.class == ack || d.s.takesKnown(r.now) && !lost) {
		x.Note("memory", "the transaction is known")
		return d, true
	}
	if r.class == ack {
		d.verb = doDrop
		return d, true
	}
	req := routing.Request{Hash: d.hash, HasKey: d.hasKey, Known: e.server(), Recent: true}
	if p := w.pendingOf(e); p != nil {
		req.Avoid = p.avoid
		if lost && p.avoid.Len() >= d.t.pool.Tries {
			return *unreachableAnswer(&d), true
		}
	}
	d.source, d.by = proxy.SourceNone, "memory"
	x.Note("memory", "the server of the transaction cannot take it any more")
	if !w.acquire(r, &d, &req, x) {
		return noServer(d), true
	}
	d.moved = d.s.tag != e.server()
	return d, true
}

// lost says that a copy of a request is at hand whose last attempt ended in a transport error.
func (w *worker) lost(r *request, e *entry) bool {
	if r.class == ack || r.class == cancel || e.phase != sent {
		return false
	}
	p := w.pendingOf(e)
	return p != nil && p.lost
}

// addressed finds the pool member that the next Route, or without one the Request-URI, names.
func (w *worker) addressed(r *request) *server {
	if r.hasNext {
		return r.g.nextHop(&r.next)
	}
	return r.g.nextHop(&r.uri)
}

// toMember sends to the pool member that the message names: no hashing. A member that cannot serve leaves it to the key
// (step 7 f).
func (w *worker) toMember(r *request, s *server, x *proxy.Explanation) (decision, bool) {
	t := w.targetOf(r, s)
	if t == nil {
		return decision{}, false
	}
	d := decision{t: t, by: "address", rule: -1}
	req := routing.Request{Known: s.tag, Pinned: true}
	if r.hasTok && r.tokTarget == t {
		req.Hash, req.HasKey = r.tok.Hash, r.tok.HasKey
		d.hash, d.hasKey, d.pinned = r.tok.Hash, r.tok.HasKey, r.tok.Pinned
		d.source = proxy.SourceToken
	}
	if !s.takesKnown(r.now) && !req.HasKey {
		x.Note("address", "the message names "+s.name+", which cannot serve")
		return w.byKey(r, t, x), true
	}
	if !w.acquire(r, &d, &req, x) {
		return noServer(d), true
	}
	if d.s.tag != s.tag && d.source == proxy.SourceToken {
		d.source = proxy.SourceStaleToken
	}
	if x != nil {
		x.Note("address", "the message names "+s.name+" as its next hop")
	}
	return d, true
}

// targetOf finds the application that a message to a named server belongs to: that of its token, that of its host, else
// the first of the pool.
func (w *worker) targetOf(r *request, s *server) *target {
	if r.tokTarget != nil && r.tokTarget.pool == s.pool {
		return r.tokTarget
	}
	if t := w.match(r); t != nil && t.pool == s.pool {
		return t
	}
	if len(s.pool.targets) > 0 {
		return s.pool.targets[0]
	}
	return nil
}

// byToken goes by server and key hash of a token (dcr.md 5.8). Server gone and no key: as an initial request.
func (w *worker) byToken(r *request, t *target, x *proxy.Explanation) (decision, bool) {
	d := decision{t: t, by: "token", rule: -1, source: proxy.SourceToken, hash: r.tok.Hash, hasKey: r.tok.HasKey, pinned: r.tok.Pinned}
	req := routing.Request{Known: r.tok.Server, Pinned: r.tok.Pinned, Hash: r.tok.Hash, HasKey: r.tok.HasKey}
	s := t.pool.servers[r.tok.Server]
	if !r.tok.HasKey && (s == nil || !s.takesKnown(r.now)) {
		x.Note("token", "its server is gone and it carries no key")
		return d, false
	}
	x.Note("token", "a valid token names server and key")
	if !w.acquire(r, &d, &req, x) {
		return noServer(d), true
	}
	if d.s.tag != r.tok.Server {
		d.source = proxy.SourceStaleToken
		x.Note("token", "the server it names cannot serve: next choice of its key")
	}
	return d, true
}

// byDialog uses the dialog hints: for an initial request that names another dialog (SA-6), and for a To tag without a
// token (SA-3).
func (w *worker) byDialog(r *request, x *proxy.Explanation) (decision, bool) {
	var a answer
	by := "hint"
	switch {
	case r.hasTok:
		return decision{}, false
	case len(r.id.toTag) > 0:
		a = w.hinted(r.g, r.id.callID, r.id.fromTag, r.id.toTag)
	default:
		callID, one, two, named := namedDialog(r.m)
		if !named {
			return decision{}, false
		}
		by = "replaces"
		switch {
		case r.other != nil:
			a = *r.other
		case w.owner(callID) != w.id && x == nil:
			return decision{verb: doPark, park: parkHint, by: by, rule: -1}, true
		default:
			a = w.ownerOf(callID).hinted(r.g, callID, one, two)
		}
	}
	t, s := r.g.targetTag[a.target], r.g.server(a.target, a.server)
	if !a.known || t == nil || s == nil || !s.takesKnown(r.now) {
		return decision{}, false
	}
	d := decision{t: t, by: by, rule: -1}
	req := routing.Request{Known: s.tag, Pinned: true}
	if !w.acquire(r, &d, &req, x) {
		return decision{}, false
	}
	x.Note(by, "the dialog is known here")
	return d, true
}

// hinted looks one dialog up under both tags.
func (w *worker) hinted(g *state, callID, one, two []byte) answer {
	k := g.secrets.Writer()
	for _, tag := range [2][]byte{one, two} {
		if len(tag) == 0 {
			continue
		}
		var key uint64
		key, w.buf = hintKey(k, callID, tag, w.buf)
		if h := w.hints.find(key); h != nil {
			return answer{h.target, h.server, true}
		}
	}
	return answer{}
}

// namedDialog reads the dialog that Replaces, Join or Target-Dialog names: Call-ID and both tags.
func namedDialog(m *sip.Msg) (callID, one, two []byte, ok bool) {
	for _, f := range [3]struct {
		id       sip.HeaderID
		one, two string
	}{
		{sip.Replaces, "to-tag", "from-tag"}, {sip.Join, "to-tag", "from-tag"}, {sip.TargetDialog, "local-tag", "remote-tag"},
	} {
		v := m.Value(f.id)
		if len(v) == 0 {
			continue
		}
		id, _, _ := bytes.Cut(v, []byte(";"))
		params := v[len(id):]
		one, _ = sip.HeaderParam(params, f.one)
		two, _ = sip.HeaderParam(params, f.two)
		if id = bytes.TrimRight(id, " \t\r\n"); len(id) > 0 {
			return id, one, two, true
		}
	}
	return nil, nil, nil, false
}

// match finds the application of a request by the host of its Request-URI.
func (w *worker) match(r *request) *target {
	if r.l.Matcher == nil {
		return nil
	}
	w.host = w.host[:0]
	if r.uri.SIP() {
		w.host = sip.AppendLower(w.host, r.uri.Host)
	}
	return r.g.of(r.l.Matcher.MatchHost(w.host, takesSIP))
}

func takesSIP(t *proxy.Target) bool { return t.Kind != routing.Web }

// byKey is the way of an initial request: application, key, first choice that accepts new traffic. t is the application
// when it is known already.
func (w *worker) byKey(r *request, t *target, x *proxy.Explanation) decision {
	if t == nil {
		if t = w.match(r); t == nil {
			x.Note("application", "none takes this host")
			return refuse(404, "refused", 'P', 'K')
		}
		if d, ok := w.relayed(r, t, x); ok {
			return d
		}
	}
	k := w.keyFor(r, t, x)
	if k.Number != nil {
		return decision{verb: doPark, park: parkNumber, number: k.Number, t: t, rule: -1, by: "rule"}
	}
	d := decision{t: t, by: "default", hash: k.Hash, hasKey: true, key: k.Bytes, source: k.Source, rule: k.Rule}
	if k.Source == proxy.SourceRule {
		d.by = "rule"
	}
	d.retag = k.Source == proxy.SourceDefault && len(r.id.toTag) > 0 && r.class != ack && r.class != cancel && !r.retag
	req := routing.Request{Hash: k.Hash, HasKey: true}
	if x != nil {
		x.Key, x.Source = string(k.Bytes), k.Source.String()
		x.Hash = fmt.Sprintf("0x%016x", k.Hash)
		if k.Rule >= 0 {
			rule := t.Target.Keyer.Rules()[k.Rule]
			x.Rule, x.RuleLine, x.RuleFile = rule.Path, rule.Line, t.Target.RuleFile
		}
	}
	if !w.acquire(r, &d, &req, x) {
		return noServer(d)
	}
	return d
}

// relayed is SR-10, SR-9: a next hop that is neither ours nor the pool's is never followed from outside.
func (w *worker) relayed(r *request, t *target, x *proxy.Explanation) (decision, bool) {
	if r.inside != nil {
		if t.RouteOnly {
			x.Note("server", "from_servers is route-only")
			return refuse(404, "refused", 'P', 'K'), true
		}
		return decision{}, false
	}
	if !t.ForeignRefuse {
		return decision{}, false
	}
	foreign := r.hasNext || r.uri.SIP() && !r.g.self.uri(&r.uri) && !r.g.serves(r.uri.Host)
	if !foreign {
		return decision{}, false
	}
	x.Note("foreign", "the next hop is neither ours nor the pool's")
	return refuse(403, "refused", 'P', 'K'), true
}

// keyFor gives the key of an initial request: a carried one of an older balancer, the rules, else the default key.
func (w *worker) keyFor(r *request, t *target, x *proxy.Explanation) proxy.Key {
	if r.bekey != nil && t.Target.ReadBEKey {
		w.bekey, _ = sip.AppendUnescaped(w.bekey[:0], r.bekey)
		x.Note("bekey", "an older balancer's parameter carries the key")
		return proxy.Key{Bytes: w.bekey, Hash: xxhash.Sum64(w.bekey), Source: proxy.SourceToken, Rule: -1}
	}
	w.view.r, w.view.t = r, t
	tr := x.RuleTrace()
	w.scratch.DCR.GiveUp = r.gaveUp
	if t.Target.Keyer == nil || tr != nil {
		k := t.Target.Key(&w.view, t.keyParts(), &w.scratch, tr)
		if tr != nil {
			x.Rules = append(x.Rules, tr.Steps...)
		}
		return k
	}
	k := w.timedKey(t)
	w.limits(t)
	return k
}

// timedKey evaluates the rules, and measures one evaluation in 64: the one reading of the clock beside the batch's.
func (w *worker) timedKey(t *target) proxy.Key {
	w.sample++
	o := t.Obs.RuleSeconds
	if o == nil || w.sample%64 != 0 {
		return t.Target.Key(&w.view, t.keyParts(), &w.scratch, nil)
	}
	start := time.Now()
	k := t.Target.Key(&w.view, t.keyParts(), &w.scratch, nil)
	o.Observe(time.Since(start).Seconds())
	return k
}

// limits counts what the evaluation had to give up.
func (w *worker) limits(t *target) {
	l := w.scratch.DCR.Limits()
	if l.Steps > 0 {
		count(t.Obs.RuleLimits[limitSteps])
	}
	if l.List > 0 {
		count(t.Obs.RuleLimits[limitList])
	}
}

// Indices of obs.RuleLimitWords.
const (
	limitSteps = iota
	limitList
	limitParked
)

var callerParts = []proxy.KeyPart{proxy.PartFromTag, proxy.PartCallID}

func (t *target) keyParts() []proxy.KeyPart {
	if len(t.Target.SIPKey) == 0 {
		return callerParts
	}
	return t.Target.SIPKey
}

// acquire takes a server for traffic; for an explanation it makes the same choice, counts nothing and writes down the
// order.
func (w *worker) acquire(r *request, d *decision, q *routing.Request, x *proxy.Explanation) bool {
	q.Policy, q.Proto = routing.HashPolicy, routing.SIP
	if x != nil {
		return w.explainChoice(r, d, q, x)
	}
	lease, err := d.t.pool.Pool.Acquire(q)
	if err != nil {
		return false
	}
	d.lease, d.how = lease, lease.How
	d.s = d.t.pool.servers[lease.Member.Tag]
	if d.s == nil { // the pool's table is newer than the generation
		d.lease.Done(routing.OutcomeClientFault)
		return false
	}
	return true
}

// ownOptions answers an OPTIONS to ourselves: 503 while this node drains, or when all pools are out.
func (w *worker) ownOptions(r *request) decision {
	d := decision{verb: doAnswer, status: 200, by: "local", rule: -1, disp: [2]byte{'L', '-'}}
	if w.p.draining.Load() || !w.anyUsable(r.g) {
		d.status, d.rest = 503, true
		if w.p.draining.Load() {
			d.disp[0] = 'D'
		}
	}
	return d
}

func (w *worker) anyUsable(g *state) bool {
	if len(g.pools) == 0 {
		return true
	}
	for _, p := range g.pools {
		if !p.out() {
			return true
		}
	}
	return false
}

// out says that no server of the pool gets new traffic.
func (p *pool) out() bool {
	lease, err := p.Pool.Acquire(&routing.Request{Policy: routing.HashPolicy, Proto: routing.SIP, HasKey: true})
	if err != nil {
		return true
	}
	lease.Done(routing.OutcomeClientFault)
	return false
}
