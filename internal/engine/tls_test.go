package engine_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
	"github.com/wyegate/wyegate/internal/sip"
)

// tlsEdge is a node with TLS listeners for both protocols beside the plain ones.
func tlsEdge(t *testing.T) (e *edge, ca *lbtest.CA) {
	t.Helper()
	e, stop := start(t, 2)
	stop()
	ca = lbtest.NewCA(t)
	ca.Files(e.dir, "public", lbtest.Leaf{Names: []string{"front.example.net", "127.0.0.1"}})
	e.write("wyegate.yaml", e.withTLS(0, 1))
	e.run()
	return e, ca
}

func (e *edge) withTLS(servers ...int) string {
	text := strings.Replace(e.yaml("", servers...), "listeners:\n", `certificates: [{name: public, cert_file: public.pem, key_file: public.key}]
listeners:
  - {name: sips, protocol: sip, transport: tls, bind: "127.0.0.1:0", certificate: public}
  - {name: https, protocol: http, transport: tls, bind: "127.0.0.1:0", certificate: public}
`, 1)
	return text
}

func (e *edge) at(listener string) netip.AddrPort {
	e.t.Helper()
	for _, l := range e.Listeners() {
		if l.Listener == listener {
			return netip.MustParseAddrPort(l.Address)
		}
	}
	e.t.Fatalf("no listener %q", listener)
	return netip.AddrPort{}
}

func secureClient(ca *lbtest.CA) *tls.Config {
	return &tls.Config{ServerName: "front.example.net", RootCAs: ca.Trust()}
}

// The same key goes to the same server over HTTPS, SIP over TLS and SIP over UDP (F2), and the cookie is Secure.
func TestPagesAndCallsOverTLS(t *testing.T) {
	e, ca := tlsEdge(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: secureClient(ca)}}
	defer client.CloseIdleConnections()
	phone, err := lbtest.NewUA("phone", lbtest.Answer)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	path, err := phone.DialTLS(secureClient(ca), e.at("sips"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	used := map[string]bool{}
	for i := range 12 {
		r, err := client.Get(fmt.Sprintf("https://%s/?conf=room-%d&session=1", e.at("https"), i))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		server := r.Header.Get("X-Server")
		used[server] = true
		for _, c := range r.Cookies() {
			if c.Name == "WGROUTE" && !c.Secure {
				t.Errorf("cookie is not Secure: %v", c)
			}
		}
		d, m, err := phone.Invite(ctx, path, lbtest.InviteOptions{RequestURI: fmt.Sprintf("sip:room-%d@front.example.net", i)})
		if err != nil || m.Status != 200 {
			t.Fatalf("call %d: %v %v", i, m, err)
		}
		if d.Peer != server {
			t.Errorf("room-%d: page at %s, call at %s", i, server, d.Peer)
		}
		// SX-10, SX-11: a pair, and the TLS side's entry is sips.
		if len(d.Routes) != 2 || !strings.HasPrefix(d.Routes[0], "<sips:"+e.at("sips").String()+";") || !strings.HasPrefix(d.Routes[1], "<sip:"+e.at("sip-udp").String()+";") {
			t.Errorf("route set %q", d.Routes)
		}
		if m, err := d.Bye(ctx); err != nil || m.Status != 200 {
			t.Errorf("BYE: %v %v", m, err)
		}
	}
	if len(used) != 2 {
		t.Errorf("servers %v", used)
	}
	e.calledBack(ctx, phone, path)
	e.hasMetric(`wyegate_tls_handshakes_total{listener="sips",result="ok"} 1`)
	e.hasMetric(`wyegate_tls_certificate_not_after_timestamp_seconds{certificate="public"}`)
}

// calledBack has the server end a call: its BYE comes down the client's connection.
func (e *edge) calledBack(ctx context.Context, phone *lbtest.UA, path *lbtest.Path) {
	e.t.Helper()
	d, m, err := phone.Invite(ctx, path, lbtest.InviteOptions{RequestURI: "sip:room-1@front.example.net"})
	if err != nil || m.Status != 200 {
		e.t.Fatalf("call: %v %v", m, err)
	}
	if m, err := e.theOther(e.t, d).Bye(ctx); err != nil || m.Status != 200 {
		e.t.Errorf("BYE of the server: %v %v", m, err)
	}
	if phone.SeenCount("BYE") != 1 {
		e.t.Errorf("the phone saw %d BYE", phone.SeenCount("BYE"))
	}
}

func (e *edge) hasMetric(begin string) {
	e.t.Helper()
	all := e.scraped()
	for line := range strings.Lines(all) {
		if strings.HasPrefix(line, begin) {
			return
		}
	}
	e.t.Errorf("no %s in\n%s", begin, all)
}

// F26: a certificate that is replaced serves new handshakes within two seconds, and no connection notices. A bad file
// changes nothing and raises certificate_refused.
func TestCertificateReplacedUnderLoad(t *testing.T) {
	e, ca := tlsEdge(t)
	old, err := tls.Dial("tcp", e.at("https").String(), secureClient(ca))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	reader := bufio.NewReader(old)
	ask := func() {
		t.Helper()
		_ = old.SetDeadline(time.Now().Add(5 * time.Second))
		fmt.Fprintf(old, "GET /?conf=a HTTP/1.1\r\nHost: front.example.net\r\n\r\n")
		r, err := http.ReadResponse(reader, nil)
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("on the open connection: %v", err)
		}
		if _, err := r.Body.Read(make([]byte, 1024)); err != nil && err.Error() != "EOF" {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	serial := func() string {
		c, err := tls.Dial("tcp", e.at("https").String(), secureClient(ca))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	ask()
	changed := time.Now()
	ca.Files(e.dir, "public", lbtest.Leaf{Names: []string{"front.example.net"}})
	e.eventually("the new certificate", func() bool { ask(); return serial() != first })
	if took := time.Since(changed); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	second := serial()
	if err := os.WriteFile(filepath.Join(e.dir, "public.pem"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.eventually("the alarm", func() bool {
		for _, a := range e.Events().Open() {
			if a.Event == "certificate_refused" {
				return true
			}
		}
		return false
	})
	if serial() != second {
		t.Error("a bad file was taken")
	}
	ca.Files(e.dir, "public", lbtest.Leaf{Names: []string{"front.example.net"}})
	e.eventually("the end of the alarm", func() bool { return len(e.Events().Open()) == 0 })
	ask()
}

// A reload that changes nothing keeps connections; plain text on a TLS port is closed quietly and counted.
func TestTLSOverReload(t *testing.T) {
	e, ca := tlsEdge(t)
	phone, err := lbtest.NewUA("phone", lbtest.Answer)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	path, err := phone.DialTLS(secureClient(ca), e.at("sips"))
	if err != nil {
		t.Fatal(err)
	}
	e.write("wyegate.yaml", e.withTLS(0))
	if err := e.Reload("test"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, m, err := phone.Invite(ctx, path, lbtest.InviteOptions{RequestURI: "sip:room-1@front.example.net"}); err != nil || m.Status != 200 {
		t.Fatalf("%v %v", m, err)
	}
	plain, err := phone.Dial("TCP", e.at("sips"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if err := phone.Send(plain, []byte("OPTIONS sip:a SIP/2.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	e.eventually("the count", func() bool {
		return strings.Contains(e.scraped(), `wyegate_tls_handshakes_total{listener="sips",result="failed"} 1`)
	})
}

// scraped is /metrics, which the admin socket has as well.
func (e *edge) scraped() string {
	e.t.Helper()
	dialer := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(e.dir, "admin.sock"))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer, DisableKeepAlives: true}}
	r, err := client.Get("http://admin/metrics")
	if err != nil {
		e.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return string(b)
}

// Servers over TLS: by name, under their own authority, with our certificate where they ask for one; one that cannot
// show the name gets nothing (sip-http.md 13.4). Its own requests come down the connection that we opened.
func TestServersOverTLS(t *testing.T) {
	e, stop := start(t, 2)
	stop()
	ca := lbtest.NewCA(t)
	ca.Files(e.dir, "public", lbtest.Leaf{Names: []string{"front.example.net"}})
	lbtest.Replace(t, filepath.Join(e.dir, "ca.pem"), ca.Bundle())
	good, err := e.servers[0].ListenTLS(&tls.Config{
		Certificates: []tls.Certificate{ca.Pair(lbtest.Leaf{Names: []string{"as1.example.net"}})},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: ca.Trust(),
	})
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := e.servers[1].ListenTLS(&tls.Config{Certificates: []tls.Certificate{ca.Pair(lbtest.Leaf{Names: []string{"other.example.net"}})}})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(e.withTLS(), "    servers:\n", "    health: {active: {sip: {interval: 200ms}}}\n    servers:\n", 1)
	for i, at := range []netip.AddrPort{good, wrong} {
		text += fmt.Sprintf("      - {name: as%d, sip: %q, sip_transport: tls, http: %q, tls: {server_name: as%d.example.net, ca_file: ca.pem, certificate: public}}\n",
			i+1, at, e.servers[i].Web, i+1)
	}
	e.write("wyegate.yaml", text)
	e.run()
	e.eventually("health", func() bool {
		states := map[string]string{}
		for _, s := range e.Servers() {
			states[s.Server] = s.Health["sip"].State
		}
		return states["as1"] == "up" && states["as2"] == "down"
	})
	phone, err := lbtest.NewUA("phone", lbtest.Answer)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	over, err := phone.DialTLS(secureClient(ca), e.at("sips"))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := phone.Dial("UDP", e.at("sip-udp"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		for _, c := range []struct {
			path   *lbtest.Path
			uri    string
			status int
		}{
			{over, "sip:room-%d@front.example.net", 200}, {over, "sips:room-%d@front.example.net", 200},
			{plain, "sip:room-%d@front.example.net", 200}, {plain, "sips:room-%d@front.example.net", 480}, // SX-11
		} {
			d, m, err := phone.Invite(ctx, c.path, lbtest.InviteOptions{RequestURI: fmt.Sprintf(c.uri, i)})
			if err != nil || m.Status != c.status {
				t.Fatalf("%s by %s: %v %v", c.uri, c.path.Transport, m, err)
			}
			if m.Status != 200 {
				continue
			}
			if d.Peer != "as1" {
				t.Errorf("call %d at %s", i, d.Peer)
			}
			if m, err := d.Bye(ctx); err != nil || m.Status != 200 {
				t.Errorf("BYE: %v %v", m, err)
			}
		}
	}
	// The node that ran before, without TLS, has probed the same servers.
	probe := func(m *lbtest.Message) bool {
		return m.Back.Transport == "UDP" && strings.Contains(string(m.Value(sip.Via)), ";branch=z9hG4bKwgprobe")
	}
	for _, m := range e.servers[1].Seen() {
		if !probe(m) {
			t.Errorf("the server without the name saw %s", m.MethodName())
		}
	}
	for _, m := range e.servers[0].Seen() {
		if probe(m) {
			continue
		}
		if via := string(m.Value(sip.Via)); !strings.HasPrefix(via, "SIP/2.0/TLS ") {
			t.Fatalf("Via %q", via)
		}
	}
}

// SX-11: a sips request does not leave in plain text.
func TestNoDowngrade(t *testing.T) {
	e, ca := tlsEdge(t)
	phone, err := lbtest.NewUA("phone", lbtest.Answer)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	path, err := phone.DialTLS(secureClient(ca), e.at("sips"))
	if err != nil {
		t.Fatal(err)
	}
	_, m, err := phone.Invite(ctx, path, lbtest.InviteOptions{RequestURI: "sips:room-1@front.example.net"})
	if err != nil || m.Status != 480 {
		t.Fatalf("%v %v", m, err)
	}
	if n := e.servers[0].SeenCount("INVITE") + e.servers[1].SeenCount("INVITE"); n != 0 {
		t.Errorf("servers saw %d INVITE", n)
	}
}

// sip-http.md 13.2: two certificates on one listener; a Host of the other one is misdirected. Strict: an unknown name
// is refused.
func TestNamesOfOneListener(t *testing.T) {
	e, ca := tlsEdge(t)
	ca.Files(e.dir, "second", lbtest.Leaf{Names: []string{"*.example.org"}})
	e.write("wyegate.yaml", strings.NewReplacer(
		"certificates: [", "certificates: [{name: second, cert_file: second.pem, key_file: second.key}, ",
		"certificate: public}", "certificate: public, strict_sni: true}").Replace(e.withTLS(0, 1)))
	if err := e.Reload("test"); err != nil {
		t.Fatal(err)
	}
	get := func(sni, host string, http2 bool) (int, error) {
		tr := &http.Transport{TLSClientConfig: &tls.Config{ServerName: sni, RootCAs: ca.Trust()}, ForceAttemptHTTP2: http2}
		defer tr.CloseIdleConnections()
		client := &http.Client{Transport: tr}
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://%s/?conf=a", e.at("https")), nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Host = host
		r, err := client.Do(q)
		if err != nil {
			return 0, err
		}
		r.Body.Close()
		if (r.ProtoMajor == 2) != http2 {
			t.Errorf("spoken: %s", r.Proto)
		}
		return r.StatusCode, nil
	}
	for _, c := range []struct {
		sni, host string
		want      int
	}{
		{"front.example.net", "front.example.net", 200}, {"a.example.org", "b.example.org:443", 200}, {"a.example.org", "A.example.org", 200},
		{"front.example.net", "a.example.org", 421}, {"a.example.org", "front.example.net", 421},
		{"front.example.net", "elsewhere.example.com", 200}, // the listener's own certificate serves what no other covers
	} {
		for _, http2 := range []bool{false, true} {
			if got, err := get(c.sni, c.host, http2); err != nil || got != c.want {
				t.Errorf("SNI %s, host %s, HTTP/2 %v: %d, %v; want %d", c.sni, c.host, http2, got, err, c.want)
			}
		}
	}
	if _, err := get("unknown.example.com", "unknown.example.com", false); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("unknown name: %v", err)
	}
}
