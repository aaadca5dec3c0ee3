package engine_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
	"github.com/wyegate/wyegate/internal/sip"
)

// serverKinds are the ways to servers: transport, and 6 for IPv6.
var serverKinds = []string{"udp", "tcp", "tls", "udp6", "tcp6", "tls6", "ws", "wss", "wss6"}

// matrix is a node with a listener of every transport and family, over servers of every kind, each kind behind a host of
// its own.
type matrix struct {
	*edge
	ca      *lbtest.CA
	servers map[string]*lbtest.UA // by name: "udp-1"
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{edge: &edge{t: t, dir: t.TempDir(), log: slog.New(slog.DiscardHandler)}, ca: lbtest.NewCA(t), servers: map[string]*lbtest.UA{}}
	m.ca.Files(m.dir, "public", lbtest.Leaf{Names: []string{"front.example.net"}})
	lbtest.Replace(t, filepath.Join(m.dir, "ca.pem"), m.ca.Bundle())
	var b strings.Builder
	b.WriteString(`version: 1
node: {name: edge-1, state_dir: state, shutdown: {delay: 0s, deadline: 5s}}
admin: {sockets: [{path: admin.sock}], metrics: {address: "127.0.0.1:0"}}
certificates: [{name: public, cert_file: public.pem, key_file: public.key}]
listeners:
`)
	for family, ip := range map[string]string{"v4": "127.0.0.1", "v6": "[::1]"} {
		for _, transport := range []string{"udp", "tcp", "tls", "ws", "wss"} {
			fmt.Fprintf(&b, "  - {name: %s-%s, protocol: sip, transport: %s, bind: \"%s:0\"", transport, family, transport, ip)
			if strings.HasSuffix(transport, "s") && transport != "ws" {
				b.WriteString(", certificate: public")
			}
			b.WriteString("}\n")
		}
	}
	b.WriteString("services:\n")
	for _, kind := range serverKinds {
		fmt.Fprintf(&b, "  - {name: %s, pool: %s, applications: [{name: calls, kind: sip, host: [%s.example.net]}]}\n", kind, kind, kind)
	}
	b.WriteString("pools:\n")
	for _, kind := range serverKinds {
		fmt.Fprintf(&b, "  - name: %s\n    health: {active: {sip: {interval: 1s, down_interval: 200ms, fall: 100}}}\n    servers:\n", kind) // a busy machine is no fault of a server
		for i := range 2 {
			m.addServer(&b, kind, fmt.Sprintf("%s-%d", kind, i+1))
		}
	}
	m.write("wyegate.yaml", b.String())
	m.run()
	return m
}

func (m *matrix) addServer(b *strings.Builder, kind, name string) {
	m.t.Helper()
	transport, six := strings.CutSuffix(kind, "6")
	on := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if six {
		on = netip.IPv6Loopback()
	}
	ua, err := lbtest.NewUAOn(name, lbtest.Answer, on)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(ua.Close)
	m.servers[name] = ua
	at, extra := ua.Addr, ""
	pair := &tls.Config{Certificates: []tls.Certificate{m.ca.Pair(lbtest.Leaf{Names: []string{name + ".example.net"}})}}
	switch transport {
	case "tls":
		at, err = ua.ListenTLS(pair)
	case "wss":
		at, err = ua.ListenWebSocket(pair)
	case "ws":
		at, err = ua.ListenWebSocket(nil)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	if transport == "tls" || transport == "wss" {
		extra = fmt.Sprintf(", tls: {server_name: %s.example.net, ca_file: ca.pem}", name)
	}
	fmt.Fprintf(b, "      - {name: %s, sip: %q, sip_transport: %s%s}\n", name, at, transport, extra)
}

// phone is a client on a transport and a family. Its name stands in Call-IDs and branches, so no two have the same.
func (m *matrix) phone(t *testing.T, name, transport, family string) (*lbtest.UA, *lbtest.Path) {
	t.Helper()
	on := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if family == "v6" {
		on = netip.IPv6Loopback()
	}
	ua, err := lbtest.NewUAOn(name, lbtest.Answer, on)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ua.Close)
	to := m.at(transport + "-" + family)
	var path *lbtest.Path
	switch transport {
	case "udp", "tcp":
		path, err = ua.Dial(strings.ToUpper(transport), to)
	case "tls":
		path, err = ua.DialTLS(secureClient(m.ca), to)
	case "ws":
		path, err = ua.DialWebSocket(lbtest.WebSocketOptions{}, to)
	case "wss":
		path, err = ua.DialWebSocket(lbtest.WebSocketOptions{TLS: secureClient(m.ca), Binary: true}, to)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ua, path
}

// Calls in both directions over every transport and family of the client and every transport of the server, hang-up by
// either side (SR-5, SR-9, SX-2, SX-7, SX-10 to SX-13): 200 of each here, 10,000 in a soak, counted call by call.
func TestCallsOverEveryTransport(t *testing.T) {
	m := newMatrix(t)
	calls := 200
	if os.Getenv("WYEGATE_SOAK") != "" {
		calls = 10_000
	}
	for _, client := range []string{"udp", "tcp", "tls", "ws", "wss"} {
		for _, family := range []string{"v4", "v6"} {
			for _, server := range serverKinds {
				t.Run(client+" "+family+" to "+server, func(t *testing.T) {
					ua, path := m.phone(t, "phone-"+client+family+server, client, family)
					m.play(t, calls, func(ctx context.Context, i int) error { return m.in(ctx, ua, path, server, i) })
					m.forget()
					from := m.register(t, ua, path, server)
					m.play(t, calls, func(ctx context.Context, i int) error { return m.out(ctx, ua, path, from, i) })
					m.forget()
				})
			}
		}
	}
}

// forget drops what the servers have seen.
func (m *matrix) forget() {
	for _, s := range m.servers {
		s.Forget()
	}
}

// play makes calls, four at a time.
func (m *matrix) play(t *testing.T, calls int, call func(ctx context.Context, i int) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Duration(calls)*20*time.Millisecond)
	defer cancel()
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed []string
	for worker := range 4 {
		running.Go(func() {
			for i := worker; i < calls; i += 4 {
				if err := call(ctx, i); err != nil {
					mu.Lock()
					failed = append(failed, fmt.Sprintf("call %d: %v", i, err))
					mu.Unlock()
				}
			}
		})
	}
	running.Wait()
	if len(failed) > 0 {
		t.Fatalf("%d of %d calls failed, the first: %s", len(failed), calls, failed[0])
	}
}

// in is a call from the client to a server; each side hangs up every other one.
func (m *matrix) in(ctx context.Context, ua *lbtest.UA, path *lbtest.Path, server string, i int) error {
	d, r, err := ua.Invite(ctx, path, lbtest.InviteOptions{RequestURI: fmt.Sprintf("sip:room-%d@%s.example.net", i, server)})
	if err != nil || r.Status != 200 {
		return fmt.Errorf("INVITE: %v %w", r, err)
	}
	s := m.servers[d.Peer]
	if s == nil || !strings.HasPrefix(d.Peer, server+"-") {
		return fmt.Errorf("answered by %q", d.Peer)
	}
	return hangUp(ctx, i, d, s.DialogOf(d.CallID), s.Name, ua.Name)
}

// hangUp ends a call from either side; the BYE must be answered by the other one.
func hangUp(ctx context.Context, i int, caller, callee *lbtest.Dialog, calleeName, callerName string) error {
	side, other := caller, calleeName
	if i%2 == 1 {
		side, other = callee, callerName
	}
	r, err := side.Bye(ctx)
	if err != nil || r.Status != 200 || r.Header("X-Server") != other {
		return fmt.Errorf("BYE to %s: %v %w", other, r, err)
	}
	return nil
}

// registration is how a server knows a client: which server, and the REGISTER as it came there.
type registration struct {
	server   *lbtest.UA
	register *lbtest.Message
}

func (m *matrix) register(t *testing.T, ua *lbtest.UA, path *lbtest.Path, server string) registration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	id := ua.Branch()
	tr, err := ua.Start(path, id, "REGISTER sip:"+server+".example.net SIP/2.0", "Max-Forwards: 70",
		"From: <sip:alice@"+server+".example.net>;tag="+id, "To: <sip:alice@"+server+".example.net>", "Call-ID: "+id, "CSeq: 1 REGISTER",
		"Supported: path, outbound", ua.ContactLine(path))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.End()
	r, err := tr.Final(ctx)
	if err != nil || r.Status != 200 {
		t.Fatalf("REGISTER: %v %v", r, err)
	}
	s := m.servers[r.Header("X-Server")]
	for _, seen := range s.Seen() {
		if seen.MethodName() == "REGISTER" && seen.CallIDText() == id {
			return registration{s, seen}
		}
	}
	t.Fatal("no server has seen the REGISTER")
	return registration{}
}

// out is a call from the server to the registered client: along its Path where it has one, else to its Contact.
func (m *matrix) out(ctx context.Context, ua *lbtest.UA, path *lbtest.Path, from registration, i int) error {
	o := lbtest.InviteOptions{RequestURI: from.register.Contact(), From: "sip:" + from.server.Name + "@example.net"}
	for _, p := range from.register.All(sip.Path) {
		o.Extra = append(o.Extra, "Route: "+p)
	}
	d, r, err := from.server.Invite(ctx, from.register.Back, o)
	if err != nil || r.Status != 200 || d.Peer != ua.Name {
		return fmt.Errorf("INVITE of the server: %v %w", r, err)
	}
	callee := ua.DialogOf(d.CallID)
	if via := callee.OK.All(sip.Via)[0]; !strings.HasPrefix(via, "SIP/2.0/"+path.Transport+" "+path.To.String()+";") {
		return fmt.Errorf("INVITE over %s came with Via %q, not of %s", path.Transport, via, path.To)
	}
	return hangUp(ctx, i, d, callee, ua.Name, from.server.Name)
}
