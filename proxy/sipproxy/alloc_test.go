package sipproxy

import (
	"bytes"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip/transport"
)

// sink takes what is sent and keeps the last message, without allocating.
type sink struct{ last []byte }

func (s *sink) About(uint32) {}

func (s *sink) Datagram(_ *transport.Listener, _ netip.AddrPort, b []byte) {
	s.last = append(s.last[:0], b...)
}
func (s *sink) OnFlow(uint64, []byte) error { return nil }
func (s *sink) ToServer(_ *transport.Listener, _ transport.Kind, _ netip.AddrPort, _ string, _ uint32, b []byte) (uint64, error) {
	s.last = append(s.last[:0], b...)
	return 1, nil
}
func (s *sink) Alias(uint64, netip.AddrPort) {}
func (s *sink) OnAlias(netip.AddrPort, []byte, []byte) (uint64, error) {
	return 0, transport.ErrFlowGone
}
func (s *sink) Flush() {}

// loadRules ask for five things that the messages do not have before the last rule gives a key.
const loadRules = `<user-centric-rules><sip-rules>
  <header name="X-Group" return="request.X-Group"><exist/></header>
  <if>
    <session-case><equal>ORIGINATING</equal>
      <or>
        <header name="P-Served-User" return="request.P-Served-User.uri.user"><exist/></header>
        <header name="P-Asserted-Identity" return="request.P-Asserted-Identity.uri.user"><exist/></header>
      </or>
    </session-case>
  </if>
  <request-uri parameter="conf" return="request.uri.user"><exist/></request-uri>
  <and>
    <header name="Event" return="request.Event"><exist/></header>
    <header name="Subject" return="request.Subject"><exist/></header>
  </and>
  <header name="To" return="request.To.uri.user"><exist/></header>
</sip-rules></user-centric-rules>`

// load is one worker with everything on, and a transaction that can be played again and again as a new one.
type load struct {
	b       *bed
	sink    *sink
	request []byte
	reply   []byte
	in      []transport.Inbound
	now     time.Time
	n       uint64
}

func newLoad(t testing.TB, method string) *load {
	l := &load{sink: &sink{last: make([]byte, 0, 4096)}, reply: make([]byte, 0, 4096)}
	set, problems := dcr.Compile("rules.xml", []byte(loadRules), dcr.Options{})
	if set == nil {
		t.Fatal(problems)
	}
	l.b = newBed(t, bedOptions{config: func(c *Config) {
		c.Ports[0].Out = l.sink
		c.Ports[0].Log = obs.NewRing(64, nil)
		c.Entries = 200_000
	}, target: func(c *TargetConfig) { c.Target.Keyer, c.Target.RuleFile = set, set.File() }})
	a := alice("call-0000000000@192.0.2.7")
	a.branch = "z9hG4bK-0000000000"
	a.extra = []string{"Contact: <sip:alice@192.0.2.7:5070>", "User-Agent: load", "Allow: INVITE, ACK, CANCEL, BYE, OPTIONS", "Supported: replaces, 100rel", "Content-Type: application/sdp"}
	l.request = []byte(a.request(method, 1))
	l.in = make([]transport.Inbound, 1)
	l.now = l.b.now
	return l
}

// step forwards a new request and its 200.
func (l *load) step() {
	l.n++
	number := l.n
	for _, marker := range [2][]byte{[]byte("z9hG4bK-"), []byte("Call-ID: call-")} {
		at := bytes.Index(l.request, marker) + len(marker)
		for i, v := at+9, number; i >= at; i, v = i-1, v/10 {
			l.request[i] = byte('0' + v%10)
		}
	}
	sock := l.b.socks["sip-udp"]
	l.in[0] = transport.Inbound{Bytes: l.request, Listener: sock, Kind: transport.UDP, Remote: loadClient, Source: loadClient, Local: sock.Addr}
	l.now = l.now.Add(50 * time.Microsecond)
	l.b.w.now = l.now
	l.b.w.batch(l.in, nil)
	l.answer()
	server := netip.MustParseAddrPort("10.20.1.11:5060")
	l.in[0] = transport.Inbound{Bytes: l.reply, Listener: sock, Kind: transport.UDP, Remote: server, Source: server, Local: sock.Addr}
	l.b.w.batch(l.in, nil)
}

var loadClient = netip.MustParseAddrPort("192.0.2.7:5070")

// answer makes the 200 of what was sent: another start line, the same fields, a To tag.
func (l *load) answer() {
	rest := l.sink.last[bytes.IndexByte(l.sink.last, '\n')+1:]
	l.reply = append(l.reply[:0], "SIP/2.0 200 OK\r\n"...)
	at := bytes.Index(rest, []byte("\r\nCall-ID"))
	l.reply = append(l.reply, rest[:at]...)
	l.reply = append(l.reply, ";tag=b1"...)
	l.reply = append(l.reply, rest[at:]...)
}

// architecture.md 4.2, rule 1: parse, evaluate the rules, choose, edit, send, remember, log; and the response, with its end of the
// transaction: no allocation in steady state.
func TestMessagePathAllocatesNothing(t *testing.T) {
	for _, method := range []string{"INVITE", "OPTIONS", "REGISTER"} {
		l := newLoad(t, method)
		for range 4000 { // chunks, buckets and buffers are there
			l.step()
		}
		if !bytes.HasPrefix(l.sink.last, []byte("SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 192.0.2.7:5070;branch=z9hG4bK-")) {
			t.Fatalf("%s: the last thing sent is %s", method, l.sink.last)
		}
		if set := l.b.w.p.current.Load().targets[0].Target.Keyer; set == nil {
			t.Fatal("no rules in force")
		}
		warm := l.b.w.mem.used
		if n := testing.AllocsPerRun(300, l.step); n != 0 {
			t.Errorf("%s: %v allocations per transaction (slots %d to %d)", method, n, warm, l.b.w.mem.used)
		}
	}
}

// A copy of a known request, and a response that nobody remembers.
func TestStatelessPathAllocatesNothing(t *testing.T) {
	l := newLoad(t, "INVITE")
	l.step()
	sock := l.b.socks["sip-udp"]
	request := []transport.Inbound{{Bytes: l.request, Listener: sock, Kind: transport.UDP, Remote: loadClient, Source: loadClient, Local: sock.Addr}}
	response := []transport.Inbound{{Bytes: l.reply, Listener: sock, Kind: transport.UDP, Remote: loadClient, Source: loadClient, Local: sock.Addr}}
	if n := testing.AllocsPerRun(200, func() { l.b.w.batch(request, nil) }); n != 0 {
		t.Errorf("copy of a request: %v allocations", n)
	}
	l.b.w.mem = newMemory(1000)
	l.b.w.tick()
	if n := testing.AllocsPerRun(200, func() { l.b.w.batch(response, nil) }); n != 0 {
		t.Errorf("response without memory: %v allocations", n)
	}
}

// cpu reports processor time per operation beside the clock's: on a busy machine only that compares.
func cpu(b *testing.B, f func()) {
	b.Helper()
	b.ReportAllocs()
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	for b.Loop() {
		f()
	}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	spent := after.Utime.Nano() - before.Utime.Nano() + after.Stime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
}

// A request and its 200, everything on, without the network.
func BenchmarkTransaction(b *testing.B) {
	l := newLoad(b, "OPTIONS")
	cpu(b, l.step)
}

// An INVITE and its 200: Record-Route, token, hints and a live key besides.
func BenchmarkInvite(b *testing.B) {
	l := newLoad(b, "INVITE")
	cpu(b, l.step)
}

func BenchmarkCopyOfRequest(b *testing.B) {
	l := newLoad(b, "INVITE")
	l.step()
	sock := l.b.socks["sip-udp"]
	in := []transport.Inbound{{Bytes: l.request, Listener: sock, Kind: transport.UDP, Remote: loadClient, Source: loadClient, Local: sock.Addr}}
	cpu(b, func() { l.b.w.batch(in, nil) })
}
