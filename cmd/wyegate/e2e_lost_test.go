package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// callers are the four kinds of section 9.6, each with its connection to the edge.
func callers(t *testing.T, ca *lbtest.CA, port map[string]int) map[*lbtest.UA]*lbtest.Path {
	t.Helper()
	secure := &tls.Config{ServerName: "front.example.net", RootCAs: ca.Trust()}
	all := map[*lbtest.UA]*lbtest.Path{}
	for _, kind := range []string{"udp", "tcp", "tls", "wss"} {
		ua, err := lbtest.NewUA(kind, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ua.Close)
		var p *lbtest.Path
		switch to := mustAddr(port[kind]); kind {
		case "tls":
			p, err = ua.DialTLS(secure, to)
		case "wss":
			p, err = ua.DialWebSocket(lbtest.WebSocketOptions{TLS: secure}, to)
		default:
			p, err = ua.Dial(strings.ToUpper(kind), to)
		}
		if err != nil {
			t.Fatal(err)
		}
		all[ua] = p
	}
	return all
}

// Section 9.6, counted call by call: with five servers and 200 calls a second over UDP, TCP, TLS and WSS, one server's
// process is killed, another one falls silent and comes back, with the health settings that nobody has changed. No call
// fails but those that the server had when it went; the others are spread over all survivors.
func TestNoCallIsLost(t *testing.T) {
	var servers []*process
	var list []string
	for i := range 5 {
		s := startProcess(t, fmt.Sprintf("as%d", i+1))
		servers = append(servers, s)
		list = append(list, fmt.Sprintf("{name: %s, sip: %q}", s.name, s.sip))
	}
	ca := lbtest.NewCA(t)
	port := map[string]int{"udp": freePort(t), "tls": freePort(t), "wss": freePort(t)}
	port["tcp"] = port["udp"]
	cert, key := ca.PEM(lbtest.Leaf{Names: []string{"front.example.net"}})
	startNode(t, map[string]string{"front.pem": string(cert), "front.key": string(key), "wyegate.yaml": fmt.Sprintf(`version: 1
node: {name: edge-1, state_dir: $DIR/state, shutdown: {delay: 0s, deadline: 1s}}
admin: {sockets: [{path: $DIR/admin.sock}], metrics: {address: "127.0.0.1:0"}}
certificates: [{name: front, cert_file: front.pem, key_file: front.key}]
listeners:
  - {name: sip-udp, protocol: sip, transport: udp, bind: "127.0.0.1:%[1]d"}
  - {name: sip-tcp, protocol: sip, transport: tcp, bind: "127.0.0.1:%[1]d"}
  - {name: sip-tls, protocol: sip, transport: tls, bind: "127.0.0.1:%[2]d", certificate: front}
  - {name: sip-wss, protocol: sip, transport: wss, bind: "127.0.0.1:%[3]d", certificate: front}
services:
  - {name: main, pool: appservers, applications: [{name: voice, kind: sip}]}
pools:
  - name: appservers
    servers:
      - %[4]s
`, port["udp"], port["tls"], port["wss"], strings.Join(list, "\n      - "))})
	l := &trafficLoad{}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for ua, p := range callers(t, ca, port) {
		running.Go(func() { every(ctx, 50, func(i int) { l.call(ua, p, i) }) })
	}
	pause := func(d time.Duration) { // the load's own length
		select {
		case <-time.After(d):
		case <-t.Context().Done():
		}
	}
	signal := func(s *process, sig syscall.Signal) time.Time {
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Error(err)
		}
		return time.Now()
	}
	pause(2 * time.Second)
	killed := signal(servers[1], syscall.SIGKILL)
	pause(2 * time.Second)
	silent := signal(servers[2], syscall.SIGSTOP)
	pause(8 * time.Second)
	spread := l.since(silent.Add(6 * time.Second))
	signal(servers[2], syscall.SIGCONT)
	pause(4 * time.Second)
	stop()
	running.Wait()
	had := 0
	for _, f := range l.failures {
		if f.began.Before(killed) && killed.Sub(f.began) < time.Second {
			had++ // the killed server may have begun to answer it
			continue
		}
		t.Errorf("%s, begun %s after the kill, %s after the silence: %v", f.what, f.began.Sub(killed).Round(time.Millisecond), f.began.Sub(silent).Round(time.Millisecond), f.err)
	}
	t.Logf("%d calls; %d were at the killed server; while one was silent: %v", l.calls.Load(), had, spread)
	if l.calls.Load() < 800 { // a busy machine does not keep the rate
		t.Error("the load was too small to prove anything")
	}
	if had > 10 {
		t.Errorf("%d failures are more than the killed server had", had)
	}
	if len(spread) != 3 || spread[servers[1].name]+spread[servers[2].name] > 0 {
		t.Errorf("calls went to %v", spread)
	}
}
