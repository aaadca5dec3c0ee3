package peer

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/diam/base"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a node under virtual time, with everything that happened to it.
type bed struct {
	t    *testing.T
	node *Node
	stop func()

	mu      sync.Mutex
	notices []Notice
	got     [][]byte // messages that reached a receiver
	pending int
	calls   []string
}

func newBed(t *testing.T, change func(*NodeConfig)) *bed {
	b := &bed{t: t}
	cfg := NodeConfig{
		Local:    base.Node{Host: "m.example.net", Realm: "example.net", Product: "wyegate", StateID: 7, Apps: []uint32{diam.AppRelay}},
		Defaults: DefaultSettings, Limits: DefaultLimits, Random: rand.New(rand.NewPCG(1, 2)),
		Accept: []Rule{{Host: "*.example.net"}},
	}
	cfg.Notify, cfg.Handler = b.notify, b
	if change != nil {
		change(&cfg)
	}
	b.node = NewNode(cfg, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.node.Run(ctx)
	}()
	b.stop = func() { cancel(); <-done }
	synctest.Wait()
	return b
}

func (b *bed) notify(n Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notices = append(b.notices, n)
}

func (b *bed) Open(*Link) Receiver { return b }
func (b *bed) Message(_ diam.Header, msg []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, append([]byte(nil), msg...))
}
func (b *bed) Flush()            {}
func (b *bed) Suspend(move bool) { b.call(map[bool]string{true: "suspend", false: "depart"}[move]) }
func (b *bed) Resume()           { b.call("resume") }
func (b *bed) Closed()           { b.call("closed") }
func (b *bed) Pending() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pending
}

func (b *bed) call(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, s)
}

// kinds are the notices so far, without those of connections that are merely refused.
func (b *bed) kinds() []NoticeKind {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []NoticeKind
	for _, n := range b.notices {
		out = append(out, n.Kind)
	}
	return out
}

func (b *bed) last() Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.notices) == 0 {
		return Notice{}
	}
	return b.notices[len(b.notices)-1]
}

var addrs = []netip.Addr{netip.MustParseAddr("10.0.0.9")}

// dialer gives the test the other end of every connection the node dials.
type dialer struct {
	t    *testing.T
	host string
	got  chan *far
	fail atomic.Bool
}

func newDialer(t *testing.T, host string) *dialer {
	return &dialer{t: t, host: host, got: make(chan *far, 16)}
}

func (d *dialer) Dial(context.Context) (Conn, error) {
	if d.fail.Load() {
		return nil, errors.New("refused")
	}
	here, there := net.Pipe()
	d.got <- newFar(d.t, here, d.host)
	return NewConn(there, time.Second), nil
}

// answer takes the CER of a connection the node dialled and accepts it.
func (d *dialer) answer() *far {
	d.t.Helper()
	f := <-d.got
	h, _ := f.want(diam.CommandCapabilitiesExchange, true)
	f.send(f.node.CEA(base.IDsOf(h), addrs, base.Refusal{}))
	synctest.Wait()
	return f
}

// far is the other end of a connection.
type far struct {
	t    *testing.T
	c    net.Conn
	node base.Node
	f    diam.Framer
}

func newFar(t *testing.T, c net.Conn, host string) *far {
	return &far{t: t, c: c, f: diam.NewFramer(1 << 20), node: base.Node{
		Host: host, Realm: "example.net", Product: "far", Apps: []uint32{diam.AppRelay},
	}}
}

// connect opens a connection to the node.
func (b *bed) connect(host string) *far {
	here, there := net.Pipe()
	b.node.running.Go(func() { b.node.Serve(b.t.Context(), NewConn(there, time.Second)) })
	return newFar(b.t, here, host)
}

func (f *far) send(msg []byte) {
	f.t.Helper()
	if _, err := f.c.Write(msg); err != nil {
		f.t.Fatalf("write: %v", err)
	}
}

// next is the next message, nil at the end of the connection, or after wait without one.
func (f *far) next(wait time.Duration) (diam.Header, []byte) {
	f.t.Helper()
	for {
		msg, err := f.f.Next()
		if err != nil {
			f.t.Fatal(err)
		}
		if msg != nil {
			h, err := diam.ParseHeader(msg, len(msg))
			if err != nil {
				f.t.Fatal(err)
			}
			return h, append([]byte(nil), msg...)
		}
		_ = f.c.SetReadDeadline(time.Now().Add(wait))
		n, err := f.c.Read(f.f.Space())
		f.f.Filled(n)
		if err != nil {
			return diam.Header{}, nil
		}
	}
}

// want is the next message of that command and kind.
func (f *far) want(command uint32, request bool) (diam.Header, []byte) {
	f.t.Helper()
	h, msg := f.next(time.Minute)
	if msg == nil || h.Command != command || h.IsRequest() != request {
		f.t.Fatalf("got %s (%d bytes), want command %d request %v", base.CommandName(h), len(msg), command, request)
	}
	return h, msg
}

// ended says whether the connection is closed within wait without another message.
func (f *far) ended(wait time.Duration) bool {
	_ = f.c.SetReadDeadline(time.Now().Add(wait))
	n, err := f.c.Read(make([]byte, 1))
	return n == 0 && err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (f *far) cer() { f.send(f.node.CER(base.IDs{HopByHop: 1, EndToEnd: 2}, addrs)) }

// open exchanges capabilities as the side that connected.
func (f *far) open() {
	f.t.Helper()
	f.cer()
	_, msg := f.want(diam.CommandCapabilitiesExchange, false)
	if c, _ := base.ReadCapabilities(msg); c.Result != 2001 {
		f.t.Fatalf("CEA %d %s", c.Result, c.ErrorMessage)
	}
	synctest.Wait()
}
