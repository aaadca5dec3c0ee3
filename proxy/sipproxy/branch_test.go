package sipproxy

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy"
)

func testSecrets(t testing.TB) *proxy.Secrets {
	t.Helper()
	s, err := proxy.NewSecrets([]proxy.Secret{{Number: 0, Bytes: []byte("wyegate test secret")}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tag32(name string) uint32 { return uint32(xxhash.Sum64String(name)) }

// vectorIdentity is the INVITE of section 5.
func vectorIdentity() identity {
	return identity{
		branch: []byte("z9hG4bKnashds8"), host: []byte("client.example.com"), port: []byte("5070"),
		topVia:  []byte("SIP/2.0/UDP client.example.com:5070;branch=z9hG4bKnashds8"),
		fromTag: []byte("77"), callID: []byte("c7@ua"), cseq: 1, uri: []byte("sip:team@ex.com"),
	}
}

// The vectors of sip-http.md section 5.
func TestST1_BranchVectors(t *testing.T) {
	s := testSecrets(t)
	k := s.Writer()
	id := vectorIdentity()
	d, buf := id.hash(k, nil)
	if want := uint64(0x63c839d8def7b0c3); d != want {
		t.Fatalf("d is %x, want %x", d, want)
	}
	in := route{uri: id.uri, fromTag: id.fromTag, callID: id.callID, cseq: 1}
	loop, _ := in.hash(k, buf)
	if loop != 0xd16f9e {
		t.Fatalf("loop hash is %x, want d16f9e", loop)
	}
	var c branchCodec
	addr := netip.MustParseAddrPort("192.0.2.7:5070")
	listener := uint16(xxhash.Sum64String("sip-udp"))
	node := xxhash.Sum64String("edge-ams-1") & 0xffff << 48
	bare := identity{topVia: []byte("SIP/2.0/UDP 192.0.2.7:5070"), fromTag: id.fromTag, callID: id.callID, cseq: 1, uri: id.uri}
	bareD, _ := bare.hash(k, nil)
	if bareD != 0xc33c193822a9fdd0 {
		t.Fatalf("d without cookie is %x", bareD)
	}
	for _, v := range []struct {
		b    branch
		kind transport.Kind
		want string
	}{
		{branch{d: d, server: tag32("as2"), listener: listener, loop: loop}, transport.UDP, "z9hG4bKcbr4qooy3333bq5gn4zluh7l2fxz5iweug6tygl3"},
		{branch{d: d, server: tag32("as2"), listener: listener, loop: loop, hasFlow: true, flow: node | 0x5c1e00000045}, transport.TCP, "z9hG4bKcbr4qooy3333bq5gn4zluh7l2fxz4n5ylqpaaaaaivrs7eyuf4d3y"},
		{branch{d: bareD, server: tag32("as2"), listener: listener, loop: loop}, transport.UDP, "z9hG4bKcdbtygjyeku73ufgn4zluh7l2fxz4ki7r6divlif"}, // the text prints its length, 47, behind it
	} {
		got := string(c.append(nil, s, &v.b, hop{v.kind, addr}))
		if got != v.want {
			t.Errorf("branch is %s, want %s", got, v.want)
		}
		if !ourLength([]byte(got)) {
			t.Errorf("a branch of %d characters is not thought ours", len(got))
		}
		var back branch
		if !c.read([]byte(strings.ToUpper(v.want)), s, hop{v.kind, addr}, &back) || back != v.b {
			t.Errorf("read back %+v, want %+v", back, v.b)
		}
	}
	if tag := string(c.appendToTag(nil, k, d)); tag != "23rgukd4ftp46" {
		t.Errorf("To tag is %s", tag)
	}
	if !c.ownToTag([]byte("23rgukd4ftp46"), s, d) || c.ownToTag([]byte("23rgukd4ftp47"), s, d) {
		t.Error("own To tag not known, or a foreign one taken for ours")
	}
}

// A flipped bit or another next hop is no branch of ours.
func TestST8_BranchForged(t *testing.T) {
	s := testSecrets(t)
	rapid.Check(t, func(t *rapid.T) {
		var c branchCodec
		b := branch{d: rapid.Uint64().Draw(t, "d"), server: rapid.Uint32().Draw(t, "server"), listener: rapid.Uint16().Draw(t, "listener"), loop: rapid.Uint32Range(0, 0xffffff).Draw(t, "loop")}
		if rapid.Bool().Draw(t, "stream") {
			b.hasFlow, b.flow = true, rapid.Uint64().Draw(t, "flow")
		}
		ip := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ip")
		h := hop{transport.Kind(rapid.IntRange(1, 5).Draw(t, "kind")), netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip)), rapid.Uint16().Draw(t, "port"))}
		text := c.append(nil, s, &b, h)
		var back branch
		if !c.read(text, s, h, &back) || back != b {
			t.Fatalf("own branch refused, or read as %+v", back)
		}
		for _, other := range []hop{
			{h.kind%5 + 1, h.addr}, {h.kind, netip.AddrPortFrom(h.addr.Addr(), h.addr.Port()+1)}, {h.kind, netip.AddrPortFrom(h.addr.Addr().Next(), h.addr.Port())},
		} {
			if other.addr.Addr().IsValid() && c.read(text, s, other, &back) {
				t.Fatalf("branch for %v is taken for %v", h, other)
			}
		}
		i := rapid.IntRange(len(cookie), len(text)-1).Draw(t, "at")
		old := text[i]
		text[i] = "abcdefghijklmnopqrstuvwxyz234567"[rapid.IntRange(0, 31).Draw(t, "char")]
		if c.read(text, s, h, &back) != (text[i] == old) {
			t.Fatalf("changed character %d", i)
		}
	})
}

// ST-2, ST-3: INVITE, CANCEL and ACK agree without a cookie; any other change of the identity gives another d.
func TestST2_IdentityWithoutCookie(t *testing.T) {
	k := testSecrets(t).Writer()
	d := func(change func(*identity)) uint64 {
		id := vectorIdentity()
		id.branch = []byte("z9hG4bK") // a bare cookie is as good as none
		change(&id)
		h, _ := id.hash(k, nil)
		return h
	}
	invite := d(func(*identity) {})
	if ack := d(func(id *identity) { id.toTag = []byte("from-the-486") }); ack != invite {
		t.Error("the ACK to a non-2xx has another d than its INVITE")
	}
	if spaced := d(func(id *identity) {
		id.topVia = []byte("SIP/2.0/UDP\r\n client.example.com : 5070;branch=z9hG4bKnashds8")
	}); spaced != invite {
		t.Error("white space in the Via changes d")
	}
	seen := map[uint64]string{invite: "INVITE"}
	for name, change := range map[string]func(*identity){
		"Call-ID":  func(id *identity) { id.callID = []byte("c8@ua") },
		"From tag": func(id *identity) { id.fromTag = []byte("78") },
		"CSeq":     func(id *identity) { id.cseq = 2 },
		"URI":      func(id *identity) { id.uri = []byte("sip:team@ex.org") },
		"Via":      func(id *identity) { id.topVia = []byte("SIP/2.0/UDP other.example.com:5070") },
		"BYE":      func(id *identity) { id.toInKey, id.toTag = true, []byte("a") },
		"BYE b":    func(id *identity) { id.toInKey, id.toTag = true, []byte("b") },
	} {
		h := d(change)
		if old, clash := seen[h]; clash {
			t.Errorf("%s has the d of %s", name, old)
		}
		seen[h] = name
	}
}

// ST-1: with a cookie the whole branch goes in, with sent-by, Call-ID and CSeq number; the rest does not.
func TestST1_IdentityWithCookie(t *testing.T) {
	k := testSecrets(t).Writer()
	d := func(change func(*identity)) uint64 {
		id := vectorIdentity()
		change(&id)
		h, _ := id.hash(k, nil)
		return h
	}
	invite := d(func(*identity) {})
	for name, change := range map[string]func(*identity){
		"To tag, From tag, URI": func(id *identity) { id.toTag, id.fromTag, id.uri = []byte("x"), []byte("y"), []byte("sip:z") },
		"case of sent-by":       func(id *identity) { id.host = []byte("CLIENT.example.COM") },
	} {
		if d(change) != invite {
			t.Errorf("%s changes d", name)
		}
	}
	for name, change := range map[string]func(*identity){
		"end of the branch":  func(id *identity) { id.branch = []byte("z9hG4bKnashds9") },
		"case of the branch": func(id *identity) { id.branch = []byte("z9hG4bKNashds8") },
		"port":               func(id *identity) { id.port = []byte("5060") },
		"no port":            func(id *identity) { id.port = nil },
		"constant branch":    func(id *identity) { id.callID = []byte("other") },
		"CSeq":               func(id *identity) { id.cseq = 2 },
	} {
		if d(change) == invite {
			t.Errorf("%s does not change d", name)
		}
	}
}

func FuzzBranch(f *testing.F) {
	f.Add([]byte("z9hG4bKcbr4qooy3333bq5gn4zluh7l2fxz5iweug6tygl3"))
	f.Add([]byte("z9hG4bKcbr4qooy3333bq5gn4zluh7l2fxz4n5ylqpaaaaaivrs7eyuf4d3y"))
	s := testSecrets(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		var c branchCodec
		var b branch
		for _, h := range []hop{{transport.UDP, netip.MustParseAddrPort("192.0.2.7:5070")}, {transport.TCP, netip.MustParseAddrPort("192.0.2.7:5070")}} {
			if !c.read(text, s, h, &b) {
				continue
			}
			if again := c.append(nil, s, &b, h); !strings.EqualFold(string(again), string(text)) {
				t.Fatalf("%s was read, and is written as %s", text, again)
			}
		}
	})
}

// Section 5: without allocation, and with the token within one microsecond.
func TestBranchAllocatesNothing(t *testing.T) {
	s := testSecrets(t)
	c := new(branchCodec)
	id := vectorIdentity()
	h := hop{transport.UDP, netip.MustParseAddrPort("192.0.2.7:5070")}
	buf, text := make([]byte, 0, 1024), make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() {
		var d uint64
		d, buf = id.hash(s.Writer(), buf)
		b := branch{d: d}
		text = c.append(text[:0], s, &b, h)
		if !c.read(text, s, h, &b) {
			t.Fatal("own branch refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBranch(b *testing.B) {
	s := testSecrets(b)
	c := new(branchCodec)
	id := vectorIdentity()
	h := hop{transport.UDP, netip.MustParseAddrPort("192.0.2.7:5070")}
	buf, text := make([]byte, 0, 1024), make([]byte, 0, 128)
	b.ReportAllocs()
	for b.Loop() {
		var d uint64
		d, buf = id.hash(s.Writer(), buf)
		text = c.append(text[:0], s, &branch{d: d}, h)
	}
}

func TestKeysOfTheVectors(t *testing.T) {
	k := testSecrets(t).Writer()
	if got := hex.EncodeToString(k.Transaction[:]); got != "4bd9f6cc8877f3b7a1fd3b7da2446b75" {
		t.Errorf("Kd is %s", got)
	}
}
