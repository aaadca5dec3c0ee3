package engine_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
	"github.com/wyegate/wyegate/internal/sip"
)

// udpProxy forwards datagrams on 127.0.0.2 to the edge with a PROXY header of version 2, each client from a socket of its
// own, and what comes back to the client.
type udpProxy struct {
	front   *net.UDPConn
	to      *net.UDPAddr
	running sync.WaitGroup

	mu      sync.Mutex
	clients map[string]*net.UDPConn
}

func newUDPProxy(t *testing.T, to *net.UDPAddr) *udpProxy {
	t.Helper()
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)})
	if err != nil {
		t.Fatal(err)
	}
	p := &udpProxy{front: front, to: to, clients: map[string]*net.UDPConn{}}
	p.running.Go(p.forward)
	t.Cleanup(func() {
		_ = front.Close()
		p.mu.Lock()
		for _, c := range p.clients {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.running.Wait()
	})
	return p
}

func (p *udpProxy) forward() {
	b := make([]byte, 1<<16)
	for {
		n, client, err := p.front.ReadFromUDP(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		c := p.clients[client.String()]
		if c == nil {
			if c, err = net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}, p.to); err != nil {
				p.mu.Unlock()
				return
			}
			p.clients[client.String()] = c
			p.running.Go(func() { p.back(c, client) })
		}
		p.mu.Unlock()
		head := append([]byte("\r\n\r\n\x00\r\nQUIT\n"), 0x21, 0x12, 0, 12)
		head = append(append(head, client.IP.To4()...), p.to.IP.To4()...)
		head = append(head, byte(client.Port>>8), byte(client.Port), byte(p.to.Port>>8), byte(p.to.Port))
		_, _ = c.Write(append(head, b[:n]...))
	}
}

func (p *udpProxy) back(c *net.UDPConn, client *net.UDPAddr) {
	b := make([]byte, 1<<16)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		_, _ = p.front.WriteToUDP(b[:n], client)
	}
}

// Section 14 over UDP: whole calls through a proxy, hang-up by either side; servers on the same socket send no header, and
// who comes past the proxy gets no answer.
func TestCallsThroughAProxyOverUDP(t *testing.T) {
	e, stop := start(t, 2)
	stop()
	config := strings.Replace(e.yaml("", 0, 1), `transport: udp, bind: "127.0.0.1:0"`, `transport: udp, bind: "127.0.0.1:0", proxy_protocol_from: [127.0.0.2]`, 1)
	e.write("wyegate.yaml", strings.Replace(config, "pool: appservers,", "pool: appservers, sip: {flow_tokens: all},", 1))
	e.run()
	to := e.at("sip-udp")
	p := newUDPProxy(t, net.UDPAddrFromAddrPort(to))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for i := range 3 {
		phone, err := lbtest.NewUA(fmt.Sprintf("phone%d", i), lbtest.Answer)
		if err != nil {
			t.Fatal(err)
		}
		defer phone.Close()
		path, err := phone.Dial("UDP", p.front.LocalAddr().(*net.UDPAddr).AddrPort())
		if err != nil {
			t.Fatal(err)
		}
		for j := range 10 {
			d, m, err := phone.Invite(ctx, path, lbtest.InviteOptions{RequestURI: fmt.Sprintf("sip:room-%d@front.example.net", j)})
			if err != nil || m.Status != 200 {
				t.Fatalf("call %d: %v %v", j, m, err)
			}
			if via := m.All(sip.Via)[0]; !strings.Contains(via, fmt.Sprintf(";rport=%d", phone.Addr.Port())) {
				t.Fatalf("Via %q does not name the phone's port %d", via, phone.Addr.Port())
			}
			if j%2 == 0 {
				if m, err := d.Bye(ctx); err != nil || m.Status != 200 {
					t.Fatalf("BYE: %v %v", m, err)
				}
				continue
			}
			e.hangsUp(ctx, t, d, phone.Name)
		}
	}
	past, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 3)}, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	defer past.Close()
	fmt.Fprintf(past, "MESSAGE sip:a@front.example.net SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bKpast\r\nMax-Forwards: 70\r\nFrom: <sip:p@example.net>;tag=1\r\nTo: <sip:a@front.example.net>\r\nCall-ID: past\r\nCSeq: 1 MESSAGE\r\nContent-Length: 0\r\n\r\n", past.LocalAddr())
	phone, err := lbtest.NewUA("last", lbtest.Answer)
	if err != nil {
		t.Fatal(err)
	}
	defer phone.Close()
	path, err := phone.Dial("UDP", p.front.LocalAddr().(*net.UDPAddr).AddrPort())
	if err != nil {
		t.Fatal(err)
	}
	if _, m, err := phone.Invite(ctx, path, lbtest.InviteOptions{RequestURI: "sip:last@front.example.net"}); err != nil || m.Status != 200 {
		t.Fatal(m, err) // it has gone behind the other one: by now that would have been seen
	}
	for _, s := range e.servers[:2] {
		for _, m := range s.Seen() {
			if m.MethodName() == "MESSAGE" {
				t.Errorf("%s has got what came past the proxy", s.Name)
			}
		}
	}
}
