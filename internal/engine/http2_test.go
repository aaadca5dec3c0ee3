package engine_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// HTTP/2 is offered to clients by ALPN, and its requests go where the same requests go over HTTP/1.1: one key, one
// server; a cookie of one is followed on the other (H2-1, HS-4, sip-http.md 13.3).
func TestHTTP2AndHTTP1Agree(t *testing.T) {
	e, ca := tlsEdge(t)
	two := &http2.Transport{TLSClientConfig: secureClient(ca)}
	defer two.CloseIdleConnections()
	one := &http.Transport{TLSClientConfig: secureClient(ca)}
	defer one.CloseIdleConnections()
	ask := func(rt http.RoundTripper, path, cookie string) *http.Response {
		t.Helper()
		req, _ := http.NewRequest("GET", "https://"+e.at("https").String()+path, nil)
		req.Host = "front.example.net"
		if cookie != "" {
			req.Header.Set("Cookie", cookie)
		}
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp
	}
	used := map[string]bool{}
	for i := range 12 {
		path := fmt.Sprintf("/?conf=room-%d&session=1", i)
		a, b := ask(two, path, ""), ask(one, path, "")
		if a.ProtoMajor != 2 || b.ProtoMajor != 1 {
			t.Fatalf("spoken: %s and %s", a.Proto, b.Proto)
		}
		server := a.Header.Get("X-Server")
		used[server] = true
		if server == "" || server != b.Header.Get("X-Server") {
			t.Errorf("room-%d: at %s over HTTP/2, at %s over HTTP/1.1", i, server, b.Header.Get("X-Server"))
		}
		for _, c := range a.Cookies() {
			if c.Name != "WGROUTE" {
				continue
			}
			if !c.Secure || !c.HttpOnly {
				t.Errorf("cookie %v", c)
			}
			if got := ask(one, "/", "WGROUTE="+c.Value).Header.Get("X-Server"); got != server {
				t.Errorf("a cookie of %s leads to %s", server, got)
			}
		}
	}
	if len(used) != 2 {
		t.Errorf("servers %v", used)
	}
	e.hasMetric(`wyegate_http_requests_total{`)
}

// Without http2 a listener offers HTTP/1.1 alone, and a client that wants both gets that.
func TestHTTP2CanBeLeftOut(t *testing.T) {
	e, ca := tlsEdge(t)
	offered := func() string {
		t.Helper()
		config := secureClient(ca)
		config.NextProtos = []string{"h2", "http/1.1"}
		c, err := tls.Dial("tcp", e.at("https").String(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().NegotiatedProtocol
	}
	if got := offered(); got != "h2" {
		t.Errorf("by default %q", got)
	}
	text := e.withTLS(0, 1)
	e.write("wyegate.yaml", strings.Replace(text, `protocol: http, transport: tls, bind: "127.0.0.1:0", certificate: public}`, `protocol: http, transport: tls, bind: "127.0.0.1:0", certificate: public, http2: false}`, 1))
	if err := e.Reload("test"); err != nil {
		t.Fatal(err)
	}
	e.eventually("HTTP/1.1 alone", func() bool { return offered() == "http/1.1" })
}

// A node that leaves tells HTTP/2 clients by GOAWAY, and answers what is under way (sip-http.md 11.3).
func TestHTTP2Drain(t *testing.T) {
	e, stop := start(t, 2)
	stop()
	ca := lbtest.NewCA(t)
	ca.Files(e.dir, "public", lbtest.Leaf{Names: []string{"front.example.net"}})
	e.write("wyegate.yaml", e.withTLS(0, 1))
	stop = e.run()
	config := secureClient(ca)
	config.NextProtos = []string{"h2"}
	c, err := tls.Dial("tcp", e.at("https").String(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(c, c)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFrame(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop()
	}()
	for {
		fr, err := f.ReadFrame()
		if err != nil {
			t.Fatalf("no GOAWAY: %v", err)
		}
		if g, ok := fr.(*http2.GoAwayFrame); ok {
			if g.ErrCode != http2.ErrCodeNo {
				t.Errorf("%v", g)
			}
			_ = c.Close()
			<-ended
			return
		}
	}
}
