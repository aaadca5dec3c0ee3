package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary builds bin/wyegate once for all tests that run the real process.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "wyegate-bin")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "wyegate")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// built is the folder of binary, for TestMain to remove; empty: no test needed it.
var built string

// node is one running wyegate process with its folder.
type node struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	stderr *logBuffer
	exited chan struct{}
}

// logBuffer keeps what the process says, for failures.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startNode writes files (wyegate.yaml among them) into a folder, runs the daemon and waits until it is ready. In the
// files $DIR stands for the folder.
func startNode(t *testing.T, files map[string]string) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir()}
	for name, text := range files {
		n.write(name, text)
	}
	n.start()
	t.Cleanup(func() { n.stop(syscall.SIGKILL) })
	return n
}

func (n *node) write(name, text string) {
	n.t.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, name), []byte(strings.ReplaceAll(text, "$DIR", n.dir)), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) start() {
	n.t.Helper()
	bin, err := binary()
	if err != nil {
		n.t.Fatal(err)
	}
	n.stderr = &logBuffer{}
	n.cmd = exec.Command(bin, "run", "-c", filepath.Join(n.dir, "wyegate.yaml"))
	n.cmd.Stdout, n.cmd.Stderr = n.stderr, n.stderr
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.exited = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(n.cmd, n.exited)
	n.eventually(20*time.Second, "the node is ready", func() error {
		select {
		case <-n.exited:
			n.t.Fatalf("wyegate ended: %v\n%s", n.cmd.ProcessState, n.stderr)
		default:
		}
		var s struct {
			Ready bool `json:"ready"`
		}
		if err := n.api("/v1/status", &s); err != nil {
			return err
		}
		if !s.Ready {
			return errors.New("not ready yet")
		}
		return nil
	})
}

// stop ends the process and waits for it.
func (n *node) stop(sig syscall.Signal) {
	_ = n.cmd.Process.Signal(sig)
	select {
	case <-n.exited:
	case <-time.After(30 * time.Second):
		_ = n.cmd.Process.Kill()
		<-n.exited
	}
}

func (n *node) socket() string { return filepath.Join(n.dir, "admin.sock") }

// client speaks HTTP over the admin socket.
func (n *node) client() *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", n.socket())
		},
	}}
}

func (n *node) api(path string, into any) error {
	r, err := n.client().Get("http://w" + path)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.StatusCode != 200 {
		return fmt.Errorf("GET %s: %s: %s", path, r.Status, body)
	}
	return json.Unmarshal(body, into)
}

func (n *node) post(path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := n.client().Post("http://w"+path, "application/json", bytes.NewReader(data))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.StatusCode/100 != 2 {
		return fmt.Errorf("POST %s: %s: %s", path, r.Status, answer)
	}
	return json.Unmarshal(answer, into)
}

// cli runs a verb against the node and gives its output and exit status.
func (n *node) cli(args ...string) (stdout string, status int) {
	n.t.Helper()
	bin, err := binary()
	if err != nil {
		n.t.Fatal(err)
	}
	return run(n.t, n.dir, bin, append([]string{"--socket", n.socket()}, args...)...)
}

// run runs a program and gives its standard output and exit status; standard error is logged.
func run(t *testing.T, dir, bin string, args ...string) (stdout string, status int) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errOut
	err := cmd.Run()
	if errOut.Len() > 0 {
		t.Logf("%s: %s", strings.Join(args, " "), errOut.String())
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// reload sends SIGHUP and waits until the generation has changed, or until the refusal is seen when refused.
func (n *node) reload(refused bool) {
	n.t.Helper()
	type status struct {
		Generation uint64 `json:"generation"`
		Reloads    struct {
			Refused uint64 `json:"refused"`
		} `json:"reloads"`
	}
	var before status
	if err := n.api("/v1/status", &before); err != nil {
		n.t.Fatal(err)
	}
	if err := n.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		n.t.Fatal(err)
	}
	n.eventually(10*time.Second, "the reload", func() error {
		var now status
		if err := n.api("/v1/status", &now); err != nil {
			return err
		}
		switch {
		case refused && now.Reloads.Refused > before.Reloads.Refused, !refused && now.Generation > before.Generation:
			return nil
		}
		return fmt.Errorf("generation %d, was %d", now.Generation, before.Generation)
	})
}

// eventually polls until f gives no error.
func (n *node) eventually(limit time.Duration, what string, f func() error) {
	n.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("%s did not come within %s: %v\n%s", what, limit, err, tail(n.stderr.String()))
		}
		time.Sleep(20 * time.Millisecond) // a poll between two processes; nothing to wait on
	}
}

func tail(s string) string {
	if len(s) > 4000 {
		return "…" + s[len(s)-4000:]
	}
	return s
}

// freePort gives a port of 127.0.0.1 that was free a moment ago for both transports.
func freePort(t *testing.T) int {
	t.Helper()
	for range 50 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		u, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port))
		l.Close()
		if err == nil {
			u.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// needs skips the test when a program is missing; where skips are failures it fails.
func needs(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("WYEGATE_CI") != "" {
			t.Fatalf("%s is missing: make peers installs it", program)
		}
		t.Skipf("%s is missing: make peers installs it", program)
	}
	return path
}
