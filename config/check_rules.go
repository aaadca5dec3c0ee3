package config

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// ruleFiles reads every rule file where it is named. Compiling it is the engine's.
func (c *checker) ruleFiles() {
	for i := range c.cfg.Services {
		s := &c.cfg.Services[i]
		at := c.itemPath("services", i, s.Name)
		c.ruleFile(s, nil, at+".affinity.rules")
		for j := range s.Applications {
			if a := &s.Applications[j]; a.Affinity != nil {
				c.ruleFile(s, a, c.itemPath(at+".applications", j, a.Name)+".affinity.rules")
			}
		}
	}
}

func (c *checker) ruleFile(s *Service, a *Application, key string) {
	f := RuleFile{Service: s.Name, Key: key, Affinity: &s.Affinity}
	if a != nil {
		f.Application, f.Affinity = a.Name, a.Affinity
	}
	p := f.Affinity.Rules
	if p.IsZero() || strings.HasSuffix(p.Abs, ".wasm") {
		return
	}
	f.Path = strings.TrimPrefix(p.Abs, "/")
	f.Shown = c.show(f.Path)
	data, err := fs.ReadFile(c.fsys, f.Path)
	if err != nil {
		c.error(key, "WG119", fmt.Sprintf("rule file %s cannot be read: %s", f.Shown, reason(err)))
		return
	}
	f.Data = data
	c.rules = append(c.rules, f)
}

// affinities says where keys of calls and pages will not meet, and what has no effect.
func (c *checker) affinities() {
	converged := map[string]bool{} // pools
	for i := range c.cfg.Services {
		s := &c.cfg.Services[i]
		at := c.itemPath("services", i, s.Name)
		c.httpKey(&s.Affinity, at+".affinity", s, slices.ContainsFunc(s.Applications, func(a Application) bool {
			return a.Kind == "converged" && a.Affinity == nil
		}))
		if !s.Affinity.Rules.IsZero() && !slices.ContainsFunc(s.Applications, func(a Application) bool { return a.Kind != "web" && a.Affinity == nil }) {
			c.warning(at+".affinity.rules", "WG303", fmt.Sprintf("service %q: rules have no effect, its applications are web or have rules of their own", s.Name))
		}
		for j := range s.Applications {
			a := &s.Applications[j]
			aat := c.itemPath(at+".applications", j, a.Name)
			c.application(s, a, at, aat)
			if a.Kind == "converged" {
				converged[s.PoolOf(a)] = true
			}
		}
	}
	for i := range c.cfg.Pools {
		if p := &c.cfg.Pools[i]; converged[p.Name] {
			c.parting(p, c.itemPath("pools", i, p.Name))
		}
	}
}

func (c *checker) application(s *Service, a *Application, at, aat string) {
	if a.Affinity != nil {
		c.httpKey(a.Affinity, aat+".affinity", s, a.Kind == "converged")
		if a.Kind == "web" && !a.Affinity.Rules.IsZero() {
			c.warning(aat+".affinity.rules", "WG303", fmt.Sprintf("application %q: rules have no effect on a web application", a.Name))
		}
	}
	from := at + ".affinity"
	if a.Affinity != nil {
		from = aat + ".affinity"
	}
	if a.Kind == "converged" && s.AffinityOf(a).Rules.IsZero() && !c.failed(from) && !c.failed(from+".rules") {
		where := aat + ".name"
		if !c.has(where) {
			where = at + ".name"
		}
		c.warning(where, "WG301", fmt.Sprintf("converged application %q has no rules: calls and pages of one key will not meet", s.Name+"/"+a.Name))
	}
}

// parting warns of settings of a pool that can part a live call from its page.
func (c *checker) parting(p *Pool, at string) {
	if p.Hash.BoundedLoad > 0 {
		c.warning(at+".hash.bounded_load", "WG304", fmt.Sprintf("pool %q: bounded load can part a call from its page", p.Name))
	}
	if m := p.Failback.Mode; m == "immediate" || m == "never" {
		c.warning(at+".failback.mode", "WG309", fmt.Sprintf("pool %q: failback %s can part a live call from its page", p.Name, m))
	}
}

// httpKey checks the default key of HTTP. used: a converged application goes by it when no rule matches.
func (c *checker) httpKey(a *Affinity, at string, s *Service, used bool) {
	where := at + ".http.default_key"
	key := strings.Join(a.HTTP.DefaultKey, ", ")
	switch key {
	case "remote-host, remote-port", "remote-host", "client-address":
	default:
		if c.cfg.where[where].Line != 0 && !slices.Contains(a.HTTP.DefaultKey, "") {
			c.error(where, "WG009", fmt.Sprintf("%s: [remote-host, remote-port], [remote-host] or [client-address] expected, not [%s]", where, key))
		}
	}
	switch behind := len(s.TrustHeadersFrom) > 0; {
	case !used || a.Rules.IsZero():
	case key == "client-address" && !behind:
		c.warning(where, "WG305", fmt.Sprintf("service %q: behind another proxy everybody has one key, since trust_headers_from is empty", s.Name))
	case key == "remote-host" && behind:
		c.warning(where, "WG305", fmt.Sprintf("service %q: everybody behind one of trust_headers_from has its key; [client-address] is the client's own", s.Name))
	}
}
