package listen

import (
	"bytes"
	"errors"
	"testing"
)

// Section 14: a datagram has its header in front of it, whole, of version 2.
func TestProxyDatagram(t *testing.T) {
	for _, c := range []struct {
		header, source, destination string
	}{
		{v2(1, 0x12, block4()...), "192.0.2.1:49152", "203.0.113.10:5060"},
		{v2(1, 0x22, block6()...), "[2001:db8::1]:49152", "[2001:db8::2]:5060"},
		{v2(0, 0), "", ""},                 // the proxy's own
		{v2(1, 0x11, block4()...), "", ""}, // addresses of a stream
	} {
		h, n, err := ParseProxyDatagram([]byte(c.header + "OPTIONS"))
		if err != nil || n != len(c.header) {
			t.Errorf("%q: %d of %d octets, %v", c.header, n, len(c.header), err)
		}
		if c.source == "" {
			if h.Source.IsValid() {
				t.Errorf("%q names %v", c.header, h.Source)
			}
		} else if h.Source.String() != c.source || h.Destination.String() != c.destination {
			t.Errorf("%q: %+v", c.header, h)
		}
	}
	good := v2(1, 0x12, block4()...)
	bad := []string{"", "OPTIONS sip:a SIP/2.0\r\n\r\n", "PROXY TCP4 192.0.2.1 203.0.113.10 49152 5060\r\n", v2(2, 0x12, block4()...), withCRC(1)}
	for i := range good {
		bad = append(bad, good[:i])
	}
	for _, b := range bad {
		if h, n, err := ParseProxyDatagram([]byte(b)); !errors.Is(err, ErrProxyHeader) {
			t.Errorf("%q: %+v %d %v", b, h, n, err)
		}
	}
}

// Whatever the octets: nothing behind the header counts, and what is accepted is accepted again alone.
func FuzzProxyDatagram(f *testing.F) {
	for _, h := range []string{v2(1, 0x12, block4()...), v2(1, 0x22, block6()...), v2(0, 0), withCRC(0), "PROXY UNKNOWN\r\n"} {
		f.Add([]byte(h + "rest"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := ParseProxyDatagram(b)
		if err != nil {
			return
		}
		if n < v2Fixed || n > v2Most || n > len(b) || h.Source.IsValid() != h.Destination.IsValid() {
			t.Fatalf("%d octets, %+v", n, h)
		}
		if again, m, err := ParseProxyDatagram(bytes.Clone(b[:n])); err != nil || m != n || again != h {
			t.Fatalf("%+v, then %+v %d %v", h, again, m, err)
		}
	})
}
