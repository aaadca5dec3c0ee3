package sipproxy

import (
	"net/netip"
	"testing"

	"github.com/wyegate/wyegate/internal/sip"
)

// SR-2, 21.5: equal for all spellings of one address, and for nothing else.
func TestSR2_Self(t *testing.T) {
	s := newSelves()
	s.addAddr(netip.MustParseAddrPort("[::ffff:203.0.113.10]:5060"))
	s.addAddr(netip.MustParseAddrPort("[2001:db8::10]:5070"))
	s.addAddr(netip.MustParseAddrPort("203.0.113.10:5061"))
	s.add("edge.example.net", 5080)
	s.add("Example.ORG", portAny)
	for uri, want := range map[string]bool{
		"sip:203.0.113.10":                           true,
		"sip:203.0.113.10:5060":                      true,
		"SIP:anyone@203.0.113.10:5060;lr;x=y":        true,
		"sips:203.0.113.10":                          true,
		"sip:203.0.113.10;transport=tls":             true,
		"sip:203.0.113.10:5062":                      false,
		"sip:203.0.113.11":                           false,
		"sip:[::ffff:203.0.113.10]":                  true,
		"sip:[::FFFF:cb00:710a]:5060":                true,
		"sip:[2001:DB8::10]:5070":                    true,
		"sip:[2001:db8:0:0:0:0:0:10]:5070":           true,
		"sip:[2001:0db8:0000::0.0.0.16]:5070":        true,
		"sip:[2001:db8::10]":                         false,
		"sip:EDGE.example.net:5080":                  true,
		"sip:edge.example.net":                       true,
		"sip:edge.example.net.:5080":                 true,
		"sip:edge.example.net:5090":                  false,
		"sip:example.org:9999;transport=tcp":         true,
		"sip:example.org.evil.example":               false,
		"sip:alice@elsewhere.example;maddr=10.0.0.1": false,
		"tel:+4930123":                               false,
	} {
		u, err := sip.ParseURI([]byte(uri))
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		if got := s.uri(&u); got != want {
			t.Errorf("%s is ours: %v, want %v", uri, got, want)
		}
	}
	u, _ := sip.ParseURI([]byte("sip:EDGE.example.net:5080"))
	if n := testing.AllocsPerRun(100, func() { s.uri(&u) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSplitHostPort(t *testing.T) {
	for in, want := range map[string]struct {
		host string
		port uint16
		ok   bool
	}{
		"a.example":         {"a.example", 0, true},
		"a.example:5070":    {"a.example", 5070, true},
		"[2001:db8::1]":     {"[2001:db8::1]", 0, true},
		"[2001:db8::1]:506": {"[2001:db8::1]", 506, true},
		"2001:db8::1":       {"[2001:db8::1]", 0, true},
		"a:b":               {"", 0, false},
		"[::1":              {"", 0, false},
		"[::1]x":            {"", 0, false},
		"":                  {"", 0, false},
	} {
		if h, p, ok := splitHostPort(in); h != want.host || p != want.port || ok != want.ok {
			t.Errorf("%q is %q %d %v", in, h, p, ok)
		}
	}
}
