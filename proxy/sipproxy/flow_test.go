package sipproxy

import (
	"slices"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/internal/sip/transport"
)

// SX-8: what a client asks for with alias, and when a server's request goes that way. Whether its certificate allows it
// is the transport's to say.
func TestSX8_Alias(t *testing.T) {
	b := newBed(t, bedOptions{listeners: []string{"sip-udp udp 203.0.113.10:5060", "sip-tcp tcp 203.0.113.10:5060", "sip-tls tls 203.0.113.10:5061"}})
	phone := func(id, via string) *ua { return &ua{via: via, from: "a1", callID: id} }
	at := from{listener: "sip-tls", remote: "192.0.2.8:40000", flow: 9}
	reg := b.one(b.in(at, phone("one", "TLS 192.0.2.8:5071;alias").request("REGISTER", 1)))
	b.one(b.in(at, phone("two", "TLS ua.example.net;ALIAS").request("REGISTER", 1)))
	b.one(b.in(at, phone("three", "TLS 192.0.2.8:5072").request("REGISTER", 1)))
	b.one(b.in(trunkAt, phone("four", "TCP 192.0.2.8:5073;alias").request("REGISTER", 1)))
	if want := []string{"9 192.0.2.8:5071", "9 192.0.2.8:5061"}; !slices.Equal(b.net.aliases, want) {
		t.Errorf("asked for %q, want %q", b.net.aliases, want)
	}
	b.net.alias, b.net.flows[9] = map[string]uint64{"192.0.2.8:5071 192.0.2.8": 9}, true
	for uri, want := range map[string]string{
		"sips:alice@192.0.2.8:5071":              "flow 9",
		"sip:alice@192.0.2.8:5071;transport=tls": "flow 9",
		"sip:alice@192.0.2.8:5071;transport=tcp": "192.0.2.8:5071",
		"sips:alice@192.0.2.8:5072":              "192.0.2.8:5072",
	} {
		call := &ua{via: "UDP " + reg.to, from: "s1", callID: "to" + strings.NewReplacer(":", "", ";", "", "@", "", "=", "").Replace(uri), uri: uri}
		if p := b.one(b.from(reg, call.request("MESSAGE", 1))); p.to != want {
			t.Errorf("%s went to %v, want %s", uri, p, want)
		}
	}
	// The connection is gone: a new one is opened.
	delete(b.net.flows, 9)
	call := &ua{via: "UDP " + reg.to, from: "s1", callID: "gone", uri: "sips:alice@192.0.2.8:5071"}
	if p := b.one(b.from(reg, call.request("MESSAGE", 1))); p.to != "192.0.2.8:5071" || p.kind != transport.TLS {
		t.Errorf("with the connection gone: %v", p)
	}
}
