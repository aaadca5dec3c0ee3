// Requirements of sip-http.md sections 2 and 17, and the tests that hold them:
//
//	H2-1   TestMalformedRequests, TestLengthMismatch, TestWhatHTTP1Refuses, TestForwardedHead, FuzzBlock
//	H2-2   TestRapidReset, TestResetBeforeService, TestContinuationFlood, TestControlFloods, TestNoExtendedConnect, TestMoreStreams
//	H2-3   TestFlush, TestAbortIsReset, TestEventsArrive
package h2

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/proxy/httpproxy"
	"github.com/wyegate/wyegate/proxy/httpproxy/h1"
	"github.com/wyegate/wyegate/routing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a Front with the forwarder behind it, on a socket of the test without TLS.
type rig struct {
	t    testing.TB
	h1   *h1.Front
	h2   *Front
	gen  *httpproxy.Generation
	pool *routing.Pool
	ring *obs.Ring
	addr string
}

type option func(*rig, *h1.Config)

func limits(f func(*httpproxy.Limits)) option {
	return func(r *rig, _ *h1.Config) { f(&r.gen.Limits) }
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
		addr, _ := netip.ParseAddrPort(a)
		members = append(members, routing.Member{Server: reg.Server("web", fmt.Sprintf("as%d", i+1)), Weight: 100,
			Addresses: []routing.Address{{Proto: routing.HTTP, Transport: "tcp", Addr: addr, Host: a}}})
	}
	table, err := routing.NewTable(members, routing.HashSettings{Partitions: 1009, Replicas: 40, Load: 1.25})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, pool: routing.NewPool(reg, "web", routing.Config{Passive: routing.Passive{ConsecutiveFailures: 5, EjectFor: time.Minute, MaxEjected: 50}}, table)}
	target := &proxy.Target{
		Service: "portal", Application: "portal", Name: "portal/portal", Tag: routing.Tag("portal/portal"), Kind: routing.Web, Pool: r.pool,
		Tokens: proxy.TokenNames{SIPParameter: "wg", HTTPCookie: "WGROUTE", HTTPPathParameter: "wgroute"},
		Sticky: proxy.Sticky{SessionCookies: []string{"JSESSIONID"}, SameSite: "Lax", Path: "/"},
	}
	connect := httpproxy.Connect{}.WithDefaults()
	app := &httpproxy.App{Target: target, Connect: &connect,
		Service: &httpproxy.Service{Name: "portal", Via: "wyegate", Upgrade: []string{"websocket"}}}
	m := &proxy.Matcher{}
	m.Add(proxy.Pattern{}, target)
	r.gen = &httpproxy.Generation{Number: 1, Secrets: secrets, Limits: httpproxy.Limits{}.WithDefaults(),
		Listeners: map[string]*httpproxy.Listener{"https": {Name: "https", TLS: true, Matcher: m, Apps: []*httpproxy.App{app}}}}
	r.ring = obs.NewRing(1024, nil)
	cfg := h1.Config{Ring: r.ring}
	for _, o := range opts {
		o(r, &cfg)
	}
	r.h1 = h1.New(cfg)
	r.h1.Swap(r.gen)
	r.h2 = New(Config{Serve: r.h1.Serve})
	r.h2.Swap(r.gen)
	r.serve()
	return r
}

func (r *rig) serve() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.h1.Run(ctx) })
	running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				r.h2.Serve(ctx, c, "https")
			})
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
	end := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(end) {
			r.t.Fatalf("%s: not within 10 s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// client is a connection whose frames the test writes and reads by hand.
type client struct {
	t testing.TB
	net.Conn
	*http2.Framer
	out  bytes.Buffer
	enc  *hpack.Encoder
	next uint32
}

// dial opens a connection, with both sides' settings exchanged.
func (r *rig) dial() *client {
	r.t.Helper()
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = nc.Close() })
	return newClient(r.t, nc)
}

func newClient(t testing.TB, nc net.Conn) *client {
	t.Helper()
	_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
	c := &client{t: t, Conn: nc, Framer: http2.NewFramer(nc, nc), next: 1}
	c.AllowIllegalWrites = true
	c.enc = hpack.NewEncoder(&c.out)
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(nc, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c.must(c.WriteSettings())
	for acked := false; !acked; {
		f := c.frame()
		if s, ok := f.(*http2.SettingsFrame); ok {
			if acked = s.IsAck(); !acked {
				c.must(c.WriteSettingsAck())
			}
		}
	}
	return c
}

func (c *client) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) frame() http2.Frame {
	c.t.Helper()
	f, err := c.ReadFrame()
	if err != nil {
		c.t.Fatalf("frame: %v", err)
	}
	return f
}

// block encodes fields, given as name and value in turn.
func (c *client) block(fields ...string) []byte {
	c.out.Reset()
	for i := 0; i < len(fields); i += 2 {
		c.must(c.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	return bytes.Clone(c.out.Bytes())
}

func request(method, path string, more ...string) []string {
	return append([]string{":method", method, ":scheme", "https", ":authority", "a.example.net", ":path", path}, more...)
}

// open begins a stream with a request.
func (c *client) open(end bool, fields ...string) uint32 {
	c.t.Helper()
	id := c.next
	c.next += 2
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block(fields...), EndStream: end, EndHeaders: true}))
	return id
}

// reply is what came for one stream.
type reply struct {
	status   string
	header   map[string][]string
	interim  []string
	body     string
	trailers map[string][]string
	reset    http2.ErrCode
	isReset  bool
	goAway   *http2.ErrCode
	closed   bool
}

// step takes one frame and says whether the stream has ended.
func (c *client) step(id uint32, r *reply) bool {
	f, err := c.ReadFrame()
	if err != nil {
		r.closed = true
		return true
	}
	if g, ok := f.(*http2.GoAwayFrame); ok {
		code := g.ErrCode
		r.goAway = &code
		return false
	}
	if f.Header().StreamID != id {
		return false
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		fields := map[string][]string{}
		for _, h := range f.RegularFields() {
			fields[h.Name] = append(fields[h.Name], h.Value)
		}
		switch s := f.PseudoValue("status"); {
		case s == "":
			r.trailers = fields
		case strings.HasPrefix(s, "1"):
			r.interim = append(r.interim, s)
		default:
			r.status, r.header = s, fields
		}
		return f.StreamEnded()
	case *http2.DataFrame:
		r.body += string(f.Data())
		if n := uint32(len(f.Data())); n > 0 {
			_ = c.WriteWindowUpdate(0, n)
			if !f.StreamEnded() {
				_ = c.WriteWindowUpdate(id, n)
			}
		}
		return f.StreamEnded()
	case *http2.RSTStreamFrame:
		r.reset, r.isReset = f.ErrCode, true
		return true
	}
	return false
}

// await reads to the end of a stream, or of the connection.
func (c *client) await(id uint32) (r reply) {
	c.t.Helper()
	for !c.step(id, &r) {
	}
	return r
}

// end reads to the end of the connection and gives the code of its GOAWAY.
func (c *client) end() (code http2.ErrCode, said bool) {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				c.t.Fatal("the connection goes on")
			}
			return code, said
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			code, said = g.ErrCode, true
		}
	}
}

// ask sends one request without a body and gives its reply.
func (c *client) ask(fields ...string) reply {
	c.t.Helper()
	return c.await(c.open(true, fields...))
}

// overTLS is the rig's front behind a handshake.
func (r *rig) overTLS(config *tls.Config) string {
	r.t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		r.t.Fatal(err)
	}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				if c.(*tls.Conn).HandshakeContext(ctx) == nil {
					r.h2.Serve(ctx, c, "https")
				}
			})
		}
	})
	r.t.Cleanup(func() {
		_ = ln.Close()
		cancel()
		running.Wait()
	})
	return ln.Addr().String()
}

// plainDial is the dialler of an HTTP/2 client that believes to speak over TLS.
func (r *rig) plainDial(ctx context.Context, network, addr string, _ *tls.Config) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

func soak() bool { return os.Getenv("WYEGATE_SOAK") == "1" }
