package proxy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"
)

func testSecrets(t testing.TB) *Secrets {
	s, err := NewSecrets([]Secret{{Number: 0, Bytes: []byte("wyegate test secret")}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tag32(name string) uint32 { return uint32(xxhash.Sum64String(name)) }

func flowNumber(node string, n uint64) uint64 {
	return xxhash.Sum64String(node)&0xffff<<48 | n
}

// The vectors of sip-http.md 6.1.
func TestTokenVectors(t *testing.T) {
	s := testSecrets(t)
	app, srv := tag32("voice/conference"), tag32("as2")
	key := func(k string) uint64 { return xxhash.Sum64String(k) }
	flow := flowNumber("edge-ams-1", 0x5c1e00000045)
	listener := uint16(xxhash.Sum64String("sip-udp"))
	for _, v := range []struct {
		name string
		use  Use
		tok  Token
		want string
	}{
		{"alice", UseRecordRoute, Token{HasServer: true, HasKey: true, App: app, Server: srv, Hash: key("alice")}, "cdaotyxk2sxz56sk4jgmk25rbe7a5bwwgo5q3e3gkm"},
		{"alice only this connection", UseRecordRoute, Token{HasServer: true, HasKey: true, OnlyFlow: true, App: app, Server: srv, Hash: key("alice"), Flow: FlowConnection, FlowID: flow}, "cdittqbuokdxlulmajsdz3er5x3nton7u47232f6ebswwoyp4locyiq"},
		{"alice UDP", UseRecordRoute, Token{HasServer: true, HasKey: true, App: app, Server: srv, Hash: key("alice"), Flow: FlowUDP4, Listener: listener, Remote: netip.MustParseAddrPort("192.0.2.7:5070")}, "cdbnpc7tnnzfxlbqzej6u7hmk3dbwf3if5ssu6vqkczw5fpkfazpm7i"},
		{"path", UsePath, Token{OnlyFlow: true, Flow: FlowConnection, FlowID: flow}, "caiqpitpmmymm2fc7ckdqf26hcvke"},
		{"http key", UseHTTP, Token{HasServer: true, HasKey: true, App: app, Server: srv, Hash: key("room-4711")}, "cdacu7zzhrv2nphzg6v5oqxedczvmslokw56ihznxm"},
		{"http pinned", UseHTTP, Token{HasServer: true, Pinned: true, App: app, Server: srv}, "ccqjkejdrjeqxwi2bukpegdz7ev42532viwzr7pnnm"},
	} {
		t.Run(v.name, func(t *testing.T) {
			var c Codec
			got := c.AppendToken(nil, s, v.use, &v.tok)
			if string(got) != v.want {
				t.Errorf("token is %s, want %s", got, v.want)
			}
			var back Token
			if err := c.ReadToken([]byte(strings.ToUpper(v.want)), s, v.use, &back); err != nil || back != v.tok {
				t.Errorf("read back %+v, %v, want %+v", back, err, v.tok)
			}
		})
	}
}

// Any changed character, and any other use, is no token.
func TestTokenForged(t *testing.T) {
	s := testSecrets(t)
	rapid.Check(t, func(t *rapid.T) {
		var c Codec
		tok := Token{HasServer: true, HasKey: true, App: rapid.Uint32().Draw(t, "app"), Server: rapid.Uint32().Draw(t, "server"), Hash: rapid.Uint64().Draw(t, "hash")}
		if rapid.Bool().Draw(t, "flow") {
			tok.Flow, tok.FlowID = FlowConnection, rapid.Uint64().Draw(t, "id")
		}
		text := c.AppendToken(nil, s, UseHTTP, &tok)
		var back Token
		if err := c.ReadToken(text, s, UseRecordRoute, &back); err == nil {
			t.Fatal("a token for HTTP is one for Record-Route")
		}
		i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		old := text[i]
		text[i] = base32Alphabet[rapid.IntRange(0, 31).Draw(t, "char")]
		if err := c.ReadToken(text, s, UseHTTP, &back); (err == nil) != (text[i] == old) {
			t.Fatalf("changed character %d of %s: %v", i, text, err)
		}
	})
}

func FuzzReadToken(f *testing.F) {
	f.Add([]byte("cdacu7zzhrv2nphzg6v5oqxedczvmslokw56ihznxm"), uint8(3))
	s, _ := NewSecrets([]Secret{{Number: 0, Bytes: []byte("wyegate test secret")}})
	f.Fuzz(func(t *testing.T, text []byte, use uint8) {
		var c Codec
		var tok Token
		if c.ReadToken(text, s, Use(use), &tok) != nil {
			return
		}
		if again := c.AppendToken(nil, s, Use(use), &tok); !strings.EqualFold(string(again), string(text)) {
			t.Fatalf("%s was read, and written as %s", text, again)
		}
	})
}

func TestTokenAllocatesNothing(t *testing.T) {
	s := testSecrets(t)
	c := new(Codec)
	tok := Token{HasServer: true, HasKey: true, App: 1, Server: 2, Hash: 3}
	buf := make([]byte, 0, 128)
	var back Token
	if n := testing.AllocsPerRun(100, func() {
		buf = c.AppendToken(buf[:0], s, UseHTTP, &tok)
		if c.ReadToken(buf, s, UseHTTP, &back) != nil {
			t.Fatal("own token refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkToken(b *testing.B) {
	s := testSecrets(b)
	c := new(Codec)
	tok := Token{HasServer: true, HasKey: true, App: 1, Server: 2, Hash: 3}
	buf := make([]byte, 0, 128)
	b.ReportAllocs()
	for b.Loop() {
		buf = c.AppendToken(buf[:0], s, UseHTTP, &tok)
	}
}
