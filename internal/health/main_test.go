package health

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/routing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parse is a Parser over the module's own SIP layer, as the engine has one.
func parse(b []byte) (Answer, int, error) {
	f := sip.NewFramer(sip.Limits{})
	f.Feed(b)
	for {
		piece, raw, bad := f.Next()
		switch piece {
		case sip.Ping, sip.Pong:
			continue
		case sip.More:
			return Answer{}, 0, nil
		case sip.Broken:
			return Answer{}, 0, bad
		}
		var m sip.Msg
		if err := m.Parse(raw); err != nil {
			return Answer{}, 0, err
		}
		via := m.Vias()
		if !via.Next() || via.Err != nil {
			return Answer{}, 0, errors.New("no Via")
		}
		out := Answer{
			Status: m.Status, Reason: string(m.Bytes(m.Reason)), Branch: string(via.Via.Branch), CallID: string(m.Value(sip.CallID)),
		}
		if r, err := sip.ParseRetryAfter(m.Value(sip.RetryAfter)); err == nil {
			out.RetryAfter = time.Duration(r.Delta) * time.Second
		}
		return out, bytes.Index(b, raw) + len(raw), nil
	}
}

// answer gives a response to a request that a probe sent.
func answer(req []byte, status string, more string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "SIP/2.0 %s\r\n", status)
	for line := range bytes.SplitSeq(req, []byte("\r\n")) {
		for _, name := range []string{"Via:", "From:", "To:", "Call-ID:", "CSeq:"} {
			if bytes.HasPrefix(line, []byte(name)) {
				out.Write(line)
				out.WriteString("\r\n")
			}
		}
	}
	out.WriteString(more + "Content-Length: 0\r\n\r\n")
	return out.Bytes()
}

// wire is a Sender whose server answers as the test says. It records when it was asked.
type wire struct {
	mu     sync.Mutex
	prober *Prober
	reply  func(n int, req []byte) []byte // n counts from 1; nil: silence
	from   netip.AddrPort                 // source of the answers; zero: the address asked
	asked  []time.Time
	reqs   [][]byte

	bySocket func(socket string, req []byte) []byte // instead of reply, when set
}

func (w *wire) set(f func(socket string, req []byte) []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bySocket = f
}

func (w *wire) SentBy(string) string { return "192.0.2.1:5060" }

func (w *wire) SendProbe(socket string, to netip.AddrPort, b []byte) error {
	w.mu.Lock()
	w.asked = append(w.asked, time.Now())
	w.reqs = append(w.reqs, bytes.Clone(b))
	n, f := len(w.asked), w.bySocket
	w.mu.Unlock()
	var r []byte
	if f != nil {
		r = f(socket, b)
	} else {
		r = w.reply(n, b)
	}
	if r != nil {
		from := w.from
		if !from.IsValid() {
			from = to
		}
		w.prober.Answered(from, r)
	}
	return nil
}

func (w *wire) times(start time.Time) (out []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.asked {
		out = append(out, t.Sub(start))
	}
	return out
}

func (w *wire) when() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

func (w *wire) sent() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reqs)
}

var serverAddr = netip.MustParseAddrPort("192.0.2.7:5060")

// scene is one server under watch.
type scene struct {
	*testing.T
	pool    *routing.Pool
	server  *routing.Server
	prober  *Prober
	wire    *wire
	changes []routing.Change
	mu      sync.Mutex
}

func (s *scene) edges() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.changes {
		out = append(out, c.To)
	}
	return out
}

// watch runs f in virtual time with a prober over one server; set changes the check before it begins.
func watch(t *testing.T, reply func(n int, req []byte) []byte, set func(*Check, *Config), f func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		reg := &routing.Registry{}
		s := &scene{T: t, server: reg.Server("p", "as1"), wire: &wire{reply: reply}}
		c := Check{Server: s.server, Socket: "udp", Address: routing.Address{Proto: routing.SIP, Transport: "udp", Addr: serverAddr}}
		cfg := Config{UDP: s.wire, Parse: parse}
		if set != nil {
			set(&c, &cfg)
		}
		tb, err := routing.NewTable([]routing.Member{{Server: s.server, Weight: 1, Addresses: []routing.Address{c.Address}}},
			routing.HashSettings{Partitions: 11, Replicas: 1})
		if err != nil {
			t.Fatal(err)
		}
		s.prober = New(cfg)
		s.wire.prober = s.prober
		s.pool = routing.NewPool(reg, "p", routing.Config{
			Passive:   routing.Passive{ConsecutiveFailures: 5, EjectFor: 30 * time.Second, MaxEjected: 100},
			OnSuspect: s.prober.Suspect,
			OnChange: func(c routing.Change) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.changes = append(s.changes, c)
			},
		}, tb)
		c.Pool = s.pool
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.prober.Run(ctx) }()
		s.prober.Swap([]Check{c})
		synctest.Wait()
		f(s)
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
}

func silence(int, []byte) []byte { return nil }

func status(text string, more string) func(int, []byte) []byte {
	return func(_ int, req []byte) []byte { return answer(req, text, more) }
}

// refusing is a Dial to a port nobody listens on.
func refusing(context.Context, routing.Address) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
}
