package config

import (
	"fmt"
	"strings"

	"github.com/wyegate/wyegate/routing"
)

// tags refuses names that give one tag: tags stand for names in branches and tokens (sip-http.md 5).
func (c *checker) tags() {
	servers := tagSet{c: c, what: "server", mask: 0xffffffff}
	for i := range c.cfg.Pools {
		p := &c.cfg.Pools[i]
		at := c.itemPath("pools", i, p.Name) + ".servers"
		for j := range p.Servers {
			servers.add(p.Servers[j].Name, c.itemPath(at, j, p.Servers[j].Name)+".name")
		}
	}
	apps := tagSet{c: c, what: "application", mask: 0xffffffff}
	for i := range c.cfg.Services {
		s := &c.cfg.Services[i]
		at := c.itemPath("services", i, s.Name)
		for j := range s.Applications {
			apps.add(s.Name+"/"+s.Applications[j].Name, c.itemPath(at+".applications", j, s.Applications[j].Name)+".name")
		}
	}
	listeners := tagSet{c: c, what: "listener", mask: 0xffff}
	for i := range c.cfg.Listeners {
		l := &c.cfg.Listeners[i]
		listeners.add(l.Name, c.itemPath("listeners", i, l.Name)+".name")
	}
	nodes := tagSet{c: c, what: "node", mask: 0xffff}
	for i := range c.cfg.Cluster.Nodes {
		n := &c.cfg.Cluster.Nodes[i]
		nodes.add(n.Name, c.itemPath("cluster.nodes", i, n.Name)+".name")
	}
	nodes.add(c.cfg.Node.Name, "node.name")
}

// tagSet finds two names with one tag. One name in two places is one name.
type tagSet struct {
	c    *checker
	what string
	mask uint32
	seen map[uint32]string
}

func (t *tagSet) add(name, path string) {
	if name == "" || strings.HasSuffix(name, "/") {
		return
	}
	tag := routing.Tag(name) & t.mask
	old, taken := t.seen[tag]
	switch {
	case tag == 0:
		t.c.error(path, "WG124", fmt.Sprintf("%s name %q gives the tag 0; rename it", t.what, name))
	case taken && old != name:
		t.c.error(path, "WG124", fmt.Sprintf("%s names %q and %q give one tag; rename one", t.what, old, name))
	}
	if t.seen == nil {
		t.seen = map[uint32]string{}
	}
	t.seen[tag] = name
}
