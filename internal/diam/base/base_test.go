package base

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/internal/diam"
)

var (
	node = &Node{
		Host: "edge.ams.ims.example.net", Realm: "ims.example.net", Product: "wyegate", Firmware: 1, StateID: 1764570000,
		Apps: []uint32{diam.AppRelay, diam.AppGx, diam.AppRx},
	}
	addrs = []netip.Addr{netip.MustParseAddr("10.20.5.21"), netip.MustParseAddr("2001:db8::21")}
	ids   = IDs{HopByHop: 0, EndToEnd: 0x01020304} // 0 must stay 0 (diameter.md 0.1 rule 3)
)

var update = flag.Bool("update", false, "write the golden files anew")

// Every message we originate has the bytes it was reviewed with: testdata/NAME.hex, one line per four bytes.
func TestGoldenBytes(t *testing.T) {
	s := Session{ID: "edge;1;2", App: diam.AppRx, DestRealm: "ims.example.net", DestHost: "pcrf1.ims.example.net"}
	flow := diam.Build(nil, diam.Header{})
	flow.Octets(511, diam.Vendor3GPP, diam.AVPMandatory, []byte{0, 0, 0, 2})
	avps, err := flow.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	aar, err := node.AAR(ids, s, avps[diam.HeaderLen:])
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{
		"cer":      node.CER(ids, addrs),
		"cea":      node.CEA(ids, addrs, Refusal{}),
		"cea-3010": node.CEA(ids, addrs, Refusal{Result: 3010, Text: "unknown peer"}),
		"cea-5005": node.CEA(ids, addrs, missing(diam.AVPProductName, "Product-Name", 1)),
		"dwr":      node.DWR(ids),
		"dwa":      node.DWA(ids),
		"dpr":      node.DPR(ids, diam.CauseBusy),
		"dpa":      node.DPA(ids, diam.ResultSuccess),
		"aar":      aar,
		"str":      node.STR(ids, s, 1),
	} {
		path := filepath.Join("testdata", name+".hex")
		if *update {
			if err := os.WriteFile(path, dump(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != string(dump(got)) {
			t.Errorf("%s:\n%s", name, dump(got))
		}
		h, err := diam.ParseHeader(got, len(got))
		if err != nil || h.Len != len(got) || h.HopByHop != ids.HopByHop || h.EndToEnd != ids.EndToEnd {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
		if _, err := Describe(got); err != nil {
			t.Errorf("%s: go-diameter cannot read it: %v", name, err)
		}
	}
}

func dump(b []byte) []byte {
	var out bytes.Buffer
	for c := range slices.Chunk(b, 4) {
		out.WriteString(hex.EncodeToString(c) + "\n")
	}
	return out.Bytes()
}

// What we write is what we read.
func TestCapabilitiesOfOurOwn(t *testing.T) {
	c, err := ReadCapabilities(node.CER(ids, addrs))
	if err != nil {
		t.Fatal(err)
	}
	if c.Host != node.Host || c.Realm != node.Realm || c.Product != "wyegate" || c.StateID != node.StateID || !slices.Equal(c.Addrs, addrs) {
		t.Errorf("%+v", c)
	}
	if !slices.Equal(c.Apps, node.Apps) {
		t.Errorf("applications %v", c.Apps)
	}
	if r := c.Check(node.Apps); r.Result != 0 {
		t.Errorf("refused: %v", r)
	}
	cea, _ := ReadCapabilities(node.CEA(ids, addrs, Refusal{Result: 5010, Text: "none"}))
	if cea.Result != 5010 || cea.ErrorMessage != "none" {
		t.Errorf("%+v", cea)
	}
}

// The rules of diameter.md 2.3, one CER each.
func TestCERChecks(t *testing.T) {
	type avp struct {
		code uint32
		data string
	}
	whole := []avp{{264, "a.example"}, {296, "example"}, {257, "\x00\x01\x0a\x00\x00\x01"}, {266, "\x00\x00\x00\x00"}, {269, "x"}, {258, "\x00\x00\x00\x04"}}
	with := func(extra ...avp) []avp { return append(slices.Clone(whole), extra...) }
	without := func(code uint32) []avp {
		return slices.DeleteFunc(slices.Clone(whole), func(a avp) bool { return a.code == code })
	}
	vsai := "\x00\x00\x01\x0a\x40\x00\x00\x0c\x00\x00\x00\x63" + "\x00\x00\x01\x02\x40\x00\x00\x0c\x01\x00\x00\x16"
	for _, c := range []struct {
		name   string
		avps   []avp
		ours   []uint32
		result uint32
		failed uint32
	}{
		{"whole", whole, []uint32{4}, 0, 0},
		{"relay shares all", whole, []uint32{diam.AppRelay}, 0, 0},
		{"theirs is a relay", with(avp{258, "\xff\xff\xff\xff"}), []uint32{7}, 0, 0},
		{"none in common", whole, []uint32{diam.AppGx}, 5010, 0},
		{"vendor's application, another Vendor-Id", with(avp{260, vsai}), []uint32{diam.AppGx}, 0, 0},
		{"none offered to a relay", without(258), []uint32{diam.AppRelay}, 5010, 0},
		{"no host", without(264), []uint32{4}, 5005, 264},
		{"no realm", without(296), []uint32{4}, 5005, 296},
		{"no address", without(257), []uint32{4}, 5005, 257},
		{"no vendor", without(266), []uint32{4}, 5005, 266},
		{"no product", without(269), []uint32{4}, 5005, 269},
		{"two hosts", with(avp{264, "b.example"}), []uint32{4}, 5009, 264},
		{"two realms", with(avp{296, "b"}), []uint32{4}, 5009, 296},
		{"in-band security only", with(avp{299, "\x00\x00\x00\x01"}), []uint32{4}, 5017, 0},
		{"in-band security or none", with(avp{299, "\x00\x00\x00\x01"}, avp{299, "\x00\x00\x00\x00"}), []uint32{4}, 0, 0},
		{"malformed address beside a good one", with(avp{257, "\x00"}), []uint32{4}, 0, 0},
		{"malformed address alone", append(without(257), avp{257, "\x00\x01\x0a"}), []uint32{4}, 0, 0},
	} {
		b := diam.Build(nil, diam.Header{Flags: diam.FlagRequest, Command: 257})
		for _, a := range c.avps {
			b.Octets(a.code, 0, diam.AVPMandatory, []byte(a.data))
		}
		msg, err := b.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadCapabilities(msg)
		if err != nil {
			t.Fatal(err)
		}
		if r := got.Check(c.ours); r.Result != c.result || r.FailedCode != c.failed {
			t.Errorf("%s: %+v, want %d with %d", c.name, r, c.result, c.failed)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		h    diam.Header
		want string
	}{
		{diam.Header{Flags: diam.FlagRequest, Command: 265, App: diam.AppRx}, "AA-Request"},
		{diam.Header{Command: 272, App: diam.AppGx}, "Credit-Control-Answer"},
		{diam.Header{Flags: diam.FlagRequest, Command: 280}, "Device-Watchdog-Request"},
		{diam.Header{Flags: diam.FlagRequest, Command: 999, App: 77}, "command 999 request"},
	} {
		if got := CommandName(c.h); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := AppTitle(diam.AppRx); got != "Rx (16777236)" {
		t.Error(got)
	}
	if name, ok := AVPName(diam.AppRx, 264, 0); !ok || name != "Origin-Host" {
		t.Error(name, ok)
	}
	if name, ok := AVPName(diam.AppRx, 264, 999); ok {
		t.Errorf("vendor 999's AVP 264 is called %q", name)
	}
}

// What makes go-diameter panic comes back as an error (diameter.md 0.1 rule 2; 15.4 rows 4, 5, 43).
func TestDescribeMalformed(t *testing.T) {
	for name, avp := range map[string]string{
		"length 0":                 "\x00\x00\x01\x08\x40\x00\x00\x00",
		"longer than the message":  "\x00\x00\x01\x08\x40\x00\x01\x00",
		"five bytes of Unsigned32": "\x00\x00\x01\x0c\x40\x00\x00\x0d\x00\x00\x00\x01\x02\x00\x00\x00",
		"one byte of Address":      "\x00\x00\x01\x01\x40\x00\x00\x09\x01\x00\x00\x00",
		"malformed group":          "\x00\x00\x01\x04\x40\x00\x00\x0c\x00\x00\x00\x01",
	} {
		h := diam.Header{Len: diam.HeaderLen + len(avp), Flags: diam.FlagRequest, Command: 257}
		msg := append(h.Append(nil), avp...)
		if text, err := Describe(msg); err == nil && strings.Contains(text, "panic") {
			t.Errorf("%s: %s", name, text)
		} else if strings.HasPrefix(name, "length") && !errors.Is(err, diam.ErrAVPLength) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add(node.CER(ids, addrs))
	f.Add(node.STR(ids, Session{ID: "x", App: diam.AppRx, DestRealm: "r"}, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := diam.ParseHeader(b, len(b)); err != nil {
			return
		}
		_, _ = Describe(b)
		if c, _ := ReadCapabilities(b); len(c.Apps) > maxApps {
			t.Errorf("%d applications kept", len(c.Apps))
		}
	})
}
