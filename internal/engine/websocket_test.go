package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
	"github.com/wyegate/wyegate/internal/sip"
)

// webSocketEdge is a node with SIP over WebSocket on ports of its own and beside HTTP.
func webSocketEdge(t *testing.T) (e *edge, ca *lbtest.CA, stop func()) {
	t.Helper()
	e, stop = start(t, 2)
	stop()
	ca = lbtest.NewCA(t)
	ca.Files(e.dir, "public", lbtest.Leaf{Names: []string{"front.example.net", "127.0.0.1"}})
	e.write("wyegate.yaml", e.withWebSockets(0, 1))
	return e, ca, e.run()
}

func (e *edge) withWebSockets(servers ...int) string {
	return strings.Replace(e.yaml("", servers...), "listeners:\n", `certificates: [{name: public, cert_file: public.pem, key_file: public.key}]
listeners:
  - {name: ws, protocol: sip, transport: ws, bind: "127.0.0.1:0"}
  - {name: wss, protocol: sip, transport: wss, bind: "127.0.0.1:0", certificate: public, path: /sip, origins: ["https://phone.example.net"]}
  - {name: shared, protocol: http, transport: tcp, bind: "127.0.0.1:0", sip_websocket: {path: /ws}}
  - {name: secure, protocol: http, transport: tls, bind: "127.0.0.1:0", certificate: public, sip_websocket: {path: /ws}}
`, 1)
}

func webSocketWays(ca *lbtest.CA) map[string]lbtest.WebSocketOptions {
	return map[string]lbtest.WebSocketOptions{
		"ws":     {},
		"wss":    {Path: "/sip", TLS: secureClient(ca), Origin: "https://phone.example.net", Binary: true},
		"shared": {Binary: true},
		"secure": {TLS: secureClient(ca)},
	}
}

// SX-12, section 15: calls from a browser's kind of client and to it, hang-up by either side, over every way a WebSocket
// can come in. The client's host is in .invalid, so that only its flow leads to it.
func TestCallsOverWebSocket(t *testing.T) {
	e, ca, _ := webSocketEdge(t)
	for name, way := range webSocketWays(ca) {
		t.Run(name, func(t *testing.T) {
			phone, err := lbtest.NewUA("phone"+name, lbtest.Answer)
			if err != nil {
				t.Fatal(err)
			}
			defer phone.Close()
			path, err := phone.DialWebSocket(way, e.at(name))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for i := range 20 {
				d, m, err := phone.Invite(ctx, path, lbtest.InviteOptions{
					RequestURI: fmt.Sprintf("sip:room-%d@front.example.net", i), From: "sip:alice@" + phone.Name + ".invalid",
				})
				if err != nil || m.Status != 200 {
					t.Fatalf("call %d: %v %v", i, m, err)
				}
				// RFC 7118 section 5: both write transport=ws in URIs.
				if len(d.Routes) != 2 || !strings.Contains(d.Routes[0], e.at(name).String()+";transport=ws;") {
					t.Fatalf("route set %q", d.Routes)
				}
				if i%2 == 0 {
					if m, err := d.Bye(ctx); err != nil || m.Status != 200 {
						t.Fatalf("BYE: %v %v", m, err)
					}
					continue
				}
				e.hangsUp(ctx, t, d, phone.Name)
			}
		})
	}
}

// theOther gives the server's side of a call, with a way along its route set.
func (e *edge) theOther(t *testing.T, d *lbtest.Dialog) *lbtest.Dialog {
	t.Helper()
	for _, s := range e.servers {
		if s.Name != d.Peer {
			continue
		}
		back := s.DialogOf(d.CallID)
		to, transport := back.RouteAddr()
		way, err := s.Dial(transport, to)
		if err != nil {
			t.Fatal(err)
		}
		back.SetPath(way)
		return back
	}
	t.Fatalf("no server %q", d.Peer)
	return nil
}

// hangsUp has the server of a call end it; the answer to its BYE is the phone's.
func (e *edge) hangsUp(ctx context.Context, t *testing.T, d *lbtest.Dialog, phone string) {
	t.Helper()
	if m, err := e.theOther(t, d).Bye(ctx); err != nil || m.Status != 200 || m.Header("X-Server") != phone {
		t.Fatalf("BYE of the server: %v %v", m, err)
	}
}

// SX-7: the client's connection is gone, and with it the only way to the client: 430.
func TestWebSocketGone(t *testing.T) {
	e, _, _ := webSocketEdge(t)
	phone, err := lbtest.NewUA("phone", lbtest.Answer)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	path, err := phone.DialWebSocket(lbtest.WebSocketOptions{}, e.at("ws"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	d, m, err := phone.Invite(ctx, path, lbtest.InviteOptions{RequestURI: "sip:room-1@front.example.net"})
	if err != nil || m.Status != 200 {
		t.Fatalf("%v %v", m, err)
	}
	path.Close()
	back := e.theOther(t, d)
	e.eventually("end of the connection", func() bool {
		return strings.Contains(e.scraped(), `wyegate_listener_connections{listener="ws",transport="ws"} 0`)
	})
	if m, err = back.Do(ctx, "INFO"); err != nil {
		t.Fatal(err)
	}
	if m.Status != 430 {
		t.Errorf("INFO to a client that is gone: %d", m.Status)
	}
}

// Handshakes that are refused: wrong path, no subprotocol, a foreign Origin; and HTTP goes on beside.
func TestWebSocketHandshakes(t *testing.T) {
	e, ca, _ := webSocketEdge(t)
	phone, err := lbtest.NewUA("phone", lbtest.Answer)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	for name, o := range map[string]lbtest.WebSocketOptions{
		"ws":  {Path: "/other"},
		"wss": {Path: "/sip", TLS: secureClient(ca), Origin: "https://evil.example"},
	} {
		if p, err := phone.DialWebSocket(o, e.at(name)); err == nil {
			p.Close()
			t.Errorf("%s accepted %+v", name, o)
		}
	}
	// Same host counts where no origins are listed.
	if p, err := phone.DialWebSocket(lbtest.WebSocketOptions{Origin: "http://" + e.at("ws").String()}, e.at("ws")); err != nil {
		t.Error(err)
	} else {
		p.Close()
	}
	if p, err := phone.DialWebSocket(lbtest.WebSocketOptions{Origin: "http://elsewhere.example"}, e.at("ws")); err == nil {
		p.Close()
		t.Error("another host's origin was accepted")
	}
}

// Section 11.3: a node that leaves closes its WebSockets with the code of the configuration, however they came in; the
// clients see the close frame.
func TestWebSocketsClosedAtShutdown(t *testing.T) {
	e, ca, stop := webSocketEdge(t)
	ways := webSocketWays(ca)
	var paths []*lbtest.Path
	phone, err := lbtest.NewUA("phone", lbtest.Answer)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for name, way := range ways {
		for range 3 {
			p, err := phone.DialWebSocket(way, e.at(name))
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, p)
			if m := options(ctx, t, phone, p, name); m.Status != 200 {
				t.Fatalf("%s: %d", name, m.Status)
			}
		}
	}
	stop()
	for _, p := range paths {
		if code, err := p.CloseCode(ctx); err != nil || code != 1012 {
			t.Errorf("%s closed with %d, %v", p.Transport, code, err)
		}
	}
}

func options(ctx context.Context, t *testing.T, ua *lbtest.UA, p *lbtest.Path, id string) *lbtest.Message {
	t.Helper()
	branch := ua.Branch()
	tr, err := ua.Start(p, branch, "OPTIONS sip:x@front.example.net SIP/2.0", "Max-Forwards: 70", "From: <sip:a@b>;tag="+branch,
		"To: <sip:x@front.example.net>", "Call-ID: "+id+branch, "CSeq: 1 OPTIONS")
	if err != nil {
		t.Fatal(err)
	}
	defer tr.End()
	m, err := tr.Final(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// F7: 20 reloads (100 in a soak), every third one broken, under calls of 200 WSS clients: nothing fails, nothing closes.
func TestReloadsUnderWebSockets(t *testing.T) {
	e, ca, _ := webSocketEdge(t)
	reloads := 20
	if os.Getenv("WYEGATE_SOAK") != "" {
		reloads = 100
	}
	way := webSocketWays(ca)["wss"]
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	type client struct {
		ua   *lbtest.UA
		path *lbtest.Path
	}
	clients := make([]client, 200)
	for i := range clients {
		ua, err := lbtest.NewUA(fmt.Sprintf("browser%d", i), lbtest.Answer)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ua.Close)
		path, err := ua.DialWebSocket(way, e.at("wss"))
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = client{ua, path}
	}
	good := e.withWebSockets(0, 1)
	stop := make(chan struct{})
	var running sync.WaitGroup
	var made, failed atomic.Int64
	for worker := range 4 {
		running.Go(func() {
			for i := worker; ; i += 4 {
				select {
				case <-stop:
					return
				default:
				}
				c := clients[i%len(clients)]
				d, m, err := c.ua.Invite(ctx, c.path, lbtest.InviteOptions{RequestURI: fmt.Sprintf("sip:room-%d@front.example.net", i)})
				if err == nil && m.Status == 200 {
					m, err = d.Bye(ctx)
				}
				if made.Add(1); err != nil || m.Status != 200 {
					failed.Add(1)
					t.Errorf("call %d: %v %v", i, m, err)
				}
			}
		})
	}
	before := made.Load()
	for i := range reloads {
		text := good + fmt.Sprintf("# %d\n", i)
		if i%3 == 2 {
			text = strings.Replace(text, "transport: wss", "transport: wsss", 1)
		}
		e.write("wyegate.yaml", text)
		if err := e.Reload("test"); (err != nil) != (i%3 == 2) {
			t.Fatalf("reload %d: %v", i, err)
		}
		for ; made.Load() < before+10; <-time.After(time.Millisecond) { // calls between any two reloads
			if ctx.Err() != nil {
				t.Fatal("no calls")
			}
		}
		before = made.Load()
	}
	close(stop)
	running.Wait()
	for i, c := range clients {
		if m := options(ctx, t, c.ua, c.path, "still"); m.Status != 200 {
			t.Fatalf("client %d after the reloads: %d", i, m.Status)
		}
	}
	if made.Load() < int64(10*reloads) || failed.Load() > 0 {
		t.Errorf("%d calls, %d failed", made.Load(), failed.Load())
	}
}

// Section 15.6: a trusted hop in front names the client, on both kinds of listener; a stranger who claims one is taken for
// what he is.
func TestWebSocketClientBehindHop(t *testing.T) {
	e, _, stop := webSocketEdge(t)
	stop()
	plain := e.withWebSockets(0, 1)
	for trusted, text := range map[string]string{"127.0.0.0/8": "203.0.113.9", "10.0.0.0/8": ""} {
		e.write("wyegate.yaml", strings.Replace(plain, "pool: appservers,", "pool: appservers, trust_headers_from: ["+trusted+"],", 1))
		stop := e.run()
		for _, name := range []string{"ws", "shared"} {
			phone, err := lbtest.NewUA("phone-"+name+trusted[:2], lbtest.Answer)
			if err != nil {
				t.Fatal(err)
			}
			defer phone.Close()
			path, err := phone.DialWebSocket(lbtest.WebSocketOptions{Header: http.Header{"X-Forwarded-For": {"198.51.100.1, 203.0.113.9"}}}, e.at(name))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			d, m, err := phone.Invite(ctx, path, lbtest.InviteOptions{RequestURI: "sip:room-1@front.example.net"})
			if err != nil || m.Status != 200 {
				t.Fatal(m, err)
			}
			if _, err := d.Bye(ctx); err != nil {
				t.Fatal(err)
			}
			want := text
			if want == "" {
				want = "127.0.0.1"
			}
			if via := m.All(sip.Via); len(via) != 1 || !strings.Contains(via[0], ";received="+want) {
				t.Errorf("%s, trust in %s: the phone's Via came back as %q", name, trusted, via)
			}
		}
		stop()
	}
}
