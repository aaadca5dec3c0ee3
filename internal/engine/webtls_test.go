package engine_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// webServer is a server of HTTP over TLS that counts its connections and requests.
type webServer struct {
	*httptest.Server
	conns, requests atomic.Int64
	shown           atomic.Int64 // requests whose client has shown a certificate
}

func newWebServer(t *testing.T, pair tls.Certificate, clients *lbtest.CA, h http.HandlerFunc) *webServer {
	t.Helper()
	s := &webServer{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			s.shown.Add(1)
		}
		h(w, r)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients != nil {
		s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAndVerifyClientCert, clients.Trust()
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			s.conns.Add(1)
		}
	}
	s.EnableHTTP2 = true // it is the balancer that chooses
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *webServer) addr() string { return s.Listener.Addr().String() }

// webEdge is a node whose servers speak HTTP alone; lines are the items of its pool.
func webEdge(t *testing.T, ca *lbtest.CA, connect string, lines ...string) *edge {
	t.Helper()
	dir := t.TempDir()
	ca.Files(dir, "public", lbtest.Leaf{Names: []string{"front.example.net"}})
	lbtest.Replace(t, filepath.Join(dir, "ca.pem"), ca.Bundle())
	e := &edge{t: t, dir: dir, log: slog.New(slog.DiscardHandler)}
	e.write("wyegate.yaml", fmt.Sprintf(`version: 1
node: {name: edge-1, state_dir: state, shutdown: {delay: 0s, deadline: 1s}}
admin: {sockets: [{path: admin.sock}], metrics: {address: "127.0.0.1:0"}}
certificates: [{name: public, cert_file: public.pem, key_file: public.key}]
listeners:
  - {name: http, protocol: http, transport: tcp, bind: "127.0.0.1:0"}
  - {name: https, protocol: http, transport: tls, bind: "127.0.0.1:0", certificate: public}
services:
  - {name: portal, pool: web, applications: [{name: portal, kind: web}]}
pools:
  - name: web
    connect: {%s}
    health: {active: {http: {path: /healthz, interval: 100ms, fall: 100}}}
    servers:
%s`, connect, "      - "+strings.Join(lines, "\n      - ")+"\n"))
	e.run()
	return e
}

func (e *edge) fetch(method, path string) (status int, body string) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), method, "http://"+e.at("http").String()+path, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Errorf("body: %v", err)
	}
	return resp.StatusCode, string(b)
}

func proto(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }

// Servers of HTTP are reached over TLS where their line says so, verified by name and authority, with our certificate
// where they ask for one; connections are kept. Who has not the right certificate is never sent a request
// (sip-http.md 13.4, SX-8).
func TestWebServersOverTLS(t *testing.T) {
	ca, other := lbtest.NewCA(t), lbtest.NewCA(t)
	good := newWebServer(t, ca.Pair(lbtest.Leaf{Names: []string{"as1.example.net"}}), ca, proto)
	e := webEdge(t, ca, "tries: 1", fmt.Sprintf(`{name: as1, http: %q, tls: {server_name: as1.example.net, ca_file: ca.pem, certificate: public}}`, good.addr()))
	probes := good.requests.Load()
	e.eventually("probes", func() bool { return good.requests.Load() > probes+1 })
	for range 5 {
		if status, body := e.fetch("GET", "/"); status != 200 || body != "HTTP/1.1" {
			t.Fatalf("%d %q", status, body)
		}
	}
	if good.shown.Load() != good.requests.Load() {
		t.Error("our certificate was not shown")
	}

	for name, line := range map[string]string{
		"name":      `{name: as1, http: %q, http_transport: tls, tls: {server_name: as2.example.net, ca_file: ca.pem}}`,
		"authority": `{name: as1, http: %q, tls: {server_name: as1.example.net}}`,
		"address":   `{name: as1, http: %q, tls: {ca_file: ca.pem}}`,
		"stranger":  `{name: as1, http: %q, tls: {server_name: other.example.net, ca_file: ca.pem}}`,
	} {
		pair := ca.Pair(lbtest.Leaf{Names: []string{"as1.example.net"}})
		if name == "stranger" {
			pair = other.Pair(lbtest.Leaf{Names: []string{"other.example.net"}})
		}
		s := newWebServer(t, pair, nil, proto)
		e := webEdge(t, ca, "tries: 1", fmt.Sprintf(line, s.addr()))
		if status, _ := e.fetch("GET", "/"); status != 502 {
			t.Errorf("wrong %s: %d", name, status)
		}
		if n := s.requests.Load(); n != 0 {
			t.Errorf("wrong %s: the server got %d requests", name, n)
		}
	}
}

// A connection that the server has closed while it was pooled costs nobody an answer, a POST neither (HB-3).
func TestStaleTLSConnection(t *testing.T) {
	ca := lbtest.NewCA(t)
	s := newWebServer(t, ca.Pair(lbtest.Leaf{Names: []string{"127.0.0.1"}}), nil, proto)
	e := webEdge(t, ca, "tries: 1", fmt.Sprintf(`{name: as1, http: %q, tls: {ca_file: ca.pem}}`, s.addr()))
	for i := range 10 {
		if status, _ := e.fetch("POST", "/"); status != 200 {
			t.Fatalf("request %d: %d", i, status)
		}
		s.Config.SetKeepAlivesEnabled(false) // it closes what is idle
		s.CloseClientConnections()
		s.Config.SetKeepAlivesEnabled(true)
	}
}

// A client that leaves over TLS while its request is in service ends it, as one over plain TCP does (HB-9).
func TestClientLeavesOverTLS(t *testing.T) {
	ca := lbtest.NewCA(t)
	in, out := make(chan struct{}), make(chan struct{})
	s := newWebServer(t, ca.Pair(lbtest.Leaf{Names: []string{"127.0.0.1"}}), nil, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			in <- struct{}{}
			<-r.Context().Done()
			out <- struct{}{}
		}
	})
	e := webEdge(t, ca, "tries: 1", fmt.Sprintf(`{name: as1, http: %q, tls: {ca_file: ca.pem}}`, s.addr()))
	c, err := tls.Dial("tcp", e.at("https").String(), secureClient(ca))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /wait HTTP/1.1\r\nHost: front.example.net\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-in
	_ = c.Close()
	select {
	case <-out:
	case <-time.After(10 * time.Second):
		t.Fatal("the server still has the request")
	}
}
