package resolver

import (
	"bufio"
	"io"
	"net/netip"
	"strings"
)

// maxHosts bounds what is read of a hosts file.
const maxHosts = 1 << 20

// parseHosts reads a hosts file: an address and its names per line. What is no address is passed over. localhost is
// there in any case.
func parseHosts(r io.Reader) map[string][]netip.Addr {
	out := map[string][]netip.Addr{}
	lines := bufio.NewScanner(io.LimitReader(r, maxHosts))
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) < 2 {
			continue
		}
		addr, err := netip.ParseAddr(fields[0])
		if err != nil {
			continue
		}
		for _, name := range fields[1:] {
			name = plain(name)
			out[name] = append(out[name], addr.Unmap())
		}
	}
	if out["localhost"] == nil {
		out["localhost"] = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	}
	return out
}

// plain is a name as tables have it: lower case, no final dot.
func plain(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
