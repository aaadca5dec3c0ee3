package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/internal/engine"
	"github.com/wyegate/wyegate/internal/lbtest"
	"github.com/wyegate/wyegate/routing"
)

// explainRules has every kind of rule that the generated messages meet, or miss.
const explainRules = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE user-centric-rules SYSTEM "dcr.dtd">
<user-centric-rules>
  <sip-rules>
    <header name="X-Group" return="request.X-Group"><exist/></header>
    <if>
      <session-case><equal>ORIGINATING</equal>
        <header name="P-Asserted-Identity" return="request.P-Asserted-Identity.uri.user"><exist/></header>
      </session-case>
    </if>
    <request-uri parameter="conf" return="request.uri.user"><exist/></request-uri>
    <request-uri><match>^sip:room-([0-9]+)@</match></request-uri>
  </sip-rules>
  <http-rules>
    <or>
      <request-uri parameter="conf" return="parameter.conf"><exist/></request-uri>
      <header name="X-Conference" return="request.X-Conference"><exist/></header>
      <cookie name="conf" return="cookie.conf"><exist/></cookie>
    </or>
  </http-rules>
</user-centric-rules>
`

// logLine is what an access log line says of a decision.
type logLine struct {
	App    string `json:"app"`
	Key    string `json:"key"`
	Source string `json:"key_source"`
	Rule   string `json:"rule"`
	Server string `json:"server"`
	CallID string `json:"call_id"`
	URI    string `json:"uri"`
	Code   int    `json:"code"`
}

// generated is one message with what explain said of it before it was sent.
type generated struct {
	id   string // Call-ID, or the mark in the request target
	req  admin.ExplainRequest
	said admin.Explanation
}

// TestExplainTellsWhatTrafficDoes sends random messages, each after the live explain was asked about it, and holds the
// access log against what it said; the offline explain must agree with the live one.
func TestExplainTellsWhatTrafficDoes(t *testing.T) {
	const messages = 10_000
	var servers []*lbtest.Server
	var lines []string
	for i := range 4 {
		s, err := lbtest.NewServer(fmt.Sprintf("as%d", i+1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		servers = append(servers, s)
		lines = append(lines, fmt.Sprintf("      - {name: %s, sip: %q, http: %q}", s.Name, s.Addr, s.Web))
	}
	sip, web := freePort(t), freePort(t)
	n := startNode(t, map[string]string{"rules.xml": explainRules, "wyegate.yaml": fmt.Sprintf(`version: 1
node: {name: edge-1, state_dir: $DIR/state, shutdown: {delay: 0s, deadline: 1s}}
admin: {sockets: [{path: $DIR/admin.sock}], metrics: {address: "127.0.0.1:0"}}
listeners:
  - {name: sip-udp, protocol: sip, transport: udp, bind: "127.0.0.1:%d"}
  - {name: http, protocol: http, transport: tcp, bind: "127.0.0.1:%d"}
services:
  - name: voice
    pool: appservers
    applications:
      - {name: conference, kind: converged, path_prefix: /room}
      - {name: help, kind: web, path_prefix: /help}
    affinity: {rules: rules.xml}
    trust_headers_from: [127.0.0.0/8]
pools:
  - name: appservers
    servers:
%s
logging: {access: $DIR/access.log}
`, sip, web, strings.Join(lines, "\n"))})

	client := n.client()
	client.Transport.(*http.Transport).DisableKeepAlives = false
	ask := func(r admin.ExplainRequest) admin.Explanation {
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Post("http://w/v1/explain", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var x admin.Explanation
		if err := json.NewDecoder(resp.Body).Decode(&x); err != nil || resp.StatusCode != 200 {
			t.Fatalf("explain: %s, %v", resp.Status, err)
		}
		return x
	}
	caller, err := lbtest.NewUA("caller", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(caller.Close)
	rng := rand.New(rand.NewPCG(4711, 1))
	var all []generated
	for i := range messages {
		if i%2 == 0 {
			all = append(all, sendSIP(t, rng, i, caller, sip, ask))
		} else {
			all = append(all, sendHTTP(t, rng, i, web, ask))
		}
	}
	var found map[string]logLine
	n.eventually(20*time.Second, "one log line per message", func() error {
		found = readLog(t, filepath.Join(n.dir, "access.log"))
		if len(found) < messages {
			return fmt.Errorf("%d of %d lines", len(found), messages)
		}
		return nil
	})
	wrong, sources := 0, map[string]int{}
	for _, g := range all {
		sources[g.said.Source]++
		l := found[g.id]
		same := l.App == g.said.Application && l.Key == g.said.Key && l.Source == g.said.Source && l.Rule == g.said.Rule
		if l.Source != "round_robin" {
			same = same && l.Server == g.said.Server
		}
		if !same {
			if wrong++; wrong < 10 {
				t.Errorf("%s: explain said %s key %q %s %s → %s, the log shows %+v", g.id, g.said.Application, g.said.Key, g.said.Source, g.said.Rule, g.said.Server, l)
			}
		}
	}
	if wrong > 0 {
		t.Fatalf("%d of %d messages were explained otherwise than decided", wrong, messages)
	}
	for _, s := range []string{"rule", "default", "round_robin"} {
		if sources[s] < messages/50 {
			t.Errorf("only %d messages with source %s: the mix proves too little", sources[s], s)
		}
	}
	offlineAgrees(t, n, all[:1000])
}

func offlineAgrees(t *testing.T, n *node, some []generated) {
	t.Helper()
	cfg, problems := engine.LoadFile(filepath.Join(n.dir, "wyegate.yaml"))
	draft, problems := engine.Build(cfg, engine.Env{Registry: &routing.Registry{}}, problems)
	if draft == nil {
		t.Fatal(problems)
	}
	off, err := draft.Offline(engine.SecretsFor(cfg))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range some {
		x, err := off.Explain(context.Background(), g.req)
		if err != nil {
			t.Fatal(err)
		}
		same := x.Application == g.said.Application && x.Key == g.said.Key && x.Source == g.said.Source && x.Rule == g.said.Rule
		if x.Source != "round_robin" {
			same = same && x.Server == g.said.Server
		}
		if !same {
			t.Fatalf("%s: offline %s key %q %s %s → %s, live key %q %s %s → %s", g.id, x.Application, x.Key, x.Source, x.Rule, x.Server,
				g.said.Key, g.said.Source, g.said.Rule, g.said.Server)
		}
	}
}

func sendSIP(t *testing.T, rng *rand.Rand, i int, caller *lbtest.UA, port int, ask func(admin.ExplainRequest) admin.Explanation) generated {
	t.Helper()
	user := []string{fmt.Sprintf("room-%d", rng.IntN(2000)), fmt.Sprintf("user%d", rng.IntN(500)), "r%2Dx"}[rng.IntN(3)]
	uri := fmt.Sprintf("sip:%s@sip.example.net", user)
	if rng.IntN(5) == 0 {
		uri += ";conf=1"
	}
	id := fmt.Sprintf("m%d@%d", i, rng.IntN(1_000_000))
	var extra []string
	if rng.IntN(4) == 0 {
		extra = append(extra, fmt.Sprintf("X-Group: g%d", rng.IntN(50)))
	}
	if rng.IntN(3) == 0 {
		extra = append(extra, fmt.Sprintf("P-Asserted-Identity: \"A, B\" <sip:pai%d@ims.example>", rng.IntN(100)))
	}
	if rng.IntN(3) == 0 {
		extra = append(extra, fmt.Sprintf("Route: <sip:127.0.0.1:%d;lr;call=orig>", port))
	}
	method := []string{"INVITE", "OPTIONS", "MESSAGE", "SUBSCRIBE"}[rng.IntN(4)]
	lines := append([]string{
		method + " " + uri + " SIP/2.0", "Max-Forwards: 70", fmt.Sprintf("From: <sip:u%d@example.net>;tag=t%d", rng.IntN(100), i),
		"To: <" + uri + ">", "Call-ID: " + id, "CSeq: 1 " + method, "Contact: <sip:c@" + caller.Addr.String() + ">",
	}, extra...)
	p, err := caller.Dial("UDP", mustAddr(port))
	if err != nil {
		t.Fatal(err)
	}
	branch := caller.Branch()
	req := admin.ExplainRequest{Listener: "sip-udp", Source: caller.Addr.String(), SIP: string(caller.Build(p, branch, lines...))}
	g := generated{id: id, req: req, said: ask(req)}
	tr, err := caller.Start(p, branch, lines...)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.End()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m, err := tr.Final(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Header("X-Server"); got != g.said.Server {
		t.Fatalf("%s: explain said %s, %s answered", id, g.said.Server, got)
	}
	return g
}

func sendHTTP(t *testing.T, rng *rand.Rand, i, port int, ask func(admin.ExplainRequest) admin.Explanation) generated {
	t.Helper()
	c, err := net.Dial("tcp", mustAddr(port).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	path := []string{"/room", "/help", "/room/7"}[rng.IntN(3)]
	target := fmt.Sprintf("%s?mark=h%d", path, i)
	if rng.IntN(3) == 0 {
		target += fmt.Sprintf("&conf=room%%2D%d", rng.IntN(2000))
	}
	head := "GET " + target + " HTTP/1.1\r\nHost: phone.example.net\r\nConnection: close\r\n"
	if rng.IntN(3) == 0 {
		head += fmt.Sprintf("X-Conference: c%d\r\n", rng.IntN(50))
	}
	if rng.IntN(3) == 0 {
		head += fmt.Sprintf("Cookie: a=b; conf=\"k%d\"\r\n", rng.IntN(50))
	}
	head += "\r\n"
	req := admin.ExplainRequest{Listener: "http", Source: c.LocalAddr().String(), HTTP: head}
	g := generated{id: target, req: req, said: ask(req)}
	if _, err := c.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if g.said.Source != "round_robin" && resp.Header.Get("X-Server") != g.said.Server {
		t.Fatalf("%s: explain said %s, %s answered", target, g.said.Server, resp.Header.Get("X-Server"))
	}
	return g
}

// readLog gives the lines by Call-ID or request target; ACKs have none of their own here.
func readLog(t *testing.T, name string) map[string]logLine {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]logLine{}
	for line := range bytes.Lines(data) {
		var l logLine
		if json.Unmarshal(line, &l) != nil {
			continue // the last line is being written
		}
		id := l.CallID
		if id == "" {
			id = l.URI
		}
		if _, seen := out[id]; !seen {
			out[id] = l
		}
	}
	return out
}
