package httpproxy

import (
	"fmt"

	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

func unmatched(v *View) string { return fmt.Sprintf("none takes host %q, path %.256q", v.Host, v.Path) }

// text says what the request names and whether that can serve.
func (s *session) text(m *routing.Member, serves bool) string {
	text := "in the " + s.from
	if s.sealed {
		text = "valid, " + text
		if s.token.HasKey {
			text += ": carries a key"
		}
	}
	switch {
	case m == nil:
		return text + ", names a server that the pool does not have"
	case !serves:
		return text + ", names " + m.Name + ", which cannot serve"
	}
	return text + ", names " + m.Name
}

var kinds = map[routing.ServiceKind]string{routing.Converged: "converged", routing.Web: "web", routing.SIPOnly: "sip"}

// describe fills in what is known before the decision.
func describe(e *proxy.Explanation, l *Listener, v *View, c *Choice) {
	if e == nil {
		return
	}
	t := c.App.Target
	e.Listener, e.Application, e.Service, e.Kind = l.Name, t.Name, t.Service, kinds[t.Kind]
	e.Method = string(v.Method)
	e.Target = v.scheme() + "://" + string(v.Authority) + string(v.Target)
	e.RuleFile, e.Generation = t.RuleFile, c.gen.Number
	e.Note("application", fmt.Sprintf("%s (%s) takes host %q, path %.256q", t.Name, e.Kind, v.Host, v.Path))
}

// explain makes the choice without a lease and writes down how it went.
func (d *Decider) explain(c *Choice, e *proxy.Explanation) error {
	t := c.App.Target
	e.Initial = c.session.server == 0
	e.Source, e.Decided = c.Source.String(), decided[c.Source]
	if c.Key != nil {
		e.Key = string(c.Key)
	}
	if name := c.RuleName(); name != "" {
		e.Rule, e.RuleLine = name, t.Keyer.Rules()[c.Rule].Line
	}
	if c.Request.HasKey {
		e.Hash = fmt.Sprintf("0x%016x", c.Request.Hash)
	}
	out := t.Pool.Explain(c.Request, nil)
	if out.Partition >= 0 {
		e.Partition = &out.Partition
	}
	e.Candidates = []string{}
	for _, s := range out.Order {
		switch {
		case s.Why != "":
			e.PassedOver = append(e.PassedOver, proxy.PassedOver{Server: s.Server, Why: s.Why})
		case s.Spare:
			e.PassedOver = append(e.PassedOver, proxy.PassedOver{Server: s.Server, Why: "site " + s.Site + " does not carry the traffic"})
		default:
			e.Candidates = append(e.Candidates, s.Server)
		}
	}
	if out.Err != nil {
		e.Note("server", "none may get the request")
		return out.Err
	}
	e.Server = out.Server
	e.Note("server", out.Server+": "+hows[out.How])
	return nil
}

var decided = map[proxy.KeySource]string{
	proxy.SourceRule: "rule", proxy.SourceDefault: "default", proxy.SourceToken: "token",
	proxy.SourceStaleToken: "token", proxy.SourceRoundRobin: "round_robin",
}

var hows = map[routing.How]string{
	routing.HowFirst:   "first choice",
	routing.HowKnown:   "the one the request belongs to",
	routing.HowNext:    "a further choice, since the first may not get it",
	routing.HowHeld:    "the key is live there",
	routing.HowPanic:   "health is not believed, too few servers are usable",
	routing.HowStandby: "standby site",
}

// Explain is the whole way of a request without sending anything: admit, decide, and the error as a status. It is what
// the explain verb and the admin side call, offline and live.
func (d *Decider) Explain(g *Generation, l *Listener, v *View, c *Choice, e *proxy.Explanation) {
	e.Listener, e.Generation = l.Name, g.Number
	err := l.Admit(v)
	if err == nil {
		err = d.Decide(g, l, v, c, e)
	}
	if err == nil {
		return
	}
	e.Status, e.Error = Status(err), err.Error()
	e.Decided = "refused"
	if err == ErrOptions {
		e.Decided = "local"
	}
	if e.Method == "" {
		e.Method = string(v.Method)
		e.Target = v.scheme() + "://" + string(v.Authority) + string(v.Target)
	}
}
