package admin

import (
	"bytes"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

var quiet = slog.New(slog.DiscardHandler)

func TestSocketHasModeAndNoStranger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "admin.sock")
	e, err := OpenSocket(Socket{Path: path, Mode: 0o600, Role: Operator}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Lstat(path)
	if err != nil || st.Mode().Perm() != 0o600 || st.Mode()&fs.ModeSocket == 0 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(left) != 1 {
		t.Errorf("folder has %v", left)
	}
	if _, err := OpenSocket(Socket{Path: path}, quiet); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second one: %v", err)
	}
	a := New(Config{Node: newFake()})
	run(t, a, e)()
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket stays behind")
	}
}

func TestSocketOfADeadProcessIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	e, err := OpenSocket(Socket{Path: path}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(path); err != nil || st.Mode().Perm() != 0o660 {
		t.Errorf("%v %v", st, err)
	}
	e.Close()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSocket(Socket{Path: path}, quiet); err == nil {
		t.Error("a file was replaced")
	}
}

func TestUnknownGroupNarrowsTheSocket(t *testing.T) {
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "a.sock")
	e, err := OpenSocket(Socket{Path: path, Group: "no-such-group"}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if st, _ := os.Lstat(path); st.Mode().Perm() != 0o600 || !strings.Contains(log.String(), "owner only") {
		t.Errorf("mode %v, log %s", st.Mode(), log.String())
	}
	g, err := user.LookupGroupId("0")
	if err != nil || os.Getuid() != 0 {
		return // who is not root cannot give a socket to a group
	}
	e2, err := OpenSocket(Socket{Path: path + "2", Group: g.Name}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer e2.Close()
	if st, _ := os.Lstat(path + "2"); st.Mode().Perm() != 0o660 {
		t.Errorf("mode %v", st.Mode())
	}
}

func TestLongPathIsSaid(t *testing.T) {
	if _, err := OpenSocket(Socket{Path: "/tmp/" + strings.Repeat("x", 120)}, quiet); err == nil || !strings.Contains(err.Error(), "longer") {
		t.Errorf("%v", err)
	}
}

// TestPeerIsNamed: the audit names who connected, as the kernel says it.
func TestPeerIsNamed(t *testing.T) {
	f := newFake()
	c, _ := serve(t, f, Operator)
	ask(t, c, "PATCH", "/v1/pools/web/servers/as1", `{"weight":3}`)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if f.changes[0].By != me.Username {
		t.Errorf("by %q, I am %q", f.changes[0].By, me.Username)
	}
}
