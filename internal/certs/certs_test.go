package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/lbtest"
)

func check(certPEM, keyPEM []byte, now time.Time) error {
	_, err := config.CheckPair(certPEM, keyPEM, now)
	return err
}

// bed is a store whose certificates stand in a folder.
type bed struct {
	*Store
	t       *testing.T
	ca      *lbtest.CA
	dir     string
	refused chan string
	taken   chan string
}

func newBed(t *testing.T, leaves map[string]lbtest.Leaf, order ...string) *bed {
	b := &bed{t: t, ca: lbtest.NewCA(t), dir: t.TempDir(), refused: make(chan string, 16), taken: make(chan string, 16)}
	b.Store = New(Config{
		Check:   check,
		Refused: func(name string, err error) { b.refused <- name + ": " + err.Error() },
		Taken:   func(name string, _ time.Time) { b.taken <- name },
	})
	var sources []Source
	for _, name := range order {
		cert, key := b.ca.Files(b.dir, name, leaves[name])
		sources = append(sources, Source{Name: name, CertFile: cert, KeyFile: key, Watch: true})
	}
	table, err := b.Load(sources)
	if err != nil {
		t.Fatal(err)
	}
	b.Use(table, [][]byte{[]byte("one secret of all nodes")})
	return b
}

func (b *bed) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
}

// shake makes one handshake and gives both sides' views. The client reads once, so that tickets arrive.
func shake(t *testing.T, server, client *tls.Config) (seen tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	deadline := time.Now().Add(5 * time.Second)
	_, _ = a.SetDeadline(deadline), b.SetDeadline(deadline)
	done := make(chan error, 1)
	go func() {
		defer b.Close()
		s := tls.Server(b, server)
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte{1})
		}
		done <- err
	}()
	c := tls.Client(a, client)
	clientErr = c.Handshake()
	if clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1))
	}
	seen = c.ConnectionState()
	a.Close()
	return seen, <-done, clientErr
}

func (b *bed) client(name string) *tls.Config {
	return &tls.Config{ServerName: name, RootCAs: b.ca.Trust()}
}

func servedNames(s tls.ConnectionState) string {
	if len(s.PeerCertificates) == 0 {
		return ""
	}
	return strings.Join(s.PeerCertificates[0].DNSNames, " ")
}

// sip-http.md 13.2: exact name, then wildcard, then the listener's own.
func TestNameChooses(t *testing.T) {
	b := newBed(t, map[string]lbtest.Leaf{
		"main":  {Names: []string{"main.example.net"}},
		"wild":  {Names: []string{"*.example.net"}},
		"exact": {Names: []string{"a.example.net", "127.0.0.1"}},
	}, "main", "wild", "exact")
	for _, c := range []struct{ asked, want string }{
		{"a.example.net", "a.example.net"}, {"A.Example.NET", "a.example.net"}, {"b.example.net", "*.example.net"},
		{"x.b.example.net", "main.example.net"}, {"other.org", "main.example.net"}, {"", "main.example.net"},
		{"example.net", "main.example.net"},
	} {
		client := b.client(c.asked)
		client.InsecureSkipVerify = true // also names that nobody has
		got, _, err := shake(t, b.Server(Policy{Certificate: "main"}), client)
		if err != nil || servedNames(got) != c.want {
			t.Errorf("asked for %q: got %q, %v; want %q", c.asked, servedNames(got), err, c.want)
		}
	}
}

// The listener's own certificate goes before another with the same name.
func TestOwnCertificateGoesFirst(t *testing.T) {
	b := newBed(t, map[string]lbtest.Leaf{
		"one": {Names: []string{"a.example.net"}},
		"two": {Names: []string{"a.example.net", "two.example.net"}},
	}, "one", "two")
	got, _, err := shake(t, b.Server(Policy{Certificate: "two"}), b.client("a.example.net"))
	if err != nil || servedNames(got) != "a.example.net two.example.net" {
		t.Fatalf("%q, %v", servedNames(got), err)
	}
}

func TestStrictSNIRefusesWithAnAlert(t *testing.T) {
	b := newBed(t, map[string]lbtest.Leaf{"main": {Names: []string{"main.example.net"}}}, "main")
	strict := b.Server(Policy{Certificate: "main", StrictSNI: true})
	_, _, err := shake(t, strict, b.client("other.example.net"))
	if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Fatalf("unknown name: %v", err)
	}
	if _, _, err := shake(t, strict, b.client("main.example.net")); err != nil {
		t.Fatalf("known name: %v", err)
	}
	unnamed := b.client("")
	unnamed.InsecureSkipVerify = true
	if _, _, err := shake(t, strict, unnamed); err != nil {
		t.Fatalf("no name: %v", err)
	}
}

// sip-http.md 13.3.
func TestProtocols(t *testing.T) {
	b := newBed(t, map[string]lbtest.Leaf{"main": {Names: []string{"main.example.net"}}}, "main")
	for _, c := range []struct {
		offered []string
		want    string
		refused bool
	}{{nil, "", false}, {[]string{"h2", "http/1.1"}, "http/1.1", false}, {[]string{"h2"}, "", true}} {
		client := b.client("main.example.net")
		client.NextProtos = c.offered
		got, _, err := shake(t, b.Server(Policy{Certificate: "main", Protocols: []string{"http/1.1"}}), client)
		if (err != nil) != c.refused || got.NegotiatedProtocol != c.want {
			t.Errorf("offered %v: %q, %v", c.offered, got.NegotiatedProtocol, err)
		}
	}
}

// sip-http.md 13.5.
func TestClientCertificates(t *testing.T) {
	b := newBed(t, map[string]lbtest.Leaf{"main": {Names: []string{"main.example.net"}}}, "main")
	other := lbtest.NewCA(t)
	file := filepath.Join(b.dir, "clients.pem")
	lbtest.Replace(t, file, b.ca.Bundle())
	trust, err := ReadTrust(file)
	if err != nil {
		t.Fatal(err)
	}
	good, foreign := b.ca.Pair(lbtest.Leaf{Names: []string{"client"}}), other.Pair(lbtest.Leaf{Names: []string{"client"}})
	for _, c := range []struct {
		clients Clients
		shown   *tls.Certificate
		ok      bool
	}{
		{ClientsOff, nil, true}, {ClientsOff, &foreign, true}, {ClientsOptional, nil, true}, {ClientsOptional, &good, true},
		{ClientsOptional, &foreign, false}, {ClientsRequired, nil, false}, {ClientsRequired, &good, true}, {ClientsRequired, &foreign, false},
	} {
		client := b.client("main.example.net")
		client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if c.shown == nil {
				return &tls.Certificate{}, nil
			}
			return c.shown, nil
		}
		_, serverErr, _ := shake(t, b.Server(Policy{Certificate: "main", Clients: c.clients, Trust: trust}), client)
		if (serverErr == nil) != c.ok {
			t.Errorf("%d, certificate %v: %v", c.clients, c.shown != nil, serverErr)
		}
	}
}

func TestTrustFileWithoutCertificate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	lbtest.Replace(t, file, []byte("nothing\n"))
	if _, err := ReadTrust(file); err == nil {
		t.Fatal("taken")
	}
}

// sip-http.md 13.1: another node with the same secrets resumes; one without does not, and a listener that asks for more
// than the one where the ticket is from makes a whole handshake.
func TestTicketsOfAllNodes(t *testing.T) {
	leaves := map[string]lbtest.Leaf{"main": {Names: []string{"main.example.net"}}}
	first := newBed(t, leaves, "main")
	cert, key := filepath.Join(first.dir, "main.pem"), filepath.Join(first.dir, "main.key")
	node := func(secrets ...string) *Store {
		var list [][]byte
		for _, s := range secrets {
			list = append(list, []byte(s))
		}
		s := New(Config{})
		table, err := s.Load([]Source{{Name: "main", CertFile: cert, KeyFile: key}})
		if err != nil {
			t.Fatal(err)
		}
		s.Use(table, list)
		return s
	}
	trust, err := ReadTrust(cert)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, c := range []struct {
			what   string
			second *Store
			policy Policy
			want   bool
		}{
			{"same secrets", node("one secret of all nodes"), Policy{Certificate: "main"}, true},
			{"older secret kept", node("a newer one", "one secret of all nodes"), Policy{Certificate: "main"}, true},
			{"other secrets", node("another secret"), Policy{Certificate: "main"}, false},
			{"own secrets", node(), Policy{Certificate: "main"}, false},
			{"asks for more", node("one secret of all nodes"), Policy{Certificate: "main", Clients: ClientsOptional, Trust: trust}, false},
		} {
			client := first.client("main.example.net")
			client.MaxVersion = version
			client.ClientSessionCache = tls.NewLRUClientSessionCache(4)
			if _, _, err := shake(t, first.Server(Policy{Certificate: "main"}), client); err != nil {
				t.Fatal(err)
			}
			got, _, err := shake(t, c.second.Server(c.policy), client)
			if err != nil || got.DidResume != c.want {
				t.Errorf("%s, version %x: resumed %v, %v", c.what, version, got.DidResume, err)
			}
		}
	}
}

func TestTicketKeysOfTheDay(t *testing.T) {
	var s tickets
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s.init(noon)
	s.change([][]byte{[]byte("a"), []byte("b")}, noon)
	today, next, after := s.keys(noon), s.keys(noon.AddDate(0, 0, 1)), s.keys(noon.AddDate(0, 0, 2))
	has := func(list [][32]byte, k [32]byte) bool {
		for _, x := range list {
			if x == k {
				return true
			}
		}
		return false
	}
	if today[0] == next[0] || !has(next, today[0]) || has(after, today[0]) || !has(today, next[0]) {
		t.Error("a day's key seals on that day and opens on it and its neighbours")
	}
	if d := untilMidnight(noon); d != 12*time.Hour+time.Second {
		t.Errorf("midnight in %v", d)
	}
}

// sip-http.md 13.6: a changed file is taken, a bad one is not, and what serves stays until there is a better one.
func TestChangedFile(t *testing.T) {
	b := newBed(t, map[string]lbtest.Leaf{"main": {Names: []string{"old.example.net"}}}, "main")
	b.run()
	served := func() string {
		client := b.client("")
		client.InsecureSkipVerify = true
		got, _, err := shake(t, b.Server(Policy{Certificate: "main"}), client)
		if err != nil {
			t.Fatal(err)
		}
		return servedNames(got)
	}
	await := func(from chan string) string {
		select {
		case s := <-from:
			return s
		case <-time.After(5 * time.Second):
			t.Fatal("nothing was said")
			return ""
		}
	}
	b.ca.Files(b.dir, "main", lbtest.Leaf{Names: []string{"new.example.net"}})
	if await(b.taken) != "main" || served() != "new.example.net" {
		t.Fatalf("serves %q", served())
	}
	b.ca.Files(b.dir, "main", lbtest.Leaf{Names: []string{"late.example.net"}, For: -time.Hour})
	if s := await(b.refused); !strings.Contains(s, "expired") || served() != "new.example.net" {
		t.Fatalf("%q, serves %q", s, served())
	}
	_, foreignKey := b.ca.PEM(lbtest.Leaf{})
	lbtest.Replace(t, filepath.Join(b.dir, "main.key"), foreignKey)
	if s := await(b.refused); served() != "new.example.net" {
		t.Fatalf("%q, serves %q", s, served())
	}
	if err := os.Remove(filepath.Join(b.dir, "main.pem")); err != nil {
		t.Fatal(err)
	}
	if s := await(b.refused); !strings.Contains(s, "no such file") || served() != "new.example.net" {
		t.Fatalf("%q, serves %q", s, served())
	}
	b.ca.Files(b.dir, "main", lbtest.Leaf{Names: []string{"last.example.net"}})
	if await(b.taken) != "main" || served() != "last.example.net" {
		t.Fatalf("serves %q", served())
	}
	if s := b.Statuses(); len(s) != 1 || time.Until(s[0].NotAfter) < 360*24*time.Hour || fmt.Sprint(s[0].Names) != "[last.example.net]" {
		t.Errorf("status %+v", s)
	}
}

// A folder of links, as an orchestrator mounts it: only the link of the folder is replaced.
func TestLinkedFolder(t *testing.T) {
	ca, root := lbtest.NewCA(t), t.TempDir()
	version := func(name string) {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		ca.Files(dir, "tls", lbtest.Leaf{Names: []string{name}})
		if err := errors.Join(os.Symlink(name, filepath.Join(root, "..new")), os.Rename(filepath.Join(root, "..new"), filepath.Join(root, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	version("one")
	for _, f := range []string{"tls.pem", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", f), filepath.Join(root, f)); err != nil {
			t.Fatal(err)
		}
	}
	b := &bed{t: t, taken: make(chan string, 4)}
	b.Store = New(Config{Check: check, Taken: func(name string, _ time.Time) { b.taken <- name }})
	table, err := b.Load([]Source{{Name: "a", CertFile: filepath.Join(root, "tls.pem"), KeyFile: filepath.Join(root, "tls.key"), Watch: true}})
	if err != nil {
		t.Fatal(err)
	}
	b.Use(table, nil)
	b.run()
	for _, name := range []string{"two", "three"} {
		version(name)
		select {
		case <-b.taken:
		case <-time.After(5 * time.Second):
			t.Fatalf("%s was not taken", name)
		}
		if got := b.Statuses()[0].Names[0]; got != name {
			t.Fatalf("serves %q, want %q", got, name)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	ca, dir := lbtest.NewCA(t), t.TempDir()
	s := New(Config{Check: check})
	cert, key := ca.Files(dir, "a", lbtest.Leaf{For: -time.Hour})
	if _, err := s.Load([]Source{{Name: "public", CertFile: cert, KeyFile: key}}); err == nil || !strings.Contains(err.Error(), `"public"`) {
		t.Errorf("expired: %v", err)
	}
	if _, err := s.Load([]Source{{Name: "public", CertFile: cert, KeyFile: dir + "/none"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// sip-http.md 13.4, 13.2.
func TestPeersAndCoverage(t *testing.T) {
	b := newBed(t, map[string]lbtest.Leaf{
		"main": {Names: []string{"main.example.net", "www.example.net"}}, "other": {Names: []string{"other.example.net"}},
	}, "main", "other")
	file := filepath.Join(b.dir, "ca.pem")
	lbtest.Replace(t, file, b.ca.Bundle())
	trust, err := ReadTrust(file)
	if err != nil {
		t.Fatal(err)
	}
	asking := b.Server(Policy{Certificate: "main", Clients: ClientsRequired, Trust: trust})
	for _, c := range []struct {
		peer Peer
		ok   bool
	}{
		{Peer{Name: "main.example.net", Trust: trust, Certificate: "other"}, true},
		{Peer{Name: "main.example.net", Trust: trust}, false},
		{Peer{Name: "wrong.example.net", Trust: trust, Certificate: "other"}, false},
		{Peer{Name: "main.example.net", Certificate: "other"}, false},
	} {
		if _, _, err := shake(t, asking, b.Client(c.peer)); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.peer, err)
		}
	}
	for _, c := range []struct {
		asked, host string
		want        bool
	}{
		{"main.example.net", "www.example.net", true}, {"main.example.net", "other.example.net", false}, {"", "other.example.net", true},
		{"main.example.net", "unknown.example.net", true}, {"other.example.net", "unknown.example.net", false},
	} {
		if got := b.Covers("main", c.asked, c.host); got != c.want {
			t.Errorf("asked %q, host %q: %v", c.asked, c.host, got)
		}
	}
}

// sip-http.md 13.4, RFC 5922 section 7.
func TestIdentities(t *testing.T) {
	ca := lbtest.NewCA(t)
	for _, c := range []struct {
		leaf lbtest.Leaf
		peer Peer
		ok   bool
	}{
		{lbtest.Leaf{Names: []string{"*.example.net"}}, Peer{Name: "as1.example.net"}, true},
		{lbtest.Leaf{Names: []string{"*.example.net"}}, Peer{Name: "as1.example.net", Domain: true}, false},
		{lbtest.Leaf{Names: []string{"AS1.example.net"}}, Peer{Name: "as1.Example.net", Domain: true}, true},
		{lbtest.Leaf{Names: []string{"as1.example.net"}, URIs: []string{"sip:example.net"}}, Peer{Name: "example.net", Domain: true}, true},
		{lbtest.Leaf{Names: []string{"as1.example.net"}, URIs: []string{"sip:example.net"}}, Peer{Name: "as1.example.net"}, false},
		{lbtest.Leaf{URIs: []string{"sip:user@example.net"}}, Peer{Name: "example.net", Domain: true}, false},
		{lbtest.Leaf{Names: []string{"127.0.0.1"}}, Peer{Name: "127.0.0.1"}, true},
		{lbtest.Leaf{Names: []string{"127.0.0.1"}}, Peer{Name: "127.0.0.2", Domain: true}, false},
		{lbtest.Leaf{Names: []string{"::1"}}, Peer{Name: "[::1]"}, true},
		{lbtest.Leaf{Names: []string{"a.example.net"}, For: -time.Hour}, Peer{Name: "a.example.net"}, false},
	} {
		pair := ca.Pair(c.leaf)
		chain, err := x509.ParseCertificates(bytes.Join(pair.Certificate, nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(chain, ca.Trust(), c.peer); (err == nil) != c.ok {
			t.Errorf("%+v for %+v: %v", c.leaf, c.peer, err)
		}
	}
	if err := verify(nil, ca.Trust(), Peer{}); err == nil {
		t.Error("no certificate is taken")
	}
}
