package main

import "net/netip"

// mustAddr is a port of 127.0.0.1.
func mustAddr(port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
}
