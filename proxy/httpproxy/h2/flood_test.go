package h2

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// More than 100 streams that the client resets end the connection with ENHANCE_YOUR_CALM, and servers are not hit once
// per stream; a hundred are let pass (H2-2, rapid reset).
func TestRapidReset(t *testing.T) {
	o := newServer(t, func(c *serverConn) { _, _ = io.Copy(io.Discard, c.r) }) // it never answers
	r := newRig(t, []string{o.addr})
	c := r.dial()
	for range maxResets {
		id := c.open(true, request("GET", "/")...)
		c.must(c.WriteRSTStream(id, http2.ErrCodeCancel))
	}
	c.must(c.WritePing(false, [8]byte{1}))
	for {
		if p, ok := c.frame().(*http2.PingFrame); ok && p.IsAck() {
			break // a hundred are no flood
		}
	}
	hit := o.requests()
	for range 500 {
		id := c.next
		c.next += 2
		if c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block(request("GET", "/")...), EndStream: true, EndHeaders: true}) != nil ||
			c.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			break
		}
	}
	if code, said := c.end(); !said || code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("ended with %v, %v", code, said)
	}
	if n := o.requests(); n > hit+10 {
		t.Errorf("the server was hit %d times behind the limit", n-hit)
	}
	m := &r.pool.Table().Members[0]
	r.until("all leases back", func() bool { return m.Active() == 0 })
}

// A stream that is reset in the same packet costs nothing behind us (section 17).
func TestResetBeforeService(t *testing.T) {
	o := newServer(t, rawAnswers(ok))
	r := newRig(t, []string{o.addr})
	c := r.dial()
	var packet packetBytes
	f := http2.NewFramer(&packet, nil)
	for range 50 {
		c.must(f.WriteHeaders(http2.HeadersFrameParam{StreamID: c.next, BlockFragment: c.block(request("GET", "/reset")...), EndStream: true, EndHeaders: true}))
		c.must(f.WriteRSTStream(c.next, http2.ErrCodeCancel))
		c.next += 2
	}
	if _, err := c.Conn.Write(packet); err != nil {
		t.Fatal(err)
	}
	if got := c.ask(request("GET", "/after")...); got.status != "200" {
		t.Fatalf("%+v", got)
	}
	if n := strings.Count(o.received(), "/reset"); n != 0 {
		t.Errorf("the server saw %d of them", n)
	}
}

type packetBytes []byte

func (w *packetBytes) Write(b []byte) (int, error) { *w = append(*w, b...); return len(b), nil }

// A request that fails by the client's fault once it is in service counts like a reset: the server behind us pays the
// same for it.
func TestProvokedResets(t *testing.T) {
	o := newServer(t, func(c *serverConn) { _, _ = io.Copy(io.Discard, c.r) })
	r := newRig(t, []string{o.addr})
	c := r.dial()
	for range maxResets + 1 {
		id := c.next
		c.next += 2
		if c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block(request("POST", "/")...), EndHeaders: true}) != nil ||
			c.WriteWindowUpdate(id, 0) != nil {
			break
		}
	}
	if code, said := c.end(); !said || code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("ended with %v, %v", code, said)
	}
}

// Endless header blocks end with ENHANCE_YOUR_CALM, whether their fragments are large, small or empty; so does one that
// expands without end (H2-2).
func TestContinuationFlood(t *testing.T) {
	o := newServer(t, rawAnswers(ok))
	r := newRig(t, []string{o.addr})
	for name, size := range map[string]int{"large": 16 << 10, "small": 10, "empty": 0} {
		c := r.dial()
		blk := c.block(request("GET", "/")...)
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: blk, EndStream: true}))
		part := c.block("x-odd", strings.Repeat("~", size))
		if size == 0 {
			part = nil
		}
		for range 2000 {
			if len(part) > 16<<10 {
				part = part[:16<<10]
			}
			if c.WriteContinuation(1, false, part) != nil {
				break
			}
		}
		if code, said := c.end(); said && code != http2.ErrCodeEnhanceYourCalm && code != http2.ErrCodeCompression || !said {
			t.Errorf("%s: ended with %v, %v", name, code, said)
		}
	}
	c := r.dial()
	blk := append(c.block(request("GET", "/")...), c.block("x-bomb", strings.Repeat("a", 4000))...)
	for range 10_000 {
		blk = append(blk, 0x80|62) // the field again, in one octet
	}
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: blk, EndStream: true, EndHeaders: true}))
	if got := c.await(1); got.status != "431" {
		t.Errorf("a block of 14 KiB that stands for 40 MiB: %+v", got)
	}
	if o.received() != "" {
		t.Errorf("the server got %q", o.received())
	}
}

// Frames that only make work are bounded (H2-2).
func TestControlFloods(t *testing.T) {
	r := newRig(t, []string{"127.0.0.1:1"})
	for name, send := range map[string]func(c *client) error{
		"settings":   func(c *client) error { return c.WriteSettings() },
		"ping":       func(c *client) error { return c.WritePing(false, [8]byte{}) },
		"priority":   func(c *client) error { return c.WritePriority(1, http2.PriorityParam{StreamDep: 3}) },
		"empty data": func(c *client) error { return c.WriteData(1, false, nil) },
		"unknown":    func(c *client) error { return c.WriteRawFrame(0xfa, 0, 0, nil) },
	} {
		c := r.dial()
		if name == "empty data" {
			c.open(false, request("POST", "/")...)
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for range 3 * maxControl {
				if send(c) != nil {
					return
				}
			}
		}()
		if code, said := c.end(); !said || code != http2.ErrCodeEnhanceYourCalm {
			t.Errorf("%s: ended with %v, %v", name, code, said)
		}
		_ = c.Close()
		<-sent
	}
}

// Extended CONNECT is not offered (H2-2), and the bounds of section 17 are announced.
func TestAnnounced(t *testing.T) {
	r := newRig(t, []string{"127.0.0.1:1"})
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(nc, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(nc, nc)
	got := map[http2.SettingID]uint32{}
	window := uint32(65535)
	for len(got) == 0 || window == 65535 {
		fr, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch fr := fr.(type) {
		case *http2.SettingsFrame:
			_ = fr.ForeachSetting(func(s http2.Setting) error { got[s.ID] = s.Val; return nil })
		case *http2.WindowUpdateFrame:
			window += fr.Increment
		}
	}
	if got[http2.SettingMaxConcurrentStreams] != 100 || got[http2.SettingMaxHeaderListSize] != 16<<10 || window != 1<<20 {
		t.Errorf("settings %v, window %d", got, window)
	}
	if v, ok := got[http2.SettingEnableConnectProtocol]; ok && v != 0 {
		t.Error("extended CONNECT is offered")
	}
}

// The stream over the hundredth is refused, and the others go on.
func TestMoreStreams(t *testing.T) {
	more := make(chan struct{})
	o := newServer(t, func(c *serverConn) {
		for {
			if _, err := c.head(); err != nil {
				return
			}
			<-more
			_, _ = io.WriteString(c, ok)
		}
	})
	r := newRig(t, []string{o.addr})
	c := r.dial()
	for range maxStreams {
		c.open(true, request("GET", "/")...)
	}
	r.until("a hundred requests", func() bool { return o.requests() == maxStreams })
	if got := c.ask(request("GET", "/")...); !got.isReset || got.reset != http2.ErrCodeProtocol && got.reset != http2.ErrCodeRefusedStream {
		t.Errorf("one more: %+v", got)
	}
	close(more)
	for range maxStreams {
		for {
			if f, isHead := c.frame().(*http2.MetaHeadersFrame); isHead {
				if f.PseudoValue("status") != "200" {
					t.Errorf("stream %d: %v", f.StreamID, f)
				}
				break
			}
		}
	}
	if got := c.ask(request("GET", "/")...); got.status != "200" {
		t.Errorf("afterwards: %+v", got)
	}
}

// A header block has an absolute time from its first octet; one octet now and then does not prolong it (HB-8).
func TestSlowBlock(t *testing.T) {
	r := newRig(t, []string{"127.0.0.1:1"}, limits(func(l *httpproxy.Limits) { l.HeaderTimeout = 300 * time.Millisecond }))
	c := r.dial()
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(":method", "GET"), EndStream: true}))
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if _, err := c.Conn.Write([]byte{0}); err != nil {
					return
				}
			}
		}
	}()
	if code, said := c.end(); !said || code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("ended with %v, %v", code, said)
	}
}
