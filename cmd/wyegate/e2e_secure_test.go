package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// needsModule skips where a module of Kamailio is not installed.
func needsModule(t *testing.T, name string) {
	t.Helper()
	needs(t, "kamailio")
	if found, _ := filepath.Glob("/usr/lib/*/kamailio/modules/" + name + ".so"); len(found) > 0 {
		return
	}
	if os.Getenv("WYEGATE_CI") != "" {
		t.Fatalf("Kamailio's module %s is missing: make peers installs it", name)
	}
	t.Skipf("Kamailio's module %s is missing: make peers installs it", name)
}

// secureKamailio is a Kamailio over UDP, TLS, WS and WSS whose certificate names k.example.net and 127.0.0.1.
type secureKamailio struct{ udp, tls, ws int }

func newSecureKamailio(t *testing.T, ca *lbtest.CA) secureKamailio {
	t.Helper()
	needsModule(t, "tls")
	needsModule(t, "websocket")
	dir := t.TempDir()
	cert, key := ca.Files(dir, "k", lbtest.Leaf{Names: []string{"k.example.net", "127.0.0.1"}})
	bundle := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(bundle, ca.Bundle(), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Abs("../../testdata/kamailio/secure.cfg")
	if err != nil {
		t.Fatal(err)
	}
	k := secureKamailio{freePort(t), freePort(t), freePort(t)}
	define := func(name string, value any) []string { return []string{"-A", fmt.Sprintf("%s=%v", name, value)} }
	var args []string
	args = append(args, define("UDP_PORT", k.udp)...)
	args = append(args, define("TLS_PORT", k.tls)...)
	args = append(args, define("WS_PORT", k.ws)...)
	for name, file := range map[string]string{"CERT_FILE": cert, "KEY_FILE": key, "CA_FILE": bundle} {
		args = append(args, define(name, `"`+file+`"`)...)
	}
	runKamailio(t, config, k.udp, args...)
	return k
}

// secureNode is an edge over every transport before one server. transport and more say how the server is reached; the
// second result is the edge's ports by transport.
func secureNode(t *testing.T, ca *lbtest.CA, server string) (*node, map[string]int) {
	t.Helper()
	port := map[string]int{"udp": freePort(t), "tls": freePort(t), "ws": freePort(t), "wss": freePort(t)}
	cert, key := ca.PEM(lbtest.Leaf{Names: []string{"front.example.net", "127.0.0.1"}})
	return startNode(t, map[string]string{"front.pem": string(cert), "front.key": string(key), "ca.pem": string(ca.Bundle()), "wyegate.yaml": fmt.Sprintf(`version: 1
node: {name: edge-1, state_dir: $DIR/state, shutdown: {delay: 0s, deadline: 1s}}
admin: {sockets: [{path: $DIR/admin.sock}], metrics: {address: "127.0.0.1:0"}}
certificates: [{name: front, cert_file: front.pem, key_file: front.key}]
listeners:
  - {name: sip-udp, protocol: sip, transport: udp, bind: "127.0.0.1:%[1]d"}
  - {name: sip-tcp, protocol: sip, transport: tcp, bind: "127.0.0.1:%[1]d"}
  - {name: sip-tls, protocol: sip, transport: tls, bind: "127.0.0.1:%[2]d", certificate: front, tls_uri: transport, outbound: true}
  - {name: sip-ws, protocol: sip, transport: ws, bind: "127.0.0.1:%[3]d"}
  - {name: sip-wss, protocol: sip, transport: wss, bind: "127.0.0.1:%[4]d", certificate: front}
services:
  - {name: main, pool: appservers, applications: [{name: voice, kind: sip}]}
pools:
  - name: appservers
    health: {active: {sip: {fall: 100}}}
    servers:
      - %[5]s
logging: {access: $DIR/access.log}
`, port["udp"], port["tls"], port["ws"], port["wss"], server)}), port
}

// Kamailio behind the edge as a server over TLS, WS and WSS: what it sends to the edge comes back on connections that the
// edge has opened, or over TLS on one that it opens and whose certificate it checks.
func TestKamailioBehindSecure(t *testing.T) {
	ca := lbtest.NewCA(t)
	k := newSecureKamailio(t, ca)
	phone, err := lbtest.NewUA("phone", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	for name, server := range map[string]string{
		"tls": fmt.Sprintf(`{name: k1, sip: "127.0.0.1:%d", sip_transport: tls, tls: {server_name: k.example.net, ca_file: ca.pem}}`, k.tls),
		"ws":  fmt.Sprintf(`{name: k1, sip: "127.0.0.1:%d", sip_transport: ws, sip_path: /}`, k.ws),
		"wss": fmt.Sprintf(`{name: k1, sip: "127.0.0.1:%d", sip_transport: wss, sip_path: /, tls: {server_name: k.example.net, ca_file: ca.pem}}`, k.tls),
	} {
		_, edge := secureNode(t, ca, server)
		for _, w := range ways {
			t.Run(name+" "+w.callee+" "+w.transport, func(t *testing.T) {
				callee := freePort(t)
				user := fmt.Sprintf("u%d", callee)
				register(t, phone, edge["udp"], k.udp, user, callee)
				answering(t, w.callee, callee)
				uac := sipp(t, w.caller, freePort(t), "-t", w.transport, "-inf", users(t, user), "-r", "100",
					"-rsa", fmt.Sprintf("127.0.0.1:%d", edge["udp"]), fmt.Sprintf("127.0.0.1:%d", k.udp))
				allComplete(t, uac)
			})
		}
	}
}

// Kamailio in front of the edge as a client over TLS that checks the edge's certificate: its users are reached through the
// edge, and hang-ups of the called side come back to it.
func TestKamailioInFrontSecure(t *testing.T) {
	ca := lbtest.NewCA(t)
	k := newSecureKamailio(t, ca)
	phone, err := lbtest.NewUA("phone", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	for _, w := range ways[:2] {
		t.Run(w.callee, func(t *testing.T) {
			callee := freePort(t)
			answering(t, w.callee, callee)
			_, edge := secureNode(t, ca, fmt.Sprintf(`{name: as1, sip: "127.0.0.1:%d"}`, callee))
			user := fmt.Sprintf("u%d", callee)
			m, err := transact(t, phone, k.udp, 5*time.Second, fmt.Sprintf("REGISTER sip:127.0.0.1:%d SIP/2.0", k.udp),
				fmt.Sprintf("sip:%s@127.0.0.1:%d", user, k.udp), "CSeq: 1 REGISTER",
				fmt.Sprintf("Contact: <sip:%s@127.0.0.1:%d;transport=tls>", user, edge["tls"]), "Expires: 600")
			if err != nil || m.Status != 200 {
				t.Fatalf("REGISTER: %v, %v", m, err)
			}
			uac := sipp(t, w.caller, freePort(t), "-t", "u1", "-inf", users(t, user), "-r", "100", fmt.Sprintf("127.0.0.1:%d", k.udp))
			allComplete(t, uac)
		})
	}
}
