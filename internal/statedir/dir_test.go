package statedir

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read("a.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	for _, text := range []string{"long text", "short"} {
		if err := d.Write("a.json", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Read("a.json"); err != nil || string(got) != text {
			t.Errorf("read %q, %v", got, err)
		}
	}
	st, err := os.Stat(filepath.Join(path, "a.json"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o700 {
		t.Errorf("folder has mode %v", st.Mode())
	}
}

func TestOpenRemovesWhatACrashLeft(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "a.json"+temporary), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := d.List(""); err != nil || len(names) != 0 {
		t.Errorf("left over: %v, %v", names, err)
	}
}

func TestNamesStayInTheFolder(t *testing.T) {
	d, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "../x", "a/b", "..", ".hidden"} {
		if err := d.Write(name, nil); !errors.Is(err, ErrName) {
			t.Errorf("%q is taken: %v", name, err)
		}
	}
}

func TestSecretIsMadeOnce(t *testing.T) {
	path := t.TempDir()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	first, err := d.Secret()
	if err != nil || len(first) != secretLen {
		t.Fatalf("secret of %d octets, %v", len(first), err)
	}
	again, err := d.Secret()
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("the secret has changed: %v", err)
	}
	if err := os.WriteFile(filepath.Join(path, secretFile), []byte("zz"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Secret(); err == nil {
		t.Error("a damaged secret is taken")
	}
}
