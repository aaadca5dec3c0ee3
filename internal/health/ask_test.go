package health_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/health"
	"github.com/wyegate/wyegate/internal/lbtest"
)

// A question by hand over every transport of SIP, and over HTTP: the status is the other side's, refusal and silence are
// told apart.
func TestAsk(t *testing.T) {
	ca := lbtest.NewCA(t)
	trust := &tls.Config{RootCAs: ca.Trust()}
	pair := &tls.Config{Certificates: []tls.Certificate{ca.Pair(lbtest.Leaf{Names: []string{"127.0.0.1"}})}}
	ua, err := lbtest.NewUA("as1", func(ua *lbtest.UA, m *lbtest.Message) {
		if strings.Contains(string(m.Bytes(m.URI)), "busy@") {
			m.Reply(m.Response(503, "Service Unavailable", "x"))
		} else if !strings.Contains(string(m.Bytes(m.URI)), "mute@") {
			m.Reply(m.Response(200, "OK", "x"))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ua.Close()
	secure, err := ua.ListenTLS(pair)
	if err != nil {
		t.Fatal(err)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			w.WriteHeader(503)
		}
	}))
	defer page.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	for _, c := range []struct {
		target string
		status int
		err    error
	}{
		{"sip:" + ua.Addr.String(), 200, nil},
		{"sip:busy@" + ua.Addr.String(), 503, nil},
		{"sip:x@" + ua.Addr.String() + ";transport=tcp", 200, nil},
		{"sip:x@" + secure.String() + ";transport=tls", 200, nil},
		{"sips:x@" + secure.String(), 200, nil},
		{page.URL, 200, nil},
		{page.URL + "/busy", 503, nil},
		{"sip:mute@" + ua.Addr.String(), 0, health.ErrNoAnswer},
		{"sip:x@" + closed + ";transport=tcp", 0, health.ErrDown},
		{"http://" + closed, 0, health.ErrDown},
		{"sip:", 0, health.ErrTarget},
		{"ftp://" + closed, 0, health.ErrTarget},
		{"sip:x@" + closed + ";transport=sctp", 0, health.ErrTarget},
	} {
		wait := 5 * time.Second
		if c.err == health.ErrNoAnswer {
			wait = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		a, err := health.Ask(ctx, c.target, trust)
		cancel()
		if a.Status != c.status || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v; want %d, %v", c.target, a.Status, err, c.status, c.err)
		}
	}
	if _, err := health.Ask(t.Context(), "sips:x@"+secure.String(), nil); !errors.Is(err, health.ErrDown) {
		t.Errorf("a certificate that nobody trusts: %v", err)
	}
}
