package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/certs"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/routing"
)

// newCerts makes the store of certificates. What it says comes on its own goroutine.
func (e *Engine) newCerts() *certs.Store {
	return certs.New(certs.Config{
		Check: func(certPEM, keyPEM []byte, now time.Time) error {
			_, err := config.CheckPair(certPEM, keyPEM, now)
			return err
		},
		Refused: func(name string, err error) {
			e.log.Warn("certificate refused; the one before stays", slog.String("certificate", name), slog.Any(obs.KeyErr, err))
			e.events.Raise("certificate_refused", name, obs.Major, map[string]any{"certificate": name, "error": err.Error()})
		},
		Taken: func(name string, notAfter time.Time) {
			e.log.Info("certificate in force", slog.String("certificate", name), slog.Time("not_after", notAfter))
			e.events.Clear("certificate_refused", name)
		},
		Failed: func(folder string, err error) {
			e.log.Warn("certificates are not watched", slog.String(obs.KeyFile, folder), slog.Any(obs.KeyErr, err))
		},
	})
}

// shields are the TLS settings of one generation.
type shields struct {
	table     *certs.Table
	listeners map[string]shield            // by name
	peers     map[string]map[string]string // by pool and server: what secure knows it by, for SIP
	web       map[string]map[string]string // the same for HTTP
	clients   map[string]*tls.Config       // by that
}

// shield is the settings of one listener with what they were made from. A reload that changes nothing of it keeps the
// settings, and with them the transport's Listener.
type shield struct {
	made   string
	config *tls.Config
}

// alpn are the protocols that a listener offers (sip-http.md 13.3).
var alpn = map[string][]string{"sip tls": {"sip/2"}, "sip wss": {"http/1.1"}, "http tls": {"http/1.1"}, "http2": {"h2", "http/1.1"}}

// shield reads certificates and trust files. Nothing is in force before swap.
func (e *Engine) shield(cfg *config.Config) (*shields, error) {
	out := &shields{listeners: map[string]shield{}, peers: map[string]map[string]string{}, web: map[string]map[string]string{}, clients: map[string]*tls.Config{}}
	var sources []certs.Source
	for _, c := range cfg.Certificates {
		sources = append(sources, certs.Source{Name: c.Name, CertFile: c.CertFile.Abs, KeyFile: c.KeyFile.Abs, Watch: c.Watch})
	}
	var err error
	if out.table, err = e.certs.Load(sources); err != nil {
		return nil, err
	}
	var old map[string]shield
	if g := e.current.Load(); g != nil {
		old = g.shields.listeners
	}
	for i := range cfg.Listeners {
		l := &cfg.Listeners[i]
		if !l.Secure() || !onNode(l, e.name) {
			continue
		}
		s, err := e.listenerShield(l, old[l.Name])
		if err != nil {
			return nil, fmt.Errorf("listener %q: %w", l.Name, err)
		}
		out.listeners[l.Name] = s
	}
	for i := range cfg.Pools {
		if err := e.peers(out, &cfg.Pools[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// peers makes the settings of connections to the servers of a pool. What they are known by says everything that a
// connection was checked against, and so tells connections apart that carry the same messages but not the same trust
// (SX-8).
func (e *Engine) peers(out *shields, p *config.Pool) error {
	sip, web := map[string]string{}, map[string]string{}
	out.peers[p.Name], out.web[p.Name] = sip, web
	for i := range p.Servers {
		s := &p.Servers[i]
		var err error
		if s.SIPTransport == "tls" || s.SIPTransport == "wss" {
			if sip[s.Name], err = e.peer(out, s, s.SIP, alpn["sip "+s.SIPTransport]); err != nil {
				return err
			}
		}
		if s.HTTPSecure() {
			if web[s.Name], err = e.peer(out, s, s.HTTP, httpALPN(p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// httpALPN are the protocols that a server may choose from; one that offers no choice is spoken to in HTTP/1.1.
func httpALPN(p *config.Pool) []string {
	if p.Connect.HTTP == "h2" {
		return alpn["http2"]
	}
	return alpn["http tls"]
}

// peer makes the settings of connections to one address of a server, and gives what they are known by.
func (e *Engine) peer(out *shields, s *config.Server, at config.HostPort, protocols []string) (string, error) {
	peer := certs.Peer{Name: at.Host, Protocols: protocols}
	if at.Addr.IsValid() {
		peer.Name = at.Addr.String()
	}
	if t := s.TLS; t != nil {
		if t.ServerName != "" {
			peer.Name = t.ServerName
		}
		peer.Certificate = t.Certificate
		if !t.CAFile.IsZero() {
			var err error
			if peer.Trust, err = certs.ReadTrust(t.CAFile.Abs); err != nil {
				return "", fmt.Errorf("server %q: %w", s.Name, err)
			}
		}
	}
	key := fmt.Sprintf("%s %q %s", peer.Name, peer.Certificate, peer.Trust.ID())
	if protocols[0] != "sip/2" {
		key += " " + protocols[0]
	}
	out.clients[key] = e.certs.Client(peer)
	return key, nil
}

// peerOf gives what the server with an address is known by.
func (g *Generation) peerOf(a routing.Address) string {
	for name, p := range g.pools {
		for i := range p.Table().Members {
			m := &p.Table().Members[i]
			switch {
			case !hasAddress(m, a):
			case a.Proto == routing.HTTP:
				return g.shields.web[name][m.Name]
			default:
				return g.shields.peers[name][m.Name]
			}
		}
	}
	return ""
}

func hasAddress(m *routing.Member, a routing.Address) bool { return slices.Contains(m.Addresses, a) }

// errNameless says that nothing tells whom a connection should be with: one that is opened again for a response, say.
var errNameless = errors.New("engine: no name to check the peer against")

// secure puts TLS on a connection to a server of the configuration, or, where peer is no such, to the SIP domain of
// that name, which the authorities of the system vouch for (sip-http.md 13.4).
func (e *Engine) secure(ctx context.Context, c net.Conn, peer string) (net.Conn, error) {
	settings := e.current.Load().shields.clients[peer]
	if settings == nil {
		if peer == "" || strings.Contains(peer, " ") {
			return nil, errNameless
		}
		settings = e.certs.Client(certs.Peer{Name: peer, Domain: true, Protocols: alpn["sip tls"]})
	}
	t := tls.Client(c, settings)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

func (e *Engine) listenerShield(l *config.Listener, old shield) (shield, error) {
	p := certs.Policy{Certificate: l.Certificate, StrictSNI: l.StrictSNI, Protocols: alpn[l.Protocol+" "+l.Transport]}
	if l.Protocol == "http" && l.HTTP2 {
		p.Protocols = alpn["http2"]
	}
	switch l.ClientCertificate {
	case "optional":
		p.Clients = certs.ClientsOptional
	case "required":
		p.Clients = certs.ClientsRequired
	}
	if p.Clients != certs.ClientsOff {
		var err error
		if p.Trust, err = certs.ReadTrust(l.ClientCAFile.Abs); err != nil {
			return shield{}, err
		}
	}
	made := fmt.Sprintf("%q %v %q %d %s", p.Certificate, p.StrictSNI, p.Protocols, p.Clients, p.Trust.ID())
	if old.made == made {
		return old, nil
	}
	return shield{made, e.certs.Server(p)}, nil
}

// certificates gives the end of each certificate in force.
func (e *Engine) certificates() map[string]time.Time {
	out := map[string]time.Time{}
	for _, s := range e.certs.Statuses() {
		out[s.Name] = s.NotAfter
	}
	return out
}
