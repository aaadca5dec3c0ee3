package h1

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// announcedOrigin answers every request with who was announced on its connection, and how many requests came on it.
func announcedOrigin(t *testing.T) *origin {
	return newOrigin(t, func(c *originConn) {
		who, err := c.r.ReadString('\n')
		if err != nil {
			return
		}
		for n := 1; ; n++ {
			req, _, err := c.request()
			if err != nil {
				return
			}
			body := fmt.Sprintf("%s %d", strings.TrimSpace(who), n)
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			if req.URL.Path == "/last" {
				_ = c.Close()
				return
			}
		}
	})
}

func announcing(r *rig, _ *Config) {
	r.app.Connect.Announce = func(dst []byte, client, to netip.AddrPort) []byte {
		return fmt.Appendf(dst, "%s to %s\n", client, to)
	}
	r.app.Service.TrustFrom = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

// Section 14, towards servers: each connection to a server is announced for one client, carries the requests of that
// client's connection and no others, and ends with it.
func TestAnnouncedConnections(t *testing.T) {
	o := announcedOrigin(t)
	r := newRig(t, []string{o.addr}, announcing)
	ask := func(w *wire, path string, fields ...string) string {
		t.Helper()
		w.send(get(path, fields...))
		resp, body := w.answer("GET")
		if resp.StatusCode != 200 {
			t.Fatalf("%d %q", resp.StatusCode, body)
		}
		return body
	}
	one, two := r.dial(), r.dial()
	for n := 1; n <= 3; n++ {
		for _, w := range []*wire{one, two} {
			if got, want := ask(w, "/"), fmt.Sprintf("%s to %s %d", w.LocalAddr(), r.addr, n); got != want {
				t.Errorf("request %d: the server says %q, want %q", n, got, want)
			}
		}
	}
	if n := o.connections(); n != 2 {
		t.Errorf("%d connections to the server, want 2", n)
	}
	ask(one, "/last") // the server closes: the next request has a connection of its own again, announced as well
	if got, want := ask(one, "/"), fmt.Sprintf("%s to %s 1", one.LocalAddr(), r.addr); got != want {
		t.Errorf("behind a connection that was closed: %q, want %q", got, want)
	}
	// A trusted hop in front carries several clients over one connection: none is taken for another.
	port := one.LocalAddr().String()[strings.LastIndexByte(one.LocalAddr().String(), ':'):]
	for _, who := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.1"} {
		if got := ask(one, "/", "X-Forwarded-For: "+who); !strings.HasPrefix(got, who+port+" to ") {
			t.Errorf("for %s the server was told %q", who, got)
		}
	}
	_ = one.Close()
	_ = two.Close()
	p := r.front.servers.pool(address{addr: netip.MustParseAddrPort(o.addr), host: o.addr})
	r.until("the connections to the server end with their clients", func() bool {
		for i := range p.conns {
			if s := p.conns[i].Load(); s != nil && s.state.Load() != closed {
				return false
			}
		}
		return true
	})
}

// A client that talks to many servers keeps no more connections than it may.
func TestAnnouncedConnectionsAreFew(t *testing.T) {
	var addrs []string
	for range ownMost + 4 {
		addrs = append(addrs, announcedOrigin(t).addr)
	}
	r := newRig(t, addrs, announcing)
	w := r.dial()
	for i := range 200 {
		w.send(get(fmt.Sprintf("/%d", i), fmt.Sprintf("X-Forwarded-For: 192.0.2.%d", i%50)))
		if resp, body := w.answer("GET"); resp.StatusCode != 200 || !strings.HasPrefix(body, fmt.Sprintf("192.0.2.%d:", i%50)) {
			t.Fatalf("request %d: %d %q", i, resp.StatusCode, body)
		}
	}
	r.until("no more are open than may be kept", func() bool {
		open := 0
		for _, p := range *r.front.servers.pools.Load() {
			for i := range p.conns {
				if s := p.conns[i].Load(); s != nil && s.state.Load() != closed {
					open++
				}
			}
		}
		return open <= ownMost
	})
	_ = w.Close()
}
