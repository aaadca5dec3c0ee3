package resolver

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// zone answers from a list of records by name and type.
func zone(lines ...string) func(q *dns.Msg, network string) *dns.Msg {
	var all []dns.RR
	for _, l := range lines {
		rr, err := dns.NewRR(l)
		if err != nil {
			panic(err)
		}
		all = append(all, rr)
	}
	return func(q *dns.Msg, _ string) *dns.Msg {
		m := new(dns.Msg)
		m.SetReply(q)
		found := false
		for _, rr := range all {
			if strings.EqualFold(rr.Header().Name, q.Question[0].Name) {
				found = true
				if rr.Header().Rrtype == q.Question[0].Qtype {
					m.Answer = append(m.Answer, rr)
				}
			}
		}
		if !found {
			m.Rcode = dns.RcodeNameError
		}
		return m
	}
}

func hostsConfig(t *testing.T, s *scripted, lines ...string) HostsConfig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return HostsConfig{Client: Client{Resolvers: []string{s.addr}, Wait: 3 * time.Second}, File: path}
}

func run(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func addrs(list ...string) (out []netip.Addr) {
	for _, a := range list {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

func TestResolve(t *testing.T) {
	s := serve(t, zone(
		"as1.example.net. 60 IN A 192.0.2.9", "as1.example.net. 30 IN A 192.0.2.7", "as1.example.net. 90 IN AAAA 2001:db8::7",
		"v6.example.net. 60 IN AAAA 2001:db8::8",
	))
	h := NewHosts(hostsConfig(t, s, "# comment", "192.0.2.50 Printer.example.net printer # here", "bad line", "2001:db8::50 printer"))
	for _, c := range []struct {
		name string
		want []netip.Addr
		ttl  time.Duration
	}{
		{"as1.example.net", addrs("192.0.2.7", "192.0.2.9", "2001:db8::7"), 30 * time.Second},
		{"AS1.example.net.", addrs("192.0.2.7", "192.0.2.9", "2001:db8::7"), 30 * time.Second},
		{"v6.example.net", addrs("2001:db8::8"), time.Minute},
		{"printer", addrs("192.0.2.50", "2001:db8::50"), fileTTL},
		{"localhost", addrs("127.0.0.1", "::1"), fileTTL},
		{"[2001:db8::1]", addrs("2001:db8::1"), time.Hour},
		{"::ffff:192.0.2.1", addrs("192.0.2.1"), time.Hour},
	} {
		a, err := h.Resolve(t.Context(), c.name)
		if err != nil || !slices.Equal(a.Addrs, c.want) || a.TTL != c.ttl {
			t.Errorf("%s: %+v, %v", c.name, a, err)
		}
	}
	if _, err := h.Resolve(t.Context(), "nobody.example.net"); !errors.Is(err, ErrNoName) {
		t.Errorf("a name without address: %v", err)
	}
	s.set(code(dns.RcodeServerFailure))
	if _, err := h.Resolve(t.Context(), "as1.example.net"); err == nil || errors.Is(err, ErrNoName) {
		t.Errorf("SERVFAIL is not \"no address\": %v", err)
	}
}

// F38: unresolved at start: asked again; DNS silent: the last addresses stay, marked.
func TestWatchKeepsTheLastGoodAnswer(t *testing.T) {
	s := serve(t, zone("as1.example.net. 60 IN A 192.0.2.7"))
	told := make(chan Addresses, 10)
	c := hostsConfig(t, s)
	c.Changed = func(_ string, a Addresses) { told <- a }
	h := NewHosts(c)
	run(t, h.Run)
	h.Watch([]string{"AS1.example.net."})
	select {
	case a := <-told:
		if !slices.Equal(a.Addrs, addrs("192.0.2.7")) {
			t.Errorf("%+v", a)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("never told")
	}
	h.mu.Lock()
	n := h.names["as1.example.net"]
	h.mu.Unlock()
	s.set(code(dns.RcodeServerFailure))
	h.keep(n)
	a, ok := h.Addresses("as1.example.net")
	if !ok || !a.Stale || !slices.Equal(a.Addrs, addrs("192.0.2.7")) {
		t.Errorf("after a failure: %+v", a)
	}
	if a, err := h.Resolve(t.Context(), "as1.example.net"); err != nil || !a.Stale {
		t.Errorf("Resolve gives %+v, %v", a, err)
	}
	h.learn("as1.example.net", n, Addresses{Addrs: addrs("192.0.2.7")})
	select {
	case a := <-told:
		t.Errorf("told without a change: %+v", a)
	default:
	}
	h.learn("as1.example.net", n, Addresses{Addrs: addrs("192.0.2.8")})
	if a := <-told; !slices.Equal(a.Addrs, addrs("192.0.2.8")) || a.Stale {
		t.Errorf("%+v", a)
	}
	h.Watch(nil)
	for deadline := time.Now().Add(5 * time.Second); ; {
		if _, ok := h.Addresses("as1.example.net"); !ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a name that is not watched any more is still known")
		}
		time.Sleep(time.Millisecond)
	}
}

func FuzzHostsFile(f *testing.F) {
	f.Add("127.0.0.1 localhost\n::1 ip6 # x\n")
	f.Fuzz(func(t *testing.T, text string) {
		for name, list := range parseHosts(strings.NewReader(text)) {
			if name != plain(name) || len(list) == 0 || strings.ContainsAny(name, " \t#") {
				t.Errorf("%q: %v", name, list)
			}
		}
	})
}
