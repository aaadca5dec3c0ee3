package httpproxy

import (
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// maxOffers is how many servers one choice remembers by name.
const maxOffers = 8

// maxNumbers is how many numbers one request may wait for (dcr.md section 14).
const maxNumbers = 8

// Decider is the memory in which one goroutine at a time decides. It must not be shared.
type Decider struct {
	scratch proxy.Scratch
	codec   proxy.Codec
	turn    uint8
}

// Choice is where a request goes. Key is lent: it lives as long as the request's bytes and the Decider's memory.
type Choice struct {
	App    *App
	Lease  routing.Lease
	Source proxy.KeySource
	Key    []byte // nil with a token and in turn
	Rule   int    // index into the target's rules; -1: none
	Rules  time.Duration
	Tried  int  // servers it was offered to
	HTTP2  bool // the server at hand is spoken to in HTTP/2

	Request routing.Request

	offered [maxOffers]string
	how     routing.How
	session session
	keyed   bool // the application's keys are hashed
	asked   bool // key or turn have been asked for already
	none    bool // the pool had no server left
	sampled bool // one of 64: its time in rules is observed
	gen     *Generation
}

// Decide finds the application of an admitted request and a server for it: dcr.md 5.7. Traffic calls it with a nil
// Explanation and owes Choice.Done; explain calls it with one, and then nothing is leased or counted. The error is one
// that Status knows.
func (d *Decider) Decide(g *Generation, l *Listener, v *View, c *Choice, e *proxy.Explanation) error {
	*c = Choice{Rule: -1, gen: g}
	c.App = l.Match(v)
	if c.App == nil {
		if e != nil {
			e.Note("application", unmatched(v))
		}
		return ErrNoApplication
	}
	describe(e, l, v, c)
	c.App.trust(v, e)
	if c.App.Service.loops(v.Head) {
		return ErrLoop
	}
	c.App.upgrade(v)
	d.place(v, c, e)
	if e != nil {
		return d.explain(c, e)
	}
	return c.acquire()
}

// place sets what the pool is asked with.
func (d *Decider) place(v *View, c *Choice, e *proxy.Explanation) {
	t := c.App.Target
	policy := routing.DefaultPolicy(t.Kind, routing.HTTP, t.Keyer != nil)
	c.keyed = policy == routing.HashPolicy
	c.Request = routing.Request{Policy: policy, Proto: routing.HTTP}
	if c.keyed && t.Sticky.RuleFirst {
		key := d.key(v, c, e)
		c.session = d.readSession(c.gen, c.App, v)
		if key.Source == proxy.SourceRule {
			c.setKey(key)
			if c.session.sealed && c.session.token.HasKey && c.session.token.Hash == key.Hash {
				c.Request.Known = c.session.server // the same key: it stays where it lives
			}
			return
		}
		if c.session.server == 0 {
			c.setKey(key)
			return
		}
	} else {
		c.session = d.readSession(c.gen, c.App, v)
	}
	if c.session.server != 0 {
		c.follow(v, d, e)
		return
	}
	if e != nil {
		e.Note("token", "no token, no route behind a session id: "+wanted(c.keyed))
	}
	d.initial(v, c, e)
}

func wanted(keyed bool) string {
	if keyed {
		return "a new key is wanted"
	}
	return "a new session goes round robin"
}

// follow uses what the request says of its server. A token that carries a key is asked for by that key, in whatever
// application: that is how a page meets the call it belongs to. Without a key a server that cannot serve makes the
// request an initial one (6.3).
func (c *Choice) follow(v *View, d *Decider, e *proxy.Explanation) {
	s := &c.session
	m := c.App.Target.Pool.Table().ByTag(s.server)
	serves := m != nil && m.TakesKnown(routing.HTTP)
	if e != nil {
		e.Note("token", s.text(m, serves))
	}
	c.Request.Known = s.server
	c.Source = proxy.SourceToken
	if s.sealed && s.token.HasKey {
		c.Request.Policy, c.Request.Hash, c.Request.HasKey = routing.HashPolicy, s.token.Hash, true
		c.Request.Pinned = s.token.Pinned
	} else if c.Request.Pinned = true; !serves {
		d.initial(v, c, e)
	}
	if !serves {
		c.Source = proxy.SourceStaleToken
	}
}

// initial asks the rules, else the default key; a web application takes turns.
func (d *Decider) initial(v *View, c *Choice, e *proxy.Explanation) {
	c.asked = true
	if !c.keyed {
		c.Source = proxy.SourceRoundRobin
		return
	}
	c.setKey(d.key(v, c, e))
}

func (c *Choice) setKey(k proxy.Key) {
	c.asked = true
	c.Source, c.Key, c.Rule = k.Source, k.Bytes, k.Rule
	c.Request.Policy, c.Request.Hash, c.Request.HasKey = routing.HashPolicy, k.Hash, true
}

// key evaluates the rules, waiting for numbers within the budget. A number that is not known then is null, as it is for
// SIP, and the rules behind it are asked: a page meets its call also while resolvers are silent (dcr.md section 14).
func (d *Decider) key(v *View, c *Choice, e *proxy.Explanation) proxy.Key {
	t := c.App.Target
	start := time.Now()
	until := start.Add(t.EnumBudget)
	d.scratch.DCR.GiveUp = false
	k := d.evaluate(v, t, e)
	for n := 1; k.Number != nil && !d.scratch.DCR.GiveUp; n++ {
		if c.gen.Numbers == nil || !c.gen.Numbers.Await(t, k.Number, until) || n == maxNumbers {
			e.Note("rules", "a number is not known")
			d.scratch.DCR.GiveUp = true
		}
		k = d.evaluate(v, t, e)
	}
	if k.Number != nil {
		k = proxy.DefaultKey(v, t.HTTPKey, &d.scratch)
	}
	c.Rules = time.Since(start)
	d.turn++
	c.sampled = d.turn&63 == 0
	if e == nil && c.App.Keys != nil {
		l := d.scratch.DCR.Limits()
		c.App.Keys.Limited(l.Steps > 0, l.List > 0)
	}
	return k
}

func (d *Decider) evaluate(v *View, t *proxy.Target, e *proxy.Explanation) proxy.Key {
	tr := e.RuleTrace()
	k := t.Key(v, t.HTTPKey, &d.scratch, tr)
	if tr != nil {
		e.Rules = tr.Steps
	}
	return k
}

// acquire takes the lease and counts where the choice came from.
func (c *Choice) acquire() error {
	lease, err := c.App.Target.Pool.Acquire(&c.Request)
	if err != nil {
		c.none = true
		return err
	}
	c.Lease, c.how = lease, lease.How
	if c.Tried < maxOffers {
		c.offered[c.Tried] = lease.Member.Name
	}
	c.Tried++
	if c.Source == proxy.SourceToken && c.Request.Known != lease.Member.Tag && !c.Request.HasKey {
		c.Source = proxy.SourceStaleToken // it went between two looks
	}
	if c.Tried == 1 {
		c.count()
	}
	if s := c.App.Servers[lease.Member.Tag]; s != nil {
		s.Requests[routing.HTTP].Inc()
	}
	return nil
}

func (c *Choice) count() {
	k := c.App.Keys
	if k == nil || c.Source == proxy.SourceNone || c.Source > proxy.SourceRoundRobin {
		return
	}
	k.HTTPKeys[c.Source-proxy.SourceRule].Inc()
	if c.Rule >= 0 && c.Rule < len(k.Rules) {
		k.Rules[c.Rule].Inc()
	}
	if k.RuleSeconds != nil && c.Rules > 0 && c.sampled {
		k.RuleSeconds.Observe(c.Rules.Seconds())
	}
}

// Next offers the request to another server after err ended the attempt: HB-3, 9.7. The lease at hand is given back.
// What comes back is nil with a new lease, or err when no server or no try is left.
func (d *Decider) Next(v *View, c *Choice, err error) error {
	failed := c.Lease.Member
	c.Done(OutcomeOf(err))
	if c.Tried >= c.App.Connect.Tries {
		return err
	}
	c.Request.Avoid.Add(failed.Tag)
	if c.keyed && !c.Request.HasKey && !c.asked {
		source := c.Source
		d.initial(v, c, nil) // a token without a key, and its server is gone
		c.Source = source
	}
	if c.acquire() != nil {
		return err
	}
	if s := c.App.Servers[failed.Tag]; s != nil {
		s.Failovers[routing.HTTP].Inc()
	}
	return nil
}

// Done gives the lease back; further calls do nothing.
func (c *Choice) Done(o routing.Outcome) {
	if c.Lease.Member != nil {
		c.Lease.Done(o)
		c.Lease = routing.Lease{}
	}
}

// Fail gives the lease back after err ended the attempt, End when there is nothing to say against the server.
func (c *Choice) Fail(err error) { c.Done(OutcomeOf(err)) }

// End gives the lease back.
func (c *Choice) End() { c.Done(routing.OutcomeOK) }

// Address is one way to a server over HTTP.
type Address struct {
	Addr netip.AddrPort // not valid where only the name is known
	Host string         // as configured: name or address, with port
	TLS  bool
	Peer string // with TLS: what its certificate is checked against; connections of another one are not its
}

// Address gives the leased server's nth HTTP address; false when there are no more.
func (c *Choice) Address(n int) (Address, bool) {
	m := c.Lease.Member
	if m == nil {
		return Address{}, false
	}
	for i := range m.Addresses {
		a := &m.Addresses[i]
		if a.Proto != routing.HTTP {
			continue
		}
		if n == 0 {
			at := Address{Addr: a.Addr, Host: a.Host}
			if a.Transport == "tls" {
				at.TLS, at.Peer = true, c.App.Peers[m.Tag]
			}
			return at, true
		}
		n--
	}
	return Address{}, false
}

// Server is the member that the lease counts on.
func (c *Choice) Server() *routing.Member { return c.Lease.Member }

// Servers gives the names of the servers that the request was offered to, in order.
func (c *Choice) Servers() []string { return c.offered[:min(c.Tried, maxOffers)] }

// Letter is place 4 of the disposition: what happened to the choice (operations.md 8.4).
func (c *Choice) Letter() byte {
	switch {
	case c.none:
		return 'X'
	case c.how == routing.HowPanic:
		return 'M'
	case c.how == routing.HowStandby:
		return 'V'
	case c.how == routing.HowHeld:
		return 'H'
	case c.Tried > 1:
		return '0' + byte(min(c.Tried, 9))
	}
	return '-'
}

// Answered gives the lease back after a whole answer. A 503 asks for a rest: with Retry-After for that long, without it
// counts as a failure of the server (section 10, passive; SH-3).
func (c *Choice) Answered(resp *http1.Head, now time.Time) {
	m := c.Lease.Member
	if m == nil || resp.Status != 503 {
		c.Done(routing.OutcomeOK)
		return
	}
	rest, ok := retryAfter(resp.Value(http1.RetryAfter), now)
	if !ok {
		c.Done(routing.OutcomeServerError)
		return
	}
	c.App.Target.Pool.Hold(m.Server, routing.HTTP, rest, now)
	c.Done(routing.OutcomeOK)
}

// retryAfter reads seconds or a date (RFC 9110 10.2.3). A number too large is a long rest, which the pool bounds.
func retryAfter(v []byte, now time.Time) (time.Duration, bool) {
	if len(v) == 0 {
		return 0, false
	}
	if n, ok := http1.ParseLength(v); ok {
		return time.Duration(min(n, 1<<20)) * time.Second, true
	}
	at, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", string(v))
	return at.Sub(now), err == nil
}

// RuleName is the path of the rule that gave the key; empty when none did.
func (c *Choice) RuleName() string {
	if c.Rule < 0 || c.App == nil || c.App.Target.Keyer == nil {
		return ""
	}
	if rules := c.App.Target.Keyer.Rules(); c.Rule < len(rules) {
		return rules[c.Rule].Path
	}
	return ""
}

// upgrade finds a protocol that the request may change to (HB-4). Only HTTP/1.1 has upgrades; the first protocol named
// counts.
func (app *App) upgrade(v *View) {
	h := v.Head
	if h.Minor == 0 || !h.WantsUpgrade() {
		return
	}
	first, _ := http1.NextItem(h.Value(http1.Upgrade))
	for _, p := range app.Service.Upgrade {
		if http1.EqualFold(first, p) {
			v.Upgrade = first
			return
		}
	}
}
