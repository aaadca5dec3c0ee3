package engine_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
)

// SX-8, RFC 5923: a server's request goes down a client's connection when the client has asked for that with alias, has
// shown a certificate, and is the one that the request is for.
func TestSX8AliasOverMutualTLS(t *testing.T) {
	e, stop := start(t, 1)
	stop()
	ca := lbtest.NewCA(t)
	ca.Files(e.dir, "public", lbtest.Leaf{Names: []string{"front.example.net"}})
	lbtest.Replace(t, filepath.Join(e.dir, "ca.pem"), ca.Bundle())
	text := strings.Replace(e.withTLS(0), `"127.0.0.1:0", certificate: public}`, `"127.0.0.1:0", certificate: public, client_certificates: optional, client_ca_file: ca.pem}`, 1)
	e.write("wyegate.yaml", text)
	e.run()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	server, err := e.servers[0].Dial("UDP", e.at("sip-udp"))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		name   string
		certs  []tls.Certificate
		param  string
		reused bool
	}{
		{"its certificate", []tls.Certificate{ca.Pair(lbtest.Leaf{Names: []string{"127.0.0.1"}})}, ";alias", true},
		{"no certificate", nil, ";alias", false},
		{"another's certificate", []tls.Certificate{ca.Pair(lbtest.Leaf{Names: []string{"192.0.2.8", "*.0.0.1"}})}, ";alias", false},
		{"not asked for", []tls.Certificate{ca.Pair(lbtest.Leaf{Names: []string{"127.0.0.1"}})}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}) // where a new connection would go
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			at := l.Addr().String()
			settings := secureClient(ca)
			settings.Certificates = c.certs
			conn, err := tls.Dial("tcp", e.at("sips").String(), settings)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(15 * time.Second))
			in := bufio.NewReader(conn)
			fmt.Fprintf(conn, "REGISTER sip:example.net SIP/2.0\r\nVia: SIP/2.0/TLS %s;branch=z9hG4bKalias%d%s\r\nMax-Forwards: 70\r\nFrom: <sip:p@example.net>;tag=1\r\nTo: <sip:p@example.net>\r\nCall-ID: alias%d\r\nCSeq: 1 REGISTER\r\nContent-Length: 0\r\n\r\n", at, i, c.param, i)
			if m := message(t, in); !strings.HasPrefix(m, "SIP/2.0 200 ") {
				t.Fatalf("REGISTER: %s", m)
			}
			tr, err := e.servers[0].Start(server, fmt.Sprintf("z9hG4bKback%d", i), "MESSAGE sips:p@"+at+" SIP/2.0", "Max-Forwards: 70",
				"From: <sip:s@example.net>;tag=2", "To: <sip:p@example.net>", fmt.Sprintf("Call-ID: back%d", i), "CSeq: 1 MESSAGE")
			if err != nil {
				t.Fatal(err)
			}
			defer tr.End()
			if !c.reused {
				_ = l.SetDeadline(time.Now().Add(15 * time.Second))
				dialled, err := l.Accept()
				if err != nil {
					t.Fatal("no new connection: ", err)
				}
				_ = dialled.Close()
				_ = l.Close()
				for m := (*lbtest.Message)(nil); m == nil; { // over UDP nothing is kept: a copy that comes is answered
					if err := e.servers[0].Send(server, tr.Raw); err != nil {
						t.Fatal(err)
					}
					again, done := context.WithTimeout(ctx, 100*time.Millisecond)
					m, _ = tr.Final(again)
					done()
					if ctx.Err() != nil {
						t.Fatal("no answer to the server")
					}
				}
				return
			}
			m := message(t, in)
			if !strings.HasPrefix(m, "MESSAGE sips:p@"+at+" SIP/2.0\r\n") {
				t.Fatalf("came: %s", m)
			}
			_, rest, _ := strings.Cut(m, "\r\n")
			fmt.Fprint(conn, "SIP/2.0 200 OK\r\n"+rest)
			if m, err := tr.Final(ctx); err != nil || m.Status != 200 {
				t.Errorf("answer %v %v", m, err)
			}
		})
	}
}

// message reads one message without a body.
func message(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	var b strings.Builder
	for !strings.HasSuffix(b.String(), "\r\n\r\n") {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%v behind %q", err, b.String())
		}
		b.WriteString(line)
	}
	return b.String()
}
