package config

import (
	"fmt"
	"strconv"
)

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
			c.serverTLS(s, sat)
			if s.SIP.IsZero() && c.has(sat+".sip_transport") && !c.failed(sat+".sip") && !c.has(sat+".expand") {
				c.keyError(sat+".sip_transport", fmt.Sprintf("server %q has sip_transport without sip", s.Name))
			}
			if c.has(sat+".sip_path") && !s.overWebSocket() && !c.failed(sat+".sip_transport") {
				c.keyError(sat+".sip_path", fmt.Sprintf("server %q: sip_path has no meaning with sip_transport %s", s.Name, s.SIPTransport))
			}
			if s.HTTP.IsZero() && c.has(sat+".http_transport") && !c.failed(sat+".http") && !c.has(sat+".expand") {
				c.keyError(sat+".http_transport", fmt.Sprintf("server %q has http_transport without http", s.Name))
			}
		}
		c.hash(p, at)
		c.families(p, at)
	}
}

// overWebSocket says that SIP is carried to the server in WebSocket messages.
func (s *Server) overWebSocket() bool { return s.SIPTransport == "ws" || s.SIPTransport == "wss" }

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
