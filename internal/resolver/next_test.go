package resolver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// startNext makes a Next that asks and runs.
func startNext(t *testing.T, s *scripted, file ...string) *Next {
	t.Helper()
	n := NewNext(hostsConfig(t, s, file...))
	run(t, n.Run)
	return n
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

// places asks for a hop, waits, and gives its targets for a seed.
func places(t *testing.T, n *Next, h Hop, seed uint64) []HopTarget {
	t.Helper()
	done := make(chan struct{})
	if !n.Ask(h, func() { close(done) }) {
		t.Fatal("not asked")
	}
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("never told")
	}
	list, known := n.Lookup(nil, h, seed, false)
	if !known {
		t.Fatalf("%+v is not known after it was asked for", h)
	}
	return list
}

func inWords(list []HopTarget) string {
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("%s %s", [...]string{"any", "udp", "tcp", "tls"}[p.Transport], p.Addr))
	}
	return strings.Join(out, ", ")
}

// expire makes what is known of a hop old: it stays where late answers are looked for.
func (n *Next) expire(h Hop) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, old := n.cache.find(h, time.Now()); old != nil {
		n.cache.put(&answer[Hop, []record]{key: h, value: old.value, kind: old.kind, learnt: old.learnt, ends: 0}, time.Now())
	}
}

var rfc3263 = []string{
	// NAPTR: two services, in an order that is not that of the lines.
	`both.example.net. 60 IN NAPTR 50 20 "s" "SIP+D2U" "" _sip._udp.both.example.net.`,
	`both.example.net. 60 IN NAPTR 50 10 "s" "SIP+D2T" "" _sip._tcp.elsewhere.example.net.`,
	`both.example.net. 60 IN NAPTR 10 10 "s" "E2U+sip" "" _sip._udp.wrong.example.net.`,
	`both.example.net. 60 IN NAPTR 90 10 "s" "SIPS+D2T" "" _sips._tcp.both.example.net.`,
	"_sip._udp.both.example.net. 60 IN SRV 1 1 5080 a.example.net.",
	"_sip._tcp.elsewhere.example.net. 60 IN SRV 1 1 5081 b.example.net.",
	"_sips._tcp.both.example.net. 60 IN SRV 1 1 5082 c.example.net.",
	// No NAPTR: SRV of each transport.
	"_sip._udp.plain.example.net. 60 IN SRV 20 1 5070 c.example.net.",
	"_sip._udp.plain.example.net. 60 IN SRV 10 1 5071 a.example.net.",
	"_sip._tcp.plain.example.net. 60 IN SRV 1 1 5072 b.example.net.",
	"plain.example.net. 60 IN A 192.0.2.99",
	// NAPTR for UDP alone.
	`udp.example.net. 60 IN NAPTR 1 1 "s" "SIP+D2U" "" _sip._udp.both.example.net.`,
	// Service refused, and a target without an address in front of one that has two.
	"_sip._udp.none.example.net. 60 IN SRV 0 0 0 .",
	"none.example.net. 60 IN A 192.0.2.98",
	"_sip._udp.half.example.net. 60 IN SRV 1 1 5073 nowhere.example.net.",
	"_sip._udp.half.example.net. 60 IN SRV 2 1 5074 two.example.net.",
	"a.example.net. 60 IN A 192.0.2.1", "b.example.net. 60 IN A 192.0.2.2", "c.example.net. 60 IN A 192.0.2.3",
	"two.example.net. 60 IN A 192.0.2.5", "two.example.net. 60 IN A 192.0.2.4", "two.example.net. 60 IN AAAA 2001:db8::4",
}

// SX-14, RFC 3263 sections 4.1 and 4.2: what is asked for, and in which order its answers are tried.
func TestSX14_Order(t *testing.T) {
	n := startNext(t, serve(t, zone(rfc3263...)), "192.0.2.60 file.example.net")
	for _, c := range []struct {
		what string
		hop  Hop
		want string
	}{
		{"NAPTR in its order, other services left out", Hop{Host: "both.example.net"}, "tcp 192.0.2.2:5081, udp 192.0.2.1:5080, tls 192.0.2.3:5082"},
		{"sips: TLS and nothing else", Hop{Host: "both.example.net", Secure: true}, "tls 192.0.2.3:5082"},
		{"sips where NAPTR has no TLS", Hop{Host: "udp.example.net", Secure: true}, ""},
		{"transport written: SRV of it", Hop{Host: "both.example.net", Transport: UDP}, "udp 192.0.2.1:5080"},
		{"no NAPTR: SRV of UDP, TCP, TLS, by priority within each", Hop{Host: "plain.example.net"}, "udp 192.0.2.1:5071, udp 192.0.2.3:5070, tcp 192.0.2.2:5072"},
		{"port written: addresses", Hop{Host: "plain.example.net", Port: 5066}, "udp 192.0.2.99:5066"},
		{"port and transport written", Hop{Host: "plain.example.net", Port: 5066, Transport: TCP}, "tcp 192.0.2.99:5066"},
		{"port of sips", Hop{Host: "plain.example.net", Port: 5066, Secure: true}, "tls 192.0.2.99:5066"},
		{"no SRV of that transport: default port", Hop{Host: "plain.example.net", Transport: TLS}, "tls 192.0.2.99:5061"},
		{"neither NAPTR nor SRV: default port", Hop{Host: "a.example.net"}, "udp 192.0.2.1:5060"},
		{"the same of sips", Hop{Host: "a.example.net", Secure: true}, "tls 192.0.2.1:5061"},
		{"all addresses of a name", Hop{Host: "two.example.net", Transport: TCP}, "tcp 192.0.2.4:5060, tcp 192.0.2.5:5060, tcp [2001:db8::4]:5060"},
		{"a target without an address is passed over", Hop{Host: "half.example.net"}, "udp 192.0.2.4:5074, udp 192.0.2.5:5074, udp [2001:db8::4]:5074"},
		{"a service that is refused", Hop{Host: "none.example.net"}, ""},
		{"no such name", Hop{Host: "nobody.example.net"}, ""},
		{"an address", Hop{Host: "[2001:db8::9]", Transport: TLS}, "tls [2001:db8::9]:5061"},
		{"a line of the hosts file", Hop{Host: "file.example.net"}, "udp 192.0.2.60:5060"},
	} {
		if _, known := n.Lookup(nil, c.hop, 1, false); known {
			t.Errorf("%s: known before it was asked for", c.what)
		}
		if got := inWords(places(t, n, c.hop, 1)); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// SX-14: weights pick among equals, by the identity of the transaction: one seed, one order; every target is in it once.
func TestSX14_Weights(t *testing.T) {
	n := startNext(t, serve(t, zone(
		"_sip._udp.example.net. 60 IN SRV 1 70 5001 a.example.net.", "_sip._udp.example.net. 60 IN SRV 1 20 5002 a.example.net.",
		"_sip._udp.example.net. 60 IN SRV 1 10 5003 a.example.net.", "_sip._udp.example.net. 60 IN SRV 1 0 5004 a.example.net.",
		"_sip._udp.example.net. 60 IN SRV 2 1 5009 a.example.net.",
		"_sip._tcp.example.net. 60 IN SRV 1 0 5001 a.example.net.", "_sip._tcp.example.net. 60 IN SRV 1 0 5002 a.example.net.",
		"a.example.net. 60 IN A 192.0.2.1",
	)))
	udp, tcp := Hop{Host: "example.net", Transport: UDP}, Hop{Host: "example.net", Transport: TCP}
	places(t, n, udp, 0)
	places(t, n, tcp, 0)
	const draws = 20_000
	first, even := map[uint16]int{}, map[uint16]int{}
	for seed := range uint64(draws) {
		list, _ := n.Lookup(nil, udp, spread(seed), false)
		again, _ := n.Lookup(nil, udp, spread(seed), false)
		if !slices.Equal(list, again) {
			t.Fatalf("seed %d gives two orders", seed)
		}
		seen := map[netip.AddrPort]bool{}
		for _, p := range list {
			seen[p.Addr] = true
		}
		if len(list) != 5 || len(seen) != 5 || list[4].Addr.Port() != 5009 {
			t.Fatalf("order %v", list)
		}
		first[list[0].Addr.Port()]++
		list, _ = n.Lookup(nil, tcp, spread(seed), false)
		even[list[0].Addr.Port()]++
	}
	for port, share := range map[uint16]float64{5001: .70, 5002: .20, 5003: .10} {
		if got := float64(first[port]) / draws; got < share-.02 || got > share+.02 {
			t.Errorf("port %d comes first in %.3f of all draws, want %.2f", port, got, share)
		}
	}
	if got := float64(first[5004]) / draws; got == 0 || got > .03 {
		t.Errorf("weight 0 comes first in %.4f of all draws", got)
	}
	if got := float64(even[5001]) / draws; got < .48 || got > .52 {
		t.Errorf("of two records without weight one comes first in %.3f", got)
	}
}

// noneFor is a zone that says how long there is none.
func noneFor(seconds int, lines ...string) func(*dns.Msg, string) *dns.Msg {
	z := zone(lines...)
	soa, err := dns.NewRR(fmt.Sprintf("example.net. 86400 IN SOA ns.example.net. h.example.net. 1 2 3 4 %d", seconds))
	if err != nil {
		panic(err)
	}
	return func(q *dns.Msg, network string) *dns.Msg {
		m := z(q, network)
		if len(m.Answer) == 0 {
			m.Ns = []dns.RR{soa}
		}
		return m
	}
}

// SX-14: answers live as long as the shortest TTL of all that was asked for, "there is none" as long as the SOA says.
func TestSX14_TTL(t *testing.T) {
	s := serve(t, zone())
	for _, c := range []struct {
		what  string
		reply func(*dns.Msg, string) *dns.Msg
		want  time.Duration
	}{
		{"no service, and that is the shortest", noneFor(30, "example.net. 90 IN A 192.0.2.1"), 30 * time.Second},
		{"the host's address is the shortest", noneFor(300, "example.net. 90 IN A 192.0.2.1"), 90 * time.Second},
		{"the target's address is", zone("_sip._udp.example.net. 300 IN SRV 1 1 5060 a.example.net.", "a.example.net. 7 IN A 192.0.2.1"), 7 * time.Second},
		{"the service is", zone("_sip._udp.example.net. 8 IN SRV 1 1 5060 a.example.net.", "a.example.net. 300 IN A 192.0.2.1"), 8 * time.Second},
		{"two seconds are two seconds", zone("_sip._udp.example.net. 2 IN SRV 1 1 5060 a.example.net.", "a.example.net. 300 IN A 192.0.2.1"), 2 * time.Second},
		{"zero: what waits for it reads it", zone("_sip._udp.example.net. 0 IN SRV 1 1 5060 a.example.net.", "a.example.net. 300 IN A 192.0.2.1"), hopMin},
		{"a day is ten minutes", zone("_sip._udp.example.net. 86400 IN SRV 1 1 5060 a.example.net.", "a.example.net. 86400 IN A 192.0.2.1"), hopMax},
		{"none, by SOA", noneFor(40), 40 * time.Second},
		{"none, for a day", noneFor(86400), hopMax},
		{"none, without SOA", zone(), hopFailure},
		{"nobody says", code(dns.RcodeServerFailure), hopFailure},
	} {
		s.set(c.reply)
		n := startNext(t, s)
		h := Hop{Host: "example.net", Transport: UDP}
		began := time.Now()
		places(t, n, h, 1)
		ended := time.Now()
		n.mu.Lock()
		_, a := n.cache.find(h, ended)
		n.mu.Unlock()
		if a == nil {
			t.Errorf("%s: not kept", c.what)
			continue
		}
		if ends := time.Unix(0, a.ends); ends.Before(began.Add(c.want)) || ends.After(ended.Add(c.want)) {
			t.Errorf("%s: kept for %v, want %v", c.what, ends.Sub(ended), c.want)
		}
	}
}

// SX-14, F38: a zone that changes is seen when its TTL has ended; when nobody answers the last good answer stands, at
// once, while it is asked for again; a request that was begun by an answer may read it late.
func TestSX14_ChangingZone(t *testing.T) {
	s := serve(t, zone("_sip._tcp.example.net. 60 IN SRV 1 1 5001 a.example.net.", "a.example.net. 60 IN A 192.0.2.1"))
	n := startNext(t, s)
	h := Hop{Host: "example.net", Transport: TCP}
	places(t, n, h, 1)
	s.set(zone("_sip._tcp.example.net. 60 IN SRV 1 1 5002 a.example.net.", "a.example.net. 60 IN A 192.0.2.2"))
	before := s.asked.Load()
	if list, known := n.Lookup(nil, h, 1, false); !known || inWords(list) != "tcp 192.0.2.1:5001" || s.asked.Load() != before {
		t.Errorf("within its TTL: %s, %d queries", inWords(list), s.asked.Load()-before)
	}
	n.expire(h)
	if list, known := n.Lookup(nil, h, 1, false); known {
		t.Errorf("past its TTL: %s", inWords(list))
	}
	if list, known := n.Lookup(nil, h, 1, true); !known || inWords(list) != "tcp 192.0.2.1:5001" {
		t.Errorf("read late: %s", inWords(list))
	}
	if got := inWords(places(t, n, h, 1)); got != "tcp 192.0.2.2:5002" {
		t.Errorf("asked again: %s", got)
	}
	s.set(code(dns.RcodeServerFailure))
	n.expire(h)
	if got := inWords(places(t, n, h, 1)); got != "tcp 192.0.2.2:5002" {
		t.Errorf("a dead DNS lost the last good answer: %s", got)
	}
	s.set(zone("_sip._tcp.example.net. 60 IN SRV 1 1 5003 a.example.net.", "a.example.net. 60 IN A 192.0.2.3"))
	n.expire(h)
	if list, known := n.Lookup(nil, h, 1, false); !known || inWords(list) != "tcp 192.0.2.2:5002" {
		t.Errorf("while it is asked for again: %s", inWords(list))
	}
	until(t, "the new zone is seen", func() bool {
		list, _ := n.Lookup(nil, h, 1, false)
		return inWords(list) == "tcp 192.0.2.3:5003"
	})
	s.set(zone())
	n.expire(h)
	if got := inWords(places(t, n, h, 1)); got != "" {
		t.Errorf("a name that is gone: %s", got)
	}
}

// A datagram that is lost, and a resolver that takes longer than 100 ms, cost a repetition and not the request.
func TestSX14_SlowResolver(t *testing.T) {
	z := zone("_sip._udp.example.net. 60 IN SRV 1 1 5001 a.example.net.", "a.example.net. 60 IN A 192.0.2.1")
	s := serve(t, z)
	var seen sync.Map
	s.set(func(q *dns.Msg, network string) *dns.Msg {
		if _, again := seen.LoadOrStore(q.Question[0].String(), true); !again {
			return nil
		}
		return z(q, network)
	})
	c := hostsConfig(t, s)
	c.Client.Wait = 0
	n := NewNext(c)
	run(t, n.Run)
	if got := inWords(places(t, n, Hop{Host: "example.net", Transport: UDP}, 1)); got != "udp 192.0.2.1:5001" {
		t.Errorf("%s", got)
	}
}

// A resolver, or something in front of it, that drops questions of one type: NAPTR is gone on without, SRV is not, as a
// domain's own address is not its proxy's.
func TestSX14_SilentAboutOneType(t *testing.T) {
	z := zone("_sip._udp.example.net. 60 IN SRV 1 1 5001 a.example.net.", "a.example.net. 60 IN A 192.0.2.1", "example.net. 60 IN A 192.0.2.9")
	var mute atomic.Uint32
	s := serve(t, func(q *dns.Msg, network string) *dns.Msg {
		if uint32(q.Question[0].Qtype) == mute.Load() {
			return nil
		}
		return z(q, network)
	})
	n := startNext(t, s)
	mute.Store(uint32(dns.TypeNAPTR))
	if got := inWords(places(t, n, Hop{Host: "example.net"}, 1)); got != "udp 192.0.2.1:5001" {
		t.Errorf("silent about NAPTR: %s", got)
	}
	mute.Store(uint32(dns.TypeSRV))
	if got := inWords(places(t, n, Hop{Host: "example.net", Transport: TCP}, 1)); got != "" {
		t.Errorf("silent about SRV: %s", got)
	}
}

// What is asked for before Run begins is answered when it has; when it has ended nothing is asked any more.
func TestNextBeforeRun(t *testing.T) {
	n := NewNext(hostsConfig(t, serve(t, zone("a.example.net. 60 IN A 192.0.2.1"))))
	done := make(chan struct{})
	h := Hop{Host: "a.example.net", Port: 5060}
	if !n.Ask(h, func() { close(done) }) {
		t.Fatal("refused before Run")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("never told")
	}
	if list, known := n.Lookup(nil, h, 1, false); !known || inWords(list) != "udp 192.0.2.1:5060" {
		t.Errorf("%s", inWords(list))
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n.Ask(Hop{Host: "b.example.net", Port: 5060}, func() {}) {
		t.Error("asked after Run has ended")
	}
}
