package engine

import (
	"net/netip"

	"github.com/wyegate/wyegate/internal/listen"
	"github.com/wyegate/wyegate/routing"
)

// announcement is how servers are told who a client is (connect.proxy_protocol); nil: not at all.
func announcement(word string) func(dst []byte, client, to netip.AddrPort) []byte {
	version := proxyVersion(word)
	if version == 0 {
		return nil
	}
	return func(dst []byte, client, to netip.AddrPort) []byte {
		return listen.AppendProxyHeader(dst, version, listen.ProxyHeader{Source: client, Destination: to})
	}
}

func proxyVersion(word string) int {
	switch word {
	case "v1":
		return 1
	case "v2":
		return 2
	}
	return 0
}

// ownHeader is the PROXY header of a probe to a server that expects one: the connection is our own.
func (g *Generation) ownHeader(a routing.Address) []byte {
	if a.Proto != routing.HTTP {
		return nil
	}
	for _, p := range g.pools {
		version := proxyVersion(p.def.Connect.ProxyProtocol)
		for i := range p.Table().Members {
			if version > 0 && hasAddress(&p.Table().Members[i], a) {
				return listen.AppendProxyHeader(nil, version, listen.ProxyHeader{})
			}
		}
	}
	return nil
}
