package sipproxy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
)

// sipCase is what this test reads of an entry of testdata/sip/manifest.json.
type sipCase struct {
	File      string
	Transport string
	Outcome   any
	Setup     string
	Pending   string
}

// 21.1, 21.2: what becomes of the messages of RFC 4475 and RFC 5118 at a proxy for whose own domains they are: forwarded
// with every untouched line octet for octet, answered with the status that is owed, or dropped.
func TestSS1_Torture(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "testdata", "sip", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []sipCase
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, c := range cases {
		dir := filepath.Dir(c.File)
		if dir != "rfc4475" && dir != "rfc5118" || c.Transport != "udp" || c.Pending != "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "sip", c.File))
		if err != nil {
			t.Fatal(err)
		}
		played++
		t.Run(c.File, func(t *testing.T) { torture(t, c, text) })
	}
	if played < 50 {
		t.Errorf("only %d cases were played", played)
	}
}

func torture(t *testing.T, c sipCase, text []byte) {
	b := newBed(t, bedOptions{domains: []string{"example.com", "example.org", "example.net"}})
	var m sip.Msg
	_ = m.ParseDatagram(text)
	sock := b.socks["sip-udp"]
	at := addrPortOf("192.0.2.7:5070")
	b.w.batch([]transport.Inbound{{Bytes: text, Listener: sock, Kind: transport.UDP, Remote: at, Source: at, Local: sock.Addr}}, nil)
	sent := b.net.sent
	if !m.Request {
		if len(sent) != 0 {
			t.Errorf("a response with a foreign Via went to %s", sent[0].to)
		}
		b.restored(t, text)
		return
	}
	switch c.Outcome {
	case "forward":
		p := b.one(sent)
		if status(p.text) != "" {
			t.Fatalf("answered with %s", startLine(p.text))
		}
		untouched(t, &m, p.text)
	case "drop":
		b.none(sent)
	default:
		if p := b.one(sent); status(p.text) != fmt.Sprint(c.Outcome) {
			t.Errorf("%s, want %v", startLine(p.text), c.Outcome)
		}
	}
}

// untouched wants every line that a proxy has no business with to leave as it came.
func untouched(t *testing.T, m *sip.Msg, sent string) {
	t.Helper()
	for i := range m.Fields {
		f := &m.Fields[i]
		if f.ID == sip.MaxForwards || f.ID == sip.Route || f.ID == sip.Via && m.First(sip.Via) == f {
			continue
		}
		if line := string(m.Bytes(f.Line)); !strings.Contains(sent, "\r\n"+line) {
			t.Errorf("changed or lost: %q", line)
		}
	}
	if body := string(m.Bytes(m.Body)); !strings.HasSuffix(sent, "\r\n"+body) {
		t.Errorf("the body differs")
	}
}

// restored plays a response once more with our Via on top of it: then it goes to the requester that its next Via names,
// or is dropped when it is no response at all.
func (b *bed) restored(t *testing.T, text []byte) {
	t.Helper()
	var m sip.Msg
	_ = m.ParseDatagram(text)
	top := m.Values.Via
	if bad := sip.Validate(&m, &sip.Options{}); bad == nil {
		top = m.Values.Via
	}
	h, ok := responseHop(&top)
	if !ok {
		return
	}
	via := append([]byte("SIP/2.0/UDP 203.0.113.10:5060;branch="), b.w.branches.append(nil, b.gen.secrets, &branch{d: 1, listener: b.socks["sip-udp"].Tag}, h)...)
	line, rest, _ := strings.Cut(string(text), "\r\n")
	b.net.sent = nil
	sock := b.socks["sip-udp"]
	at := addrPortOf("10.20.1.11:5060")
	b.w.batch([]transport.Inbound{{Bytes: []byte(line + "\r\nVia: " + string(via) + "\r\n" + rest), Listener: sock, Kind: transport.UDP, Remote: at, Source: at}}, nil)
	if m.Status == 0 || sip.Validate(&m, &sip.Options{}) != nil {
		b.none(b.net.sent)
		return
	}
	if h.kind == transport.UDP {
		if p := b.one(b.net.sent); p.to != h.addr.String() || p.text != string(text[:len(m.Raw)]) {
			t.Errorf("sent to %s:\n%s", p.to, p.text)
		}
	}
	b.pass(time.Second)
}
