package resolver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// ErrNoName says that DNS answered and has no address for a name.
var ErrNoName = errors.New("resolver: no address for the name")

// Addresses is what a name stands for, IPv4 before IPv6, each in order, so that all nodes begin with the same one.
type Addresses struct {
	Addrs []netip.Addr
	TTL   time.Duration // how long it may be believed
	Stale bool          // nobody has answered since it ran out
}

// fileTTL is how long a line of the hosts file is believed before the file is read again.
const fileTTL = 30 * time.Second

// lookup finds the addresses of a name: an address stands for itself, the hosts file comes before DNS. It waits as long
// as the context lets it. With ErrNoName there is a TTL as well: how long that may be believed.
func (c *HostsConfig) lookup(ctx context.Context, name string) (Addresses, error) {
	if a, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return Addresses{Addrs: []netip.Addr{a.Unmap()}, TTL: time.Hour}, nil
	}
	if list := c.fromFile(plain(name)); len(list) > 0 {
		return Addresses{Addrs: ordered(list), TTL: fileTTL}, nil
	}
	type part struct {
		m   *dns.Msg
		err error
	}
	types := [...]uint16{dns.TypeA, dns.TypeAAAA}
	parts := make(chan part, len(types))
	for _, t := range types {
		go func() {
			m, err := c.Client.exchange(ctx, name, t)
			parts <- part{m, err}
		}()
	}
	out, none := Addresses{TTL: time.Hour}, time.Hour
	var failed error
	for range types {
		p := <-parts
		if p.err != nil {
			failed = p.err
			continue
		}
		found := addressesOf(p.m.Answer)
		if len(found) > 0 {
			out.TTL = min(out.TTL, minTTL(p.m.Answer))
		} else {
			none = min(none, noneTTL(p.m))
		}
		out.Addrs = append(out.Addrs, found...)
	}
	switch {
	case len(out.Addrs) > 0:
		out.Addrs = ordered(out.Addrs)
		return out, nil
	case failed != nil:
		return Addresses{}, fmt.Errorf("resolver: %s: %w", name, failed)
	default:
		return Addresses{TTL: none}, fmt.Errorf("%w: %s", ErrNoName, name)
	}
}

func (c *HostsConfig) fromFile(name string) []netip.Addr {
	path := c.File
	if path == "" {
		path = "/etc/hosts"
	}
	f, err := os.Open(path)
	if err != nil {
		return parseHosts(strings.NewReader(""))[name]
	}
	defer f.Close()
	return parseHosts(f)[name]
}

func addressesOf(rrs []dns.RR) (out []netip.Addr) {
	for _, rr := range rrs {
		switch rr := rr.(type) {
		case *dns.A:
			if a, ok := netip.AddrFromSlice(rr.A.To4()); ok {
				out = append(out, a)
			}
		case *dns.AAAA:
			if a, ok := netip.AddrFromSlice(rr.AAAA); ok {
				out = append(out, a)
			}
		}
	}
	return out
}

func ordered(list []netip.Addr) []netip.Addr {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b netip.Addr) int {
		if a.Is4() != b.Is4() {
			if a.Is4() {
				return -1
			}
			return 1
		}
		return a.Compare(b)
	})
	return slices.Compact(list)
}
