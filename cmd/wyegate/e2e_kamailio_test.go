package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// calls is how many calls a scenario makes.
const calls = 60

// kamailio runs Debian's stock configuration on a port of 127.0.0.1; nothing but the listen address is other.
func kamailio(t *testing.T) int {
	t.Helper()
	port := freePort(t)
	runKamailio(t, "/etc/kamailio/kamailio.cfg", port, "-l", fmt.Sprintf("udp:127.0.0.1:%d", port), "-l", fmt.Sprintf("tcp:127.0.0.1:%d", port))
	return port
}

// runKamailio runs a configuration until the test ends, and returns when it answers at a UDP port.
func runKamailio(t *testing.T, config string, port int, args ...string) {
	t.Helper()
	program := needs(t, "kamailio")
	if _, err := os.Stat(config); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := &logBuffer{}
	cmd := exec.Command(program, append([]string{"-f", config, "-DD", "-E", "-m", "32", "-Y", dir, "-P", filepath.Join(dir, "pid")}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
		if t.Failed() {
			t.Logf("kamailio said: %s", tail(log.String()))
		}
	})
	probe, err := lbtest.NewUA("probe", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	for deadline := time.Now().Add(15 * time.Second); ; {
		if _, err := transact(t, probe, port, 300*time.Millisecond, fmt.Sprintf("OPTIONS sip:127.0.0.1:%d SIP/2.0", port), "sip:probe@127.0.0.1", "CSeq: 1 OPTIONS"); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("kamailio does not answer: %v\n%s", err, tail(log.String()))
		}
	}
}

// transact sends one request over UDP and waits for its final response.
func transact(t *testing.T, ua *lbtest.UA, port int, wait time.Duration, start, aor string, extra ...string) (*lbtest.Message, error) {
	t.Helper()
	p, err := ua.Dial("UDP", mustAddr(port))
	if err != nil {
		t.Fatal(err)
	}
	lines := append([]string{
		start, "Max-Forwards: 70", "From: <" + aor + ">;tag=" + ua.Branch(), "To: <" + aor + ">", "Call-ID: " + ua.Branch() + "@" + ua.Name,
	}, extra...)
	tr, err := ua.Start(p, ua.Branch(), lines...)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.End()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return tr.Final(ctx)
}

// sipp runs one scenario of testdata/sipp. The function it returns waits for its end and gives what it counted.
func sipp(t *testing.T, scenario string, port int, args ...string) (wait func() (ok, failed int)) {
	t.Helper()
	program := needs(t, "sipp")
	dir := t.TempDir()
	file, err := filepath.Abs(filepath.Join("..", "..", "testdata", "sipp", scenario))
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"-sf", file, "-i", "127.0.0.1", "-p", strconv.Itoa(port), "-nostdin", "-trace_err", "-error_file", filepath.Join(dir, "errors")}
	if !slices.Contains(args, "-m") {
		all = append(all, "-m", strconv.Itoa(calls), "-timeout", "30")
	}
	all = append(all, args...)
	cmd := exec.Command(program, all...)
	cmd.Dir = dir
	out := &logBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() (int, int) {
		t.Helper()
		select {
		case err := <-ended:
			ok, failed := counts(out.String())
			if err != nil {
				errors, _ := os.ReadFile(filepath.Join(dir, "errors"))
				t.Errorf("%s: %v: %s", scenario, err, tail(string(errors)))
			}
			return ok, failed
		case <-time.After(75 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
			ok, failed := counts(out.String())
			return ok, failed
		}
	}
}

var counter = regexp.MustCompile(`(Successful|Failed) call\s*\|\s*\d+\s*\|\s*(\d+)`)

// counts reads the last screen of SIPp.
func counts(screen string) (ok, failed int) {
	for _, m := range counter.FindAllStringSubmatch(screen, -1) {
		n, _ := strconv.Atoi(m[2])
		if m[1] == "Successful" {
			ok = n
		} else {
			failed = n
		}
	}
	return ok, failed
}

// sipNode runs an edge for SIP over both transports before servers at these ports.
func sipNode(t *testing.T, servers map[string]int) (n *node, port int) {
	t.Helper()
	port = freePort(t)
	var lines strings.Builder
	for name, p := range servers {
		fmt.Fprintf(&lines, "      - {name: %s, sip: \"127.0.0.1:%d\"}\n", name, p)
	}
	return startNode(t, map[string]string{"wyegate.yaml": fmt.Sprintf(`version: 1
node: {name: edge-1, state_dir: $DIR/state, shutdown: {delay: 0s, deadline: 1s}}
admin: {sockets: [{path: $DIR/admin.sock}], metrics: {address: "127.0.0.1:0"}}
listeners:
  - {name: sip-udp, protocol: sip, transport: udp, bind: "127.0.0.1:%d"}
  - {name: sip-tcp, protocol: sip, transport: tcp, bind: "127.0.0.1:%d"}
services:
  - {name: main, pool: appservers, applications: [{name: voice, kind: sip}]}
pools:
  - name: appservers
    health: {active: {sip: {fall: 100}}}
    servers:
%slogging: {access: $DIR/access.log}
`, port, port, lines.String())}), port
}

// ways are who hangs up, over which transport of the caller.
var ways = []struct{ caller, callee, transport string }{
	{"uac.xml", "uas.xml", "u1"}, {"uac-waits.xml", "uas-hangs-up.xml", "u1"},
	{"uac.xml", "uas.xml", "t1"}, {"uac-waits.xml", "uas-hangs-up.xml", "t1"},
}

// Kamailio with Debian's stock configuration stands behind the edge as its server: users register through the edge, and
// calls to them complete, whichever side hangs up.
func TestKamailioBehind(t *testing.T) {
	k := kamailio(t)
	_, edge := sipNode(t, map[string]int{"k1": k})
	phone, err := lbtest.NewUA("phone", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	for _, w := range ways {
		t.Run(w.callee+" "+w.transport, func(t *testing.T) {
			callee := freePort(t)
			user := fmt.Sprintf("u%d", callee)
			register(t, phone, edge, k, user, callee)
			answering(t, w.callee, callee)
			uac := sipp(t, w.caller, freePort(t), "-t", w.transport, "-inf", users(t, user), "-r", "20",
				"-rsa", fmt.Sprintf("127.0.0.1:%d", edge), fmt.Sprintf("127.0.0.1:%d", k))
			allComplete(t, uac)
		})
	}
}

// register tells Kamailio's registrar by way of port where a user is.
func register(t *testing.T, phone *lbtest.UA, port, registrar int, user string, at int) {
	t.Helper()
	m, err := transact(t, phone, port, 5*time.Second, fmt.Sprintf("REGISTER sip:127.0.0.1:%d SIP/2.0", registrar),
		fmt.Sprintf("sip:%s@127.0.0.1:%d", user, registrar), "CSeq: 1 REGISTER",
		fmt.Sprintf("Contact: <sip:%s@127.0.0.1:%d>", user, at), "Expires: 600")
	if err != nil || m.Status != 200 {
		t.Fatalf("REGISTER: %v, %v", m, err)
	}
}

// Kamailio stands in front of the edge as an upstream proxy that record-routes: its users are reached through the edge.
func TestKamailioInFront(t *testing.T) {
	k := kamailio(t)
	phone, err := lbtest.NewUA("phone", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	for _, w := range ways {
		t.Run(w.callee+" "+w.transport, func(t *testing.T) {
			callee := freePort(t)
			answering(t, w.callee, callee)
			_, edge := sipNode(t, map[string]int{"as1": callee})
			user := fmt.Sprintf("u%d", callee)
			register(t, phone, k, k, user, edge)
			uac := sipp(t, w.caller, freePort(t), "-t", w.transport, "-inf", users(t, user), "-r", "20", fmt.Sprintf("127.0.0.1:%d", k))
			allComplete(t, uac)
		})
	}
}

// allComplete demands that each call was answered and ended as its scenario says; the caller sees both ends of it.
func allComplete(t *testing.T, uac func() (int, int)) {
	t.Helper()
	if ok, failed := uac(); ok != calls || failed != 0 {
		t.Errorf("%d of %d calls, %d failed", ok, calls, failed)
	}
}

// answering runs a called side until the test ends. It counts health probes among its calls, so only the caller's
// figures say something.
func answering(t *testing.T, scenario string, port int) {
	t.Helper()
	answeringOver(t, scenario, port, "u1")
}

// answeringOver is answering over a transport in the words of SIPp.
func answeringOver(t *testing.T, scenario string, port int, transport string) {
	t.Helper()
	sipp(t, scenario, port, "-t", transport, "-m", "1000000")
	waitBound(t, map[byte]string{'u': "udp", 't': "tcp"}[transport[0]], port)
}

// users writes an injection file with one user.
func users(t *testing.T, user string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "users.csv")
	if err := os.WriteFile(name, []byte("SEQUENTIAL\n"+user+";udp;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// waitBound waits until a program has bound a port of 127.0.0.1, "udp" or "tcp". It asks the kernel's tables (Linux): to
// bind the port for a trial would now and then take it from that program.
func waitBound(t *testing.T, network string, port int) {
	t.Helper()
	bound := regexp.MustCompile(fmt.Sprintf(`(?m)^ *\d+: 0100007F:%04X 00000000:0000 (07|0A) `, port))
	for deadline := time.Now().Add(10 * time.Second); ; {
		table, err := os.ReadFile("/proc/net/" + network)
		if err != nil {
			t.Fatal(err)
		}
		if bound.Match(table) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody has bound %s port %d", network, port)
		}
		time.Sleep(20 * time.Millisecond) // a poll of another process
	}
}
