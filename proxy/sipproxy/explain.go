package sipproxy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// Why a message cannot be explained.
var (
	ErrNoListener   = errors.New("sipproxy: no such listener")
	ErrNoGeneration = errors.New("sipproxy: no configuration is in force")
)

// Query asks where a message would go.
type Query struct {
	Listener string // name; empty: the first
	Source   netip.AddrPort
	Message  []byte
	Outgoing bool // it came over a connection that we opened
	IfDown   []Assumption
	At       time.Time // offline only
}

// Assumption names servers that are taken for down together.
type Assumption struct {
	Name    string // key in Explanation.IfDown: a server's name, "site ams"
	Servers []string
}

// ExplainOffline explains a message by a generation alone: no memory, no hints, servers as the pools know them. It is
// the decision that traffic gets, from the same code.
func ExplainOffline(g *Generation, q *Query) (*proxy.Explanation, error) {
	p := &Proxy{proven: newProven(), cfg: Config{Ports: []Port{{}}, Entries: 1, Waiting: 1, Hints: 1, Arena: 1, Records: 1, Parked: 1}}
	w := newWorker(p, 0)
	p.workers = []*worker{w}
	w.now = q.At
	return w.explain(&state{Generation: g}, q, &answer{})
}

// Explain explains a message by what the node knows: the worker that owns its Call-ID is asked, and looks into its
// memory.
func (p *Proxy) Explain(ctx context.Context, q *Query) (*proxy.Explanation, error) {
	g := p.current.Load()
	if g == nil {
		return nil, ErrNoGeneration
	}
	var m sip.Msg
	_ = m.ParseDatagram(q.Message)
	other := &answer{}
	if callID, one, two, ok := namedDialog(&m); ok {
		w := p.workers[0].ownerOf(callID)
		if err := w.call(ctx, func() { *other = w.hinted(g, callID, one, two) }); err != nil {
			return nil, err
		}
	}
	w := p.workers[0].ownerOf(m.Value(sip.CallID))
	var x *proxy.Explanation
	var err error
	if e := w.call(ctx, func() { x, err = w.explain(g, q, other) }); e != nil {
		return nil, e
	}
	return x, err
}

// call runs f on the worker and waits for it.
func (w *worker) call(ctx context.Context, f func()) error {
	done := make(chan struct{})
	if !w.port.In.Post(transport.Event{Kind: transport.Call, Do: func() {
		defer close(done)
		f()
	}}) {
		return ErrBusy
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// explain decides with an explanation that is not nil.
func (w *worker) explain(g *state, q *Query, other *answer) (*proxy.Explanation, error) {
	l := g.listenerNamed(q.Listener)
	if l == nil {
		return nil, fmt.Errorf("%w: %q", ErrNoListener, q.Listener)
	}
	x := &proxy.Explanation{Listener: l.Listener.Name, Generation: g.number}
	in := transport.Inbound{
		Bytes: q.Message, Listener: l.Listener, Kind: l.Listener.Kind, Outgoing: q.Outgoing,
		Remote: fold(q.Source), Source: fold(q.Source), Local: l.Listener.Addr,
	}
	var m sip.Msg
	_ = m.ParseDatagram(q.Message)
	bad := sip.Validate(&m, &sip.Options{Schemes: l.schemes})
	x.Method, x.Target = string(m.Bytes(m.Method)), string(m.Bytes(m.URI))
	var r request
	w.read(&r, &in, &m, g, w.now)
	r.other = other
	x.Initial = r.initial()
	if d, why, ok := w.owed(&r, bad); ok {
		x.Decided, x.Status, x.Error = d.by, d.status, why
		return x, nil
	}
	e := w.known(&r)
	if e != nil && e.place == toNobody && r.class != ack && r.class != cancel {
		x.Decided, x.Status = "memory", int(e.port)
		x.Note("memory", "the transaction was answered here")
		return x, nil
	}
	w.ifDown = q.IfDown
	d := w.decide(&r, e, x)
	w.ifDown = nil
	w.describe(x, &r, &d)
	return x, nil
}

// known gives what the memory has of a request's transaction.
func (w *worker) known(r *request) *entry {
	slot := w.mem.find(methodKey(r.d, r.text))
	if slot == 0 && (r.class == cancel || r.class == ack) {
		if slot = w.mem.find(nonZero(r.d)); slot == 0 && !r.hasTok {
			slot = w.mem.findSecond(r.second)
		}
	}
	if slot == 0 {
		return nil
	}
	return w.mem.at(slot)
}

func (g *state) listenerNamed(name string) *listener {
	for _, l := range g.listeners {
		if name == "" || l.Listener.Name == name {
			return l
		}
	}
	return nil
}

// describe writes the outcome.
func (w *worker) describe(x *proxy.Explanation, r *request, d *decision) {
	x.Decided = d.by
	if d.t != nil {
		x.Application, x.Service, x.Kind = d.t.Target.Name, d.t.Target.Service, kindWord(d.t.Target.Kind)
		x.Removed = removed(r, d.t)
	}
	if x.Source == "" && d.source != proxy.SourceNone {
		x.Source = d.source.String()
	}
	switch d.verb {
	case doServer:
		x.Server = d.s.name
	case doAddress:
		x.Note("outward", "sent to "+d.addr.String()+" over "+d.kind.String())
	case doFlow:
		x.Note("flow", "sent into the client's connection")
	case doAnswer:
		x.Status = d.status
	case doPark:
		x.Note("wait", "needs an answer first: "+string(d.number)+string(d.name.Host))
	}
}

func kindWord(k routing.ServiceKind) string {
	return [...]string{"converged", "web", "sip"}[k]
}

// removed lists the trust fields that are taken off.
func removed(r *request, t *target) (names []string) {
	if r.trusts(t) {
		return nil
	}
	for i := range r.m.Fields {
		if f := &r.m.Fields[i]; t.guarded(r.m, f) {
			names = append(names, string(r.m.Bytes(f.Name)))
		}
	}
	return names
}

// explainChoice makes the pool's choice for an explanation: the same code, nothing counted, and the order written down.
func (w *worker) explainChoice(r *request, d *decision, q *routing.Request, x *proxy.Explanation) bool {
	c := d.t.pool.Pool.Explain(*q, nil)
	if q.HasKey {
		x.Partition = &c.Partition
		x.Hash = fmt.Sprintf("0x%016x", q.Hash)
	}
	x.Candidates, x.PassedOver = nil, nil
	for _, s := range c.Order {
		x.Candidates = append(x.Candidates, s.Server)
		if s.Why != "" {
			x.PassedOver = append(x.PassedOver, proxy.PassedOver{Server: s.Server, Why: s.Why})
		}
	}
	for _, a := range w.ifDown {
		if x.IfDown == nil {
			x.IfDown = proxy.Alternatives{}
		}
		x.IfDown[a.Name] = d.t.pool.Pool.Explain(*q, a.Servers).Server
	}
	if c.Err != nil {
		x.Error = c.Err.Error()
		return false
	}
	d.how = c.How
	for _, s := range d.t.pool.servers {
		if s.name == c.Server {
			d.s = s
		}
	}
	return d.s != nil
}
