package limit

import "net/netip"

// Exempt is a list of sources that no limit concerns.
type Exempt struct{ prefixes []netip.Prefix }

// NewExempt folds v4-mapped prefixes to IPv4, as every comparison of addresses does (SX-13).
func NewExempt(list []netip.Prefix) Exempt {
	out := make([]netip.Prefix, 0, len(list))
	for _, p := range list {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		out = append(out, p.Masked())
	}
	return Exempt{out}
}

// Has says whether the address is in the list. Lists are short: a few networks of the operator.
func (e Exempt) Has(a netip.Addr) bool {
	a = a.Unmap()
	for _, p := range e.prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
