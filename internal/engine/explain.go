package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/proxy/httpproxy"
	"github.com/wyegate/wyegate/proxy/sipproxy"
	"github.com/wyegate/wyegate/routing"
)

// scene is what a message is explained by: a draft with its proxies' generations and, live, the proxy that has the
// memory.
type scene struct {
	*Draft
	sip  *sipproxy.Generation
	http *httpproxy.Generation
	live *sipproxy.Proxy // nil: by the files alone
}

// Offline makes an explainer of a configuration that nothing runs: servers count as usable, there is no memory. enum
// answers numbers; nil: no number has an answer.
func (d *Draft) Offline(secrets *proxy.Secrets) (*Offline, error) {
	w := wiring{secrets: secrets}
	var listeners []sipListener
	for i := range d.Config.Listeners {
		l := &d.Config.Listeners[i]
		if l.Protocol != "sip" {
			continue
		}
		for n, addr := range families(l.Bind, false) {
			name := familyName(l.Name, n)
			listeners = append(listeners, sipListener{l, &transport.Listener{
				Name: name, Tag: uint16(xxhash.Sum64String(name)), Kind: sipKind(l.Transport), Addr: addr,
			}})
		}
	}
	g, err := d.sipGeneration(w, listeners)
	if err != nil {
		return nil, err
	}
	return &Offline{scene{Draft: d, sip: g, http: d.httpGeneration(w)}}, nil
}

// Offline explains messages by files alone.
type Offline struct{ scene }

// Explain says where a message would go.
func (o *Offline) Explain(ctx context.Context, r admin.ExplainRequest) (*proxy.Explanation, error) {
	return o.explain(ctx, r)
}

// Explain says where a message would go, by the running generation and what the node remembers.
func (e *Engine) Explain(ctx context.Context, r admin.ExplainRequest) (*proxy.Explanation, error) {
	g := e.current.Load()
	s := scene{Draft: g.Draft, sip: g.SIP, http: g.HTTP, live: e.sip}
	if r.Rules != "" {
		if err := e.candidate(&s, g, r); err != nil {
			return nil, err
		}
	}
	return s.explain(ctx, r)
}

// candidate puts rules in place of those that run. The pools are of the same registry, so servers are as they are.
func (e *Engine) candidate(s *scene, g *Generation, r admin.ExplainRequest) error {
	service := r.Service
	if service == "" && len(g.Config.RuleFiles) > 0 {
		service = g.Config.RuleFiles[0].Service
	}
	env := e.env(g.Config, map[string][]byte{service: []byte(r.Rules)})
	env.Metrics = nil
	draft, problems := Build(g.Config, env, nil)
	if draft == nil {
		return &admin.Refused{Findings: Findings(problems)}
	}
	var listeners []sipListener
	for _, l := range g.listeners {
		for _, tr := range l.sip {
			listeners = append(listeners, sipListener{l.def, tr})
		}
	}
	w := wiring{secrets: g.secrets, local: localAddrs(), numbers: e.enum}
	next, err := draft.sipGeneration(w, listeners)
	if err != nil {
		return err
	}
	*s = scene{Draft: draft, sip: next, http: draft.httpGeneration(w)}
	return nil
}

func (s *scene) explain(ctx context.Context, r admin.ExplainRequest) (*proxy.Explanation, error) {
	assume, err := s.assumptions(r)
	if err != nil {
		return nil, err
	}
	var x *proxy.Explanation
	switch {
	case r.Key != "":
		x, err = s.explainKey(r, assume)
	case r.SIP != "":
		x, err = s.explainSIP(ctx, r, assume)
	case r.HTTP != "":
		x, err = s.explainHTTP(r, assume)
	default:
		return nil, fmt.Errorf("%w: one of sip, http and key is wanted", admin.ErrInvalid)
	}
	if err == nil {
		s.surroundings(x)
	}
	return x, err
}

// surroundings adds what a decision does not read but a person asks next: the listener's address, the weights, and
// since when the server can serve.
func (s *scene) surroundings(x *proxy.Explanation) {
	for i := range s.Config.Listeners {
		if l := &s.Config.Listeners[i]; l.Name == x.Listener {
			x.Address = l.Transport + " " + l.Bind.String()
		}
	}
	p := s.poolOf(x)
	if p == nil {
		return
	}
	for _, name := range x.Candidates {
		if m := p.Table().ByName(name); m != nil {
			if x.Weights == nil {
				x.Weights = map[string]int{}
			}
			x.Weights[name] = m.Weight
		}
	}
	m := p.Table().ByName(x.Server)
	if m == nil || s.live == nil {
		return
	}
	var since time.Time
	for _, proto := range []routing.Proto{routing.SIP, routing.HTTP} {
		if at := m.Detail(proto).Since; at.After(since) {
			since = at
		}
	}
	if !since.IsZero() {
		since = since.UTC()
		x.UsableSince = &since
	}
}

// poolOf is the pool of the application that a decision names.
func (s *scene) poolOf(x *proxy.Explanation) *pool {
	for _, t := range s.targets {
		if t.Service == x.Service && t.Name == x.Application {
			return s.pools[t.Pool.Name]
		}
	}
	return nil
}

// assumptions turns if_down and if_site_down into sets of servers.
func (s *scene) assumptions(r admin.ExplainRequest) ([]sipproxy.Assumption, error) {
	var out []sipproxy.Assumption
	for _, name := range r.IfDown {
		if !s.hasServer(name) {
			return nil, fmt.Errorf("%w: server %q", admin.ErrNotFound, name)
		}
		out = append(out, sipproxy.Assumption{Name: name, Servers: []string{name}})
	}
	if r.IfSiteDown == "" {
		return out, nil
	}
	a := sipproxy.Assumption{Name: "site " + r.IfSiteDown}
	for _, p := range s.pools {
		for _, srv := range p.def.Servers {
			if srv.Site == r.IfSiteDown {
				a.Servers = append(a.Servers, srv.Name)
			}
		}
	}
	if len(a.Servers) == 0 {
		return nil, fmt.Errorf("%w: site %q with servers", admin.ErrNotFound, r.IfSiteDown)
	}
	return append(out, a), nil
}

func (s *scene) hasServer(name string) bool {
	for _, p := range s.pools {
		if p.Table().ByName(name) != nil {
			return true
		}
	}
	return false
}

// explainKey says which server has a key, without a message.
func (s *scene) explainKey(r admin.ExplainRequest, assume []sipproxy.Assumption) (*proxy.Explanation, error) {
	var t *target
	for _, c := range s.targets {
		if (r.Service == "" || c.Service == r.Service) && c.Kind != routing.Web {
			t = c
			break
		}
	}
	if t == nil {
		return nil, fmt.Errorf("%w: service %q with keys", admin.ErrNotFound, r.Service)
	}
	hash := xxhash.Sum64String(r.Key)
	req := routing.Request{Policy: routing.HashPolicy, Hash: hash, HasKey: true}
	d := t.Pool.Explain(req, nil)
	x := &proxy.Explanation{
		Service: t.Service, Application: t.Name, Key: r.Key, Source: proxy.SourceGiven.String(), Hash: fmt.Sprintf("0x%016x", hash),
		Partition: &d.Partition, Generation: s.Number, Candidates: []string{}, Steps: []proxy.Step{}, Rules: []dcr.Step{}, Server: d.Server,
		Initial: true, Decided: "given",
	}
	for _, o := range d.Order {
		switch {
		case o.Why != "":
			x.PassedOver = append(x.PassedOver, proxy.PassedOver{Server: o.Server, Why: o.Why})
		case o.Spare:
			x.PassedOver = append(x.PassedOver, proxy.PassedOver{Server: o.Server, Why: "site " + o.Site + " does not carry the traffic"})
		default:
			x.Candidates = append(x.Candidates, o.Server)
		}
	}
	alternatives(x, t.Pool, req, assume)
	return x, nil
}

func alternatives(x *proxy.Explanation, p *routing.Pool, req routing.Request, assume []sipproxy.Assumption) {
	for _, a := range assume {
		if x.IfDown == nil {
			x.IfDown = proxy.Alternatives{}
		}
		x.IfDown[a.Name] = p.Explain(req, a.Servers).Server
	}
}

// defaultSource stands for a client when none is given.
var defaultSource = netip.MustParseAddrPort("192.0.2.1:50000")

func source(r admin.ExplainRequest) (netip.AddrPort, error) {
	if r.Source == "" {
		return defaultSource, nil
	}
	a, err := netip.ParseAddrPort(r.Source)
	if err != nil {
		return a, fmt.Errorf("%w: source %q: an address and a port expected", admin.ErrInvalid, r.Source)
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
}

func (s *scene) explainSIP(ctx context.Context, r admin.ExplainRequest, assume []sipproxy.Assumption) (*proxy.Explanation, error) {
	from, err := source(r)
	if err != nil {
		return nil, err
	}
	listener, err := s.listener("sip", r.Listener, nil)
	if err != nil {
		return nil, err
	}
	q := &sipproxy.Query{Listener: listener.Name, Source: from, Message: SIPText(r.SIP), IfDown: assume, At: time.Now()}
	if s.live != nil {
		return s.live.Explain(ctx, q)
	}
	return sipproxy.ExplainOffline(s.sip, q)
}

// SIPText makes a message of a text: bare LF becomes CRLF, and a missing empty line is added (operations.md 3.7).
func SIPText(text string) []byte {
	if !strings.Contains(text, "\r\n") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if !strings.Contains(text, "\r\n\r\n") {
		text = strings.TrimRight(text, "\r\n") + "\r\n\r\n"
	}
	return []byte(text)
}

// listener finds a listener of a protocol by name; without a name the first that fits.
func (s *scene) listener(protocol, name string, fits func(*config.Listener) bool) (*config.Listener, error) {
	var first *config.Listener
	for i := range s.Config.Listeners {
		l := &s.Config.Listeners[i]
		if l.Protocol != protocol {
			continue
		}
		if name == l.Name || name == "" && fits != nil && fits(l) {
			return l, nil
		}
		if first == nil {
			first = l
		}
	}
	if name == "" && first != nil {
		return first, nil
	}
	if name == "" {
		return nil, fmt.Errorf("%w: no %s listener", admin.ErrNotFound, protocol)
	}
	return nil, fmt.Errorf("%w: %s listener %q", admin.ErrNotFound, protocol, name)
}

func (s *scene) explainHTTP(r admin.ExplainRequest, assume []sipproxy.Assumption) (*proxy.Explanation, error) {
	from, err := source(r)
	if err != nil {
		return nil, err
	}
	raw, secure := HTTPText(r.HTTP)
	def, err := s.listener("http", r.Listener, func(l *config.Listener) bool { return (l.Transport == "tls") == secure })
	if err != nil {
		return nil, err
	}
	l := s.http.Listeners[def.Name]
	x := &proxy.Explanation{Listener: def.Name, Generation: s.Number, Steps: []proxy.Step{}, Rules: []dcr.Step{}, Candidates: []string{}}
	head := &http1.Head{}
	limits := http1.Limits{Block: s.http.Limits.MaxHeader, Target: s.http.Limits.MaxTarget, Fields: s.http.Limits.MaxFields}
	n, err := head.ParseRequest(raw, &limits)
	if err == nil && n == 0 {
		err = errors.New("the request ends within its head")
	}
	if err != nil {
		x.Decided, x.Status, x.Error = "refused", 400, err.Error()
		if bad := http1.AsError(err); bad != nil {
			x.Status = bad.Status
		}
		return x, nil
	}
	v := &httpproxy.View{Head: head, Remote: from, Local: netip.AddrPortFrom(netip.IPv4Unspecified(), def.Bind.Port), TLS: l.TLS}
	var d httpproxy.Decider
	var c httpproxy.Choice
	d.Explain(s.http, l, v, &c, x)
	if c.App != nil && x.Server != "" {
		alternatives(x, c.App.Target.Pool, c.Request, assume)
	}
	return x, nil
}

// HTTPText makes a request of a text: a whole one, or the short form "GET https://host/path". secure says that the short
// form named https.
func HTTPText(text string) (raw []byte, secure bool) {
	line, rest, more := strings.Cut(text, "\n")
	method, target, ok := strings.Cut(strings.TrimSpace(line), " ")
	if strings.HasSuffix(strings.TrimSpace(line), "HTTP/1.1") || strings.HasSuffix(strings.TrimSpace(line), "HTTP/1.0") || !ok {
		if !strings.Contains(text, "\r\n") {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		if !strings.Contains(text, "\r\n\r\n") {
			text = strings.TrimRight(text, "\r\n") + "\r\n\r\n"
		}
		return []byte(text), false
	}
	host := "localhost"
	if u, err := url.Parse(target); err == nil && u.Host != "" {
		secure, host = u.Scheme == "https", u.Host
		if target = target[strings.Index(target, "://")+3+len(host):]; !strings.HasPrefix(target, "/") {
			target = "/" + target
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, host)
	if more {
		for _, l := range strings.Split(strings.TrimSpace(rest), "\n") {
			b.WriteString(strings.TrimRight(l, "\r") + "\r\n")
		}
	}
	b.WriteString("\r\n")
	return b.Bytes(), secure
}
