package config

import (
	"crypto/x509"
	"fmt"
)

// Secure says that clients of the listener speak TLS.
func (l *Listener) Secure() bool { return l.Transport == "tls" || l.Transport == "wss" }

// listenerTLS refuses what no handshake could be completed with.
func (c *checker) listenerTLS(l *Listener, at string) {
	if !l.Secure() || c.failed(at+".transport") {
		return
	}
	if l.Certificate == "" && !c.failed(at+".certificate") {
		c.error(at+".transport", "WG112", fmt.Sprintf("listener %q speaks %s and has no certificate", l.Name, l.Transport))
	}
	if !l.ClientCAFile.IsZero() {
		c.authorities(at+".client_ca_file", l.ClientCAFile)
	} else if l.ClientCertificate != "off" && l.ClientCertificate != "" && !c.failed(at+".client_ca_file") {
		c.error(at+".client_certificates", "WG013", fmt.Sprintf("listener %q: client_certificates: %s needs client_ca_file", l.Name, l.ClientCertificate))
	}
}

// HTTPSecure says that HTTP goes to the server over TLS.
func (s *Server) HTTPSecure() bool { return s.HTTPTransport == "tls" && !s.HTTP.IsZero() }

func (s *Server) sipSecure() bool { return s.SIPTransport == "tls" || s.SIPTransport == "wss" }

// serverTLS checks how a server is known.
func (c *checker) serverTLS(s *Server, at string) {
	if s.TLS == nil {
		return
	}
	if !s.sipSecure() && !s.HTTPSecure() && !c.failed(at+".sip_transport") && !c.failed(at+".http_transport") {
		text := fmt.Sprintf("server %q: tls has no meaning with sip_transport %s", s.Name, s.SIPTransport)
		if c.has(at + ".http_transport") {
			text += " and http_transport " + s.HTTPTransport
		}
		c.keyError(at+".tls", text)
	}
	c.reference(at+".tls.certificate", "WG104", fmt.Sprintf("server %q names certificate", s.Name), s.TLS.Certificate,
		names(c.cfg.Certificates, certificateName))
	if !s.TLS.CAFile.IsZero() {
		c.authorities(at+".tls.ca_file", s.TLS.CAFile)
	}
}

// authorities says whether there is a certificate in a file of authorities.
func (c *checker) authorities(path string, p Path) {
	if data, ok := c.pem(path, p); ok && !x509.NewCertPool().AppendCertsFromPEM(data) {
		c.error(path, "WG113", fmt.Sprintf("%s: no certificate in it", p.Text))
	}
}
