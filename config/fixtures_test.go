package config

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// today is the day of the fixtures' certificates.
var today = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// fixtureFS is testdata/config with modes that a checkout does not keep, and certificates that are made here.
func fixtureFS(t testing.TB) fstest.MapFS {
	t.Helper()
	root := filepath.Join("..", "testdata", "config")
	fsys := fstest.MapFS{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		rel, _ := filepath.Rel(root, p)
		fsys[filepath.ToSlash(rel)] = &fstest.MapFile{Data: data, Mode: 0o640}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fsys["files/open-secrets"].Mode = 0o644
	addCertificates(t, fsys)
	return fsys
}

func addCertificates(t testing.TB, fsys fstest.MapFS) {
	t.Helper()
	key, other, ca := newKey(t), newKey(t), newKey(t)
	caTemplate := template("CA", 365)
	caTemplate.IsCA, caTemplate.KeyUsage = true, x509.KeyUsageCertSign
	caDER := sign(t, caTemplate, caTemplate, ca, ca)
	leaf := sign(t, template("front", 200), caTemplate, key, ca)
	put := func(name string, mode fs.FileMode, data []byte) {
		fsys["files/"+name] = &fstest.MapFile{Data: data, Mode: mode}
	}
	put("good.pem", 0o644, append(certPEM(leaf), certPEM(caDER)...))
	put("chain-broken.pem", 0o644, append(certPEM(leaf), certPEM(sign(t, caTemplate, caTemplate, other, other))...))
	put("expired.pem", 0o644, certPEM(sign(t, template("front", -3), caTemplate, key, ca)))
	put("ending.pem", 0o644, certPEM(sign(t, template("front", 10), caTemplate, key, ca)))
	put("good.key", 0o640, keyPEM(t, key))
	put("open-good.key", 0o644, keyPEM(t, key))
	put("other.key", 0o600, keyPEM(t, other))
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func template(name string, days int) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: today.AddDate(-1, 0, 0), NotAfter: today.AddDate(0, 0, days), BasicConstraintsValid: true}
}

func sign(t testing.TB, cert, parent *x509.Certificate, key, by *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func fixtureOptions() Options {
	return Options{HostName: "edge-1", Now: today, Env: func(name string) (string, bool) {
		return "value", name == "WYEGATE_SET"
	}}
}

// wanted reads the lines "# want: LINE:COL: CODE" of a file; "# want: more N" stands for what is cut off.
func wanted(file string, data []byte) []string {
	var out []string
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		if w, ok := strings.CutPrefix(s.Text(), "# want: "); ok {
			out = append(out, file+":"+w)
		}
	}
	return out
}

func found(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		if p.Line == 0 {
			out = append(out, p.File+":"+p.Text)
			continue
		}
		out = append(out, fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, p.Code))
	}
	return out
}

// badConfigurations gives every broken configuration: single files, and folders with a wyegate.yaml.
func badConfigurations(t testing.TB, fsys fstest.MapFS) []string {
	t.Helper()
	single, err := fs.Glob(fsys, "bad/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folders, _ := fs.Glob(fsys, "bad/*/wyegate.yaml")
	return append(single, folders...)
}

// A broken file carries the findings that it must give, all of them and no others.
func TestBrokenConfigurations(t *testing.T) {
	fsys := fixtureFS(t)
	all := badConfigurations(t, fsys)
	if len(all) < 60 {
		t.Fatalf("%d broken configurations, fewer than there were", len(all))
	}
	for _, name := range all {
		t.Run(strings.TrimPrefix(name, "bad/"), func(t *testing.T) {
			_, problems := Load(fsys, name, fixtureOptions())
			var want []string
			for f, file := range fsys {
				if f == name || path.Base(name) == "wyegate.yaml" && strings.HasPrefix(f, path.Dir(name)+"/") {
					want = append(want, wanted(f, file.Data)...)
				}
			}
			got := found(problems)
			slices.Sort(got)
			slices.Sort(want)
			if len(want) == 0 {
				t.Error("the file says nothing about what is wrong with it")
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n  %s\nwant\n  %s", lines(problems), strings.Join(want, "\n  "))
			}
		})
	}
}

func lines(problems []Problem) string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return strings.Join(out, "\n  ")
}

// Every code of built parts has a fixture.
func TestEveryCodeHasAFixture(t *testing.T) {
	fsys := fixtureFS(t)
	seen := map[string]bool{}
	for _, name := range badConfigurations(t, fsys) {
		_, problems := Load(fsys, name, fixtureOptions())
		for _, p := range problems {
			seen[p.Code] = true
		}
	}
	elsewhere := []string{ // of parts that are not built, or found by the engine, which compiles rule files
		"WG107", "WG116", "WG117", "WG121", "WG122", "WG123", "WG302", "WG308",
	}
	for _, c := range Codes() {
		if !seen[c] && !slices.Contains(elsewhere, c) {
			t.Errorf("no fixture gives %s", c)
		}
		if seen[c] && slices.Contains(elsewhere, c) {
			t.Errorf("%s is said to be found elsewhere, and is found here", c)
		}
	}
}

func TestGoodConfigurations(t *testing.T) {
	fsys := fixtureFS(t)
	all, _ := fs.Glob(fsys, "good/*.yaml")
	if len(all) < 6 {
		t.Fatalf("only %d good configurations", len(all))
	}
	for _, name := range all {
		if _, problems := Load(fsys, name, fixtureOptions()); len(problems) > 0 {
			t.Errorf("%s:\n  %s", name, lines(problems))
		}
	}
}
