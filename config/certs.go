package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// certificates reads every pair and checks what can be checked without a peer (WG113, WG307).
func (c *checker) certificates() {
	for i := range c.cfg.Certificates {
		cert := &c.cfg.Certificates[i]
		if cert.CertFile.IsZero() || cert.KeyFile.IsZero() {
			continue
		}
		at := c.itemPath("certificates", i, cert.Name)
		certPEM, readable := c.pem(at+".cert_file", cert.CertFile)
		if !c.secret(at+".key_file", cert.KeyFile) || !readable {
			continue
		}
		keyPEM, readable := c.pem(at+".key_file", cert.KeyFile)
		if !readable {
			continue
		}
		left, err := CheckPair(certPEM, keyPEM, c.opts.Now)
		switch {
		case err != nil:
			c.error(at+".cert_file", "WG113", fmt.Sprintf("certificate %q: %v", cert.Name, err))
		case !c.opts.Now.IsZero() && left < 14*24*time.Hour:
			c.warning(at+".cert_file", "WG307", fmt.Sprintf("certificate %q has %d days left", cert.Name, int(left/(24*time.Hour))))
		}
	}
}

func (c *checker) pem(path string, p Path) (data []byte, ok bool) {
	data, err := fs.ReadFile(c.fsys, strings.TrimPrefix(p.Abs, "/"))
	if err != nil {
		c.error(path, "WG001", fmt.Sprintf("cannot read %s: %s", p.Text, reason(err)))
		return nil, false
	}
	return data, true
}

// CheckPair says whether key and certificate belong together, whether each certificate is signed by the next, and how
// long the first to end has left at the given time.
func CheckPair(certPEM, keyPEM []byte, now time.Time) (left time.Duration, err error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return 0, errors.New(strings.TrimPrefix(err.Error(), "tls: "))
	}
	var chain []*x509.Certificate
	for _, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return 0, fmt.Errorf("cannot be read: %w", err)
		}
		chain = append(chain, cert)
	}
	end := chain[0].NotAfter
	for i, cert := range chain {
		if i+1 < len(chain) {
			if err := cert.CheckSignatureFrom(chain[i+1]); err != nil {
				return 0, fmt.Errorf("chain is broken: %q is not signed by %q", cert.Subject, chain[i+1].Subject)
			}
		}
		switch {
		case now.IsZero():
		case now.After(cert.NotAfter):
			return 0, fmt.Errorf("%q has expired on %s", cert.Subject, cert.NotAfter.UTC().Format(time.DateOnly))
		case now.Before(cert.NotBefore):
			return 0, fmt.Errorf("%q is not valid before %s", cert.Subject, cert.NotBefore.UTC().Format(time.DateOnly))
		}
		if cert.NotAfter.Before(end) {
			end = cert.NotAfter
		}
	}
	return end.Sub(now), nil
}
