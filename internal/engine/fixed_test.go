package engine_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/wyegate/wyegate/admin"
)

// logged is a log that tests read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// What a running node does not change is said, each setting once, and only when it differs.
func TestSettingsThatWaitForARestartAreTold(t *testing.T) {
	log := &logged{}
	e, _ := startWith(t, 2, slog.New(slog.NewTextHandler(log, nil)))
	if err := e.Reload("test"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "waits for a restart") {
		t.Errorf("warned without a change: %s", log)
	}
	changed := strings.Replace(e.yaml("logging: {access: access.log}\n", 0, 1), "{path: admin.sock}", "{path: other.sock}", 1)
	e.write("wyegate.yaml", strings.Replace(changed, "127.0.0.1:0\"}}", "127.0.0.2:0\"}}", 1))
	if err := e.Reload("test"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"admin.sockets", "admin.metrics.address", "logging.access"} {
		if n := strings.Count(log.String(), "setting="+s+" "); n != 1 {
			t.Errorf("%s is told %d times in %s", s, n, log)
		}
	}
	if strings.Contains(log.String(), "setting=node.") {
		t.Errorf("a setting that did not change is told: %s", log)
	}
}

// A reload reads the secrets anew, so that they rotate under traffic; a broken file changes nothing.
func TestReloadRotatesSecrets(t *testing.T) {
	e, stop := start(t, 2)
	e.write("secrets", "0 the first secret of all\n")
	e.write("wyegate.yaml", e.yaml("cluster: {secret_file: secrets}\n", 0, 1))
	stop()
	e.run()
	first := e.cookie("")
	e.write("secrets", "1 a second secret for all\n0 the first secret of all\n")
	if err := e.Reload("test"); err != nil {
		t.Fatal(err)
	}
	if again := e.cookie(first); again != "" {
		t.Errorf("a token by the old secret, which is still read, was replaced by %q", again)
	}
	second := e.cookie("")
	if first == "" || second == "" {
		t.Fatal("a new session gets no token")
	}
	e.write("secrets", "1 a second secret for all\n")
	if err := e.Reload("test"); err != nil {
		t.Fatal(err)
	}
	if e.cookie(second) != "" || e.cookie(first) == "" {
		t.Error("the new secret does not read, or the removed one does")
	}
	e.write("secrets", "no number here\n")
	var bad *admin.Refused
	if err := e.Reload("test"); !errors.As(err, &bad) {
		t.Errorf("a broken secret file: %v", err)
	}
	if e.cookie(second) != "" {
		t.Error("a refused reload took the secrets away")
	}
}
