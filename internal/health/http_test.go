package health

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/routing"
)

// httpCheck makes one exchange with a real server.
func httpCheck(t *testing.T, h http.HandlerFunc, s Settings) outcome {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	c := &Check{Address: routing.Address{Proto: routing.HTTP, Transport: "tcp",
		Addr: netip.MustParseAddrPort(strings.TrimPrefix(srv.URL, "http://"))}, Settings: s.filled()}
	var conn net.Conn
	return New(Config{}).exchange(t.Context(), &probe{}, c, &conn)
}

func TestHTTP(t *testing.T) {
	code := func(n int) http.HandlerFunc { return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(n) } }
	for _, c := range []struct {
		name  string
		h     http.HandlerFunc
		s     Settings
		want  Result
		brief string
	}{
		{"200", code(200), Settings{Path: "/healthz"}, OK, "200"},
		{"302 is in 200-399", code(302), Settings{Path: "/"}, OK, "302"},
		{"404", code(404), Settings{Path: "/"}, Fail, "404"},
		{"404 by configuration", code(404), Settings{Path: "/", OK: []Range{{404, 404}}}, OK, "404"},
		{"200 not in the list", code(200), Settings{Path: "/", OK: []Range{{204, 204}}}, Fail, "200"},
		{"503", code(503), Settings{Path: "/"}, Fail, "503"},
		{"drain_status", code(503), Settings{Path: "/", Drains: []Range{{503, 503}}}, Busy, "503"},
		{"connect only", code(500), Settings{}, OK, "connected"},
		{"host", func(w http.ResponseWriter, r *http.Request) {
			if r.Host != "app.example.net" || r.URL.Path != "/healthz" || r.URL.RawQuery != "a=b" || r.Method != "GET" {
				w.WriteHeader(400)
			}
		}, Settings{Path: "/healthz?a=b", Host: "app.example.net"}, OK, "200"},
		{"text", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("all is well")) },
			Settings{Path: "/", Text: "well"}, OK, "200"},
		{"without the text", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("all is bad")) },
			Settings{Path: "/", Text: "well"}, Fail, "text"},
		{"silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			Settings{Path: "/", Timeout: 50 * time.Millisecond}, Timeout, "timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if o := httpCheck(t, c.h, c.s); o.result != c.want || o.brief != c.brief {
				t.Errorf("%+v, want result %d, %q", o, c.want, c.brief)
			}
		})
	}
}

func TestHTTPRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(l.Addr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "/healthz"} {
		c := &Check{Address: routing.Address{Proto: routing.HTTP, Transport: "tcp", Addr: addr}, Settings: Settings{Path: path}.filled()}
		var conn net.Conn
		o := New(Config{}).exchange(context.Background(), &probe{}, c, &conn)
		if o.result != Fail || !o.refused || o.brief != "refused" {
			t.Errorf("path %q: %+v", path, o)
		}
	}
}

func TestHostNames(t *testing.T) {
	addr := netip.MustParseAddrPort("[2001:db8::7]:5060")
	for host, want := range map[string]string{
		"": "[2001:db8::7]:5060", "as1.example.net": "as1.example.net:5060", "as1.example.net:5070": "as1.example.net:5070",
		"2001:db8::7": "[2001:db8::7]:5060", "[2001:db8::7]": "[2001:db8::7]:5060",
	} {
		c := &Check{Address: routing.Address{Addr: addr, Host: host}}
		if got := c.host(); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}
