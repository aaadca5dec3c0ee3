package engine_test

import (
	"crypto/tls"
	"encoding/base64"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// Section 13.5, HH-3, SS-3: servers learn a client's verified certificate by Client-Cert (RFC 9440), over HTTP/1.1 and
// HTTP/2; what a client writes there itself does not get through.
func TestClientCertificateReachesServers(t *testing.T) {
	e, stop := start(t, 1)
	stop()
	seen := make(chan []string, 1)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Values("Client-Cert") })}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	ca := lbtest.NewCA(t)
	ca.Files(e.dir, "public", lbtest.Leaf{Names: []string{"front.example.net"}})
	lbtest.Replace(t, filepath.Join(e.dir, "ca.pem"), ca.Bundle())
	text := strings.Replace(e.withTLS(0), `protocol: http, transport: tls, bind: "127.0.0.1:0", certificate: public}`, `protocol: http, transport: tls, bind: "127.0.0.1:0", certificate: public, client_certificates: optional, client_ca_file: ca.pem}`, 1)
	e.write("wyegate.yaml", strings.Replace(text, e.servers[0].Web.String(), l.Addr().String(), 1))
	e.run()
	pair := ca.Pair(lbtest.Leaf{Names: []string{"alice.example.net"}})
	shown := ":" + base64.StdEncoding.EncodeToString(pair.Certificate[0]) + ":"
	for _, c := range []struct {
		name  string
		certs []tls.Certificate
		claim string
		want  string
	}{
		{"shown", []tls.Certificate{pair}, "", shown},
		{"shown, and another claimed", []tls.Certificate{pair}, ":AAAA:", shown},
		{"claimed", nil, shown, ""},
		{"none", nil, "", ""},
	} {
		for _, h2 := range []bool{false, true} {
			settings := secureClient(ca)
			settings.Certificates = c.certs
			transport := &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: h2}
			client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
			for range 2 { // a connection that goes on says the same
				req, err := http.NewRequest("GET", "https://"+e.at("https").String()+"/", nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = "front.example.net"
				if c.claim != "" {
					req.Header["Client_Cert"] = []string{c.claim}
					req.Header.Set("Client-Cert", c.claim)
				}
				r, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				r.Body.Close()
				if got := strings.Join(<-seen, " | "); got != c.want || (r.ProtoMajor == 2) != h2 {
					t.Errorf("%s, %s: the server has got %q, want %q", c.name, r.Proto, got, c.want)
				}
			}
			transport.CloseIdleConnections()
		}
	}
}
