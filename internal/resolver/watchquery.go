package resolver

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// query asks for the set once: SRV records and the addresses of each target, or the addresses of the host.
func (w *Watch) query(ctx context.Context) (Set, error) {
	set, found := Set{TTL: w.cfg.MaxTTL}, []Target(nil)
	if w.cfg.SRV != "" {
		m, err := w.ask.exchange(ctx, w.cfg.SRV, dns.TypeSRV)
		if err != nil {
			return Set{}, fmt.Errorf("resolver: %s: %w", w.cfg.SRV, err)
		}
		var any bool
		if found, any = services(m.Answer); any {
			set.TTL, set.SRV = min(set.TTL, minTTL(m.Answer)), true
			return w.complete(ctx, set, found)
		}
	}
	if w.cfg.Host == "" {
		return Set{}, fmt.Errorf("%w: %s", ErrEmptySet, w.cfg.SRV)
	}
	return w.complete(ctx, set, []Target{{Host: plain(w.cfg.Host)}})
}

// services reads SRV records. any is true for a record that says there is no service (target "."): it is an answer, so
// the host's addresses are not to be asked for (RFC 2782).
func services(rrs []dns.RR) (list []Target, any bool) {
	for _, rr := range rrs {
		s, ok := rr.(*dns.SRV)
		if !ok {
			continue
		}
		any = true
		if s.Target == "." {
			continue
		}
		list = append(list, Target{Host: plain(s.Target), Port: s.Port, Priority: s.Priority, Weight: s.Weight})
	}
	slices.SortFunc(list, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port),
			cmp.Compare(b.Weight, a.Weight))
	})
	return list, any
}

// complete finds the addresses of each target. A target for which nobody answers keeps the addresses it had: a
// resolver's silence is no reason to close a connection. One without any address is left out.
func (w *Watch) complete(ctx context.Context, set Set, found []Target) (Set, error) {
	old, _ := w.Last()
	var failed error
	for _, t := range found {
		addrs, ttl, err := w.addresses(ctx, t.Host)
		if err != nil {
			failed = err
			ttl = w.cfg.MinTTL
			addrs = old.of(t.Host)
		}
		if len(addrs) == 0 {
			continue
		}
		t.Addrs = addrs
		set.Targets = append(set.Targets, t)
		set.TTL = min(set.TTL, ttl)
	}
	switch {
	case failed != nil && (len(set.Targets) == 0 || w.cfg.SRV == ""):
		return Set{}, failed
	case len(set.Targets) == 0:
		return Set{}, fmt.Errorf("%w: %s", ErrEmptySet, cmp.Or(w.cfg.SRV, w.cfg.Host))
	}
	set.TTL = min(max(set.TTL, w.cfg.MinTTL), w.cfg.MaxTTL)
	return set, nil
}

// addresses asks for A and AAAA of a name, and fails only when neither has an address and one got no answer.
func (w *Watch) addresses(ctx context.Context, name string) (list []netip.Addr, ttl time.Duration, err error) {
	ttl = w.cfg.MaxTTL
	for _, qtype := range [...]uint16{dns.TypeA, dns.TypeAAAA} {
		if qtype == dns.TypeA && w.cfg.Family == IPv6 || qtype == dns.TypeAAAA && w.cfg.Family == IPv4 {
			continue
		}
		m, e := w.ask.exchange(ctx, name, qtype)
		if e != nil {
			err = fmt.Errorf("resolver: %s: %w", name, e)
			continue
		}
		if found := w.cfg.Family.of(addressesOf(m.Answer)); len(found) > 0 {
			list = append(list, found...)
			ttl = min(ttl, minTTL(m.Answer))
		}
	}
	if len(list) > 0 {
		return ordered(list), ttl, nil
	}
	return nil, ttl, err
}

// of leaves out addresses of the other family: a CNAME or an additional record may bring some.
func (f Family) of(list []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(list, func(a netip.Addr) bool {
		return f == IPv4 && !a.Unmap().Is4() || f == IPv6 && a.Unmap().Is4()
	})
}

func (s Set) of(host string) []netip.Addr {
	for _, t := range s.Targets {
		if t.Host == host {
			return t.Addrs
		}
	}
	return nil
}
