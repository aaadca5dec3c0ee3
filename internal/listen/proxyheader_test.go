package listen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// v2 builds a version 2 header.
func v2(command, family byte, block ...byte) string {
	b := append([]byte("\r\n\r\n\x00\r\nQUIT\n"), 0x20|command, family)
	b = binary.BigEndian.AppendUint16(b, uint16(len(block)))
	return string(append(b, block...))
}

func block4() []byte { return []byte{192, 0, 2, 1, 203, 0, 113, 10, 0xc0, 0, 0x13, 0xc4} }

func block6() []byte {
	a := netip.MustParseAddr("2001:db8::1").As16()
	b := netip.MustParseAddr("2001:db8::2").As16()
	return append(append(append([]byte{}, a[:]...), b[:]...), 0xc0, 0, 0x13, 0xc4)
}

// withCRC has a CRC32C field, right or wrong by the given difference.
func withCRC(wrong uint32) string {
	h := []byte(v2(1, 0x11, append(block4(), 4, 0, 1, 'x', 3, 0, 4, 0, 0, 0, 0)...))
	sum := crc32.Checksum(h, crc32.MakeTable(crc32.Castagnoli))
	binary.BigEndian.PutUint32(h[len(h)-4:], sum+wrong)
	return string(h)
}

// Section 14.
func TestProxyHeaders(t *testing.T) {
	const src, dst, src6, dst6 = "192.0.2.1:49152", "203.0.113.10:5060", "[2001:db8::1]:49152", "[2001:db8::2]:5060"
	for _, c := range []struct{ name, header, src, dst string }{
		{"v1 tcp4", "PROXY TCP4 192.0.2.1 203.0.113.10 49152 5060\r\n", src, dst},
		{"v1 tcp6", "PROXY TCP6 2001:db8::1 2001:db8::2 49152 5060\r\n", src6, dst6},
		{"v1 longest", "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe 65535 65535\r\n",
			"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe]:65535"},
		{"v1 mapped", "PROXY TCP6 ::ffff:192.0.2.1 ::ffff:203.0.113.10 49152 5060\r\n", src, dst},
		{"v1 unknown", "PROXY UNKNOWN\r\n", "", ""},
		{"v1 unknown with more", "PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", "", ""},
		{"v2 tcp4", v2(1, 0x11, block4()...), src, dst},
		{"v2 tcp6", v2(1, 0x21, block6()...), src6, dst6},
		{"v2 tlvs", v2(1, 0x11, append(block4(), 0x20, 0, 3, 1, 2, 3, 0xee, 0, 0)...), src, dst},
		{"v2 crc", withCRC(0), src, dst},
		{"v2 largest", v2(1, 0x11, append(append(block4(), 4, 0x0f, 0xe1), make([]byte, 4065)...)...), src, dst},
		{"v2 local", v2(0, 0), "", ""},
		{"v2 local with a family", v2(0, 0x11, 1, 2), "", ""},
		{"v2 unspec", v2(1, 0, 9, 9), "", ""},
		{"v2 unix", v2(1, 0x31, make([]byte, 216)...), "", ""},
		{"v2 datagram", v2(1, 0x12, block4()...), "", ""},
		{"v2 family of the future", v2(1, 0x51, 1, 2, 3), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := iotest.OneByteReader(strings.NewReader(c.header + "INVITE sip:"))
			h, err := readHeader(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := text(h.Source) + " " + text(h.Destination); got != c.src+" "+c.dst {
				t.Fatalf("got %s", got)
			}
			if rest, _ := io.ReadAll(r); string(rest) != "INVITE sip:" {
				t.Fatalf("octets behind the header: %q", rest)
			}
		})
	}
}

// 21.3: headers cut at every octet, good ones and bad ones, are read as whole ones are; what ends at a cut is no header.
func TestProxyHeadersCut(t *testing.T) {
	for _, h := range []string{
		"PROXY TCP4 192.0.2.1 203.0.113.10 49152 5060\r\n", "PROXY TCP6 2001:db8::1 2001:db8::2 49152 5060\r\n", "PROXY UNKNOWN\r\n",
		v2(1, 0x11, block4()...), v2(1, 0x21, block6()...), withCRC(0), v2(0, 0), v2(1, 0x31, make([]byte, 216)...),
		"PROXY TCP4 192.0.2.1 203.0.113.10 01 2\r\n", withCRC(1), "GET / HTTP/1.1\r\n\r\n", v2(1, 0x11, block4()[:11]...),
	} {
		whole, bad := readHeader(strings.NewReader(h))
		for cut := range h {
			r := io.MultiReader(strings.NewReader(h[:cut]), strings.NewReader(h[cut:]+"INVITE"))
			got, err := readHeader(r)
			if (err == nil) != (bad == nil) || got.Source != whole.Source || got.Destination != whole.Destination {
				t.Fatalf("%q cut at %d: %+v, %v, whole it gives %+v, %v", h, cut, got, err, whole, bad)
			}
			if bad != nil {
				continue
			}
			if rest, _ := io.ReadAll(r); string(rest) != "INVITE" {
				t.Fatalf("%q cut at %d leaves %q", h, cut, rest)
			}
			if got, err := readHeader(strings.NewReader(h[:cut])); err == nil {
				t.Fatalf("%q ends at %d, and is taken for %+v", h, cut, got)
			}
		}
	}
}

func text(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func TestProxyHeadersRefused(t *testing.T) {
	for _, h := range []string{
		"INVITE sip:a@b SIP/2.0\r\n", "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "proxy TCP4 192.0.2.1 203.0.113.10 1 2\r\n",
		"PROXY TCP4 192.0.2.1 203.0.113.10 1 2\n\n", "PROXY TCP4  192.0.2.1 203.0.113.10 1 2\r\n", "PROXY TCP4 192.0.2.1 203.0.113.10 1\r\n",
		"PROXY TCP4 2001:db8::1 203.0.113.10 1 2\r\n", "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY TCP4 192.0.2.1 203.0.113.10 1 65536\r\n",
		"PROXY TCP4 192.0.2.1 203.0.113.10 01 2\r\n", "PROXY TCP4 192.0.2.1 203.0.113.10 -1 2\r\n", "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
		"PROXY TCP5 192.0.2.1 203.0.113.10 1 2\r\n", "PROXY UNKNOWNS\r\n        ", "PROXY " + strings.Repeat("x", 200) + "\r\n",
		v2(2, 0x11, block4()...), "\r\n\r\n\x00\r\nQUIT\n\x11\x11\x00\x00", v2(1, 0x11, block4()[:11]...), v2(1, 0x21, block4()...),
		v2(1, 0x11, append(block4(), 1)...), v2(1, 0x11, append(block4(), 1, 0, 9, 0)...), v2(1, 0x11, append(block4(), 3, 0, 2, 0, 0)...),
		withCRC(1), v2(1, 0x11, make([]byte, 4081)...),
	} {
		if got, err := readHeader(strings.NewReader(h)); !errors.Is(err, ErrProxyHeader) {
			t.Errorf("%q: %+v, %v", h, got, err)
		}
	}
	if _, err := readHeader(strings.NewReader("PROXY TCP4 192.0.2.1")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a header that ends too soon: %v", err)
	}
}

// Section 14: the whole header within 3 s, however it drips.
func TestProxyHeaderWithin3s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := net.Pipe()
		defer func() { _ = c.Close() }()
		var dripping sync.WaitGroup
		defer dripping.Wait()
		dripping.Go(func() {
			for _, b := range []byte("PROXY TCP4 192.0.2.1 203.0.113.10 49152 5060\r\n") {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		start := time.Now()
		_, err := ReadProxyHeader(s, headerTimeout)
		if took := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || took != 3*time.Second {
			t.Fatalf("%v after %v", err, took)
		}
		_ = s.Close() // ends the dripping
	})
}

// Whatever the octets: it ends, asks for no more than it may, never for octets behind the header, and what it accepts it
// accepts again in one piece.
func FuzzProxyHeader(f *testing.F) {
	for _, h := range []string{"PROXY TCP4 192.0.2.1 203.0.113.10 49152 5060\r\n", "PROXY UNKNOWN\r\n", v2(1, 0x11, block4()...), v2(1, 0x21, block6()...), withCRC(0), v2(0, 0)} {
		f.Add([]byte(h + "rest"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		h, err := readHeader(r)
		used := len(b) - r.Len()
		if used > v2Most {
			t.Fatalf("%d octets read", used)
		}
		if err != nil {
			return
		}
		again, need, err := ParseProxyHeader(b[:used])
		if err != nil || need != 0 || again != h {
			t.Fatalf("%+v, then %+v need %d %v", h, again, need, err)
		}
		if h.Source.IsValid() != h.Destination.IsValid() || h.Source.Addr().Is4In6() {
			t.Fatalf("addresses %+v", h)
		}
		for n := range used {
			if _, need, err := ParseProxyHeader(b[:n]); err != nil || need == 0 || n+need > used {
				t.Fatalf("after %d of %d octets: need %d, %v", n, used, need, err)
			}
		}
	})
}
