package config

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/wyegate/wyegate/routing"
)

// checker looks at what a single key cannot show: references, overlaps, files, what nothing uses.
type checker struct {
	*source
	cfg   *Config
	items map[string][]string
}

func (c *checker) all() {
	c.node()
	c.listeners()
	c.services()
	c.pools()
	c.sites()
	c.overlaps()
	c.reached()
	c.tags()
	c.secrets()
	c.certificates()
	c.ruleFiles()
	c.affinities()
	c.unused()
}

// problem reports a finding at the value of a dotted path.
func (c *checker) problem(path string, sev Severity, code, text, suggestion string) {
	c.at(c.cfg.At(path), sev, code, path, text+didYouMean(suggestion), suggestion)
}

func (c *checker) error(path, code, text string)   { c.problem(path, Error, code, text, "") }
func (c *checker) warning(path, code, text string) { c.problem(path, Warning, code, text, "") }

// has says whether the file has a key at a dotted path.
func (c *checker) has(path string) bool { _, ok := c.cfg.keyAt[path]; return ok }

// failed says whether the walk refused the value at a dotted path.
func (c *checker) failed(path string) bool {
	return slices.ContainsFunc(c.problems, func(p Problem) bool { return p.Path == path && p.Severity == Error })
}

// itemPath is the dotted path of an item of a list of named things, as the walk made it.
func (c *checker) itemPath(list string, i int, name string) string {
	if i < len(c.items[list]) {
		return c.items[list][i]
	}
	return join(list, name)
}

// reference reports a name that nothing has.
func (c *checker) reference(path, code, what, name string, known []string) {
	if name != "" && !slices.Contains(known, name) && !c.broken {
		c.problem(path, Error, code, what+" "+strconv.Quote(name), nearest(name, known))
	}
}

func (c *checker) node() {
	var nodes []string
	for i := range c.cfg.Cluster.Nodes {
		n := &c.cfg.Cluster.Nodes[i]
		nodes = append(nodes, n.Name)
		at := c.itemPath("cluster.nodes", i, n.Name)
		c.reference(at+".site", "WG105", fmt.Sprintf("node %q names site", n.Name), n.Site, names(c.cfg.Sites, siteName))
	}
	switch name := c.cfg.Node.Name; {
	case name == "":
		c.error("node", "WG013", "node: key \"name\" is required, since this machine's host name is not known")
	case !isName(name):
		if !c.has("node.name") {
			c.error("node", "WG010", fmt.Sprintf("the host name %q cannot be the name of a node; write node.name", name))
		}
	case len(nodes) > 0 && !slices.Contains(nodes, name):
		at := "cluster.nodes"
		if c.has("node.name") {
			at = "node.name"
		}
		c.problem(at, Error, "WG118", fmt.Sprintf("node.name %q is not in cluster.nodes", name), nearest(name, nodes))
	}
}

func names[T any](list []T, of func(*T) string) []string {
	var out []string
	for i := range list {
		out = append(out, of(&list[i]))
	}
	return out
}

func siteName(s *Site) string               { return s.Name }
func serviceName(s *Service) string         { return s.Name }
func poolName(p *Pool) string               { return p.Name }
func certificateName(c *Certificate) string { return c.Name }

// pools checks what stands in one pool.
func (c *checker) pools() {
	for i := range c.cfg.Pools {
		p := &c.cfg.Pools[i]
		at := c.itemPath("pools", i, p.Name)
		if len(p.Servers) == 0 {
			where := at + ".name"
			if c.has(at + ".servers") {
				where = at + ".servers"
			}
			c.error(where, "WG114", fmt.Sprintf("pool %q has no servers", p.Name))
		}
		for j := range p.Servers {
			s := &p.Servers[j]
			sat := c.itemPath(at+".servers", j, s.Name)
			c.reference(sat+".site", "WG105", fmt.Sprintf("server %q names site", s.Name), s.Site, names(c.cfg.Sites, siteName))
			if s.SIP.IsZero() && c.has(sat+".sip_transport") && !c.failed(sat+".sip") && !c.has(sat+".expand") {
				c.keyError(sat+".sip_transport", fmt.Sprintf("server %q has sip_transport without sip", s.Name))
			}
		}
		c.hash(p, at)
		c.families(p, at)
	}
}

// keyError reports a key that does not fit (WG111), at the key.
func (c *checker) keyError(path, text string) {
	c.at(c.cfg.KeyAt(path), Error, "WG111", path, text, "")
}

// hash refuses a table that cannot be built: one partition per server is the least.
func (c *checker) hash(p *Pool, at string) {
	if n := p.Hash.Partitions; n > 0 && virtualMembers(p.Servers) > n {
		where := at + ".hash.partitions"
		c.error(where, "WG120", fmt.Sprintf("pool %q: %d partitions are too few for %d servers with their weights", p.Name, n, len(p.Servers)))
	}
}

// virtualMembers is how many members the table is built of: weights by their common divisor, at most 16 for a server.
func virtualMembers(servers []Server) int {
	div := 0
	for i := range servers {
		div = gcd(servers[i].Weight, div)
	}
	if div == 0 {
		return len(servers)
	}
	total, top := 0, 0
	for i := range servers {
		top = max(top, servers[i].Weight/div)
	}
	for i := range servers {
		n := servers[i].Weight / div
		if top > 16 {
			n = (n*16 + top/2) / top
		}
		total += max(n, min(servers[i].Weight, 1))
	}
	return total
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// families refuses two source addresses of one family.
func (c *checker) families(p *Pool, at string) {
	var v4, v6 bool
	for i, a := range p.Connect.Source {
		twice := a.Is4() && v4 || a.Is6() && v6
		if twice {
			c.error(at+".connect.source["+strconv.Itoa(i)+"]", "WG109", fmt.Sprintf("pool %q: a second source address of one family", p.Name))
		}
		v4, v6 = v4 || a.Is4(), v6 || a.Is6()
	}
}

func (c *checker) sites() {
	ranks := map[int]string{}
	for i := range c.cfg.Sites {
		s := &c.cfg.Sites[i]
		if old, twice := ranks[s.Rank]; twice && s.Rank != 0 {
			c.error(c.itemPath("sites", i, s.Name)+".rank", "WG010", fmt.Sprintf("sites %q and %q have one rank", old, s.Name))
		}
		ranks[s.Rank] = s.Name
	}
}

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

// secrets checks the files that hold secrets; those of certificates are read with them.
func (c *checker) secrets() {
	if p := c.cfg.Cluster.SecretFile; !p.IsZero() {
		c.secret("cluster.secret_file", p)
	}
}

// secret says whether a secret file is there and read by owner and group only.
func (c *checker) secret(path string, p Path) bool {
	info, err := fs.Stat(c.fsys, strings.TrimPrefix(p.Abs, "/"))
	switch {
	case err != nil:
		c.error(path, "WG001", fmt.Sprintf("cannot read %s: %s", p.Text, reason(err)))
		return false
	case info.IsDir():
		c.error(path, "WG001", fmt.Sprintf("cannot read %s: it is a folder", p.Text))
		return false
	case info.Mode().Perm()&0o007 != 0:
		c.error(path, "WG012", fmt.Sprintf("%s holds a secret, and others than owner and group may use it (mode %04o)", p.Text, info.Mode().Perm()))
	}
	return true
}

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
	for i := range c.cfg.Listeners {
		certs[c.cfg.Listeners[i].Certificate] = true
	}
	for i := range c.cfg.Pools {
		p := &c.cfg.Pools[i]
		for j := range p.Servers {
			sites[p.Servers[j].Site] = true
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
		if n := c.cfg.Certificates[i].Name; !certs[n] {
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
		return p.Code == m[1] || p.Severity == Error && strings.HasSuffix(p.Path, "."+m[0])
	})
	if name != "" && !wrong {
		c.warning(c.itemPath(list, i, name)+".name", "WG306", fmt.Sprintf("%s %q: %s", what, name, why))
	}
}
