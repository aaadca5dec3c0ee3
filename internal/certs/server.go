package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Clients is what a listener asks of the certificates of clients.
type Clients uint8

// The words of client_certificates.
const (
	ClientsOff      Clients = iota // none is asked for
	ClientsOptional                // asked for; one that is shown must be good
	ClientsRequired                // without a good one there is no connection
)

// Policy is what a listener says of its handshakes.
type Policy struct {
	Certificate string   // served where no other one has the name that the client asks for, and where it asks for none
	StrictSNI   bool     // a name that no certificate has is refused
	Protocols   []string // ALPN, best first; a client that offers others alone is refused, one that offers none is not
	Clients     Clients
	Trust       *Trust // of client certificates; needed unless Clients is ClientsOff
}

// Trust is a set of authorities out of one file. Its identity is that of the bytes: connections that were made under
// another set are not taken for these.
type Trust struct {
	pool *x509.CertPool
	id   string
}

// ReadTrust reads a PEM file of authorities. A file without any is an error.
func ReadTrust(file string) (*Trust, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: no certificate in it", file)
	}
	digest := sha256.Sum256(data)
	return &Trust{pool: pool, id: hex.EncodeToString(digest[:8])}, nil
}

// ID tells trust sets apart; that of the system's, nil, is empty.
func (t *Trust) ID() string {
	if t == nil {
		return ""
	}
	return t.id
}

// Server makes the settings of a listener. They ask the table of the moment, and live as long as the listener wants.
func (s *Store) Server(p Policy) *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: p.Protocols,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if e, _ := s.table.Load().choose(h.ServerName, p.Certificate); e != nil {
				return &e.pair, nil
			}
			return nil, nil
		},
	}
	switch p.Clients {
	case ClientsOptional:
		c.ClientAuth = tls.VerifyClientCertIfGiven
	case ClientsRequired:
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	id := fmt.Sprintf("wyegate %d", p.Clients)
	if p.Clients != ClientsOff {
		c.ClientCAs = x509.NewCertPool()
		if p.Trust != nil {
			c.ClientCAs = p.Trust.pool
		}
		id += " " + p.Trust.ID()
	}
	s.tickets.use(c, id)
	if p.StrictSNI {
		nobody := &tls.Config{ // without a certificate the alert is unrecognized_name; without tickets nothing is resumed
			MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil },
		}
		c.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			if _, known := s.table.Load().choose(h.ServerName, p.Certificate); !known {
				return nobody, nil
			}
			return nil, nil
		}
	}
	return c
}

// Peer is what is known of a server that is reached over TLS.
type Peer struct {
	Name        string // that its certificate must have: a DNS name, a SIP domain or an address
	Domain      bool   // the name is a SIP domain out of a message: no wildcard stands for it (RFC 5922 section 7.2)
	Certificate string // ours, shown when it asks; empty: none
	Trust       *Trust // nil: the system's authorities
	Protocols   []string
}

// Client makes the settings of connections to a server. The certificate is the one in force when the server asks.
func (s *Store) Client(p Peer) *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: strings.Trim(p.Name, "[]"), NextProtos: p.Protocols,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if e := s.table.Load().named[p.Certificate]; e != nil {
				return &e.pair, nil
			}
			return &tls.Certificate{}, nil // an empty one: none is shown
		},
	}
	var roots *x509.CertPool // nil: the system's
	if p.Trust != nil {
		roots = p.Trust.pool
	}
	c.InsecureSkipVerify = true // crypto/tls knows no sip URIs: VerifyConnection checks chain and name
	c.VerifyConnection = func(cs tls.ConnectionState) error { return verify(cs.PeerCertificates, roots, p) }
	return c
}

// ErrIdentity says that a certificate is good, and another one's.
var ErrIdentity = errors.New("certs: certificate is not of that name")

// verify checks the chain, then the name. A sip URI in subjectAltName is the identity where there is one; DNS names
// count where there is none (RFC 5922 section 7.1).
func verify(chain []*x509.Certificate, roots *x509.CertPool, p Peer) error {
	if len(chain) == 0 {
		return ErrIdentity
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil {
		return err
	}
	domains := sipDomains(chain[0])
	_, notAddr := netip.ParseAddr(strings.Trim(p.Name, "[]"))
	switch {
	case notAddr == nil && slices.Contains(domains, fold(p.Name)):
		return nil
	case notAddr != nil && len(domains) > 0:
		if slices.Contains(domains, fold(p.Name)) {
			return nil
		}
	case notAddr != nil && p.Domain:
		if slices.ContainsFunc(chain[0].DNSNames, func(n string) bool { return fold(n) == fold(p.Name) }) {
			return nil
		}
	default:
		return chain[0].VerifyHostname(strings.Trim(p.Name, "[]"))
	}
	return fmt.Errorf("%w: %q", ErrIdentity, p.Name)
}

// Identities are what a certificate stands for towards a SIP peer: the domains of sip URIs, else DNS names without a
// wildcard (RFC 5922 section 7), and addresses as a URI writes them. In lower case.
func Identities(c *x509.Certificate) []string {
	out := sipDomains(c)
	if len(out) == 0 {
		for _, n := range c.DNSNames {
			if !strings.Contains(n, "*") {
				out = append(out, fold(n))
			}
		}
	}
	for _, ip := range c.IPAddresses {
		a, ok := netip.AddrFromSlice(ip)
		if a = a.Unmap(); !ok {
			continue
		}
		if a.Is6() {
			out = append(out, "["+a.String()+"]")
			continue
		}
		out = append(out, a.String())
	}
	return out
}

// sipDomains are the hosts of sip URIs in subjectAltName; one with a user part names no domain.
func sipDomains(c *x509.Certificate) []string {
	var out []string
	for _, u := range c.URIs {
		if strings.EqualFold(u.Scheme, "sip") && u.Opaque != "" && !strings.Contains(u.Opaque, "@") {
			host, _, _ := strings.Cut(u.Opaque, ";")
			out = append(out, fold(host))
		}
	}
	return out
}
