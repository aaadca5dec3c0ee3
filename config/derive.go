package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/wyegate/wyegate/routing"
)

// derive fills in what follows from other keys or from the machine (operations.md 3.1).
func (c *Config) derive(opts Options) {
	if c.Node.Name == "" {
		c.Node.Name = opts.HostName
	}
	if len(c.Admin.Sockets) == 0 {
		s := AdminSocket{}
		setDefaults(&s)
		s.Path = Path{Text: defaultSocket, Abs: defaultSocket}
		c.Admin.Sockets = []AdminSocket{s}
	}
	for i := range c.Listeners {
		if l := &c.Listeners[i]; l.Name == "" {
			l.Name = l.Protocol + "-" + l.Transport + "-" + strconv.Itoa(int(l.Bind.Port))
		}
	}
	for i := range c.Pools {
		for j := range c.Pools[i].Servers {
			c.Pools[i].Servers[j].deriveHTTP()
		}
	}
	for i := range c.Services {
		if s := &c.Services[i]; len(s.Applications) == 0 {
			a := Application{}
			setDefaults(&a)
			a.Name = s.Name
			s.Applications = []Application{a}
		}
	}
}

// deriveHTTP finds how HTTP goes to a server whose file does not say it: over TLS where it says how the server is known
// there and leaves nothing else that it could be known for.
func (s *Server) deriveHTTP() {
	switch {
	case s.HTTPTransport != "":
	case !s.HTTP.IsZero() && s.TLS != nil && !s.sipSecure():
		s.HTTPTransport = "tls"
	default:
		s.HTTPTransport = "tcp"
	}
}

// defaultSocket is the admin socket when the file names none.
const defaultSocket = "/run/wyegate/admin.sock"

// AffinityOf gives the affinity of an application: its own, or its service's.
func (s *Service) AffinityOf(a *Application) *Affinity {
	if a.Affinity != nil {
		return a.Affinity
	}
	return &s.Affinity
}

// PoolOf gives the name of the pool that serves an application: its own, or its service's.
func (s *Service) PoolOf(a *Application) string {
	if a.Pool != "" {
		return a.Pool
	}
	return s.Pool
}

// ServiceKind gives the kind of an application as routing knows it.
func (a *Application) ServiceKind() routing.ServiceKind {
	switch a.Kind {
	case "web":
		return routing.Web
	case "sip":
		return routing.SIPOnly
	default:
		return routing.Converged
	}
}

// takes says whether an application of that kind takes requests of a protocol.
func (a *Application) takes(protocol string) bool {
	switch a.Kind {
	case "web":
		return protocol == "http"
	case "sip":
		return protocol == "sip"
	default:
		return protocol == "sip" || protocol == "http"
	}
}

// Offers says whether a listener offers its requests to a service.
func (l *Listener) Offers(service string) bool {
	return len(l.Services) == 0 || slices.Contains(l.Services, service)
}

// Pool gives a pool by name; nil when there is none.
func (c *Config) Pool(name string) *Pool {
	for i := range c.Pools {
		if c.Pools[i].Name == name {
			return &c.Pools[i]
		}
	}
	return nil
}

// At gives the place of the value at a dotted path ("pools.appservers.servers.as1.weight"). A key that the file leaves
// out has the place of the nearest map around it.
func (c *Config) At(path string) Pos {
	for {
		if p, ok := c.where[path]; ok {
			return p
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return c.where[""]
		}
		path = path[:i]
	}
}

// KeyAt gives the place of the key itself; for a key that the file leaves out, what At gives.
func (c *Config) KeyAt(path string) Pos {
	if p, ok := c.keyAt[path]; ok {
		return p
	}
	return c.At(path)
}

// ProblemAt makes a finding about the value at a dotted path: for what only the engine can see.
func (c *Config) ProblemAt(path string, sev Severity, code, text string) Problem {
	p := c.At(path)
	return Problem{File: p.File, Line: p.Line, Col: p.Col, Severity: sev, Code: code, Text: text, Path: path}
}

// RuleFile is a rule file at one place that names it. Two services that share a file are two entries.
type RuleFile struct {
	Service     string
	Application string // empty: the service's own affinity
	Path        string // within the file system
	Shown       string // as people see it
	Data        []byte
	Key         string // dotted path of the key that names it: "services.main.affinity.rules"
	Affinity    *Affinity
}

// Refused is the finding that a rule file cannot be used (WG119); its own findings follow it in the list.
func (c *Config) Refused(f RuleFile, reason string) Problem {
	return c.ProblemAt(f.Key, Error, "WG119", "rule file "+f.Shown+" is refused: "+reason)
}

// NoHTTPRules is the warning that a rule file of a converged application says nothing about HTTP (WG302).
func (c *Config) NoHTTPRules(f RuleFile) Problem {
	return c.ProblemAt(f.Key, Warning, "WG302", "rule file "+f.Shown+
		" has no http-rules: the key of HTTP is remote host and port, new for each connection")
}

// Serves says whether a rule file is used by an application of a kind.
func (c *Config) Serves(f RuleFile, kind string) bool {
	for i := range c.Services {
		s := &c.Services[i]
		if s.Name != f.Service {
			continue
		}
		for j := range s.Applications {
			a := &s.Applications[j]
			own := a.Affinity != nil
			if a.Kind == kind && (own && a.Name == f.Application || !own && f.Application == "") {
				return true
			}
		}
	}
	return false
}

// digest is SHA-256 over the merged text before variables, and the bytes of every rule file.
func digest(root *node, rules []RuleFile) string {
	h := sha256.New()
	part := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	part(canonical(root))
	for _, f := range rules {
		part(f.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// canonical writes a tree so that only its meaning decides: no comments, no styles, no paths of the machine.
func canonical(n *node) []byte {
	var out []byte
	var walk func(n *node)
	walk = func(n *node) {
		switch n.kind {
		case mapNode:
			out = append(out, '{')
			for _, e := range n.keys {
				out = append(strconv.AppendQuote(out, e.name), ':')
				walk(e.val)
				out = append(out, ',')
			}
			out = append(out, '}')
		case listNode:
			out = append(out, '[')
			for _, i := range n.items {
				walk(i)
				out = append(out, ',')
			}
			out = append(out, ']')
		default:
			out = strconv.AppendQuote(out, n.text)
		}
	}
	walk(n)
	return out
}
