package config

import (
	"fmt"
	"slices"
	"strings"
)

// unused warns of what nothing uses. Where a reference is wrong that is the mistake, and what it should have named is
// left alone.
func (c *checker) unused() {
	if c.broken {
		return
	}
	pools, sites, certs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range c.cfg.Services {
		s := &c.cfg.Services[i]
		pools[s.Pool] = pools[s.Pool] || len(s.Applications) == 0
		for j := range s.Applications {
			pools[s.PoolOf(&s.Applications[j])] = true
		}
		if !slices.ContainsFunc(c.cfg.Listeners, func(l Listener) bool { return l.Offers(s.Name) }) && s.Name != "" {
			c.unusedThing("services", i, "service", s.Name, "no listener offers it requests")
		}
	}
	byName := false // the name that a client asks for may choose any certificate
	for i := range c.cfg.Listeners {
		certs[c.cfg.Listeners[i].Certificate] = true
		byName = byName || c.cfg.Listeners[i].Secure()
	}
	for i := range c.cfg.Pools {
		p := &c.cfg.Pools[i]
		for j := range p.Servers {
			sites[p.Servers[j].Site] = true
			if t := p.Servers[j].TLS; t != nil {
				certs[t.Certificate] = true
			}
		}
		if !pools[p.Name] {
			c.unusedThing("pools", i, "pool", p.Name, "no service uses it")
		}
	}
	for i := range c.cfg.Cluster.Nodes {
		sites[c.cfg.Cluster.Nodes[i].Site] = true
	}
	for i := range c.cfg.Sites {
		if n := c.cfg.Sites[i].Name; !sites[n] {
			c.unusedThing("sites", i, "site", n, "no server stands in it")
		}
	}
	for i := range c.cfg.Certificates {
		if n := c.cfg.Certificates[i].Name; !certs[n] && !byName {
			c.unusedThing("certificates", i, "certificate", n, "nothing uses it")
		}
	}
}

// missed gives, for each list of things, the key by which they are named and the code of a name that nothing has.
var missed = map[string][2]string{
	"services":     {"services", "WG102"},
	"pools":        {"pool", "WG103"},
	"certificates": {"certificate", "WG104"},
	"sites":        {"site", "WG105"},
}

func (c *checker) unusedThing(list string, i int, what, name, why string) {
	m := missed[list]
	wrong := slices.ContainsFunc(c.problems, func(p Problem) bool {
		if list == "certificates" && p.Code == "WG014" {
			return true // it may be that part which uses it
		}
		return p.Code == m[1] || p.Severity == Error && strings.HasSuffix(p.Path, "."+m[0])
	})
	if name != "" && !wrong {
		c.warning(c.itemPath(list, i, name)+".name", "WG306", fmt.Sprintf("%s %q: %s", what, name, why))
	}
}
