package policycluster

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/wyegate/wyegate/internal/resolver"
)

// server is what an answer says of one server. Its place in a list, from 1, is its rank.
type server struct {
	target   string // name in SRV; empty: none
	addrs    []netip.AddrPort
	priority uint16
	weight   uint16
}

// servers turns an answer into a list by rank (Failover), or into one server per address (Random).
func (c *Config) servers(set resolver.Set) []server {
	var list []server
	for _, t := range set.Targets {
		s := server{priority: t.Priority, weight: t.Weight}
		if set.SRV {
			s.target = t.Host
		}
		port := c.port(t.Port)
		for _, a := range t.Addrs {
			ap := netip.AddrPortFrom(a.Unmap(), port)
			if set.SRV && c.Selection == Failover {
				s.addrs = append(s.addrs, ap)
				continue
			}
			one := s
			one.addrs = []netip.AddrPort{ap}
			list = append(list, one)
		}
		if len(s.addrs) > 0 {
			list = append(list, s)
		}
	}
	list = distinct(list)
	if c.Selection == Failover {
		rank(list, c.HighestWeight, rand.New(rand.NewPCG(c.Seed, sum(c.Name, list))))
	}
	return list
}

// literals gives the configured addresses; their priority is their position.
func (c *Config) literals() []server {
	list := make([]server, len(c.Addresses))
	for i, a := range c.Addresses {
		list[i] = server{addrs: []netip.AddrPort{a}, priority: uint16(i)}
	}
	return list
}

// distinct drops a server all of whose addresses stood before: one address is one member.
func distinct(list []server) []server {
	seen := make(map[netip.AddrPort]bool)
	return slices.DeleteFunc(list, func(s server) bool {
		fresh := false
		for _, a := range s.addrs {
			fresh = fresh || !seen[a]
			seen[a] = true
		}
		return !fresh
	})
}

// sum is the seed of the draw for one record set: the same set gives the same order at the next TTL.
func sum(name string, list []server) uint64 {
	var b []byte
	b = append(b, name...)
	slices.SortFunc(list, func(a, b server) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.target, b.target), a.addrs[0].Compare(b.addrs[0]))
	})
	for _, s := range list {
		b = append(append(b, 0), s.target...)
		b = binary.BigEndian.AppendUint16(b, s.priority)
		b = binary.BigEndian.AppendUint16(b, s.weight)
		for _, a := range s.addrs {
			b = a.AppendTo(append(b, ' '))
		}
	}
	return xxhash.Sum64(b)
}

// rank orders by priority, and within one by the weighted draw of RFC 2782 or by weight. The list is sorted by priority.
func rank(list []server, highest bool, r *rand.Rand) {
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to].priority == list[from].priority {
			to++
		}
		if highest {
			slices.SortStableFunc(list[from:to], func(a, b server) int { return cmp.Compare(b.weight, a.weight) })
		} else {
			draw(list[from:to], r)
		}
		from = to
	}
}

// draw is RFC 2782: servers of weight 0 first, a number from 0 to the sum of weights, the first whose running sum is not
// less; then the same among the rest. Where all weights are 0 that would be the given order, so chance decides.
func draw(list []server, r *rand.Rand) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	slices.SortStableFunc(list, func(a, b server) int { return cmp.Compare(min(a.weight, 1), min(b.weight, 1)) })
	for ; len(list) > 1; list = list[1:] {
		total := 0
		for _, s := range list {
			total += int(s.weight)
		}
		at, i := r.IntN(total+1), 0
		for running := int(list[0].weight); running < at; running += int(list[i].weight) {
			i++
		}
		chosen := list[i]
		copy(list[1:i+1], list[:i]) // the rest keeps its order: weight 0 stays first
		list[0] = chosen
	}
}
