package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wyegate/wyegate/internal/engine"
)

// operations.md 4.2: whatever is found in the place of a file, a reload refuses it and serves on: no pipe that nobody
// writes holds up later applies and status, no file without an end takes the node's memory.
func TestReloadReadsRegularFilesOnly(t *testing.T) {
	e, stop := start(t, 1)
	defer stop()
	path := filepath.Join(e.dir, "rules.xml")
	replace := func(t *testing.T, with func(string) error) {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := with(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, with := range map[string]func(string) error{
		"pipe":        func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"endless":     func(p string) error { return os.Symlink("/dev/zero", p) },
		"empty place": func(p string) error { return os.Symlink("/nowhere", p) },
		"too large": func(p string) error {
			if err := os.WriteFile(p, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(p, 1<<40)
		},
	} {
		t.Run(name, func(t *testing.T) {
			replace(t, with)
			if err := e.Reload("test"); err == nil || !strings.Contains(err.Error(), "rules.xml") {
				t.Errorf("reload says %v", err)
			}
			if !e.Status().FileDiffers {
				t.Error("status does not tell that the file is another one")
			}
			if code, _ := e.web("/room?conf=1"); code != 200 {
				t.Errorf("traffic gets %d", code)
			}
		})
	}
	replace(t, func(p string) error { return os.WriteFile(p, []byte(goodRules), 0o600) })
	if err := e.Reload("test"); err != nil {
		t.Error(err)
	}
}

// What a command is given may be a pipe, but has an end.
func TestLoadFileHasAnEnd(t *testing.T) {
	if _, problems := engine.LoadFile("/dev/zero"); len(problems) != 1 || !strings.Contains(problems[0].Text, "larger") {
		t.Errorf("findings: %v", problems)
	}
}
