package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// upgraded is a WebSocket through the edge that a server echoes on, frame or not: bytes go through as they are.
type upgraded struct {
	c net.Conn
	r *bufio.Reader
}

// echoServer takes upgrades and sends back what comes.
func echoServer(t *testing.T) *http.Server {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	srv := &http.Server{Addr: ln.Addr().String(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			w.Header().Set("X-Server", "echo")
			return
		}
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		open.Go(func() {
			defer c.Close()
			fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n")
			_, _ = io.Copy(c, rw)
		})
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return srv
}

func upgrade(t *testing.T, port int) *upgraded {
	t.Helper()
	c, err := net.Dial("tcp", mustAddr(port).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprint(c, "GET /room?conf=ws HTTP/1.1\r\nHost: x.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	u := &upgraded{c, bufio.NewReader(c)}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	r, err := http.ReadResponse(u.r, nil)
	if err != nil || r.StatusCode != 101 {
		t.Fatalf("upgrade: %v, %v", r, err)
	}
	return u
}

func (u *upgraded) echo(text string) error {
	_ = u.c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(u.c, text+"\n"); err != nil {
		return err
	}
	got, err := u.r.ReadString('\n')
	if err == nil && got != text+"\n" {
		return fmt.Errorf("%q came back for %q", got, text)
	}
	return err
}

// browsers are user agents over WSS, each on a connection of its own.
type browsers struct {
	uas   []*lbtest.UA
	paths []*lbtest.Path
}

func openBrowsers(t *testing.T, count, port int, ca *lbtest.CA) *browsers {
	t.Helper()
	b := &browsers{}
	for i := range count {
		ua, err := lbtest.NewUA(fmt.Sprintf("browser-%d", i), lbtest.Answer)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ua.Close)
		settings := &tls.Config{ServerName: "front.example.net", RootCAs: ca.Trust()}
		p, err := ua.DialWebSocket(lbtest.WebSocketOptions{TLS: settings, Binary: i%2 == 0}, mustAddr(port))
		if err != nil {
			t.Fatal(err)
		}
		b.uas, b.paths = append(b.uas, ua), append(b.paths, p)
	}
	return b
}

// call makes a whole call from one of them, from INVITE to the answer of BYE.
func (b *browsers) call(i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	d, m, err := b.uas[i].Invite(ctx, b.paths[i], lbtest.InviteOptions{RequestURI: fmt.Sprintf("sip:room-%d@sip.example.net", i)})
	if err != nil {
		return err
	}
	if m.Status != 200 {
		return fmt.Errorf("INVITE: %d", m.Status)
	}
	if m, err = d.Bye(ctx); err == nil && m.Status != 200 {
		err = fmt.Errorf("BYE: %d", m.Status)
	}
	return err
}

// 100 reloads, every third file broken, under 200 calls and 200 pages a second with 200 browsers over WSS and 50 WebSockets
// of an application: nothing fails, no WebSocket closes, and the number of the generation grows by one for each good file.
func TestReloadsUnderTraffic(t *testing.T) {
	const reloads, clients, tunnels = 100, 200, 50
	echo := echoServer(t)
	s, err := lbtest.NewServer("as1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	ca := lbtest.NewCA(t)
	cert, key := ca.PEM(lbtest.Leaf{Names: []string{"front.example.net"}})
	wss := freePort(t)
	c := cluster{sip: freePort(t), web: freePort(t), rules: withRules}
	good := strings.Replace(c.yaml(), "    servers:\n", fmt.Sprintf("    servers:\n      - {name: as1, sip: %q, http: %q}\n", s.Addr, echo.Addr), 1)
	good = strings.Replace(good, "services:\n", fmt.Sprintf(`  - {name: sip-wss, protocol: sip, transport: wss, bind: "127.0.0.1:%d", certificate: front}
certificates: [{name: front, cert_file: front.pem, key_file: front.key}]
services:
`, wss), 1)
	n := startNode(t, map[string]string{"rules.xml": roomRules, "front.pem": string(cert), "front.key": string(key), "wyegate.yaml": good})
	var open []*upgraded
	for range tunnels {
		open = append(open, upgrade(t, c.web))
	}
	web := openBrowsers(t, clients, wss, ca)
	caller, err := lbtest.NewUA("caller", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	p, err := caller.Dial("UDP", mustAddr(c.sip))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	l := &trafficLoad{}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { every(ctx, 150, func(i int) { l.call(caller, p, i) }) })
	running.Go(func() {
		every(ctx, 50, func(i int) {
			began := time.Now()
			if err := web.call(i % clients); err != nil {
				l.fail(began, "call over WSS", err)
				return
			}
			l.calls.Add(1)
		})
	})
	running.Go(func() { every(ctx, 200, func(i int) { l.page(client, c.web, i) }) })
	taken := uint64(1)
	for i := range reloads {
		if broken := i%3 == 2; broken {
			n.write("wyegate.yaml", good+"nonsense: [\n")
			n.reload(true)
		} else {
			n.write("wyegate.yaml", strings.Replace(good, "name: edge-1", fmt.Sprintf("name: edge-1, note: reload %d", i), 1))
			n.reload(false)
			taken++
		}
	}
	stop()
	running.Wait()
	for _, f := range l.failures {
		t.Errorf("%s: %v", f.what, f.err)
	}
	for i, u := range open {
		if err := u.echo(fmt.Sprintf("still here %d", i)); err != nil {
			t.Errorf("websocket %d: %v", i, err)
		}
	}
	for i := range clients { // its connection is the one it opened before the first reload
		if err := web.call(i); err != nil {
			t.Errorf("browser %d: %v", i, err)
		}
	}
	var st struct {
		Generation uint64 `json:"generation"`
	}
	if err := n.api("/v1/status", &st); err != nil || st.Generation != taken {
		t.Errorf("generation %d, want %d: %v", st.Generation, taken, err)
	}
	t.Logf("%d reloads, %d calls, %d pages, %d browsers, %d tunnels", reloads, l.calls.Load(), l.pages.Load(), clients, tunnels)
}

// A drain under load: no new key goes there once the command has returned, no call fails, the wait ends with 0 when the
// last call has ended and with 5 at its deadline.
func TestDrainUnderLoad(t *testing.T) {
	c := startCluster(t, 3, cluster{rules: withRules})
	caller, err := lbtest.NewUA("caller", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	p, err := caller.Dial("UDP", mustAddr(c.sip))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var live []*lbtest.Dialog
	for i := range 30 {
		d, m, err := caller.Invite(ctx, p, lbtest.InviteOptions{RequestURI: fmt.Sprintf("sip:live-%d@sip.example.net", i)})
		if err != nil || m.Status != 200 {
			t.Fatal(m, err)
		}
		if d.Peer == "as2" {
			live = append(live, d)
		}
	}
	if len(live) == 0 {
		t.Fatal("no call at as2")
	}
	if out, status := c.cli("servers", "drain", "as2", "--yes", "--note", "kernel update"); status != 0 {
		t.Fatalf("drain: %d, %s", status, out)
	}
	before := c.servers[1].SeenCount("INVITE")
	l := &trafficLoad{}
	under, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	every(under, 50, func(i int) { l.call(caller, p, 1000+i) })
	for _, f := range l.failures {
		t.Errorf("%s: %v", f.what, f.err)
	}
	if got := c.servers[1].SeenCount("INVITE"); got != before {
		t.Errorf("%d new calls at the draining server", got-before)
	}
	for i := range 30 { // a live key stays where its call is, a page of it too
		d := live[i%len(live)]
		var room string
		if _, err := fmt.Sscanf(d.Remote, "<sip:%s", &room); err != nil {
			t.Fatal(err)
		}
		room, _, _ = strings.Cut(room, "@")
		if got := c.page(t, "/?conf="+room); got != "as2" {
			t.Fatalf("the page of %s, whose call is at as2, went to %s", room, got)
		}
	}
	if _, status := c.cli("servers", "drain", "as2", "--wait", "--deadline", "1s", "--yes"); status != 5 {
		t.Errorf("a drain past its deadline ends with %d, want 5", status)
	}
	for _, d := range live {
		if m, err := d.Bye(ctx); err != nil || m.Status != 200 {
			t.Fatalf("BYE while draining: %v, %v", m, err)
		}
	}
	if out, status := c.cli("servers", "drain", "as2", "--wait", "--yes"); status != 0 {
		t.Errorf("a drain that is done ends with %d: %s", status, out)
	}
	var list []struct {
		Server     string `json:"server"`
		AdminState struct {
			File, Override, Effective string
		} `json:"admin_state"`
	}
	out, _ := c.cli("servers", "list", "-o", "json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 3 || list[1].AdminState.File != "ready" || list[1].AdminState.Override != "drain" {
		t.Errorf("servers list: %v, %s", err, out)
	}
	if _, status := c.cli("servers", "ready", "as2", "--yes"); status != 0 {
		t.Errorf("ready: %d", status)
	}
}
