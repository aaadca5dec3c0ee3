package docs

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

var (
	bindAddress   = regexp.MustCompile(`bind: "([^"]+)"`)
	serverAddress = regexp.MustCompile(`\{name: (as\d+).*sip: "([^"]+)".*http: "([^"]+)"`)
)

// startNode runs the document's wyegate.yaml: its listeners on free ports of this machine, its servers as servers of
// this process, all else as it is written. One call to room-4711 is up when the commands begin.
func startNode(t *testing.T, doc string) *surroundings {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, doc)
	file := filepath.Join(dir, "wyegate.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	var pairs []string // what the document says, what is really there
	for _, m := range serverAddress.FindAllStringSubmatch(text, -1) {
		s, err := lbtest.NewServer(m[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		pairs = append(pairs, m[2], s.Addr.String(), m[3], s.Web.String())
	}
	var front netip.AddrPort
	ports := map[string]string{}
	for _, m := range bindAddress.FindAllStringSubmatch(text, -1) {
		if ports[m[1]] == "" {
			ports[m[1]] = freeAddress(t)
			pairs = append(pairs, m[1], ports[m[1]])
		}
		if !front.IsValid() {
			front = netip.MustParseAddrPort(ports[m[1]])
		}
	}
	text = strings.NewReplacer(pairs...).Replace(text)
	text = strings.ReplaceAll(text, "/var/log/wyegate/", dir+"/")
	text += fmt.Sprintf("admin: {sockets: [{path: %[1]s/admin.sock}], metrics: {address: \"127.0.0.1:0\"}}\n", dir)
	text += fmt.Sprintf("node: {name: edge-1, state_dir: %[1]s/state, shutdown: {delay: 0s, deadline: 2s}}\n", dir)
	write(t, file, text)
	run(t, dir, file)
	call(t, front)
	var back []string
	for i := 0; i < len(pairs); i += 2 {
		back = append(back, pairs[i+1], pairs[i])
	}
	if u, err := user.Current(); err == nil {
		back = append(back, u.Username, "alice")
	}
	return &surroundings{
		dir: dir, env: append(os.Environ(), "WYEGATE_SOCKET="+filepath.Join(dir, "admin.sock")),
		tidy: strings.NewReplacer(back...).Replace,
	}
}

// run starts the daemon and waits until it is ready and knows its servers.
func run(t *testing.T, dir, file string) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(program(t), "run", "-c", file)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the daemon said:\n%s", said.String())
		}
	})
	socket := filepath.Join(dir, "admin.sock")
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
	deadline := time.Now().Add(20 * time.Second)
	for {
		if ready(client) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the daemon is not ready after 20 s")
		}
		time.Sleep(20 * time.Millisecond) // a poll between two processes; nothing to wait on
	}
}

// ready reports whether every server was probed with success.
func ready(client *http.Client) bool {
	r, err := client.Get("http://w/v1/pools")
	if err != nil {
		return false
	}
	defer r.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(r.Body)
	return err == nil && r.StatusCode == http.StatusOK && !strings.Contains(body.String(), `"unknown"`)
}

// call has alice call room-4711 and leaves the call up.
func call(t *testing.T, front netip.AddrPort) {
	t.Helper()
	ua, err := lbtest.NewUA("alice", lbtest.Answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ua.Close)
	path, err := ua.Dial("UDP", front)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, m, err := ua.Invite(ctx, path, lbtest.InviteOptions{RequestURI: "sip:room-4711@conf.example.net", From: "sip:alice@example.net"})
	if err != nil {
		t.Fatal(err)
	}
	if m.Status != 200 {
		t.Fatalf("the call was answered %d", m.Status)
	}
}

// freeAddress gives an address of this machine whose port was free a moment ago for both transports.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 50 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		u, err := net.ListenPacket("udp4", addr)
		l.Close()
		if err == nil {
			u.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}
