package engine

import (
	"context"
	"crypto/tls"
	"io/fs"
	"net"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/proxy/httpproxy/h1"
	"github.com/wyegate/wyegate/proxy/httpproxy/h2"
)

func (e *Engine) newFront() *h1.Front {
	return h1.New(h1.Config{Ring: e.access.NewRing(), Log: e.log, TLS: e.secure})
}

// newHTTP2 makes the front of HTTP/2: what it reads is answered by that of HTTP/1.1.
func (e *Engine) newHTTP2() *h2.Front {
	return h2.New(h2.Config{Serve: e.front.Serve, Log: e.log})
}

// serveHTTP has a connection of an HTTP listener, in the protocol that TLS has agreed on.
func (e *Engine) serveHTTP(ctx context.Context, c net.Conn, listener string) {
	if t, ok := c.(*tls.Conn); ok && t.ConnectionState().NegotiatedProtocol == "h2" {
		e.http2.Serve(ctx, c, listener)
		return
	}
	e.front.Serve(ctx, c, listener)
}

func (e *Engine) newAPI() *admin.API {
	return admin.New(admin.Config{
		Node: e, Version: e.opts.Version, Log: e.log,
		Metrics: promhttp.HandlerFor(e.gather, promhttp.HandlerOpts{EnableOpenMetrics: true}),
	})
}

// openEndpoints opens the admin sockets and the metrics address. Their places are read once: they change with a restart.
func (e *Engine) openEndpoints(cfg *config.Config) error {
	for _, s := range cfg.Admin.Sockets {
		role, err := admin.ParseRole(s.Role)
		if err != nil {
			return err
		}
		ep, err := admin.OpenSocket(admin.Socket{Path: s.Path.Abs, Mode: fs.FileMode(s.Mode), Group: s.Group, Role: role}, e.log)
		if err != nil {
			e.closeEndpoints()
			return err
		}
		e.endpoints = append(e.endpoints, ep)
	}
	ep, err := admin.OpenMetrics(cfg.Admin.Metrics.Address.String())
	if err != nil {
		e.closeEndpoints()
		return err
	}
	e.endpoints = append(e.endpoints, ep)
	return nil
}

func (e *Engine) closeEndpoints() {
	for _, ep := range e.endpoints {
		_ = ep.Close() // it was never served
	}
	e.endpoints = nil
}

// unreachable hands ICMP errors to probes that wait.
func (e *Engine) unreachable(to netip.AddrPort, err error) { e.probes.prober.Unreachable(to, err) }

// answered hands the answers to health probes, which come in among traffic, to the prober.
func (e *Engine) answered(in *transport.Inbound) { e.probes.prober.Answered(in.Remote, in.Bytes) }
