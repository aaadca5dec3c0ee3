package listen

import (
	"net/netip"
	"testing"
)

// What we write we read back, in both versions, in all pairs of families.
func TestAppendProxyHeader(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"192.0.2.1:49152", "203.0.113.10:80"}, {"[2001:db8::1]:1", "[2001:db8::2]:65535"}, {"192.0.2.1:49152", "[2001:db8::2]:80"},
		{"[2001:db8::1]:1", "203.0.113.10:80"}, {"[::ffff:192.0.2.1]:7", "203.0.113.10:80"},
	} {
		want := ProxyHeader{unmapped(c.from), unmapped(c.to)}
		for version := range 2 {
			b := AppendProxyHeader(nil, version+1, ProxyHeader{netip.MustParseAddrPort(c.from), netip.MustParseAddrPort(c.to)})
			if h, need, err := ParseProxyHeader(b); err != nil || need != 0 || h != want {
				t.Errorf("version %d of %v: %q gives %+v, %d, %v", version+1, c, b, h, need, err)
			}
		}
	}
	for version, want := range map[int]string{1: "PROXY UNKNOWN\r\n", 2: "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"} {
		if got := string(AppendProxyHeader(nil, version, ProxyHeader{})); got != want {
			t.Errorf("our own: %q", got)
		}
	}
	if got := string(AppendProxyHeader(nil, 1, ProxyHeader{netip.MustParseAddrPort("192.0.2.1:49152"), netip.MustParseAddrPort("203.0.113.10:80")})); got != "PROXY TCP4 192.0.2.1 203.0.113.10 49152 80\r\n" {
		t.Errorf("%q", got)
	}
}

func unmapped(s string) netip.AddrPort {
	a := netip.MustParseAddrPort(s)
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
