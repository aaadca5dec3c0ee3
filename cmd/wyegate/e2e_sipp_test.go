package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// scenarios are the pairs of testdata/sipp (sip-http.md section 21.6).
var scenarios = []struct{ name, caller, callee string }{
	{"hang-up by the caller", "uac.xml", "uas.xml"},
	{"hang-up by the called side", "uac-waits.xml", "uas-hangs-up.xml"},
	{"CANCEL", "uac-cancel.xml", "uas-rings.xml"},
	{"busy", "uac-busy.xml", "uas-busy.xml"},
	{"re-INVITE from both sides", "uac-reinvite.xml", "uas-reinvite.xml"},
	{"PRACK", "uac-prack.xml", "uas-prack.xml"},
	{"REFER", "uac-refer.xml", "uas-refer.xml"},
	{"SUBSCRIBE and NOTIFY", "uac-subscribe.xml", "uas-subscribe.xml"},
	{"REGISTER with challenge", "uac-register.xml", "uas-register.xml"},
}

// scripted is how many times one pair plays.
const scripted = 20

// words are SIPp's for a transport.
var words = map[string]string{"udp": "u1", "tcp": "t1"}

// play runs the calling side from a port to its end; more are arguments of SIPp.
func play(t *testing.T, scenario, transport string, port int, callee string, more ...string) {
	t.Helper()
	args := append([]string{"-t", words[transport], "-r", "40", "-m", fmt.Sprint(scripted), "-timeout", "30"}, more...)
	if ok, failed := sipp(t, scenario, port, append(args, callee)...)(); ok != scripted || failed != 0 {
		t.Errorf("%d of %d, %d failed", ok, scripted, failed)
	}
}

// target writes an injection file: one user, and the transport that the URI asks for.
func target(t *testing.T, transport string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "users.csv")
	if err := os.WriteFile(name, []byte("SEQUENTIAL\nbob;"+transport+";\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// 21.6, caller outside and servers inside, over UDP and TCP on either side: every pair of scenarios has an application of
// its own, whose host is an address that nobody has, and two servers, so that a message which does not stay with its
// dialog or its challenge finds a server that does not know it.
func TestSIPpCallsServers(t *testing.T) {
	needs(t, "sipp")
	edge := freePort(t)
	var services, pools strings.Builder
	ports := map[string][2]int{}
	host := func(i int, server string) string {
		return fmt.Sprintf("127.77.%d.%d", len(server)+int(server[0])%2, i+1)
	}
	for _, server := range []string{"udp", "tcp"} {
		for i := range scenarios {
			name := fmt.Sprintf("%s-%d", server, i)
			fmt.Fprintf(&services, "  - {name: %s, pool: %s, applications: [{name: calls, kind: sip, host: [%s]}]}\n", name, name, host(i, server))
			two := [2]int{freePort(t), freePort(t)}
			ports[name] = two
			fmt.Fprintf(&pools, "  - name: %s\n    health: {active: {sip: {interval: 1h, fall: 100}}}\n    servers:\n", name)
			for n, port := range two {
				answeringOver(t, scenarios[i].callee, port, words[server])
				fmt.Fprintf(&pools, "      - {name: %s-%d, sip: \"127.0.0.1:%d\", sip_transport: %s}\n", name, n, port, server)
			}
		}
	}
	startNode(t, map[string]string{"wyegate.yaml": fmt.Sprintf(sippConfig, edge, edge, services.String(), pools.String())})
	for _, server := range []string{"udp", "tcp"} {
		for _, client := range []string{"udp", "tcp"} {
			for i, s := range scenarios {
				t.Run(s.name+" "+client+" to "+server, func(t *testing.T) {
					t.Parallel()
					play(t, s.caller, client, freePort(t), fmt.Sprintf("%s:%d", host(i, server), edge), "-inf", target(t, server), "-rsa", fmt.Sprintf("127.0.0.1:%d", edge))
				})
			}
		}
	}
}

const sippConfig = `version: 1
node: {name: edge-1, state_dir: $DIR/state, shutdown: {delay: 0s, deadline: 1s}}
admin: {sockets: [{path: $DIR/admin.sock}], metrics: {address: "127.0.0.1:0"}}
listeners:
  - {name: sip-udp, protocol: sip, transport: udp, bind: "127.0.0.1:%d"}
  - {name: sip-tcp, protocol: sip, transport: tcp, bind: "127.0.0.1:%d"}
services:
%spools:
%slogging: {access: $DIR/access.log}
`

// 21.6, a server calls somebody outside by way of the edge (SR-9), over UDP and TCP outside. The server answers probes as
// it calls: a server that does not is down, and gets nothing, not even the BYE of its own call (section 10).
func TestSIPpServersCallOut(t *testing.T) {
	needs(t, "sipp")
	edge := freePort(t)
	type way struct{ i, server, callee int }
	ways := map[string][]way{}
	var servers []*lbtest.UA
	var lines strings.Builder
	for _, outside := range []string{"udp", "tcp"} {
		for i, s := range scenarios {
			ua, err := lbtest.NewUA(fmt.Sprint(outside, i), lbtest.Answer)
			if err != nil {
				t.Fatal(err)
			}
			servers = append(servers, ua)
			defer ua.Close()
			w := way{i, int(ua.Addr.Port()), freePort(t)}
			ways[outside] = append(ways[outside], w)
			answeringOver(t, s.callee, w.callee, words[outside])
			fmt.Fprintf(&lines, "      - {name: %s, sip: \"%s\"}\n", ua.Name, ua.Addr)
		}
	}
	pools := "  - name: servers\n    health: {active: {sip: {interval: 1h, fall: 100}}}\n    servers:\n" + lines.String()
	startNode(t, map[string]string{"wyegate.yaml": fmt.Sprintf(sippConfig, edge, edge, "  - {name: main, pool: servers, applications: [{name: calls, kind: sip}]}\n", pools)})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // a poll of the probes
		probed := 0
		for _, ua := range servers {
			probed += min(ua.SeenCount("OPTIONS"), 1)
		}
		if probed == len(servers) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d servers were probed", probed, len(servers))
		}
	}
	probes, err := filepath.Abs(filepath.Join("..", "..", "testdata", "sipp", "answers-probes.xml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, ua := range servers {
		ua.Close() // SIPp takes the port
	}
	for outside, list := range ways {
		for _, w := range list {
			s := scenarios[w.i]
			t.Run(s.name+" to "+outside, func(t *testing.T) {
				t.Parallel()
				play(t, s.caller, "udp", w.server, fmt.Sprintf("127.0.0.1:%d", w.callee), "-inf", target(t, outside), "-rsa", fmt.Sprintf("127.0.0.1:%d", edge), "-oocsf", probes)
			})
		}
	}
}
