// Package statedir keeps what survives a restart: files in one folder that only the process's user may read, each
// written whole or not at all. What is in them is the business of those who write them; the package knows bytes and
// names, and one secret that it makes itself.
//
// One write: the bytes go to a new file beside the old one, are forced to the disk, and take the old one's name. A crash
// leaves the old file or the new one.
package statedir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrName says that a name is no plain file name.
var ErrName = errors.New("statedir: not a plain file name")

const (
	folderMode = 0o700
	fileMode   = 0o600
	temporary  = ".new"
	secretFile = "token.secret"
	secretLen  = 32
)

// Dir is one state folder.
type Dir struct{ path string }

// Open makes the folder if it is not there, and removes what a crash left unfinished.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, folderMode); err != nil {
		return nil, fmt.Errorf("statedir: %w", err)
	}
	d := &Dir{path: path}
	names, err := d.List("")
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if strings.HasSuffix(n, temporary) {
			if err := d.Remove(n); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// Path is the folder.
func (d *Dir) Path() string { return d.path }

// Read gives a file; the error is fs.ErrNotExist when there is none.
func (d *Dir) Read(name string) ([]byte, error) {
	path, err := d.file(name)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// Write replaces a file.
func (d *Dir) Write(name string, data []byte) error {
	path, err := d.file(name)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path+temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return fmt.Errorf("statedir: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+temporary, path)
	}
	if err != nil {
		_ = os.Remove(path + temporary) // the error that counts is the first
		return fmt.Errorf("statedir: %w", err)
	}
	return d.sync()
}

// sync forces the folder to the disk: without it the new name may be gone after a crash.
func (d *Dir) sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return fmt.Errorf("statedir: %w", err)
	}
	return errors.Join(f.Sync(), f.Close())
}

// Remove deletes a file; one that is not there is no error.
func (d *Dir) Remove(name string) error {
	path, err := d.file(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("statedir: %w", err)
	}
	return nil
}

// damagedPrefix marks files that were set aside; List with a prefix of one's own does not meet them.
const damagedPrefix = "damaged-"

// SetAside gives a file that cannot be understood another name, so that it is not met again and somebody can look at it.
func (d *Dir) SetAside(name string) error {
	path, err := d.file(name)
	if err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(d.path, damagedPrefix+name)); err != nil {
		return fmt.Errorf("statedir: %w", err)
	}
	return d.sync()
}

// List gives the names of the files that begin with prefix, sorted.
func (d *Dir) List(prefix string) ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("statedir: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Secret gives the secret of a single node's tokens and branches, made at the first call ever (sip-http.md 6.2).
func (d *Dir) Secret() ([]byte, error) {
	data, err := d.Read(secretFile)
	if errors.Is(err, fs.ErrNotExist) {
		fresh := make([]byte, secretLen)
		_, _ = rand.Read(fresh) // never fails
		return fresh, d.Write(secretFile, []byte(hex.EncodeToString(fresh)+"\n"))
	}
	return decode(data, err)
}

// PeekSecret reads the secret of a folder that may belong to a running process; nothing is made.
func PeekSecret(path string) ([]byte, error) {
	return decode(os.ReadFile(filepath.Join(path, secretFile)))
}

func decode(data []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, fmt.Errorf("statedir: %w", err)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(data)))
	if err != nil || len(secret) < secretLen/2 {
		return nil, fmt.Errorf("statedir: %s is damaged; remove it to have a new secret made", secretFile)
	}
	return secret, nil
}

func (d *Dir) file(name string) (string, error) {
	if name == "" || name != filepath.Base(name) || name[0] == '.' {
		return "", fmt.Errorf("%w: %q", ErrName, name)
	}
	return filepath.Join(d.path, name), nil
}
