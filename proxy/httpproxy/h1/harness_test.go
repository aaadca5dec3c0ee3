// Requirements of sip-http.md section 2 and the tests that hold them:
//
//	HF-1 HF-2 HF-3   http1.TestRequestFraming, TestCorpusRequests
//	HF-4             http1.TestRequestRefused, TestCorpusRequests
//	HF-5             http1.TestChunks, http1.TestChunksRefused, http1.FuzzChunks, TestCorpusRequests
//	HF-6             http1.TestRequestAccepted, TestForwardedRequest, TestCorpusRequests
//	HF-7             TestCorpusResponses, TestUnaskedBytesPoisonNobody, TestAbortIsVisible, TestUpgradeToAnother, TestInterim
//	HH-1             http1.TestCutHopByHop, TestCorpusRequests, TestCorpusResponses
//	HH-2             TestForwardedRequest, TestCorpusRequests
//	HH-3 SS-3        httpproxy.TestForwarding, httpproxy.TestClientAddress, TestCorpusRequests
//	HB-1             TestUploadStreams, TestResponseStreams, TestFullDuplex, TestLargeBodies
//	HB-2             TestExpectContinue, TestEarlyAnswer
//	HB-3             TestConnectRefusedMoves, TestStalePooledConnection, TestServerLeavesAfterRequest, httpproxy.TestNext
//	HB-4             TestTunnel, TestUpgradeRefused, TestCloseTunnels, TestTunnelIdle
//	HB-5             TestOldClient, TestCorpusResponses
//	HB-6             TestCodingUntouched, TestLargeBodies, TestCorpusResponses
//	HB-7             http1.TestTrailers, TestCorpusRequests, TestCorpusResponses
//	HB-8             TestSlowHead, TestIdleClient, TestIdleAfterRequest, TestCorpusRequests
//	HB-9             TestClientFaults, TestClientLeavesWhileWaiting
//	HS-1 HS-2 HS-3   TestStickySession, TestCookieNamesWhoAnswered, httpproxy.TestTokens, httpproxy.TestCookie
//	HS-4             httpproxy.TestWhereRequestsGo, httpproxy.TestRuleFirst
package h1

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/proxy/httpproxy"
	"github.com/wyegate/wyegate/routing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a Front on a socket of the test, in front of servers of the test.
type rig struct {
	t     testing.TB
	front *Front
	gen   *httpproxy.Generation
	app   *httpproxy.App
	pool  *routing.Pool
	ring  *obs.Ring
	addr  string
	stop  context.CancelFunc
}

// option changes a rig before it serves.
type option func(*rig, *Config)

func limits(f func(*httpproxy.Limits)) option {
	return func(r *rig, _ *Config) { f(&r.gen.Limits) }
}

func newRig(t testing.TB, servers []string, opts ...option) *rig {
	t.Helper()
	secrets, err := proxy.NewSecrets([]proxy.Secret{{Bytes: []byte("wyegate test secret")}})
	if err != nil {
		t.Fatal(err)
	}
	reg := &routing.Registry{}
	var members []routing.Member
	for i, a := range servers {
		name := fmt.Sprintf("as%d", i+1)
		addr, _ := netip.ParseAddrPort(a)
		members = append(members, routing.Member{Server: reg.Server("web", name), Weight: 100,
			Addresses: []routing.Address{{Proto: routing.HTTP, Transport: "tcp", Addr: addr, Host: a}}})
	}
	table, err := routing.NewTable(members, routing.HashSettings{Partitions: 1009, Replicas: 40, Load: 1.25})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, pool: routing.NewPool(reg, "web", routing.Config{Passive: routing.Passive{ConsecutiveFailures: 5, EjectFor: time.Minute, MaxEjected: 50}}, table)}
	target := &proxy.Target{
		Service: "portal", Application: "portal", Name: "portal/portal", Tag: routing.Tag("portal/portal"), Kind: routing.Web, Pool: r.pool,
		HTTPKey: []proxy.KeyPart{proxy.PartRemoteHost, proxy.PartRemotePort},
		Tokens:  proxy.TokenNames{SIPParameter: "wg", HTTPCookie: "WGROUTE", HTTPPathParameter: "wgroute"},
		Sticky:  proxy.Sticky{SessionCookies: []string{"JSESSIONID"}, SameSite: "Lax", Path: "/"},
	}
	connect := httpproxy.Connect{}.WithDefaults()
	r.app = &httpproxy.App{Target: target, Connect: &connect,
		Service: &httpproxy.Service{Name: "portal", Via: "wyegate", Upgrade: []string{"websocket"}}}
	m := &proxy.Matcher{}
	m.Add(proxy.Pattern{}, target)
	r.gen = &httpproxy.Generation{Number: 1, Secrets: secrets, Limits: httpproxy.Limits{}.WithDefaults(),
		Listeners: map[string]*httpproxy.Listener{"http": {Name: "http", Matcher: m, Apps: []*httpproxy.App{r.app}}}}
	r.ring = obs.NewRing(1024, nil)
	cfg := Config{Ring: r.ring}
	for _, o := range opts {
		o(r, &cfg)
	}
	r.front = New(cfg)
	r.front.Swap(r.gen)
	r.serve()
	return r
}

// serve accepts until the test ends, and then waits for every connection.
func (r *rig) serve() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	var running sync.WaitGroup
	running.Go(func() { _ = r.front.Run(ctx) })
	running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.front.Serve(ctx, c, "http") })
		}
	})
	r.t.Cleanup(func() {
		_ = ln.Close()
		cancel()
		running.Wait()
	})
}

// record waits for the next line of the access log.
func (r *rig) record() obs.Record {
	r.t.Helper()
	var rec obs.Record
	r.until("a line of the access log", func() bool { return r.ring.Take(func(x *obs.Record) { rec = *x }) })
	return rec
}

func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	end := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(end) {
			r.t.Fatalf("%s: not within 5 s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// wire is a client connection written and read by hand.
type wire struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (r *rig) dial() *wire {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &wire{r.t, c, bufio.NewReader(c)}
}

func (w *wire) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// answer reads one response with its body.
func (w *wire) answer(method string) (*http.Response, string) {
	w.t.Helper()
	resp, err := http.ReadResponse(w.r, &http.Request{Method: method})
	if err != nil {
		w.t.Fatalf("answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("body: %v after %d octets, %.200q", err, len(body), body)
	}
	return resp, string(body)
}

// rest reads to the end of the connection.
func (w *wire) rest() (string, error) {
	b, err := io.ReadAll(w.r)
	return string(b), err
}

// origin is a server whose connections the test handles by hand. It remembers what it received.
type origin struct {
	addr string
	mu   sync.Mutex
	got  bytes.Buffer
	open int // connections so far
}

// exchange is one connection of an origin, with what it reads kept.
type originConn struct {
	net.Conn
	o *origin
	r *bufio.Reader
}

func (c *originConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.o.mu.Lock()
	c.o.got.Write(b[:n])
	c.o.mu.Unlock()
	return n, err
}

// request reads a head, and a body of known length.
func (c *originConn) request() (*http.Request, string, error) {
	req, err := http.ReadRequest(c.r)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(req.Body)
	return req, string(body), err
}

func newOrigin(t testing.TB, handle func(c *originConn)) *origin {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &origin{addr: ln.Addr().String()}
	var running sync.WaitGroup
	var open sync.Map
	running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			open.Store(c, true)
			o.mu.Lock()
			o.open++
			o.mu.Unlock()
			running.Go(func() {
				defer c.Close()
				oc := &originConn{Conn: c, o: o}
				oc.r = bufio.NewReader(oc)
				handle(oc)
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		open.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		running.Wait()
	})
	return o
}

func (o *origin) received() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.got.String()
}

func (o *origin) connections() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open
}

// answers handles a connection by answering every request with one text.
func answers(text string) func(*originConn) {
	return func(c *originConn) {
		for {
			if _, _, err := c.request(); err != nil {
				return
			}
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

// head reads the octets of one head as they are.
func (c *originConn) head() (string, error) {
	var head []byte
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		b, err := c.r.ReadByte()
		if err != nil {
			return string(head), err
		}
		head = append(head, b)
	}
	return string(head), nil
}

// rawAnswers answers every head, whatever a reader would make of it.
func rawAnswers(text string) func(*originConn) {
	return func(c *originConn) {
		for {
			if _, err := c.head(); err != nil {
				return
			}
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func get(path string, fields ...string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n"
}
