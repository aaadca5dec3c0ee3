package sipproxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
)

// corpus gives the bytes of every message of testdata/sip.
func corpus(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	root := filepath.Join("..", "..", "testdata", "sip")
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".msg") {
			return err
		}
		b, err := os.ReadFile(p)
		if rel, e := filepath.Rel(root, p); e == nil {
			out[rel] = b
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// hostile gives a worker bytes over both transports, and the answers to what it forwards, and says what must hold
// whatever the bytes are (21.5, whole node): no panic, every request that leaves is valid and has one Via of ours more,
// nothing goes anywhere but to a server, to where the message came from, or outwards for a server.
func hostile(t *testing.T, b *bed, text []byte) {
	for _, f := range []from{aliceAt, trunkAt} {
		sock := b.socks[f.listener]
		at := addrPortOf(f.remote)
		b.net.flows[7] = true
		b.net.sent = nil
		b.w.now = b.now
		b.w.batch([]transport.Inbound{{Bytes: text, Listener: sock, Kind: sock.Kind, Flow: f.flow, Remote: at, Source: at, Local: sock.Addr}}, nil)
		for _, p := range append([]packet(nil), b.net.sent...) {
			if status(p.text) != "" {
				if host, _, _ := strings.Cut(p.to, ":"); host != "192.0.2.7" && p.to != "flow 7" {
					t.Fatalf("an answer went to %s:\n%s", p.to, p.text)
				}
				continue
			}
			if b.nameAt(p.to) == p.to {
				t.Fatalf("a request from outside went to %s:\n%s", p.to, p.text)
			}
			var m sip.Msg
			if err := m.Parse([]byte(p.text)); err != nil {
				t.Fatalf("forwarded what does not parse: %v\n%s", err, p.text)
			}
			if bad := sip.Validate(&m, &sip.Options{}); bad != nil && bad != sip.ErrTooManyHops {
				t.Fatalf("forwarded what is not valid: %v\n%s", bad, p.text)
			}
			if via := m.Values.Via; !strings.HasPrefix(string(via.Host), "203.0.113.10") || len(via.Branch) < 47 {
				t.Fatalf("top Via is %s", via.Value)
			}
			for _, code := range []int{180, 503, 200, 486} {
				b.from(p, respond(p.text, code, "b1"))
			}
		}
	}
	b.pass(time.Second)
}

// Every message of the corpus, as a request of a client and as a response: nothing breaks.
func TestSS1_Corpus(t *testing.T) {
	b := newBed(t, bedOptions{})
	files := corpus(t)
	if len(files) == 0 {
		t.Fatal("testdata/sip holds no messages")
	}
	for name, text := range files {
		t.Run(name, func(t *testing.T) { hostile(t, b, text) })
	}
	b.pass(10 * time.Minute)
	if b.w.mem.count != 0 || b.w.mem.open != 0 {
		t.Errorf("left over: %d entries, %d pending", b.w.mem.count, b.w.mem.open)
	}
	for _, s := range []string{"as1", "as2", "as3"} {
		if n := b.reg.Server("app", s).Active(); n != 0 {
			t.Errorf("%d leases on %s are left", n, s)
		}
	}
}

func FuzzWorker(f *testing.F) {
	for _, m := range []string{"INVITE", "BYE", "CANCEL", "ACK", "REGISTER", "OPTIONS"} {
		f.Add([]byte(alice("seed").request(m, 1)))
	}
	for _, b := range corpus(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b := newBed(t, bedOptions{})
		hostile(t, b, text)
	})
}

// The same from a server, where a message may lead anywhere: whatever fails, the next place is tried, nothing goes to where a
// message may not lead us, and nothing is left over.
func FuzzOutward(f *testing.F) {
	for _, uri := range []string{"sip:bob@phone.example", "sips:bob@phone.example:5071;transport=tcp", "sip:x@198.51.100.9;maddr=127.0.0.1", "tel:+49", "sip:203.0.113.10"} {
		f.Add([]byte(outward("seed", uri).request("INVITE", 1)), uint8(3))
		f.Add([]byte(outwardTCP("seed", uri).request("MESSAGE", 1)), uint8(200))
	}
	for _, b := range corpus(f) {
		f.Add(b, uint8(len(b)))
	}
	f.Fuzz(func(t *testing.T, text []byte, turns uint8) {
		b, n, _ := outwardBed(t)
		n.zone("tcp 198.51.100.1:5060", "udp 127.0.0.1:5060", "udp 198.51.100.2:5060", "tls 198.51.100.3:5061", "udp 203.0.113.10:5060")
		n.known = turns&1 == 0
		for _, at := range []from{byUDP, byTCP} {
			sock := b.socks[at.listener]
			remote := addrPortOf(at.remote)
			b.net.flows[900], b.net.sent = true, nil
			b.w.now = b.now
			b.w.batch([]transport.Inbound{{Bytes: text, Listener: sock, Kind: sock.Kind, Flow: at.flow, Outgoing: at.outgoing, Remote: remote, Source: remote, Local: sock.Addr}}, nil)
			for i, sent := 0, b.net.sent; i < 8 && len(sent) > 0; i++ {
				p := sent[len(sent)-1]
				if host, _, _ := strings.Cut(p.to, ":"); host == "127.0.0.1" || p.to == "203.0.113.10:5060" {
					t.Fatalf("sent to %s:\n%s", p.to, p.text)
				}
				switch turns >> uint(i%8) & 1 {
				case 0:
					if p.flow == 0 || status(p.text) != "" {
						sent = nil
						continue
					}
					sent = append([]packet(nil), b.event(transport.Event{Kind: transport.FlowFailed, Flow: p.flow, Err: refusedErr()})...)
				default:
					if status(p.text) != "" {
						sent = nil
						continue
					}
					b.wellFormed(p.text)
					sent = append([]packet(nil), b.from(p, respond(p.text, 503, "b1"))...)
				}
			}
		}
		b.pass(10 * time.Minute)
		if b.w.mem.count != 0 || b.w.mem.open != 0 || len(b.w.parking.byKey) != 0 {
			t.Fatalf("left over: %d entries, %d pending, %d parked", b.w.mem.count, b.w.mem.open, len(b.w.parking.byKey))
		}
		for _, s := range []string{"as1", "as2"} {
			if left := b.reg.Server("app", s).Active(); left != 0 {
				t.Fatalf("%d leases on %s are left", left, s)
			}
		}
	})
}
