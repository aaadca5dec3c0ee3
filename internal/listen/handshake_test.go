package listen

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// sip-http.md 13.1, 13.7, section 19: a peer that says nothing has five seconds, one that speaks no TLS is closed.
func TestHandshakesThatFail(t *testing.T) {
	config := &tls.Config{Certificates: []tls.Certificate{lbtest.NewCA(t).Pair(lbtest.Leaf{Names: []string{"a.example.net"}})}}
	synctest.Test(t, func(t *testing.T) {
		var s Socket
		ours, theirs := net.Pipe()
		defer theirs.Close()
		began := time.Now()
		if s.handshake(t.Context(), config, ours) != nil || time.Since(began) != handshakeTimeout {
			t.Errorf("silence ended after %v", time.Since(began))
		}
		ours, plain := net.Pipe()
		go func() {
			_, _ = io.WriteString(plain, "OPTIONS sip:a SIP/2.0\r\n\r\n")
			_, _ = io.Copy(io.Discard, plain)
		}()
		if s.handshake(t.Context(), config, ours) != nil {
			t.Error("plain text is taken")
		}
		ours.Close()
		s.shaking.Store(shakingAtOnce)
		if s.handshake(t.Context(), config, ours) != nil {
			t.Error("one handshake too many")
		}
		if s.shaking.Load() != shakingAtOnce {
			t.Errorf("%d handshakes counted", s.shaking.Load())
		}
		for r, want := range map[HandshakeResult]uint64{HandshakeOK: 0, HandshakeFailed: 1, HandshakeTimeout: 1, HandshakeShed: 1} {
			if got := s.Stats.Handshakes[r].Load(); got != want {
				t.Errorf("result %d: %d, want %d", r, got, want)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		ours, last := net.Pipe()
		defer last.Close()
		if s.handshake(ended, config, ours) != nil {
			t.Error("a handshake outlives its context")
		}
	})
}

// TLS begins behind the PROXY header, and the handler sees the carried address through it (section 14).
func TestTLSBehindProxyHeader(t *testing.T) {
	ca := lbtest.NewCA(t)
	s := running(t)
	sock := adopt(t, s, want("a", TCP, "127.0.0.1:0"))[0]
	sock.Serve(&Service{
		TLS:       &tls.Config{Certificates: []tls.Certificate{ca.Pair(lbtest.Leaf{Names: []string{"a.example.net"}})}},
		ProxyFrom: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Handle: func(_ context.Context, c net.Conn) {
			_, _ = io.WriteString(c, c.RemoteAddr().String())
		},
	})
	c := dial(t, sock)
	if _, err := io.WriteString(c, "PROXY TCP4 192.0.2.1 192.0.2.2 4000 5061\r\n"); err != nil {
		t.Fatal(err)
	}
	secure := tls.Client(c, &tls.Config{ServerName: "a.example.net", RootCAs: ca.Trust()})
	got, err := io.ReadAll(secure)
	if err != nil || string(got) != "192.0.2.1:4000" {
		t.Fatalf("%q, %v", got, err)
	}
	if n := sock.Stats.Handshakes[HandshakeOK].Load(); n != 1 {
		t.Errorf("%d handshakes", n)
	}
}
