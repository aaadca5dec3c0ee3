package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// zoneServer is a name server whose zone a test changes; without a zone it says nothing at all.
type zoneServer struct {
	addr string
	mu   sync.Mutex
	zone []dns.RR
	mute bool
}

func newZoneServer(t *testing.T) *zoneServer {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &zoneServer{addr: pc.LocalAddr().String()}
	started, ended := make(chan struct{}), make(chan error, 1)
	srv := &dns.Server{PacketConn: pc, Handler: z, NotifyStartedFunc: func() { close(started) }}
	go func() { ended <- srv.ActivateAndServe() }()
	<-started
	t.Cleanup(func() {
		_ = srv.Shutdown()
		<-ended
	})
	return z
}

func (z *zoneServer) set(t *testing.T, lines ...string) {
	t.Helper()
	var zone []dns.RR
	for _, l := range lines {
		rr, err := dns.NewRR(l)
		if err != nil {
			t.Fatal(err)
		}
		zone = append(zone, rr)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.zone, z.mute = zone, lines == nil
}

func (z *zoneServer) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.mute {
		return
	}
	m := new(dns.Msg)
	m.SetReply(q)
	for _, rr := range z.zone {
		if h := rr.Header(); strings.EqualFold(h.Name, q.Question[0].Name) && h.Rrtype == q.Question[0].Qtype {
			m.Answer = append(m.Answer, rr)
		}
	}
	_ = w.WriteMsg(m)
}

// SX-14 on real sockets: a server calls a name. NAPTR says TCP, SRV says where, the first place is dead, the next one
// answers; the zone changes and calls follow it; DNS falls silent and the last answer stands, at once, while a name that
// was never known gets a 503. The callee hangs up, so the dialog's route leads back to the server.
func TestSX14_RealResolver(t *testing.T) {
	z := newZoneServer(t)
	e := &edge{t: t, dir: t.TempDir(), log: slog.New(slog.DiscardHandler), resolvers: []string{z.addr}}
	server, err := lbtest.NewServer("as1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	e.servers = append(e.servers, server)
	e.write("rules.xml", goodRules)
	e.write("wyegate.yaml", strings.NewReplacer(
		"  - {name: http,", "  - {name: sip-tcp, protocol: sip, transport: tcp, bind: \"127.0.0.1:0\"}\n  - {name: http,",
		"{name: as1,", "{name: as1, sip_transport: tcp,",
	).Replace(e.yaml("", 0)))
	e.run()
	phones := map[string]*lbtest.UA{}
	for _, name := range []string{"one", "two"} {
		if phones[name], err = lbtest.NewUAOn(name, lbtest.Answer, netip.MustParseAddr("127.0.0.2")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(phones[name].Close)
	}
	dead, err := net.Listen("tcp", "127.0.0.2:0") // and closed: what is connected to there is refused
	if err != nil {
		t.Fatal(err)
	}
	deadPort := dead.Addr().(*net.TCPAddr).Port
	_ = dead.Close()
	at := func(name string) []string {
		return []string{
			`phones.example. 1 IN NAPTR 1 1 "s" "SIP+D2T" "" _sip._tcp.phones.example.`,
			`phones.example. 1 IN NAPTR 2 1 "s" "SIP+D2U" "" _sip._udp.phones.example.`,
			fmt.Sprintf("_sip._tcp.phones.example. 1 IN SRV 1 1 %d host.phones.example.", deadPort),
			fmt.Sprintf("_sip._tcp.phones.example. 1 IN SRV 2 1 %d host.phones.example.", phones[name].Addr.Port()),
			"_sip._udp.phones.example. 1 IN SRV 1 1 1 host.phones.example.",
			"host.phones.example. 1 IN A 127.0.0.2",
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	front, err := phones["one"].Dial("UDP", e.at("sip-udp"))
	if err != nil {
		t.Fatal(err)
	}
	in, r, err := phones["one"].Invite(ctx, front, lbtest.InviteOptions{RequestURI: "sip:room@front.example"})
	if err != nil || r.Status != 200 {
		t.Fatalf("a call to the server: %v, %v", r, err)
	}
	path := server.DialogOf(in.CallID).OK.Back // the connection to the server: what it sends there is held, and moves without a copy
	call := func(name string) bool {
		d, r, err := server.Invite(ctx, path, lbtest.InviteOptions{RequestURI: "sip:bob@phones.example"})
		if err != nil || r.Status != 200 {
			t.Fatalf("the server's call: %v, %v", r, err)
		}
		phone := phones[d.Peer]
		if phone == nil {
			t.Fatalf("%q answered: %s", d.Peer, r.Raw)
		}
		callee := phone.DialogOf(d.CallID)
		way, err := phone.Dial("TCP", e.at("sip-tcp"))
		if err != nil {
			t.Fatal(err)
		}
		defer way.Close()
		callee.SetPath(way)
		if r, err := callee.Bye(ctx); err != nil || r.Status != 200 || r.Header("X-Server") != "as1" {
			t.Fatalf("the callee's BYE: %v, %v", r, err)
		}
		return d.Peer == name
	}
	z.set(t, at("one")...)
	if !call("one") {
		t.Fatal("another phone answered")
	}
	z.set(t, at("two")...)
	e.eventually("the new zone", func() bool { return call("two") })
	z.set(t)
	if _, r, err := server.Invite(ctx, path, lbtest.InviteOptions{RequestURI: "sip:bob@unknown.example"}); err != nil || r.Status != 503 || r.Header("Retry-After") == "" {
		t.Errorf("a name that nobody answers for: %v, %v", r, err)
	}
	for range 2 { // the first one learns that DNS is silent, the second finds the old answer marked
		if !call("two") {
			t.Error("a silent DNS: another phone answered")
		}
	}
}
