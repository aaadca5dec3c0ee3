package config

import (
	"fmt"
	"slices"
	"strings"
)

// transports are those of each protocol.
var transports = map[string][]string{
	"sip":      {"udp", "tcp", "tls", "ws", "wss"},
	"http":     {"tcp", "tls"},
	"diameter": {"tcp", "tls", "sctp"},
}

// fits says on which listeners a key has a meaning; keys that are not listed have one on all.
var fits = map[string]func(l *Listener) bool{
	"certificate":         func(l *Listener) bool { return l.Transport == "tls" || l.Transport == "wss" },
	"client_certificates": func(l *Listener) bool { return l.Transport == "tls" || l.Transport == "wss" },
	"client_ca_file":      func(l *Listener) bool { return l.Transport == "tls" || l.Transport == "wss" },
	"strict_sni":          func(l *Listener) bool { return l.Transport == "tls" || l.Transport == "wss" },
	"path":                func(l *Listener) bool { return l.Transport == "ws" || l.Transport == "wss" },
	"origins":             func(l *Listener) bool { return l.Transport == "ws" || l.Transport == "wss" },
	"max_connection_age":  func(l *Listener) bool { return l.Transport != "udp" },
	"age_jitter":          func(l *Listener) bool { return l.Transport != "udp" },
	"http2":               func(l *Listener) bool { return l.Protocol == "http" && l.Transport == "tls" },
	"sip_websocket":       func(l *Listener) bool { return l.Protocol == "http" },
	"sockets":             func(l *Listener) bool { return l.Transport == "udp" },
	"socket_buffer":       func(l *Listener) bool { return l.Transport == "udp" },
	"path_header":         func(l *Listener) bool { return l.carriesSIP() },
	"outbound":            func(l *Listener) bool { return l.carriesSIP() },
	"force_rport":         func(l *Listener) bool { return l.Protocol == "sip" && l.Transport == "udp" },
	"tls_uri":             func(l *Listener) bool { return l.carriesSIP() },
	"protected_network":   func(l *Listener) bool { return l.Protocol == "sip" },
	"advertise":           func(l *Listener) bool { return l.carriesSIP() },
	"aliases":             func(l *Listener) bool { return l.carriesSIP() },
	"group":               func(l *Listener) bool { return l.Protocol == "diameter" },
	"services":            func(l *Listener) bool { return l.Protocol != "diameter" },
	"proxy_protocol_from": func(l *Listener) bool { return l.Protocol != "diameter" },
}

// carriesSIP says whether SIP comes in there: by itself, or over WebSocket beside HTTP.
func (l *Listener) carriesSIP() bool { return l.Protocol == "sip" || l.SIPWebsocket != nil }

func (c *checker) listeners() {
	services, certs := names(c.cfg.Services, serviceName), names(c.cfg.Certificates, certificateName)
	nodes := []string{c.cfg.Node.Name}
	for _, n := range c.cfg.Cluster.Nodes {
		nodes = append(nodes, n.Name)
	}
	derived := map[string]int{}
	for i := range c.cfg.Listeners {
		l := &c.cfg.Listeners[i]
		at := c.itemPath("listeners", i, l.Name)
		if words, known := transports[l.Protocol]; known && l.Transport != "" && !slices.Contains(words, l.Transport) {
			c.error(at+".transport", "WG009", fmt.Sprintf("%s.transport: %s goes over %s, not over %q", at, l.Protocol, oneOf(words), l.Transport))
		} else if l.Protocol != "" && l.Transport != "" {
			c.listenerKeys(l, at)
		}
		for j, s := range l.Services {
			c.reference(fmt.Sprintf("%s.services[%d]", at, j), "WG102", fmt.Sprintf("listener %q names service", l.Name), s, services)
		}
		for j, n := range l.Nodes {
			c.reference(fmt.Sprintf("%s.nodes[%d]", at, j), "WG106", fmt.Sprintf("listener %q names node", l.Name), n, nodes)
		}
		c.reference(at+".certificate", "WG104", fmt.Sprintf("listener %q names certificate", l.Name), l.Certificate, certs)
		c.listenerTLS(l, at)
		c.derivedName(derived, i, at)
		for j := range i {
			if c.sameSocket(&c.cfg.Listeners[j], l) {
				c.error(at+".bind", "WG108", fmt.Sprintf("listeners %q and %q claim one address, port and transport (%s %s)",
					c.cfg.Listeners[j].Name, l.Name, family(l.Transport), l.Bind))
				break
			}
		}
	}
}

// listenerKeys reports keys without a meaning on this listener.
func (c *checker) listenerKeys(l *Listener, at string) {
	for _, f := range keysOf[Listener]() {
		fit := fits[f]
		if fit == nil || fit(l) || !c.has(at+"."+f) || c.failed(at+"."+f) {
			continue
		}
		c.keyError(at+"."+f, fmt.Sprintf("listener %q: %s has no meaning with %s over %s", l.Name, f, l.Protocol, l.Transport))
	}
}

// derivedName reports names that were made for two listeners, or are another one's: those in the file are told apart
// by the walk.
func (c *checker) derivedName(seen map[string]int, i int, at string) {
	l := &c.cfg.Listeners[i]
	old, twice := seen[l.Name]
	seen[l.Name] = i
	if !twice || c.has(at+".name") && c.has(c.itemPath("listeners", old, l.Name)+".name") {
		return
	}
	c.error(at, "WG101", fmt.Sprintf("two listeners have the name %q, which is made from protocol, transport and port; give one a name", l.Name))
}

// sameSocket says whether two listeners ask the kernel for one socket.
func (c *checker) sameSocket(a, b *Listener) bool {
	if family(a.Transport) != family(b.Transport) || a.Bind.Port != b.Bind.Port || a.Bind.Port == 0 || a.Transport == "" {
		return false
	}
	if len(a.Nodes) > 0 && len(b.Nodes) > 0 && !slices.ContainsFunc(a.Nodes, func(n string) bool { return slices.Contains(b.Nodes, n) }) {
		return false
	}
	x, y := a.Bind.Addr, b.Bind.Addr
	switch {
	case !x.IsValid() || !y.IsValid() || x == y:
		return true
	case x.Is4() != y.Is4():
		return false
	default:
		return x.IsUnspecified() || y.IsUnspecified()
	}
}

// family is what the kernel sees of a transport.
func family(transport string) string {
	if transport == "udp" || transport == "sctp" {
		return transport
	}
	return "tcp"
}

func (c *checker) services() {
	pools := names(c.cfg.Pools, poolName)
	for i := range c.cfg.Services {
		s := &c.cfg.Services[i]
		at := c.itemPath("services", i, s.Name)
		c.reference(at+".pool", "WG103", fmt.Sprintf("service %q names pool", s.Name), s.Pool, pools)
		for j := range s.Applications {
			a := &s.Applications[j]
			aat := c.itemPath(at+".applications", j, a.Name)
			c.reference(aat+".pool", "WG103", fmt.Sprintf("application %q names pool", a.Name), a.Pool, pools)
			if a.Kind == "sip" && c.has(aat+".path_prefix") {
				c.keyError(aat+".path_prefix", fmt.Sprintf("application %q: path_prefix has no meaning with kind sip", a.Name))
			}
		}
	}
}

// claim is what an application asks of one protocol on one host.
type claim struct {
	service     *Service
	application *Application
	path        string // of its host, or of its name
}

// overlaps refuses two applications of one listener that match the same requests equally (operations.md 3.3).
func (c *checker) overlaps() {
	said := map[[2]*Application]bool{}
	for i := range c.cfg.Listeners {
		l := &c.cfg.Listeners[i]
		claims := map[string]claim{}
		for j := range c.cfg.Services {
			s := &c.cfg.Services[j]
			if !l.Offers(s.Name) {
				continue
			}
			for k := range s.Applications {
				if s.Applications[k].takes(l.Protocol) {
					c.claim(l, s, j, k, claims, said)
				}
			}
		}
	}
}

func (c *checker) claim(l *Listener, s *Service, j, k int, claims map[string]claim, said map[[2]*Application]bool) {
	a := &s.Applications[k]
	at := c.itemPath(c.itemPath("services", j, s.Name)+".applications", k, a.Name)
	hosts := a.Host
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	for n, host := range hosts {
		if host == "" && len(a.Host) > 0 {
			continue // refused by the walk
		}
		what := strings.ToLower(strings.TrimSuffix(host, "."))
		where := at + ".name"
		if host != "" {
			where = fmt.Sprintf("%s.host[%d]", at, n)
		}
		if l.Protocol == "http" {
			what += " " + strings.TrimSuffix(a.PathPrefix, "/")
		}
		old, taken := claims[what]
		if !taken {
			claims[what] = claim{s, a, where}
			continue
		}
		pair := [2]*Application{old.application, a}
		if said[pair] || old.application == a {
			continue
		}
		said[pair] = true
		c.error(where, "WG110", fmt.Sprintf("applications %q and %q match the same %s requests on listener %q",
			old.service.Name+"/"+old.application.Name, s.Name+"/"+a.Name, strings.ToUpper(l.Protocol), l.Name))
	}
}

// reached refuses servers without an address for a protocol that reaches their pool.
func (c *checker) reached() {
	need := map[string]map[string]string{} // pool, protocol: an application that brings it there
	for i := range c.cfg.Listeners {
		l := &c.cfg.Listeners[i]
		for j := range c.cfg.Services {
			s := &c.cfg.Services[j]
			for k := range s.Applications {
				a := &s.Applications[k]
				if !l.Offers(s.Name) || !a.takes(l.Protocol) {
					continue
				}
				pool := s.PoolOf(a)
				if need[pool] == nil {
					need[pool] = map[string]string{}
				}
				if need[pool][l.Protocol] == "" {
					need[pool][l.Protocol] = s.Name + "/" + a.Name
				}
			}
		}
	}
	for i := range c.cfg.Pools {
		p := &c.cfg.Pools[i]
		at := c.itemPath("pools", i, p.Name)
		for j := range p.Servers {
			s := &p.Servers[j]
			c.address(s, c.itemPath(at+".servers", j, s.Name), "sip", need[p.Name]["sip"], s.SIP)
			c.address(s, c.itemPath(at+".servers", j, s.Name), "http", need[p.Name]["http"], s.HTTP)
		}
	}
}

func (c *checker) address(s *Server, at, protocol, application string, h HostPort) {
	if application != "" && h.IsZero() && !c.failed(at+"."+protocol) && !c.has(at+".expand") {
		c.error(at+".name", "WG115", fmt.Sprintf("server %q has no %s address, and application %q brings %s to its pool",
			s.Name, protocol, application, strings.ToUpper(protocol)))
	}
}
