package h1

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/proxy/httpproxy"
	"github.com/wyegate/wyegate/routing"
)

const (
	upgrade  = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
	switched = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nKeep-Alive: x\r\n\r\n"
)

// echo upgrades and sends back what comes, until the other half closes; then it says a last word.
func echo(c *originConn) {
	if _, err := c.head(); err != nil {
		return
	}
	_, _ = io.WriteString(c, switched+"early")
	_, _ = io.Copy(c.Conn, c.r)
	_, _ = io.WriteString(c, "bye")
}

// opened reads the 101.
func (w *wire) opened() {
	w.t.Helper()
	resp, err := http.ReadResponse(w.r, nil)
	if err != nil || resp.StatusCode != 101 {
		w.t.Fatalf("%v, %v", resp, err)
	}
	if resp.Header.Get("Sec-WebSocket-Accept") == "" || resp.Header.Get("Keep-Alive") != "" || !strings.EqualFold(resp.Header.Get("Upgrade"), "websocket") {
		w.t.Errorf("fields %v", resp.Header)
	}
}

func (w *wire) expect(text string) {
	w.t.Helper()
	b := make([]byte, len(text))
	if _, err := io.ReadFull(w.r, b); err != nil || string(b) != text {
		w.t.Fatalf("got %q, %v, want %q", b, err, text)
	}
}

// HB-4: the tunnel is byte-transparent, takes what came early on either side, keeps the half-close, holds the lease, and
// lives over a reload.
func TestTunnel(t *testing.T) {
	o := newOrigin(t, echo)
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send(upgrade + "sooner")
	w.opened()
	w.expect("early" + "sooner")
	got := o.received()
	if !strings.Contains(got, "Connection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n") || !strings.Contains(got, "Sec-WebSocket-Key: dGhl") || strings.Count(got, "pgrade") != 2 {
		t.Errorf("server got %q", got)
	}
	m := r.pool.Table().ByName("as1")
	r.until("counts", func() bool { return r.front.Tunnels()[TunnelKey{"http", "web", "as1"}] == 1 })
	if m.Active() != 1 || m.Live(routing.WebSockets) != 1 {
		t.Errorf("%d active, %d live", m.Active(), m.Live(routing.WebSockets))
	}
	next := *r.gen
	next.Number++
	r.front.Swap(&next)
	big := string(pattern(100 << 10))
	go func() { _, _ = io.WriteString(w, big) }()
	w.expect(big)
	_ = w.Conn.(*net.TCPConn).CloseWrite()
	if rest, err := w.rest(); rest != "bye" || err != nil {
		t.Errorf("behind the half-close %q, %v", rest, err)
	}
	rec := r.record()
	if rec.Code != 101 || string(rec.Disp[:]) != "--N-" || rec.BytesIn < 100<<10 || rec.BytesOut < 100<<10 {
		t.Errorf("logged %d %s %d %d", rec.Code, rec.Disp, rec.BytesIn, rec.BytesOut)
	}
	if m.Active() != 0 || m.Live(routing.WebSockets) != 0 {
		t.Errorf("%d active, %d live", m.Active(), m.Live(routing.WebSockets))
	}
}

// HB-4: not 101 is a normal response, and the connection stays HTTP. A protocol that is not listed is not asked for.
func TestUpgradeRefused(t *testing.T) {
	o := newOrigin(t, answers(ok))
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send(upgrade)
	if resp, body := w.answer("GET"); resp.StatusCode != 200 || body != "ok" || resp.Close {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	w.send(strings.Replace(upgrade, "Upgrade: WebSocket", "Upgrade: tls/1.2", 1))
	if _, body := w.answer("GET"); body != "ok" || strings.Contains(o.received(), "tls/1.2") {
		t.Error("an unlisted protocol went to the server")
	}
}

// HF-7: a 101 for another protocol is no answer.
func TestUpgradeToAnother(t *testing.T) {
	o := newOrigin(t, rawAnswers(strings.ReplaceAll(switched, "websocket", "h2c")))
	r := newRig(t, []string{o.addr})
	w := r.dial()
	w.send(upgrade)
	if resp, _ := w.answer("GET"); resp.StatusCode != 502 {
		t.Errorf("%d", resp.StatusCode)
	}
}

// Section 11.3: at the deadline WebSockets are closed with 1012, between two frames and never within one.
func TestCloseTunnels(t *testing.T) {
	frame := "\x82\x7e\x01\x00" + strings.Repeat("x", 256)
	for _, c := range []struct {
		name, sent, want string
	}{
		{"between", "\x81\x02hi" + frame, "\x81\x02hi" + frame + "\x88\x02\x03\xf4"},
		{"within", "\x81\x05hi", "\x81\x05hi"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOrigin(t, func(oc *originConn) {
				if _, err := oc.head(); err == nil {
					_, _ = io.WriteString(oc, switched+c.sent)
					_, _ = io.Copy(io.Discard, oc.r)
				}
			})
			r := newRig(t, []string{o.addr})
			w := r.dial()
			w.send(upgrade)
			w.opened()
			w.expect(c.sent)
			r.front.CloseTunnels(t.Context(), func(k TunnelKey) bool { return k.Server == "as2" }, 1012, 0)
			r.front.CloseTunnels(t.Context(), func(k TunnelKey) bool { return k.Server == "as1" }, 1012, 0)
			rest, err := w.rest()
			if c.sent+rest != c.want || err != nil {
				t.Errorf("then %q, %v", rest, err)
			}
			_ = w.Close()
			if rec := r.record(); string(rec.Disp[:2]) != "DD" {
				t.Errorf("logged %s", rec.Disp)
			}
		})
	}
}

// Section 15: a tunnel has an idle timer of its own.
func TestTunnelIdle(t *testing.T) {
	o := newOrigin(t, echo)
	r := newRig(t, []string{o.addr}, limits(func(l *httpproxy.Limits) { l.TunnelIdle = 300 * time.Millisecond }))
	w := r.dial()
	w.send(upgrade)
	w.opened()
	w.expect("early")
	start := time.Now()
	_, _ = w.rest()
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("closed after %v", d)
	}
	if rec := r.record(); string(rec.Disp[:2]) != "TD" {
		t.Errorf("logged %s", rec.Disp)
	}
}

// A frame's end is found wherever its bytes are cut.
func TestFrames(t *testing.T) {
	text := "\x81\x00" + "\x82\x05hello" + "\x89\x84\x01\x02\x03\x04ping" + "\x02\x7e\x00\x80" + strings.Repeat("y", 128) +
		"\x80\x7f\x00\x00\x00\x00\x00\x01\x00\x00" + strings.Repeat("z", 65536)
	ends := map[int]bool{0: true, 2: true, 9: true, 19: true, 151: true, len(text): true}
	for _, size := range []int{1, 2, 3, 7, 1000, len(text)} {
		var f frames
		for at := 0; at < len(text); at += size {
			to := min(at+size, len(text))
			f.pass([]byte(text[at:to]))
			if f.between() != ends[to] {
				t.Fatalf("pieces of %d: at %d between is %v", size, to, f.between())
			}
		}
	}
}
