package resolver

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// record is one SRV record, or what stands for one, with its addresses.
type record struct {
	transport Transport
	rank      uint32 // place of its NAPTR record, then its priority: the lowest is tried first
	weight    uint16
	addrs     []netip.AddrPort
}

// inOrder appends the targets: rank after rank, and within one by the selection of RFC 2782, with numbers drawn from the
// seed in place of random ones: the copies of a request go where it went.
func inOrder(dst []HopTarget, list []record, seed uint64) []HopTarget {
	var order [hopRecords]uint8
	for i := range list {
		order[i] = uint8(i)
	}
	for begin := 0; begin < len(list); {
		end := begin + 1
		for end < len(list) && list[end].rank == list[begin].rank {
			end++
		}
		for i := begin; i < end-1; i++ {
			seed = spread(seed + 0x9e3779b97f4a7c15)
			j := i + pick(list, order[i:end], seed)
			chosen := order[j]
			copy(order[i+1:j+1], order[i:j])
			order[i] = chosen
		}
		begin = end
	}
	for _, i := range order[:len(list)] {
		for _, a := range list[i].addrs {
			if len(dst) < hopTargets {
				dst = append(dst, HopTarget{list[i].transport, a})
			}
		}
	}
	return dst
}

// pick is one draw: the first record whose running sum of weights reaches the number drawn. Those of weight 0 stand first,
// so that they are drawn seldom, and never where the rest have weights and the number is above 0.
func pick(list []record, left []uint8, drawn uint64) int {
	sum := uint64(0)
	for _, i := range left {
		sum += uint64(list[i].weight)
	}
	if sum == 0 {
		return int(drawn % uint64(len(left)))
	}
	n := drawn % (sum + 1)
	sum = 0
	for at, i := range left {
		if sum += uint64(list[i].weight); sum >= n {
			return at
		}
	}
	return len(left) - 1
}

// hopQuery is one search for a hop. ttl is how long all of what it found may be believed, err the last query that nobody
// answered.
type hopQuery struct {
	cfg *HostsConfig
	ttl time.Duration
	err error
}

// find is RFC 3263 sections 4.1 and 4.2: an address or a port says all, and so does a line of the hosts file; a transport
// leaves SRV; with neither NAPTR is asked, then SRV for each transport; where there is no record, addresses at the default
// port. Where nobody says whether there is one, a domain's own address is not taken for its proxy.
func (q *hopQuery) find(ctx context.Context, h Hop) []record {
	if _, err := netip.ParseAddr(strings.Trim(h.Host, "[]")); err == nil || h.Port != 0 || len(q.cfg.fromFile(plain(h.Host))) > 0 {
		return q.direct(ctx, h)
	}
	var list []srvRecord
	found := false
	if h.Transport != AnyTransport {
		list, found = q.srv(ctx, []service{{serviceOf(h.Transport) + h.Host, h.Transport}})
	} else if list, found = q.naptr(ctx, h); !found {
		q.err = nil
		list, found = q.services(ctx, h)
	}
	switch {
	case found:
		return q.addresses(ctx, list)
	case q.err != nil && !errors.Is(q.err, errRefused):
		return nil
	}
	return q.direct(ctx, h)
}

// direct is the host itself, at the port written or the transport's own.
func (q *hopQuery) direct(ctx context.Context, h Hop) []record {
	t, port := h.Transport, h.Port
	switch {
	case t != AnyTransport:
	case h.Secure:
		t = TLS
	default:
		t = UDP
	}
	if port == 0 {
		port = 5060
		if t == TLS {
			port = 5061
		}
	}
	return q.addresses(ctx, []srvRecord{{record: record{transport: t}, host: h.Host, port: port}})
}

// srvRecord is a record whose addresses are not known yet.
type srvRecord struct {
	record
	host string
	port uint16
}

// naptr follows the records for SIP in their order; found: DNS has some, whether or not there is a way by them. A resolver
// that is silent about this type leaves time for the others.
func (q *hopQuery) naptr(ctx context.Context, h Hop) (list []srvRecord, found bool) {
	part, cancel := context.WithTimeout(ctx, naptrWait)
	m := q.ask(part, dns.TypeNAPTR, h.Host)[0]
	cancel()
	var usable []*dns.NAPTR
	for _, rr := range answers(m) {
		n, ok := rr.(*dns.NAPTR)
		if t := transportOf(n); ok && t != AnyTransport && strings.EqualFold(n.Flags, "s") {
			found = true
			if !h.Secure || t == TLS {
				usable = append(usable, n)
			}
		}
	}
	slices.SortStableFunc(usable, func(a, b *dns.NAPTR) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Replacement, b.Replacement))
	})
	var ways []service
	for _, n := range usable[:min(len(usable), hopRecords)] {
		ways = append(ways, service{n.Replacement, transportOf(n)})
	}
	list, _ = q.srv(ctx, ways)
	return list, found
}

func transportOf(n *dns.NAPTR) Transport {
	if n == nil {
		return AnyTransport
	}
	switch strings.ToUpper(n.Service) {
	case "SIP+D2U":
		return UDP
	case "SIP+D2T":
		return TCP
	case "SIPS+D2T":
		return TLS
	}
	return AnyTransport
}

func serviceOf(t Transport) string {
	return [...]string{UDP: "_sip._udp.", TCP: "_sip._tcp.", TLS: "_sips._tcp."}[t]
}

// services asks SRV for each transport there is, where no NAPTR record says which to take.
func (q *hopQuery) services(ctx context.Context, h Hop) (list []srvRecord, found bool) {
	if h.Secure {
		return q.srv(ctx, []service{{serviceOf(TLS) + h.Host, TLS}})
	}
	return q.srv(ctx, []service{{serviceOf(UDP) + h.Host, UDP}, {serviceOf(TCP) + h.Host, TCP}, {serviceOf(TLS) + h.Host, TLS}})
}

// service is a name that has SRV records, and what they are for.
type service struct {
	name string
	t    Transport
}

// srv gives the records of services that are tried one after the other, those of weight 0 first among equals; a target "."
// says that there is no such service (RFC 2782), which is an answer as well.
func (q *hopQuery) srv(ctx context.Context, ways []service) (list []srvRecord, found bool) {
	names := make([]string, len(ways))
	for i, w := range ways {
		names[i] = w.name
	}
	for place, m := range q.ask(ctx, dns.TypeSRV, names...) {
		for _, rr := range answers(m) {
			s, ok := rr.(*dns.SRV)
			if !ok {
				continue
			}
			if found = true; s.Target != "." {
				r := record{transport: ways[place].t, rank: uint32(place)<<16 | uint32(s.Priority), weight: s.Weight}
				list = append(list, srvRecord{record: r, host: s.Target, port: s.Port})
			}
		}
	}
	slices.SortFunc(list, func(a, b srvRecord) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.weight, b.weight), cmp.Compare(plain(a.host), plain(b.host)), cmp.Compare(a.port, b.port))
	})
	return list, found
}

// addresses looks all hosts up at once; a record without an address is left out.
func (q *hopQuery) addresses(ctx context.Context, list []srvRecord) (out []record) {
	list = list[:min(len(list), hopRecords)]
	type part struct {
		a   Addresses
		err error
	}
	parts := make([]part, len(list))
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() { parts[i].a, parts[i].err = q.cfg.lookup(ctx, list[i].host) })
	}
	wg.Wait()
	for i, p := range parts {
		switch {
		case nobody(p.err):
			q.err, q.ttl = p.err, min(q.ttl, hopFailure)
		default:
			q.ttl = min(q.ttl, p.a.TTL)
		}
		if p.err != nil {
			continue
		}
		r := list[i].record
		for _, a := range p.a.Addrs {
			r.addrs = append(r.addrs, netip.AddrPortFrom(a, list[i].port))
		}
		out = append(out, r)
	}
	return out
}

// ask makes queries of one type at once and counts their times to live, also that of "there is none". nil stands for what
// nobody answered.
func (q *hopQuery) ask(ctx context.Context, qtype uint16, names ...string) []*dns.Msg {
	out, errs := make([]*dns.Msg, len(names)), make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { out[i], errs[i] = q.cfg.Client.exchange(ctx, name, qtype) })
	}
	wg.Wait()
	for i, m := range out {
		switch {
		case errs[i] != nil:
			q.err, q.ttl, out[i] = errs[i], min(q.ttl, hopFailure), nil
		case len(m.Answer) == 0:
			q.ttl = min(q.ttl, noneTTL(m))
		default:
			q.ttl = min(q.ttl, minTTL(m.Answer))
		}
	}
	return out
}

func answers(m *dns.Msg) []dns.RR {
	if m == nil {
		return nil
	}
	return m.Answer
}

// noneTTL is how long "there is none" is believed: what the SOA says, without one a few seconds.
func noneTTL(m *dns.Msg) time.Duration {
	if ttl := soaMinimum(m, hopMax+1); ttl <= hopMax {
		return ttl
	}
	for _, rr := range m.Ns {
		if _, ok := rr.(*dns.SOA); ok {
			return hopMax
		}
	}
	return hopFailure
}
