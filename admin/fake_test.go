package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wyegate/wyegate/internal/obs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a node whose servers can be changed; everything else is canned.
type fake struct {
	mu        sync.Mutex
	servers   []Server
	changes   []Change
	applies   []Apply
	explains  []ExplainRequest
	drains    []Drain // one per question; the last one stays
	cleared   []string
	overrides []Override
	ready     error
	refuse    error // of Change, Apply
	gen       uint64
	feed      *obs.Events
}

func newFake() *fake {
	return &fake{
		gen:  42,
		feed: obs.NewEvents("edge-ams-1", slog.New(slog.DiscardHandler), time.Now),
		servers: []Server{
			{Pool: "appservers", Server: "as1", Site: "ams", AdminState: Setting[string]{File: "ready", Effective: "ready"}, Weight: Setting[int]{File: 100, Effective: 100},
				Health: map[string]Health{"sip": {State: "up"}, "http": {State: "up"}}, Since: time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC)},
			{Pool: "appservers", Server: "as2", Site: "fra", Standby: true, AdminState: Setting[string]{File: "ready", Effective: "ready"}, Weight: Setting[int]{File: 100, Effective: 100},
				Health: map[string]Health{"sip": {State: "up"}, "http": {State: "down", Cause: "503×4"}}},
			{Pool: "web", Server: "as1", AdminState: Setting[string]{File: "ready", Effective: "ready"}, Weight: Setting[int]{File: 1, Effective: 1}},
		},
	}
}

func (f *fake) Status() Status {
	return Status{Node: "edge-ams-1", Generation: f.gen, GenerationState: "confirmed", Sites: []Site{{"ams", 1, true}}, Pools: f.Pools(),
		StartedAt: time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC), Warnings: []Warning{{Code: "server_state", Text: "as2 HTTP health down"}}}
}
func (f *fake) Ready() error { return f.ready }
func (f *fake) Pools() []Pool {
	return []Pool{{Pool: "appservers", Servers: 2, Usable: 1}, {Pool: "web", Servers: 1}}
}
func (f *fake) Servers() []Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Server(nil), f.servers...)
}
func (f *fake) Listeners() []Listener {
	return []Listener{{Listener: "sip-udp", Protocol: "sip", Transport: "udp", Address: "127.0.0.1:5060"}}
}
func (f *fake) Explain(_ context.Context, q ExplainRequest) (*Explanation, error) {
	f.explains = append(f.explains, q)
	return &Explanation{Key: q.Key, Service: q.Service, Source: "given", Server: "as2", Candidates: []string{"as2", "as1"}}, nil
}
func (f *fake) Where(key, pool, service string) (KeyPlace, error) {
	if pool == "none" {
		return KeyPlace{}, fmt.Errorf("%w: pool %q", ErrNotFound, pool)
	}
	return KeyPlace{Key: key, Pool: pool, Owner: "as2", Partition: 42930, Hash: "0xfdea3fc9cc41581c"}, nil
}
func (f *fake) Spread(n int) ([]Share, error) {
	return []Share{{Pool: "appservers", Server: "as1", Sampled: n}}, nil
}
func (f *fake) Live(server string, limit int) ([]LiveKey, error) { return nil, nil }

func (f *fake) Change(_ context.Context, c Change) (Preview, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, c)
	if f.refuse != nil && !c.Force {
		return Preview{}, f.refuse
	}
	p := Preview{Pool: c.Pool, Server: c.Server, From: "ready", To: c.AdminState, Dialogs: 7}
	if c.DryRun {
		return p, nil
	}
	for i := range f.servers {
		s := &f.servers[i]
		if s.Pool != c.Pool || s.Server != c.Server {
			continue
		}
		if c.AdminState != "" {
			s.AdminState.Override, s.AdminState.Effective = &c.AdminState, c.AdminState
		}
		if c.Weight != nil {
			s.Weight.Override, s.Weight.Effective = c.Weight, *c.Weight
		}
	}
	return p, nil
}
func (f *fake) Drain(pool, server string) (Drain, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.drains) == 0 {
		return Drain{}, fmt.Errorf("%w: %s does not drain", ErrNotFound, server)
	}
	d := f.drains[0]
	if len(f.drains) > 1 {
		f.drains = f.drains[1:]
	}
	if d.Pool == "gone" {
		return Drain{}, ErrNotFound
	}
	return d, nil
}
func (f *fake) Overrides() []Override { return f.overrides }
func (f *fake) ClearOverrides(c Caller, pool, server string, dry bool) ([]Override, error) {
	f.cleared = append(f.cleared, fmt.Sprintf("%s/%s dry=%v note=%s", pool, server, dry, c.Note))
	return f.overrides, nil
}
func (f *fake) Config(v ConfigView) (ConfigText, error) {
	if v.Generation > f.gen {
		return ConfigText{}, fmt.Errorf("%w: generation %d", ErrNotFound, v.Generation)
	}
	return ConfigText{Generation: f.gen, Digest: "9f1c22ab", Text: "version: 1\n# " + v.Service}, nil
}
func (f *fake) Diff(from, to string) (string, error) {
	if from == to {
		return "", nil
	}
	return "-a\n+b\n", nil
}
func (f *fake) Apply(_ context.Context, a Apply) (Applied, error) {
	f.applies = append(f.applies, a)
	if f.refuse != nil {
		return Applied{}, f.refuse
	}
	if !a.DryRun {
		f.gen++
	}
	return Applied{Generation: f.gen, State: "active", Nodes: 1, Of: 1}, nil
}
func (f *fake) Confirm(c Caller) (Applied, error) {
	return Applied{}, fmt.Errorf("%w: nothing waits for a confirmation", ErrInvalid)
}
func (f *fake) History() []Generation { return []Generation{{Generation: 42, State: "confirmed"}} }
func (f *fake) Events() *obs.Events   { return f.feed }

// serve runs the API on a unix socket of a role and gives a client for it.
func serve(t *testing.T, f *fake, role Role) (*http.Client, *API) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "admin.sock")
	a := New(Config{Node: f, Version: Version{Version: "1.0.0"}, Period: time.Millisecond, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "wyegate_build_info 1\n")
	})})
	e, err := OpenSocket(Socket{Path: path, Role: role}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	run(t, a, e)
	return dialer(t, path), a
}

func run(t *testing.T, a *API, e *Endpoint) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Serve(ctx, e) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("serve: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func dialer(t *testing.T, path string) *http.Client {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// ask sends one request and decodes the answer into a value, or the problem.
func ask(t *testing.T, c *http.Client, method, path, body string, header ...string) (code int, h http.Header, v any) {
	t.Helper()
	req, err := http.NewRequest(method, "http://w"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") {
		if err := json.NewDecoder(bytes.NewReader(b)).Decode(&v); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, b)
		}
	} else {
		v = string(b)
	}
	return resp.StatusCode, resp.Header, v
}

// field walks into maps and lists.
func field(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				return nil
			}
			v = m[p]
		case int:
			l, ok := v.([]any)
			if !ok || p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

var errBroken = errors.New("disk on fire")
