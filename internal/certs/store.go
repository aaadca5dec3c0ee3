package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Source is a certificate as the configuration names it.
type Source struct {
	Name     string
	CertFile string // PEM: the certificate, then those that signed it
	KeyFile  string // PEM
	Watch    bool   // a changed file is picked up
}

// Config of a Store. It is read once.
type Config struct {
	// Check says what is wrong with a pair at a point in time: halves that do not belong together, a broken chain, dates.
	Check func(certPEM, keyPEM []byte, now time.Time) error
	// Refused is told of a changed file that was not taken; Taken of one that was. Both run on Run's goroutine; nil: nobody.
	Refused func(name string, err error)
	Taken   func(name string, notAfter time.Time)
	// Failed is told that a folder cannot be watched; nil: nobody.
	Failed func(folder string, err error)
}

// Store is the certificates in force. Every method but Run may be called from any goroutine.
type Store struct {
	cfg     Config
	table   atomic.Pointer[Table]
	tickets tickets

	change sync.Mutex    // one replacement of the table at a time
	wake   chan struct{} // the sources have changed
}

// New makes an empty store.
func New(c Config) *Store {
	s := &Store{cfg: c, wake: make(chan struct{}, 1)}
	s.table.Store(newTable(nil))
	s.tickets.init(time.Now())
	return s
}

// entry is one certificate as it is served.
type entry struct {
	Source
	pair tls.Certificate
	sum  [sha256.Size]byte // over both files
}

// Table is an immutable set of certificates.
type Table struct {
	list  []*entry
	named map[string]*entry
	exact map[string]*entry // by DNS name in lower case
	wild  map[string]*entry // by what stands behind "*."
}

func newTable(list []*entry) *Table {
	t := &Table{list: list, named: map[string]*entry{}, exact: map[string]*entry{}, wild: map[string]*entry{}}
	for _, e := range list {
		t.named[e.Name] = e
		for _, name := range names(e) {
			into, key := t.exact, name
			if rest, ok := strings.CutPrefix(name, "*."); ok {
				into, key = t.wild, rest
			}
			if into[key] == nil { // of two with one name the first in the file is served
				into[key] = e
			}
		}
	}
	return t
}

// names are the DNS names of a certificate; of an old one without any, its common name.
func names(e *entry) []string {
	list := e.pair.Leaf.DNSNames
	if len(list) == 0 && len(e.pair.Leaf.IPAddresses) == 0 && len(e.pair.Leaf.URIs) == 0 {
		list = []string{e.pair.Leaf.Subject.CommonName}
	}
	out := make([]string, 0, len(list))
	for _, n := range list {
		if n = fold(n); n != "" {
			out = append(out, n)
		}
	}
	return out
}

// fold makes names comparable: lower case, no final dot.
func fold(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// choose finds the certificate for a name that a client asked for. known: the name is one of a certificate; where it is
// not, or is empty, the listener's own serves. Of two certificates with the name the listener's own goes first.
func (t *Table) choose(name, own string) (e *entry, known bool) {
	e = t.named[own]
	name = fold(name)
	if name == "" {
		return e, true
	}
	_, rest, _ := strings.Cut(name, ".")
	for _, in := range []struct {
		of   map[string]*entry
		key  string
		full string
	}{{t.exact, name, name}, {t.wild, rest, "*." + rest}} {
		if in.key == "" || in.of[in.key] == nil {
			continue
		}
		if e != nil && slices.Contains(names(e), in.full) {
			return e, true
		}
		return in.of[in.key], true
	}
	return e, false
}

// Load reads certificates. Those whose files have not changed since they were last read are not read anew into memory
// twice; an error names the certificate and changes nothing.
func (s *Store) Load(sources []Source) (*Table, error) {
	list := make([]*entry, 0, len(sources))
	for _, src := range sources {
		e, err := s.read(src, time.Now())
		if err != nil {
			return nil, fmt.Errorf("certificate %q: %w", src.Name, err)
		}
		list = append(list, e)
	}
	return newTable(list), nil
}

// Use puts a table in force: handshakes from now on are served from it. secrets are what ticket keys are derived from:
// the first seals, all open; without any each process has its own.
func (s *Store) Use(t *Table, secrets [][]byte) {
	s.change.Lock()
	s.table.Store(t)
	s.tickets.change(secrets, time.Now())
	s.change.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Status of one certificate.
type Status struct {
	Name     string
	NotAfter time.Time // of the certificate itself
	Names    []string
}

// Statuses lists the certificates in force, in the order of the configuration.
func (s *Store) Statuses() []Status {
	var out []Status
	for _, e := range s.table.Load().list {
		out = append(out, Status{Name: e.Name, NotAfter: e.pair.Leaf.NotAfter, Names: names(e)})
	}
	return out
}

// Covers says whether a request for host belongs on a connection that asked for another name: both are served by the
// same certificate, or the client named none (sip-http.md 13.2). own is the certificate of the listener.
func (s *Store) Covers(own, asked, host string) bool {
	if asked == "" || fold(asked) == fold(host) {
		return true
	}
	t := s.table.Load()
	a, _ := t.choose(asked, own)
	b, _ := t.choose(host, own)
	return a == b
}

func (s *Store) read(src Source, now time.Time) (*entry, error) {
	certPEM, keyPEM, err := files(src)
	if err != nil {
		return nil, err
	}
	return s.parse(src, certPEM, keyPEM, now)
}

func (s *Store) parse(src Source, certPEM, keyPEM []byte, now time.Time) (*entry, error) {
	if s.cfg.Check != nil {
		if err := s.cfg.Check(certPEM, keyPEM, now); err != nil {
			return nil, err
		}
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM) // it sets Leaf
	if err != nil {
		return nil, err
	}
	return &entry{Source: src, pair: pair, sum: sum(certPEM, keyPEM)}, nil
}

func files(src Source) (certPEM, keyPEM []byte, err error) {
	if certPEM, err = os.ReadFile(src.CertFile); err != nil {
		return nil, nil, err
	}
	keyPEM, err = os.ReadFile(src.KeyFile)
	return certPEM, keyPEM, err
}

func sum(certPEM, keyPEM []byte) [sha256.Size]byte {
	return sha256.Sum256(bytes.Join([][]byte{certPEM, keyPEM}, []byte{0}))
}
