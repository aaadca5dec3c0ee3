package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// capture writes what passes these ports of the loopback interface into a file until the function it returns is called.
func capture(t *testing.T, ports []int) (file string, stop func()) {
	t.Helper()
	needs(t, "tshark")
	program := needs(t, "dumpcap")
	file = filepath.Join(t.TempDir(), "lo.pcapng")
	var filter []string
	for _, p := range ports {
		filter = append(filter, fmt.Sprintf("port %d", p))
	}
	said := &logBuffer{}
	cmd := exec.Command(program, "-q", "-i", "lo", "-B", "16", "-w", file, "-f", strings.Join(filter, " or "))
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // a poll of another process
		if strings.Contains(said.String(), "File: ") {
			break
		}
		select {
		case err := <-ended:
			if os.Getenv("WYEGATE_CI") != "" {
				t.Fatalf("no capture: %v: %s", err, said)
			}
			t.Skipf("no capture without the right to it: %v: %s", err, said)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("dumpcap does not begin: %s", said)
		}
	}
	return file, func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("dumpcap does not end")
		}
	}
}

// tshark gives the lines of one reading of a capture in which these ports are SIP.
func tshark(t *testing.T, file string, ports []int, filter string, fields ...string) []string {
	t.Helper()
	args := []string{"-n", "-r", file, "-Y", filter, "-T", "fields"}
	for _, p := range ports {
		args = append(args, "-d", fmt.Sprintf("udp.port==%d,sip", p), "-d", fmt.Sprintf("tcp.port==%d,sip", p))
	}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	cmd := exec.Command(needs(t, "tshark"), args...)
	said := &logBuffer{}
	cmd.Stderr = said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v: %s", err, said)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}

// 21.6: tshark decodes every message we send without a complaint: calls of every kind between UDP and TCP, probes, and
// answers of our own.
func TestTsharkDecodesWhatWeSend(t *testing.T) {
	needs(t, "sipp")
	edge := freePort(t)
	ports := []int{edge}
	var services, pools strings.Builder
	hosts := map[string]string{"udp": "127.77.1.1", "tcp": "127.77.1.2"}
	chosen := scenarios[1:8] // with CANCEL, 486, re-INVITE, PRACK, REFER and SUBSCRIBE among them
	type pair struct {
		host, transport string
		scenario        int
	}
	var pairs []pair
	for _, server := range []string{"udp", "tcp"} {
		for i, s := range chosen {
			name, port := fmt.Sprintf("%s-%d", server, i), freePort(t)
			ports = append(ports, port)
			host := fmt.Sprintf("%s%d", strings.TrimSuffix(hosts[server], "1"), i+10)
			answeringOver(t, s.callee, port, words[server])
			fmt.Fprintf(&services, "  - {name: %s, pool: %s, applications: [{name: calls, kind: sip, host: [%s]}]}\n", name, name, host)
			fmt.Fprintf(&pools, "  - name: %s\n    health: {active: {sip: {interval: 1h, fall: 100}}}\n    servers: [{name: %s, sip: \"127.0.0.1:%d\", sip_transport: %s}]\n", name, name, port, server)
			pairs = append(pairs, pair{host, server, i})
		}
	}
	file, stop := capture(t, ports)
	startNode(t, map[string]string{"wyegate.yaml": fmt.Sprintf(sippConfig, edge, edge, services.String(), pools.String())})
	t.Run("calls", func(t *testing.T) {
		for _, p := range pairs {
			for _, client := range []string{"udp", "tcp"} {
				s := chosen[p.scenario]
				t.Run(s.name+" "+client+" to "+p.transport, func(t *testing.T) {
					t.Parallel()
					play(t, s.caller, client, freePort(t), fmt.Sprintf("%s:%d", p.host, edge), "-inf", target(t, p.transport), "-rsa", fmt.Sprintf("127.0.0.1:%d", edge))
				})
			}
		}
	})
	phone, err := lbtest.NewUA("phone", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	us := fmt.Sprintf("sip:127.0.0.1:%d", edge)
	for start, want := range map[string]int{
		"OPTIONS " + us + " SIP/2.0": 200, "OPTIONS sip:bob@nowhere.example SIP/2.0": 404, "OPTIONS sips:bob@127.77.1.1 SIP/2.0": 480,
		"OPTIONS foo:bar SIP/2.0": 416, "OPTIONS sip:bob@127.77.1.10 SIP/3.0": 505, "OPTIONS sip:bob@127.77.1.10?a=b SIP/2.0": 400,
	} {
		if m, err := transact(t, phone, edge, 5*time.Second, start, "sip:phone@example.net", "CSeq: 1 OPTIONS"); err != nil || m.Status != want {
			t.Errorf("%s: %v, %v", start, m, err)
		}
	}
	if m, err := transact(t, phone, edge, 5*time.Second, "OPTIONS "+us+" SIP/2.0", "sip:phone@example.net", "CSeq: 1 OPTIONS", "Proxy-Require: a, b"); err != nil || m.Status != 420 {
		t.Errorf("Proxy-Require: %v, %v", m, err)
	}
	stop()
	ours := fmt.Sprintf("(udp.srcport == %d || tcp.srcport == %d", edge, edge)
	for _, p := range ports[1:] { // where a connection of ours leads has a port of the kernel's on our side
		ours += fmt.Sprintf(" || tcp.dstport == %d", p)
	}
	ours += ")"
	sent := tshark(t, file, ports, ours+" && sip", "frame.number")
	if len(sent) < scripted*len(pairs)*2*4 {
		t.Errorf("%d frames of ours were captured", len(sent))
	}
	// Severity warning and above, of whatever group but that of TCP's sequence numbers, which a busy machine's capture has.
	if bad := tshark(t, file, ports, ours+" && (_ws.malformed || _ws.expert.severity >= 0x600000 && _ws.expert.group != 0x2000000)",
		"frame.number", "_ws.expert.message", "sip.Request-Line", "sip.Status-Line"); len(bad) > 0 {
		t.Errorf("tshark complains %d times, first: %s", len(bad), bad[0])
	}
	if odd := tshark(t, file, ports, fmt.Sprintf("udp.srcport == %d && !sip", edge), "frame.number", "frame.protocols"); len(odd) > 0 {
		t.Errorf("%d datagrams are not SIP to tshark, first: %s", len(odd), odd[0])
	}
}
