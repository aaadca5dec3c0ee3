package engine

import (
	"strings"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

// target is an application of a generation with its definitions.
type target struct {
	*proxy.Target
	service  *config.Service
	app      *config.Application
	affinity *config.Affinity
	rules    *dcr.RuleSet // nil without rules
	counters *obs.Target  // nil: not counted
}

// buildTargets makes the applications of all services. Their pools and rule sets are built already.
func (b *builder) buildTargets() {
	for i := range b.cfg.Services {
		s := &b.cfg.Services[i]
		for j := range s.Applications {
			a := &s.Applications[j]
			p := b.draft.pools[s.PoolOf(a)]
			if p == nil {
				continue // reported with the pool
			}
			b.draft.targets = append(b.draft.targets, b.target(s, a, p))
		}
	}
}

func (b *builder) target(s *config.Service, a *config.Application, p *pool) *target {
	aff := s.AffinityOf(a)
	name := s.Name + "/" + a.Name
	t := &target{service: s, app: a, affinity: aff, Target: &proxy.Target{
		Service: s.Name, Application: a.Name, Name: name, Tag: routing.Tag(name), Kind: a.ServiceKind(), Pool: p.Pool,
		SIPKey: keyParts(aff.SIP.DefaultKey), HTTPKey: keyParts(aff.HTTP.DefaultKey),
		Tokens: proxy.TokenNames{
			SIPParameter: aff.Token.SIPParameter, HTTPCookie: aff.Token.HTTPCookie, HTTPPathParameter: aff.Token.HTTPPathParameter,
		},
		Sticky: proxy.Sticky{
			Mode: cookieMode(aff.HTTP.Cookie), SessionCookies: aff.HTTP.SessionCookies,
			SameSite: strings.ToUpper(aff.HTTP.SameSite[:1]) + aff.HTTP.SameSite[1:], Path: "/",
			RuleFirst: aff.HTTP.Order == "rule-first",
		},
		TellKey: aff.TellServer.Key, TellToken: aff.TellServer.Token, ReadBEKey: aff.SIP.ReadBEKey,
		Number: len(b.draft.targets),
	}}
	if a.PathPrefix != "" {
		t.Sticky.Path = a.PathPrefix
	}
	if r := b.ruleSets[aff]; r != nil && t.Kind != routing.Web {
		t.rules, t.Keyer, t.RuleFile = r, r, r.File()
		if aff.Enum != nil {
			t.EnumBudget = aff.Enum.Budget
		}
	}
	if b.env.Metrics != nil {
		t.counters = b.env.Metrics.Target(s.Name, a.Name, rulePaths(t.rules))
	}
	return t
}

func rulePaths(r *dcr.RuleSet) []string {
	if r == nil {
		return nil
	}
	rules := r.Rules()
	out := make([]string, len(rules))
	for i := range rules {
		out[i] = rules[i].Path
	}
	return out
}

var partWords = map[string]proxy.KeyPart{
	"from-tag": proxy.PartFromTag, "call-id": proxy.PartCallID, "to-tag": proxy.PartToTag, "from": proxy.PartFrom,
	"to": proxy.PartTo, "request-uri": proxy.PartRequestURI, "remote-host": proxy.PartRemoteHost,
	"remote-port": proxy.PartRemotePort, "client-address": proxy.PartClientAddress,
}

func keyParts(words []string) []proxy.KeyPart {
	out := make([]proxy.KeyPart, 0, len(words))
	for _, w := range words {
		out = append(out, partWords[w])
	}
	return out
}

func cookieMode(word string) proxy.CookieMode {
	switch word {
	case "always":
		return proxy.CookieAlways
	case "off":
		return proxy.CookieOff
	}
	return proxy.CookieSession
}

// matcher offers a listener's requests to the applications of its services that take its protocol.
func (d *Draft) matcher(l *config.Listener) *proxy.Matcher {
	m := &proxy.Matcher{}
	for _, t := range d.targets {
		if !l.Offers(t.Service) || !takes(t.app, l.Protocol) {
			continue
		}
		hosts := t.app.Host
		if len(hosts) == 0 {
			hosts = []string{""}
		}
		for _, h := range hosts {
			m.Add(proxy.Pattern{Host: h, Path: t.app.PathPrefix}, t.Target)
		}
	}
	return m
}
