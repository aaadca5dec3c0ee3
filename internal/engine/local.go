package engine

import (
	"net"
	"net/netip"
)

// localAddrs are the addresses of this host's interfaces; empty when they cannot be read.
func localAddrs() []netip.Addr {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, addr.Unmap())
			}
		}
	}
	return out
}

// hasIPv6 says whether this host has an IPv6 address at all.
func hasIPv6() bool {
	for _, a := range localAddrs() {
		if a.Is6() {
			return true
		}
	}
	return false
}
