package config

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
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
