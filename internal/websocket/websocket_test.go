package websocket_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/websocket"
)

var key = [4]byte{0x12, 0x34, 0x56, 0x78}

// raw writes a frame octet by octet, so that the test does not believe the code under test.
func raw(first byte, mask *[4]byte, payload string) []byte {
	b := []byte{first}
	bit := byte(0)
	if mask != nil {
		bit = 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b = append(b, bit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, bit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, bit|127), uint64(n))
	}
	if mask == nil {
		return append(b, payload...)
	}
	b = append(b, mask[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^mask[i%4])
	}
	return b
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// conversation has whole messages of every length form, fragments with control frames between them, and an empty message.
var (
	long         = strings.Repeat("x", 300)
	huge         = strings.Repeat("y", 70000)
	conversation = join(
		raw(0x81, &key, "one"), raw(0x82, &key, long), raw(0x81, &key, ""),
		raw(0x01, &key, "fr"), raw(0x89, &key, "are you there"), raw(0x00, &key, "ag"), raw(0x8a, &key, ""), raw(0x80, &key, "ment"),
		raw(0x02, &key, ""), raw(0x80, &key, huge), raw(0x88, &key, "\x03\xf4bye"),
	)
	pieces = []string{
		"1:one", "2:" + long, "1:", "control 9:are you there", "control 10:", "1:fragment", "2:" + huge, "control 8:\x03\xf4bye",
	}
)

// play feeds parts and gives what came of them.
func play(r *websocket.Reader, parts ...[]byte) (got []string) {
	for _, p := range parts {
		if !r.Held() {
			r.Lend(make([]byte, 0, 64))
		}
		r.Feed(p)
		for {
			kind, b := r.Next()
			switch kind {
			case websocket.Message:
				got = append(got, fmt.Sprintf("%d:%s", r.Kind, b))
				continue
			case websocket.Control:
				got = append(got, fmt.Sprintf("control %d:%s", r.Kind, b))
				continue
			case websocket.Broken:
				return append(got, fmt.Sprintf("broken %d", r.Code))
			}
			break
		}
		r.Reclaim()
	}
	return got
}

// Any cut of the octets gives the same messages.
func TestCutAtEveryOctet(t *testing.T) {
	for cut := range conversation {
		if cut > 600 && cut < len(conversation)-100 && cut%997 != 0 {
			continue // the middle of the long message is all alike
		}
		r := &websocket.Reader{Max: 1 << 20}
		got := play(r, bytes.Clone(conversation[:cut]), bytes.Clone(conversation[cut:]))
		if fmt.Sprint(got) != fmt.Sprint(pieces) {
			t.Fatalf("cut at %d: got %.200q", cut, got)
		}
	}
	var octets [][]byte
	for i := range conversation {
		octets = append(octets, []byte{conversation[i]})
	}
	if got := play(&websocket.Reader{Max: 1 << 20}, octets...); fmt.Sprint(got) != fmt.Sprint(pieces) {
		t.Fatalf("octet by octet: got %.200q", got)
	}
}

// Every division into fragments gives the same message.
func TestEveryFragmentation(t *testing.T) {
	const msg = "OPTIONS sip:a SIP/2.0"
	for i := 0; i <= len(msg); i++ {
		for j := i; j <= len(msg); j++ {
			b := join(raw(0x01, &key, msg[:i]), raw(0x89, &key, "p"), raw(0x00, &key, msg[i:j]), raw(0x80, &key, msg[j:]))
			if got := play(&websocket.Reader{Max: 100}, b); fmt.Sprint(got) != fmt.Sprint([]string{"control 9:p", "1:" + msg}) {
				t.Fatalf("%d, %d: %q", i, j, got)
			}
		}
	}
}

// RFC 6455 sections 5.2 to 5.5, 7.4.1, 8.1: what a peer may not send, and the code it is told.
func TestFaults(t *testing.T) {
	big := raw(0x82, &key, "")
	big = append(big[:1], append([]byte{0x80 | 127}, binary.BigEndian.AppendUint64(nil, 1<<40)...)...)
	for name, c := range map[string]struct {
		in   []byte
		want uint16
	}{
		"not masked":                      {raw(0x81, nil, "x"), websocket.CodeProtocol},
		"reserved bit":                    {raw(0xc1, &key, "x"), websocket.CodeProtocol},
		"unknown opcode":                  {raw(0x83, &key, "x"), websocket.CodeProtocol},
		"unknown control":                 {raw(0x8b, &key, "x"), websocket.CodeProtocol},
		"continuation of nothing":         {raw(0x80, &key, "x"), websocket.CodeProtocol},
		"text within fragments":           {join(raw(0x01, &key, "x"), raw(0x81, &key, "y")), websocket.CodeProtocol},
		"fragmented ping":                 {raw(0x09, &key, "x"), websocket.CodeProtocol},
		"long ping":                       {raw(0x89, &key, strings.Repeat("p", 126)), websocket.CodeProtocol},
		"length in more octets than need": {[]byte{0x82, 0xfe, 0, 5, 0, 0, 0, 0}, websocket.CodeProtocol},
		"length with the highest bit":     {[]byte{0x82, 0xff, 0x80, 0, 0, 0, 0, 1, 0, 0}, websocket.CodeProtocol},
		"announced too large":             {big, websocket.CodeTooLarge},
		"too large in fragments":          {join(raw(0x02, &key, strings.Repeat("x", 800)), raw(0x80, &key, strings.Repeat("x", 300))), websocket.CodeTooLarge},
		"text that is none":               {raw(0x81, &key, "a\xff"), websocket.CodeNotText},
		"text that is cut":                {raw(0x81, &key, "a\xe2\x82"), websocket.CodeNotText},
	} {
		got := play(&websocket.Reader{Max: 1000}, c.in)
		if len(got) == 0 || got[len(got)-1] != fmt.Sprintf("broken %d", c.want) {
			t.Errorf("%s: %q, want %d", name, got, c.want)
		}
	}
	// A rune may be cut between fragments; a binary message may hold anything.
	got := play(&websocket.Reader{Max: 1000}, join(raw(0x01, &key, "\xe2"), raw(0x80, &key, "\x82\xac"), raw(0x82, &key, "\xff")))
	if fmt.Sprint(got) != fmt.Sprint([]string{"1:€", "2:\xff"}) {
		t.Errorf("%q", got)
	}
}

// What is announced is not allocated, and control frames within a message that does not end do not pile up.
func TestMemoryGrowsWithWhatCame(t *testing.T) {
	r := &websocket.Reader{Max: 1 << 20}
	r.Feed([]byte{0x82, 0xff, 0, 0, 0, 0, 0, 0x0f, 0xff, 0xff, 1, 2, 3, 4, 'x'})
	if p, _ := r.Next(); p != websocket.More {
		t.Fatal(p)
	}
	if n := cap(r.Room(1)); n > 4096 {
		t.Errorf("%d octets for one that came", n)
	}
	r = &websocket.Reader{Max: 1 << 20}
	r.Feed(raw(0x01, &key, "begin"))
	ping := raw(0x89, &key, strings.Repeat("p", 125))
	for range 10000 {
		r.Next()
		r.Feed(bytes.Clone(ping))
	}
	if n := cap(r.Room(1)); n > 64<<10 {
		t.Errorf("%d octets held by pings", n)
	}
}

func TestMessagesAllocateNothing(t *testing.T) {
	in := raw(0x81, &key, strings.Repeat("m", 600))
	r := &websocket.Reader{Max: 1 << 20}
	r.Lend(make([]byte, 0, 8192))
	out := make([]byte, 0, 8192)
	if n := testing.AllocsPerRun(1000, func() {
		r.Feed(in)
		if p, b := r.Next(); p == websocket.Message {
			out = websocket.AppendFrame(out[:0], websocket.Text, b, &key)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a message", n)
	}
}

// What is written is read back, masked or not, whatever the cut.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("OPTIONS sip:a SIP/2.0\r\n\r\n"), uint8(2), uint16(3), true)
	f.Add([]byte(long), uint8(2), uint16(200), false)
	f.Add([]byte{}, uint8(9), uint16(0), true)
	f.Fuzz(func(t *testing.T, payload []byte, kind uint8, cut uint16, masked bool) {
		kind = []byte{websocket.Text, websocket.Binary, websocket.Ping, websocket.Pong}[kind%4]
		if kind >= websocket.Ping && len(payload) > 125 {
			payload = payload[:125]
		}
		var mask websocket.Mask
		if masked {
			mask = &key
		}
		b := websocket.AppendFrame(nil, kind, payload, mask)
		at := min(int(cut), len(b))
		got := play(&websocket.Reader{Max: 1 << 20, Unmasked: !masked}, bytes.Clone(b[:at]), bytes.Clone(b[at:]))
		want := fmt.Sprintf("%d:%s", kind, payload)
		if kind >= websocket.Ping {
			want = "control " + want
		}
		if kind == websocket.Text && len(got) == 1 && got[0] == "broken 1007" {
			return // no UTF-8
		}
		if len(got) != 1 || got[0] != want {
			t.Fatalf("%q came back as %q", want, got)
		}
	})
}

// Whatever comes: no panic, and the same pieces however it is cut.
func FuzzReader(f *testing.F) {
	f.Add(conversation[:500], uint16(7))
	f.Add([]byte{0x82, 0xfe, 0, 5}, uint16(1))
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		at := min(int(cut), len(in))
		whole := play(&websocket.Reader{Max: 4096}, bytes.Clone(in))
		parts := play(&websocket.Reader{Max: 4096}, bytes.Clone(in[:at]), bytes.Clone(in[at:]))
		if fmt.Sprint(whole) != fmt.Sprint(parts) {
			t.Fatalf("cut at %d: %q and %q", at, whole, parts)
		}
	})
}

// Section 15.1: which handshakes are accepted. The key and its answer are those of RFC 6455 section 1.3.
func TestAccept(t *testing.T) {
	const good = "GET /ws?x=1 HTTP/1.1\r\nHost: front.example.net:443\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: msrp, SIP\r\n" +
		"Sec-WebSocket-Extensions: permessage-deflate\r\nOrigin: https://front.example.net\r\n\r\n"
	for name, c := range map[string]struct {
		old, new string
		origins  []string
		want     int
	}{
		"as it is":           {"", "", nil, 101},
		"no origin":          {"Origin: https://front.example.net\r\n", "", []string{"https://phone.example.net"}, 101},
		"listed origin":      {"https://front", "https://PHONE", []string{"https://phone.example.net"}, 101},
		"any origin":         {"https://front", "https://other", []string{"*"}, 101},
		"foreign origin":     {"https://front", "https://other", nil, 403},
		"origin not listed":  {"", "", []string{"https://phone.example.net"}, 403},
		"null origin":        {"https://front.example.net", "null", nil, 403},
		"other path":         {"/ws?", "/wsx?", nil, 404},
		"other method":       {"GET", "POST", nil, 400},
		"HTTP/1.0":           {"HTTP/1.1", "HTTP/1.0", nil, 400},
		"body":               {"Origin", "Content-Length: 3\r\nOrigin", nil, 400},
		"no upgrade":         {"Upgrade: WebSocket", "Upgrade: h2c", nil, 426},
		"not in connection":  {"keep-alive, Upgrade", "keep-alive", nil, 426},
		"version":            {"Version: 13", "Version: 8", nil, 426},
		"no key":             {"Sec-WebSocket-Key", "X-Key", nil, 400},
		"short key":          {"dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZQ==", nil, 400},
		"two keys":           {"Origin", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin", nil, 400},
		"no subprotocol":     {"Sec-WebSocket-Protocol", "X-Protocol", nil, 400},
		"other subprotocols": {"msrp, SIP", "msrp, sipx", nil, 400},
	} {
		r := websocket.Rules{Path: "/ws", Protocol: "sip", Origins: c.origins}
		text := strings.Replace(good, c.old, c.new, 1)
		var h http1.Head
		if n, err := h.ParseRequest([]byte(text), &http1.Limits{}); err != nil || n != len(text) {
			t.Fatalf("%s: %d, %v", name, n, err)
		}
		answer, status := r.Accept(nil, &h)
		if status != c.want || !strings.HasPrefix(string(answer), fmt.Sprintf("HTTP/1.1 %d ", status)) {
			t.Errorf("%s: %d, want %d: %q", name, status, c.want, answer)
		}
		if status != 101 {
			continue
		}
		if !strings.Contains(string(answer), "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") ||
			!strings.Contains(string(answer), "\r\nSec-WebSocket-Protocol: sip\r\n") || strings.Contains(string(answer), "Extensions") {
			t.Errorf("%s: %q", name, answer)
		}
	}
}

func TestCloseCodes(t *testing.T) {
	for in, want := range map[string]struct {
		code uint16
		ok   bool
	}{
		"": {0, true}, "\x03": {0, false}, "\x03\xe8": {1000, true}, "\x03\xf4": {1012, true}, "\x03\xed": {1005, false},
		"\x03\xee": {1006, false}, "\x0b\xb8x": {3000, true}, "\x00\x01": {1, false}, "\x13\x88": {5000, false},
	} {
		if code, ok := websocket.CloseCode([]byte(in)); code != want.code || ok != want.ok {
			t.Errorf("%q: %d %v, want %v", in, code, ok, want)
		}
	}
}
