package sipload

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/sip"
)

// relay is a proxy as small as it can be: one goroutine that puts its Via and Record-Route on and takes them off.
type relay struct {
	conn    *net.UDPConn
	addr    netip.AddrPort
	caller  netip.AddrPort
	servers []netip.AddrPort
	spread  bool // sends each message to another server, as no proxy should
	keepVia bool // leaves its Via in responses
	swallow string
	turn    int
	done    chan struct{}
	broken  int // messages that are no SIP
}

func newRelay(t *testing.T, e *Ends) *relay {
	t.Helper()
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{conn: c, addr: c.LocalAddr().(*net.UDPAddr).AddrPort(), done: make(chan struct{})}
	r.caller = netip.MustParseAddrPort(e.write.from)
	for _, s := range e.Servers() {
		r.servers = append(r.servers, netip.MustParseAddrPort(s))
	}
	return r
}

// serve runs until the socket is closed.
func (r *relay) serve() {
	defer close(r.done)
	buf := make([]byte, 65535)
	var msg sip.Msg
	for {
		n, err := r.conn.Read(buf)
		if err != nil {
			return
		}
		m := buf[:n]
		if err := msg.ParseDatagram(m); err != nil || sip.Validate(&msg, &sip.Options{}) != nil {
			r.broken++
		}
		head, rest, _ := bytes.Cut(m, []byte("\r\n"))
		out := append(append([]byte(nil), head...), "\r\n"...)
		if bytes.HasPrefix(head, []byte("SIP/2.0 ")) {
			if _, cut, ok := bytes.Cut(rest, []byte("\r\n")); ok && !r.keepVia {
				rest = cut
			}
			_, _ = r.conn.WriteToUDPAddrPort(append(out, rest...), r.caller)
			continue
		}
		if r.swallow != "" && bytes.HasPrefix(head, []byte(r.swallow)) {
			continue
		}
		out = append(out, "Via: SIP/2.0/UDP "+r.addr.String()+";branch=z9hG4bKrelay\r\n"...)
		if bytes.HasPrefix(head, []byte("INVITE")) {
			out = append(out, "Record-Route: <sip:"+r.addr.String()+";lr>\r\n"...)
		}
		to := r.servers[0]
		if r.spread {
			r.turn++
			to = r.servers[r.turn%len(r.servers)]
		}
		_, _ = r.conn.WriteToUDPAddrPort(append(out, bytes.ReplaceAll(rest, []byte("Route: <sip:"+r.addr.String()+";lr>\r\n"), nil)...), to)
	}
}

func run(t *testing.T, change func(*relay, *Load)) (Result, *relay) {
	t.Helper()
	e, err := New(2)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := newRelay(t, e)
	l := Load{Proxy: r.addr, Window: 8, Time: 50 * time.Millisecond, Patience: 10 * time.Second}
	change(r, &l)
	go r.serve()
	res, err := e.Run(context.Background(), l)
	r.conn.Close()
	<-r.done
	if err != nil {
		t.Fatal(err)
	}
	return res, r
}

func TestUnitsPassAProxy(t *testing.T) {
	for _, mode := range []Mode{Options, Call, Dialog} {
		for _, rate := range []float64{0, 200} {
			res, r := run(t, func(_ *relay, l *Load) { l.Mode, l.Rate = mode, rate })
			if res.Units == 0 || res.Lost+res.Moved > 0 || r.broken > 0 {
				t.Errorf("%s at %v: %+v, %d broken", mode, rate, res, r.broken)
			}
			if res.Unlike > 0 {
				t.Errorf("%s at %v: %d messages are not as they should be", mode, rate, res.Unlike)
			}
			if res.Messages != res.Units*mode.Messages() || res.P50 <= 0 || res.P99 < res.P50 {
				t.Errorf("%s at %v: %+v", mode, rate, res)
			}
		}
	}
}

func TestAFaultyProxyIsSeen(t *testing.T) {
	if res, _ := run(t, func(r *relay, l *Load) { l.Mode, r.spread = Call, true }); res.Moved == 0 {
		t.Errorf("messages of one call at two servers: %+v", res)
	}
	if res, _ := run(t, func(r *relay, l *Load) { l.Mode, r.keepVia = Options, true }); res.Unlike == 0 {
		t.Errorf("a Via too many: %+v", res)
	}
	res, _ := run(t, func(r *relay, l *Load) { l.Mode, l.Patience, r.swallow = Dialog, 100*time.Millisecond, "BYE" })
	if res.Lost == 0 || res.Units > 0 {
		t.Errorf("BYEs are swallowed: %+v", res)
	}
}

func TestDialogsCarryTheRouteSet(t *testing.T) {
	e, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	m := []byte("SIP/2.0 200 OK\r\nRecord-Route: <sip:a;lr>, <sip:b;lr>\r\nRecord-Route: <sip:c;lr>\r\nContact: <sip:as@127.0.0.9:7>\r\n\r\n")
	e.run.Mode, e.run.Proxy = Dialog, netip.MustParseAddrPort(e.Servers()[0])
	e.hangUp(m, []byte("0123456789abcdef"))
	e.caller.Flush()
	got := 0
	for deadline := time.Now().Add(10 * time.Second); got < 2 && time.Now().Before(deadline); {
		e.poller.Wait(time.Second, func(int) {
			for k := range e.servers[0].Receive() {
				b, _ := e.servers[0].Datagram(k)
				got++
				want := "Route: <sip:c;lr>\r\nRoute: <sip:b;lr>\r\nRoute: <sip:a;lr>\r\n"
				if !bytes.Contains(b, []byte(want)) || !bytes.Contains(b, []byte(" sip:as@127.0.0.9:7 SIP/2.0\r\n")) {
					t.Errorf("a request of the dialog:\n%s", b)
				}
			}
		})
	}
	if got != 2 {
		t.Errorf("%d requests, not ACK and BYE", got)
	}
}

func TestIdleServersAnswerProbes(t *testing.T) {
	e, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c, err := net.Dial("udp4", e.Servers()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	probe := "OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:1;branch=z9hG4bKp\r\nFrom: <sip:p>;tag=1\r\nTo: <sip:x>\r\nCall-ID: probe\r\nCSeq: 1 OPTIONS\r\n\r\n"
	if _, err := c.Write([]byte(probe)); err != nil {
		t.Fatal(err)
	}
	e.Idle(10 * time.Second)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if err != nil || !bytes.HasPrefix(b[:n], []byte("SIP/2.0 200 OK\r\n")) || !bytes.Contains(b[:n], []byte("Call-ID: probe\r\n")) {
		t.Errorf("%v: %s", err, b[:n])
	}
}

func FuzzUnit(f *testing.F) {
	f.Add([]byte("BYE sip:a SIP/2.0\r\nCall-ID: wl0000000100000abc@caller.example\r\n\r\n"))
	f.Fuzz(func(t *testing.T, m []byte) {
		id, ok := unit(m)
		if !ok {
			return
		}
		slot, generation, ok := readID(id)
		if ok && !bytes.Equal(appendID(nil, slot, generation), id) {
			t.Errorf("%q is slot %d, generation %d", id, slot, generation)
		}
	})
}
