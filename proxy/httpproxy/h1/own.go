package h1

import (
	"net"
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// ownMost is how many announced connections a client's connection keeps: one to each of the servers it talks to.
const ownMost = 8

// announce tells a server who the client is, before anything else is said (sip-http.md section 14). A client that a trusted
// hop has named has no port that anybody knows; the hop's stands for it.
func (c *conn) announce(nc net.Conn, cfg *httpproxy.Connect) error {
	v := &c.x.view
	_ = nc.SetWriteDeadline(time.Now().Add(cfg.Timeout))
	_, err := nc.Write(cfg.Announce(nil, netip.AddrPortFrom(v.Client, v.Remote.Port()), v.Local))
	if err != nil {
		_ = nc.Close()
		return err
	}
	return nc.SetWriteDeadline(time.Time{})
}

// takeOwn gives a connection to a server on which this client was announced; nil: there is none.
func (c *conn) takeOwn(p *pool) *server {
	for i, s := range c.own {
		if s.pool == p && s.told == c.x.view.Client {
			c.own = append(c.own[:i], c.own[i+1:]...)
			return s
		}
	}
	return nil
}

// keepOwn keeps an announced connection for the client's next request.
func (c *conn) keepOwn(s *server) {
	if len(c.own) == ownMost {
		c.own[0].close()
		c.own = append(c.own[:0], c.own[1:]...)
	}
	c.own = append(c.own, s)
}

// dropOwn closes them: the client has left.
func (c *conn) dropOwn() {
	for _, s := range c.own {
		s.close()
	}
	c.own = nil
}
