package sip

import (
	"net/netip"
	"strings"
	"testing"
)

const bye = "BYE sip:b@example.com SIP/2.0\r\n" +
	"v: SIP/2.0/UDP a.example.com;branch=z9hG4bK1;rport\r\n" +
	"Max-Forwards : 0070\r\n" +
	"From: <sip:a@h>;tag=1\r\nTo: <sip:b@h>;tag=2\r\nCall-ID: c\r\nCSeq: 2 BYE\r\n"

// edited parses head and body and gives the message after the edits.
func edited(t *testing.T, raw string, do func(e *Edits)) string {
	t.Helper()
	var m Msg
	if err := m.Parse([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	var e Edits
	e.Reset(&m)
	do(&e)
	return string(e.Append(nil))
}

func TestNoEditWritesTheReceivedBytes(t *testing.T) {
	if got := edited(t, invite, func(*Edits) {}); got != invite {
		t.Errorf("got\n%s", got)
	}
}

func TestPushVia(t *testing.T) {
	got := edited(t, bye+"\r\n", func(e *Edits) {
		e.PushVia([]byte("SIP/2.0/TCP other;branch=z9hG4bK0"))
		e.PushVia([]byte("SIP/2.0/UDP us;branch=z9hG4bKx"))
	})
	if want := strings.Replace(bye, "\r\nv:", "\r\nVia: SIP/2.0/UDP us;branch=z9hG4bKx\r\nv:", 1) + "\r\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}

// ST-8: one value goes, not one line.
func TestPopVia(t *testing.T) {
	for name, c := range map[string][2]string{
		"own line":      {"Via: SIP/2.0/UDP a\r\nVia: SIP/2.0/UDP b\r\n", "Via: SIP/2.0/UDP b\r\n"},
		"one of two":    {"Via: SIP/2.0/UDP a, SIP/2.0/UDP b\r\n", "Via: SIP/2.0/UDP b\r\n"},
		"compact":       {"v:SIP/2.0/UDP a,SIP/2.0/UDP b\r\n", "v:SIP/2.0/UDP b\r\n"},
		"folded":        {"Via :\r\n SIP / 2.0 / UDP a\r\n ;x=\",\"  ,\r\n SIP/2.0/UDP b\r\n", "Via :\r\n SIP/2.0/UDP b\r\n"},
		"alone, folded": {"Via:\r\n SIP/2.0/UDP\r\n a\r\n", ""},
		"comma at end":  {"Via: SIP/2.0/UDP a ,\r\nVia: SIP/2.0/UDP b\r\n", "Via: SIP/2.0/UDP b\r\n"},
		"IPv6":          {"Via: SIP/2.0/UDP [::1]:5060;branch=x,SIP/2.0/UDP b\r\n", "Via: SIP/2.0/UDP b\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			const start, end = "SIP/2.0 200 OK\r\nX: 1\r\n", "Y: 2\r\n\r\nbody"
			got := edited(t, start+c[0]+end, func(e *Edits) {
				if !e.PopVia() || !e.PopVia() {
					t.Error("not readable")
				}
			})
			if want := start + c[1] + end; got != want {
				t.Errorf("got\n%s", got)
			}
		})
	}
	for name, vias := range map[string]string{"none": "", "unreadable": "Via: SIP/2.0/UDP\r\n", "open quote": "Via: SIP/2.0/UDP a;x=\"\r\n"} {
		edited(t, "SIP/2.0 200 OK\r\nX: 1\r\n"+vias+"\r\n", func(e *Edits) {
			if e.PopVia() {
				t.Errorf("%s: popped", name)
			}
		})
	}
}

// SX-1, RFC 3581 section 4.
func TestStampVia(t *testing.T) {
	v4 := netip.MustParseAddrPort("192.0.2.7:4444")
	v6 := netip.MustParseAddrPort("[2001:db8::7]:4444")
	mapped := netip.MustParseAddrPort("[::ffff:192.0.2.7]:4444")
	for name, c := range map[string]struct {
		via, want string
		src       netip.AddrPort
		force     bool
		reply     string
	}{
		"same address":         {"SIP/2.0/UDP 192.0.2.7:5070;branch=x", "SIP/2.0/UDP 192.0.2.7:5070;branch=x", v4, false, "192.0.2.7:5070"},
		"mapped source":        {"SIP/2.0/UDP 192.0.2.7", "SIP/2.0/UDP 192.0.2.7", mapped, false, "192.0.2.7:5060"},
		"name":                 {"SIP/2.0/UDP h;branch=x", "SIP/2.0/UDP h;branch=x;received=192.0.2.7", v4, false, "192.0.2.7:5060"},
		"other address":        {"SIP/2.0/TLS 10.0.0.1", "SIP/2.0/TLS 10.0.0.1;received=192.0.2.7", v4, false, "192.0.2.7:5061"},
		"rport":                {"SIP/2.0/UDP 192.0.2.7;rport;branch=x", "SIP/2.0/UDP 192.0.2.7;rport=4444;branch=x;received=192.0.2.7", v4, false, "192.0.2.7:4444"},
		"rport at the end":     {"SIP/2.0/UDP h;rport", "SIP/2.0/UDP h;rport=4444;received=192.0.2.7", v4, false, "192.0.2.7:4444"},
		"rport with a value":   {"SIP/2.0/UDP h;rport=1;x", "SIP/2.0/UDP h;rport=4444;x;received=192.0.2.7", v4, false, "192.0.2.7:4444"},
		"rport and an empty":   {"SIP/2.0/UDP h;rport=;x", "SIP/2.0/UDP h;rport=4444;x;received=192.0.2.7", v4, false, "192.0.2.7:4444"},
		"spoofed received":     {"SIP/2.0/UDP 192.0.2.7;received=203.0.113.9;x", "SIP/2.0/UDP 192.0.2.7;received=192.0.2.7;x", v4, false, "192.0.2.7:5060"},
		"received, no value":   {"SIP/2.0/UDP 192.0.2.7;received;x", "SIP/2.0/UDP 192.0.2.7;received=192.0.2.7;x", v4, false, "192.0.2.7:5060"},
		"both, wrong order":    {"SIP/2.0/UDP h;received=1.1.1.1;rport", "SIP/2.0/UDP h;received=192.0.2.7;rport=4444", v4, false, "192.0.2.7:4444"},
		"IPv6":                 {"SIP/2.0/UDP [2001:DB8:0::7];rport", "SIP/2.0/UDP [2001:DB8:0::7];rport=4444;received=2001:db8::7", v6, false, "[2001:db8::7]:4444"},
		"IPv6 same":            {"SIP/2.0/UDP [2001:DB8:0:0::7]", "SIP/2.0/UDP [2001:DB8:0:0::7]", v6, false, "[2001:db8::7]:5060"},
		"received in brackets": {"SIP/2.0/UDP [2001:db8::1];received=[2001:db8::2];x", "SIP/2.0/UDP [2001:db8::1];received=2001:db8::7;x", v6, false, "[2001:db8::7]:5060"},
		"forced":               {"SIP/2.0/UDP h", "SIP/2.0/UDP h;rport=4444;received=192.0.2.7", v4, true, "192.0.2.7:4444"},
		"first of a list":      {"SIP / 2.0/UDP h ; RPORT , SIP/2.0/UDP i;rport", "SIP / 2.0/UDP h ; RPORT=4444;received=192.0.2.7 , SIP/2.0/UDP i;rport", v4, false, "192.0.2.7:4444"},
		"unreadable":           {"SIP/2.0/UDP 192.0.2.15;;,;,,", "SIP/2.0/UDP 192.0.2.15;received=192.0.2.7;;,;,,", v4, false, "192.0.2.7:5060"},
	} {
		t.Run(name, func(t *testing.T) {
			var reply netip.AddrPort
			got := edited(t, "BYE sip:b@h SIP/2.0\r\nVia: "+c.via+"\r\n\r\n", func(e *Edits) {
				reply, _ = e.StampVia(c.src, c.force)
				again, ok := e.StampVia(c.src, c.force)
				if !ok || again != reply || reply != netip.MustParseAddrPort(c.reply) {
					t.Errorf("reply to %v, %v", reply, again)
				}
			})
			if want := "BYE sip:b@h SIP/2.0\r\nVia: " + c.want + "\r\n\r\n"; got != want {
				t.Errorf("got\n%s", got)
			}
			var m Msg
			m.Parse([]byte(got))
			if v, _, err := NextVia(m.Value(Via)); err == nil {
				if to, ok := v.ReplyTo(); !ok || to != reply {
					t.Errorf("the written Via says %v, StampVia said %v", to, reply)
				}
			}
		})
	}
}

// SV-3.
func TestDecrementHops(t *testing.T) {
	for in, want := range map[string]string{
		"Max-Forwards: 70\r\n":          "Max-Forwards: 69\r\n",
		"MaX-fOrWaRdS  :\r\n 0068 \r\n": "MaX-fOrWaRdS  :\r\n 67 \r\n",
		"Max-Forwards: 1\r\n":           "Max-Forwards: 0\r\n",
		"Max-Forwards: 0\r\n":           "Max-Forwards: 0\r\n",
		"Max-Forwards: 256\r\n":         "Max-Forwards: 256\r\n",
		"X: y\r\n":                      "X: y\r\nMax-Forwards: 70\r\n",
		"Max-Forwards: 255\r\nX: 1\r\n": "Max-Forwards: 254\r\nX: 1\r\n",
	} {
		got := edited(t, "BYE sip:b@h SIP/2.0\r\n"+in+"\r\nbody", func(e *Edits) { e.DecrementHops(); e.DecrementHops() })
		if got != "BYE sip:b@h SIP/2.0\r\n"+want+"\r\nbody" {
			t.Errorf("%q becomes\n%s", in, got)
		}
	}
}

// SR-1, SR-3: values, not lines.
func TestRoutes(t *testing.T) {
	const three = "Route: <sip:a;lr>;x=1 , \"b, c\" <sip:b;lr>\r\nX: y\r\nROUTE :\r\n <sip:c;lr>\r\n"
	for name, c := range map[string]struct {
		in   string
		do   func(e *Edits)
		want string
	}{
		"pop one":        {three, func(e *Edits) { e.PopRoutes(1) }, "Route: \"b, c\" <sip:b;lr>\r\nX: y\r\nROUTE :\r\n <sip:c;lr>\r\n"},
		"pop two":        {three, func(e *Edits) { e.PopRoutes(2) }, "X: y\r\nROUTE :\r\n <sip:c;lr>\r\n"},
		"pop all":        {three, func(e *Edits) { e.PopRoutes(3) }, "X: y\r\n"},
		"pop too many":   {three, func(e *Edits) { e.PopRoutes(9) }, "X: y\r\n"},
		"last":           {three, func(e *Edits) { e.DropLastRoute() }, "Route: <sip:a;lr>;x=1 , \"b, c\" <sip:b;lr>\r\nX: y\r\n"},
		"last in a list": {"Route: <sip:a>\r\n ,\r\n <sip:b>\r\n", func(e *Edits) { e.DropLastRoute() }, "Route: <sip:a>\r\n"},
		"both ends":      {"Route: <sip:a>,<sip:b>,<sip:c>\r\n", func(e *Edits) { e.DropLastRoute(); e.PopRoutes(1) }, "Route: <sip:b>\r\n"},
		"nothing left":   {"Route: <sip:a>\r\nX: y\r\n", func(e *Edits) { e.DropLastRoute(); e.PopRoutes(1) }, "X: y\r\n"},
		"strict next": {"Route: <sip:a>,<sip:b;lr>\r\n", func(e *Edits) {
			e.AppendRoute([]byte("sip:t@h"))
			e.PopRoutes(1)
		}, "Route: <sip:b;lr>, <sip:t@h>\r\n"},
		"strict next, alone": {"Route: <sip:a>\r\nX: y\r\n", func(e *Edits) {
			e.PopRoutes(1)
			e.AppendRoute([]byte("sip:t@h"))
		}, "Route: <sip:t@h>\r\nX: y\r\n"},
		"append to none": {"X: y\r\n", func(e *Edits) { e.AppendRoute([]byte("sip:t@h")) }, "X: y\r\nRoute: <sip:t@h>\r\n"},
		"append in the middle": {"Route: <sip:a>\r\nRoute: <sip:b>\r\n", func(e *Edits) {
			e.DropLastRoute()
			e.AppendRoute([]byte("sip:t@h"))
		}, "Route: <sip:a>, <sip:t@h>\r\n"},
		"trailing comma": {"Route: <sip:a>, <sip:b>,\r\n", func(e *Edits) { e.PopRoutes(1) }, "Route: <sip:b>,\r\n"},
		"also removed":   {three, func(e *Edits) { e.PopRoutes(1); e.Remove(Route) }, "X: y\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			const start = "BYE sip:b@h SIP/2.0\r\n"
			if got := edited(t, start+c.in+"\r\n", c.do); got != start+c.want+"\r\n" {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

func TestRecordRoute(t *testing.T) {
	add := func(e *Edits) {
		for range 2 { // repeated calls change nothing
			e.AddRecordRoute([]byte("<sip:out;lr>"))
			e.AddRecordRoute([]byte("<sip:in;lr>"))
			e.AddPath([]byte("<sip:p;lr>"))
		}
	}
	const start = "BYE sip:b@h SIP/2.0\r\n"
	got := edited(t, start+"Via: SIP/2.0/UDP a\r\nv: SIP/2.0/UDP b\r\nX: y\r\nRecord-Route: <sip:r;lr>\r\nVia: SIP/2.0/UDP c\r\n\r\n", add)
	want := start + "Via: SIP/2.0/UDP a\r\nv: SIP/2.0/UDP b\r\nPath: <sip:p;lr>\r\nX: y\r\n" +
		"Record-Route: <sip:out;lr>\r\nRecord-Route: <sip:in;lr>\r\nRecord-Route: <sip:r;lr>\r\nVia: SIP/2.0/UDP c\r\n\r\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestFields(t *testing.T) {
	const start = "BYE sip:b@h SIP/2.0\r\n"
	for name, c := range map[string]struct {
		in   string
		do   func(e *Edits)
		want string
	}{
		"remove":         {"a: 1\r\nX: 1\r\n 2\r\nAccept-Contact: 2\r\n", func(e *Edits) { e.Remove(AcceptContact); e.Remove(AcceptContact) }, "X: 1\r\n 2\r\n"},
		"remove by name": {"P-X: 1\r\nY: 2\r\np-x : 3\r\n 4\r\n", func(e *Edits) { e.RemoveName("P-X") }, "Y: 2\r\n"},
		"by compact":     {"s: 1\r\nSubject: 2\r\nY: 2\r\n", func(e *Edits) { e.RemoveName("S") }, "Y: 2\r\n"},
		"by long":        {"s: 1\r\nY: 2\r\n", func(e *Edits) { e.RemoveName("SUBJECT") }, "Y: 2\r\n"},
		"set":            {"X-Key: 1\r\nY: 2\r\nx-key: 3\r\n", func(e *Edits) { e.Set("X-Key", []byte("k")); e.Set("X-Key", []byte("n")) }, "X-Key: n\r\nY: 2\r\n"},
		"set an empty":   {"s :\r\nY: 2\r\n", func(e *Edits) { e.Set("Subject", []byte("k")) }, "s :k\r\nY: 2\r\n"},
		"set a new":      {"Y: 2\r\n", func(e *Edits) { e.Set("X-Key", []byte("k")); e.Set("X-Key", []byte("n")) }, "Y: 2\r\nX-Key: n\r\n"},
		"set refused":    {"Y: 2\r\n", func(e *Edits) { e.Set("Y", []byte("a\r\nb")); e.Set("a b", nil); e.Set("Z", []byte{0}) }, "Y: 2\r\n"},
		"length":         {"Y: 2\r\n", func(e *Edits) { e.SetContentLength(4) }, "Y: 2\r\nContent-Length: 4\r\n"},
		"same length":    {"l:  004\r\n", func(e *Edits) { e.SetContentLength(4) }, "l:  004\r\n"},
		"other length":   {"l:  7\r\n", func(e *Edits) { e.SetContentLength(4) }, "l:  4\r\n"},
		"uri":            {"Y: 2\r\n", func(e *Edits) { e.SetRequestURI([]byte("sip:b@h")) }, "Y: 2\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := edited(t, start+c.in+"\r\nbody", c.do); got != start+c.want+"\r\nbody" {
				t.Errorf("got\n%s", got)
			}
		})
	}
	for in, want := range map[string]string{
		"SIP/2.0 503 Service Unavailable": "SIP/2.0 500 Server Internal Error",
		"SIP/2.0 503 ":                    "SIP/2.0 500 Server Internal Error",
	} {
		got := edited(t, in+"\r\nRetry-After: 3\r\nX: 1\r\n\r\n", func(e *Edits) {
			e.SetStatus(500, Reason(500))
			e.Remove(RetryAfter)
		})
		if got != want+"\r\nX: 1\r\n\r\n" {
			t.Errorf("got\n%s", got)
		}
	}
}

// What a forwarded request costs: SX-1, ST-1, SV-3, SR-1, SR-4 at once.
func forward(e *Edits, m *Msg, dst []byte, src netip.AddrPort) []byte {
	e.Reset(m)
	e.StampVia(src, false)
	e.PushVia([]byte("SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKcbr4qooy3333bq5gn4zluh7l2fxz5iweug6tygl3"))
	e.PopRoutes(1)
	e.AddRecordRoute([]byte("<sip:192.0.2.1:5060;lr;wg=cdaotyxk2sxz56sk4jgmk25rbe7a5bwwgo5q3e3gkm>"))
	e.DecrementHops()
	return e.Append(dst)
}

func TestForwardingAllocatesNothing(t *testing.T) {
	var m Msg
	var e Edits
	var o Options
	raw := []byte(strings.Replace(invite, "Max-F", "Route: <sip:us;lr>, <sip:you;lr>\r\nMax-F", 1))
	src := netip.MustParseAddrPort("192.0.2.101:5066")
	dst := make([]byte, 0, 4096)
	do := func() {
		if m.ParseDatagram(raw) != nil || Validate(&m, &o) != nil {
			t.Error("refused")
		}
		dst = forward(&e, &m, dst[:0], src)
		var bad bool
		dst, bad = AppendAnswer(dst[:0], &m, &Answer{Status: 400, Tag: raw[:4], Source: src})
		if !bad {
			t.Error("no answer")
		}
	}
	do()
	if n := testing.AllocsPerRun(100, do); n != 0 {
		t.Errorf("%v allocations for one request", n)
	}
	reply := []byte("SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP us;branch=z9hG4bKx, SIP/2.0/UDP h;received=1.2.3.4;rport=5\r\n" +
		"From: <sip:a@h>;tag=1\r\nTo: <sip:b@h>;tag=2\r\nCall-ID: c\r\nCSeq: 2 BYE\r\n\r\n")
	back := func() {
		if m.ParseDatagram(reply) != nil || Validate(&m, &o) != nil {
			t.Error("refused")
		}
		e.Reset(&m)
		e.PopVia()
		dst = e.Append(dst[:0])
		for it := m.Vias(); it.Next(); {
			it.Via.ReplyTo()
		}
	}
	back()
	if n := testing.AllocsPerRun(100, back); n != 0 {
		t.Errorf("%v allocations for one response", n)
	}
}

func BenchmarkForward(b *testing.B) {
	var m Msg
	var e Edits
	var o Options
	raw := []byte(invite)
	src := netip.MustParseAddrPort("192.0.2.101:5066")
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		m.ParseDatagram(raw)
		Validate(&m, &o)
		dst = forward(&e, &m, dst[:0], src)
	}
}

func BenchmarkValidate(b *testing.B) {
	var m Msg
	var o Options
	m.Parse([]byte(invite))
	b.ReportAllocs()
	for b.Loop() {
		Validate(&m, &o)
	}
}

// RFC 4475 3.1.2.15: the datagram ends with its last field. It leaves as it came, but on a stream it must have an end.
func TestFrame(t *testing.T) {
	const head = "BYE sip:b@h SIP/2.0\r\nX: 1\r\n"
	for in, want := range map[string]string{
		head:                                   head + "Content-Length: 0\r\n\r\n",
		head + "l: 0\r\n":                      head + "l: 0\r\n\r\n",
		head + "\r\nbody":                      head + "Content-Length: 4\r\n\r\nbody",
		head + "Content-Length: 4\r\n\r\nbody": head + "Content-Length: 4\r\n\r\nbody",
	} {
		if got := edited(t, in, func(e *Edits) { e.Frame() }); got != want {
			t.Errorf("%q becomes\n%s", in, got)
		}
	}
	if got := edited(t, head, func(*Edits) {}); got != head {
		t.Errorf("got\n%s", got)
	}
}
