package lbtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA signs certificates for a test.
type CA struct {
	t    testing.TB
	cert *x509.Certificate
	der  []byte
	key  *ecdsa.PrivateKey
	last int64
}

// NewCA makes an authority that ends with the test.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{t: t, last: 1}
	ca.key = ca.newKey()
	ca.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
	}
	ca.der = ca.sign(ca.cert, &ca.key.PublicKey)
	return ca
}

// Leaf describes a certificate. Zero values are: a common name and no other, a year.
type Leaf struct {
	Names []string // DNS names and IP addresses
	URIs  []string // e.g. sip:example.com
	For   time.Duration
}

// PEM makes a certificate with its key, for servers and clients alike.
func (ca *CA) PEM(l Leaf) (cert, key []byte) {
	ca.t.Helper()
	ca.last++
	k := ca.newKey()
	if l.For == 0 {
		l.For = 365 * 24 * time.Hour
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(ca.last), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: time.Now().Add(-2 * time.Hour),
		NotAfter: time.Now().Add(l.For), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, n := range l.Names {
		if ip := net.ParseIP(n); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, n)
		}
	}
	for _, u := range l.URIs {
		parsed, err := url.Parse(u)
		if err != nil {
			ca.t.Fatal(err)
		}
		c.URIs = append(c.URIs, parsed)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		ca.t.Fatal(err)
	}
	cert = append(block("CERTIFICATE", ca.sign(c, &k.PublicKey)), ca.Bundle()...)
	return cert, block("PRIVATE KEY", der)
}

// Pair is PEM as crypto/tls wants it.
func (ca *CA) Pair(l Leaf) tls.Certificate {
	ca.t.Helper()
	pair, err := tls.X509KeyPair(ca.PEM(l))
	if err != nil {
		ca.t.Fatal(err)
	}
	return pair
}

// Files writes a pair into a folder, as name.pem and name.key: first the key, each by a rename.
func (ca *CA) Files(dir, name string, l Leaf) (cert, key string) {
	ca.t.Helper()
	certPEM, keyPEM := ca.PEM(l)
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	Replace(ca.t, key, keyPEM)
	Replace(ca.t, cert, certPEM)
	return cert, key
}

// Bundle is the authority's own certificate, for a trust file.
func (ca *CA) Bundle() []byte { return block("CERTIFICATE", ca.der) }

// Trust is the authority as crypto/tls wants it.
func (ca *CA) Trust() *x509.CertPool {
	p := x509.NewCertPool()
	c, err := x509.ParseCertificate(ca.der)
	if err != nil {
		ca.t.Fatal(err)
	}
	p.AddCert(c)
	return p
}

// Replace writes a file, readable by its owner alone, in one step.
func Replace(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

func (ca *CA) newKey() *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		ca.t.Fatal(err)
	}
	return k
}

func (ca *CA) sign(c *x509.Certificate, key *ecdsa.PublicKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, c, ca.cert, key, ca.key)
	if err != nil {
		ca.t.Fatal(err)
	}
	return der
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
