package dcr

import (
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// TestConformanceVector is section 3.8: every SIP variable on one message.
func TestConformanceVector(t *testing.T) {
	m := sipRequest(t, "INVITE", "sips:bob@ims.ex;user=ip", `From: "Alice A" <sip:+4687190000@gw.ex;user=phone>;tag=9`,
		"P-Asserted-Identity: <tel:+46-8-719-0000>", "X-Plain: blue")
	for _, c := range []struct{ variable, want string }{
		{"request.method", "INVITE"}, {"request.From.uri.user", "+4687190000"},
		{"request.uri", "sips:bob@ims.ex;user=ip"}, {"request.From.uri.host", "gw.ex"},
		{"request.uri.scheme", "sips"}, {"request.From.uri.port", "5060"},
		{"request.uri.user", "bob"}, {"request.From.uri.display-name", "Alice A"},
		{"request.uri.host", "ims.ex"}, {"request.From.uri.resolve", "sip:alice@ims.example.com"},
		{"request.uri.port", "5061"}, {"request.From.uri.resolve.user", "alice"},
		{"request.uri.resolve.user", "bob"}, {"request.From.uri.resolve.host", "ims.example.com"},
		{"request.X-Plain", "blue"}, {"request.P-Asserted-Identity.uri", "tel:+46-8-719-0000"},
		{"request.from", `"Alice A" <sip:+4687190000@gw.ex;user=phone>;tag=9`},
		{"request.P-Asserted-Identity.uri.user", ""},
		{"request.X-None.uri.user", ""}, {"request.P-Asserted-Identity.uri.resolve.user", "alice"},
		{"request.From.display-name", "Alice A"}, {"request.f.uri.user", "+4687190000"},
	} {
		rs := compiled(t, fmt.Sprintf(`<user-centric-rules><sip-rules><if><else return="%s"/></if></sip-rules></user-centric-rules>`, c.variable), Options{Resolver: testEnum})
		if got := keyOf(rs, m); got != c.want {
			t.Errorf("%s = %q, want %q", c.variable, got, c.want)
		}
	}
}

// TestHashVectors is section 5.5: what is made of a key must be the same on every node and in every version.
func TestHashVectors(t *testing.T) {
	for _, c := range []struct {
		key       string
		hash      uint64
		partition uint64
	}{
		{"alice", 0x73a3ea485f2e6049, 50408}, {"room-4711", 0xfdea3fc9cc41581c, 42930}, {"77c7@ua", 0x99fdc394ad8e329c, 58129},
		{"192.0.2.7:51000", 0x2ed464b1bd4f3cda, 23291}, {"sip:pres@ex.com;grp=1", 0x6340b42378ac7cde, 45267},
	} {
		h := xxhash.Sum64String(c.key)
		if h != c.hash || h%65521 != c.partition {
			t.Errorf("%s: hash %016x partition %d, want %016x %d", c.key, h, h%65521, c.hash, c.partition)
		}
	}
}
