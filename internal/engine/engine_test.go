package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/engine"
	"github.com/wyegate/wyegate/internal/lbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const rules = `<user-centric-rules>
  <sip-rules><else-free-list/></sip-rules>
</user-centric-rules>`

const goodRules = `<user-centric-rules>
  <sip-rules><header name="To" return="request.To.uri.user"><exist/></header></sip-rules>
  <http-rules><request-uri parameter="conf" return="parameter.conf"><exist/></request-uri></http-rules>
</user-centric-rules>`

// edge is a node that runs in this process, with the servers it needs.
type edge struct {
	*engine.Engine
	t       *testing.T
	dir     string
	log     *slog.Logger
	servers []*lbtest.Server
	resume  bool // run --resume

	resolvers []string // in place of the host's
}

// yaml is the node's configuration over some of its servers; extra stands at the end.
func (e *edge) yaml(extra string, servers ...int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `version: 1
node: {name: edge-1, state_dir: state, shutdown: {delay: 0s, deadline: 1s}}
admin: {sockets: [{path: admin.sock}], metrics: {address: "127.0.0.1:0"}}
listeners:
  - {name: sip-udp, protocol: sip, transport: udp, bind: "127.0.0.1:0"}
  - {name: http, protocol: http, transport: tcp, bind: "127.0.0.1:0"}
services:
  - {name: main, pool: appservers, affinity: {rules: rules.xml}}
pools:
  - name: appservers
    servers:
`)
	for _, i := range servers {
		fmt.Fprintf(&b, "      - {name: %s, sip: %q, http: %q}\n", e.servers[i].Name, e.servers[i].Addr, e.servers[i].Web)
	}
	b.WriteString(extra)
	return b.String()
}

func (e *edge) write(name, text string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// start runs the node over the first n of four servers until the test ends, or until the function it returns is called.
func start(t *testing.T, n int) (e *edge, stop func()) {
	t.Helper()
	return startWith(t, n, slog.New(slog.DiscardHandler))
}

func startWith(t *testing.T, n int, log *slog.Logger) (e *edge, stop func()) {
	t.Helper()
	e = &edge{t: t, dir: t.TempDir(), log: log}
	for i := range 4 {
		s, err := lbtest.NewServer(fmt.Sprintf("as%d", i+1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		e.servers = append(e.servers, s)
	}
	e.write("rules.xml", goodRules)
	e.write("wyegate.yaml", e.yaml("", []int{0, 1, 2, 3}[:n]...))
	return e, e.run()
}

func (e *edge) run() (stop func()) {
	e.t.Helper()
	o := engine.Options{File: filepath.Join(e.dir, "wyegate.yaml"), Log: e.log, Resume: e.resume}
	o.Resolve(e.resolvers...)
	eng, problems, err := engine.New(o)
	if err != nil || eng == nil {
		e.t.Fatalf("no engine: %v, %v", err, problems)
	}
	e.Engine = eng
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx, context.Background()) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			e.t.Errorf("run: %v", err)
		}
	}
	e.t.Cleanup(stop)
	e.eventually("ready", func() bool { return eng.Ready() == nil })
	return stop
}

func (e *edge) eventually(what string, ok func() bool) {
	e.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			e.t.Fatalf("%s did not come", what)
		}
		time.Sleep(5 * time.Millisecond) // a poll of another goroutine's state
	}
}

func (e *edge) web(path string) (status int, server string) {
	e.t.Helper()
	r := e.get(path, "")
	return r.StatusCode, r.Header.Get("X-Server")
}

// cookie gives the token that a session beginning with this one gets; empty: it keeps the one it has.
func (e *edge) cookie(has string) string {
	e.t.Helper()
	r := e.get("/?session=1", has)
	for _, c := range r.Cookies() {
		if c.Name == "WGROUTE" {
			return c.Value
		}
	}
	return ""
}

func (e *edge) get(path, token string) *http.Response {
	e.t.Helper()
	for _, l := range e.Listeners() {
		if l.Protocol != "http" {
			continue
		}
		q, err := http.NewRequestWithContext(e.t.Context(), http.MethodGet, "http://"+l.Address+path, nil)
		if err != nil {
			e.t.Fatal(err)
		}
		if token != "" {
			q.AddCookie(&http.Cookie{Name: "WGROUTE", Value: token})
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			e.t.Fatal(err)
		}
		defer r.Body.Close()
		_, _ = io.Copy(io.Discard, r.Body)
		http.DefaultClient.CloseIdleConnections()
		return r
	}
	e.t.Fatal("no http listener")
	return nil
}

func TestRefusedFileChangesNothing(t *testing.T) {
	e, _ := start(t, 2)
	_, before := e.web("/?conf=room-1")
	e.write("wyegate.yaml", e.yaml("pool: 3\n", 0))
	var bad *admin.Refused
	if err := e.Reload("test"); !errors.As(err, &bad) || bad.Findings[0].Code != "WG005" {
		t.Fatalf("a file with an unknown key: %v", err)
	}
	e.write("wyegate.yaml", e.yaml("", 0, 1))
	e.write("rules.xml", rules)
	if err := e.Reload("test"); !errors.As(err, &bad) {
		t.Fatalf("broken rules: %v", err)
	}
	codes := map[string]bool{}
	for _, f := range bad.Findings {
		codes[f.Code] = true
	}
	if !codes["WG119"] || !codes["DCR105"] {
		t.Errorf("findings %v", bad.Findings)
	}
	s := e.Status()
	if s.Generation != 1 || s.Reloads.Refused != 2 || s.Reloads.LastOK || !s.FileDiffers {
		t.Errorf("status %+v", s)
	}
	if _, after := e.web("/?conf=room-1"); after != before {
		t.Errorf("room-1 went from %s to %s by a refused file", before, after)
	}
}

func TestReloadMovesOnlyKeysOfTheNewServer(t *testing.T) {
	e, _ := start(t, 3)
	owner := map[string]string{}
	for i := range 200 {
		k := fmt.Sprintf("room-%d", i)
		p, err := e.Where(k, "", "")
		if err != nil {
			t.Fatal(err)
		}
		owner[k] = p.Owner
	}
	e.write("wyegate.yaml", e.yaml("", 3, 1, 0, 2))
	if err := e.Reload("test"); err != nil {
		t.Fatal(err)
	}
	moved := 0
	for k, was := range owner {
		p, _ := e.Where(k, "", "")
		if p.Owner != was {
			moved++
			if p.Owner != "as4" {
				t.Errorf("%s moved from %s to %s, not to the new server", k, was, p.Owner)
			}
		}
	}
	if moved < 20 || moved > 90 {
		t.Errorf("%d of 200 keys moved to one of four servers", moved)
	}
	if s := e.Status(); s.Generation != 2 || s.FileDiffers {
		t.Errorf("status %+v", s)
	}
}

// A server that leaves is a loss of more than half of a pool of one out of two only with force.
func TestGuardRefusesEmptyingAPool(t *testing.T) {
	e, _ := start(t, 4)
	e.write("wyegate.yaml", e.yaml("", 0))
	_, err := e.Apply(t.Context(), admin.Apply{})
	if !errors.Is(err, admin.ErrGuard) {
		t.Fatalf("three of four servers leave: %v", err)
	}
	if out, err := e.Apply(t.Context(), admin.Apply{Force: true}); err != nil || out.Generation != 2 {
		t.Fatalf("with force: %+v, %v", out, err)
	}
}

func TestApplyUndoesItselfWithoutConfirmation(t *testing.T) {
	e, _ := start(t, 2)
	digest := e.Status().Digest
	e.write("wyegate.yaml", e.yaml("", 0, 1, 2))
	out, err := e.Apply(t.Context(), admin.Apply{Confirm: 2 * time.Second})
	if err != nil || out.State != "unconfirmed" || out.UndoneAt == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := e.Apply(t.Context(), admin.Apply{Confirm: time.Minute}); !errors.Is(err, admin.ErrBusy) {
		t.Errorf("a second one while the first waits: %v", err)
	}
	e.eventually("the return to the old configuration", func() bool { return e.Status().Digest == digest })
	if s := e.Status(); s.Generation != 3 || s.GenerationState != "confirmed" {
		t.Errorf("status %+v", s)
	}
	if out, err = e.Apply(t.Context(), admin.Apply{Confirm: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Confirm(admin.Caller{By: "alice"}); err != nil {
		t.Fatal(err)
	}
	if s := e.Status(); s.GenerationState != "confirmed" || s.Generation != out.Generation {
		t.Errorf("status after confirm %+v", s)
	}
}

// The history tells apart what runs, what it returns to, what was undone, what went before and what was refused; refused
// ones take no place of the others (operations.md 4.4).
func TestHistoryTellsStatesApart(t *testing.T) {
	e, _ := start(t, 2)
	e.write("wyegate.yaml", e.yaml("", 0, 1, 2))
	if _, err := e.Apply(t.Context(), admin.Apply{Confirm: 100 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	e.eventually("the return", func() bool { return e.Status().Generation == 3 })
	for range 120 {
		if _, err := e.Apply(t.Context(), admin.Apply{Text: "version: 7\n", Caller: admin.Caller{By: "bob", Note: "try"}}); err == nil {
			t.Fatal("a broken one was taken")
		}
	}
	if _, err := e.Apply(t.Context(), admin.Apply{Confirm: time.Hour}); err != nil {
		t.Fatal(err)
	}
	states := map[string]int{}
	h := e.History()
	for _, g := range h {
		states[g.State]++
	}
	want := map[string]int{"unconfirmed": 1, "refused": 100, "confirmed": 1, "reverted": 1, "superseded": 1}
	if !maps.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
	if r := h[1]; r.State != "refused" || r.Node != "edge-1" || r.By != "bob" || r.Note != "try" || len(r.Findings) == 0 {
		t.Errorf("refused: %+v", r)
	}
	if last := h[len(h)-1]; last.Generation != 1 || last.State != "superseded" {
		t.Errorf("first: %+v", last)
	}
	if _, err := e.Config(admin.ConfigView{Generation: 1}); err != nil {
		t.Errorf("generation 1 is gone: %v", err)
	}
}

// New addresses of a name make the generation's value anew; it is still the one that waits for its confirmation.
func TestUndoSurvivesNewAddresses(t *testing.T) {
	e, _ := start(t, 2)
	digest := e.Status().Digest
	e.write("wyegate.yaml", e.yaml("", 0, 1, 2))
	if _, err := e.Apply(t.Context(), admin.Apply{Confirm: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	e.Readdress()
	if s := e.Status(); s.GenerationState != "unconfirmed" || s.Digest == digest {
		t.Fatalf("status %+v", s)
	}
	e.eventually("the return to the old configuration", func() bool { return e.Status().Digest == digest })
}

func TestRollbackBringsTheSameBytesBack(t *testing.T) {
	e, _ := start(t, 2)
	digest := e.Status().Digest
	e.write("wyegate.yaml", e.yaml("", 0, 1, 2))
	if err := e.Reload("test"); err != nil {
		t.Fatal(err)
	}
	out, err := e.Apply(t.Context(), admin.Apply{Rollback: true, Caller: admin.Caller{By: "bob", Note: "back"}})
	if err != nil || out.Generation != 3 || out.Digest != digest {
		t.Fatalf("%+v, %v; want digest %s", out, err, digest)
	}
	h := e.History()
	if len(h) != 3 || h[0].State != "active" || h[0].By != "bob" || h[1].State != "superseded" {
		t.Errorf("history %+v", h)
	}
	if diff, err := e.Diff("1", "3"); err != nil || diff != "" {
		t.Errorf("generations 1 and 3 differ: %q, %v", diff, err)
	}
	if diff, _ := e.Diff("2", "running"); !strings.Contains(diff, "as3") {
		t.Errorf("generation 2 against the running one: %q", diff)
	}
}

// operations.md 4.3: a restart with what ran is no new generation; with --resume what was applied past the file stays,
// what nobody confirmed does not, and a wrong file is said to be wrong.
func TestRestartResumes(t *testing.T) {
	e, stop := start(t, 2)
	e.resume = true
	first := e.Status().Digest
	restart := func() admin.Status {
		t.Helper()
		stop()
		stop = e.run()
		return e.Status()
	}
	if s := restart(); s.Generation != 1 || s.Digest != first || len(e.History()) != 1 {
		t.Errorf("after a restart with the same file: %+v, history %+v", s, e.History())
	}
	e.write("wyegate.yaml", e.yaml("", 0, 1, 2))
	if err := e.Reload("test"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Apply(t.Context(), admin.Apply{Rollback: true}); err != nil {
		t.Fatal(err)
	}
	if s := restart(); s.Digest != first || s.Generation != 3 || !s.FileDiffers {
		t.Errorf("a rollback was lost by a restart: %+v", s)
	}
	e.write("wyegate.yaml", e.yaml("", 0, 1, 3))
	if _, err := e.Apply(t.Context(), admin.Apply{Confirm: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if s := restart(); s.Digest != first || s.GenerationState != "confirmed" {
		t.Errorf("an unconfirmed generation came back: %+v", s)
	}
	e.write("wyegate.yaml", e.yaml("pool: 3\n", 0, 1))
	s := restart()
	if s.Digest != first || s.Reloads.LastOK {
		t.Errorf("a wrong file: %+v", s)
	}
	if len(s.Warnings) == 0 || s.Warnings[len(s.Warnings)-1].Code != "config_refused" {
		t.Errorf("nobody is told of the wrong file: %+v", s.Warnings)
	}
	e.write("wyegate.yaml", e.yaml("", 0, 1, 2, 3))
	if s := restart(); s.Digest == first || s.FileDiffers {
		t.Errorf("a changed file was not taken: %+v", s)
	}
}

// The three kinds of state: an override wins over the file, outlives a restart, and goes when it is cleared.
func TestOverridesOutliveARestart(t *testing.T) {
	e, stop := start(t, 2)
	fifty := 50
	for _, c := range []admin.Change{
		{Pool: "appservers", Server: "as2", AdminState: "drain", Caller: admin.Caller{By: "alice", Note: "kernel"}},
		{Pool: "appservers", Server: "as1", Weight: &fifty, Caller: admin.Caller{By: "bob"}},
	} {
		if _, err := e.Change(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		for _, s := range e.Servers() {
			switch {
			case s.Server == "as2" && (s.AdminState.Effective != "drain" || s.AdminState.File != "ready" || s.AdminState.Override == nil):
				t.Errorf("%s: as2 %+v", when, s.AdminState)
			case s.Server == "as1" && (s.Weight.Effective != 50 || s.Weight.File != 100 || s.Weight.Override == nil):
				t.Errorf("%s: as1 %+v", when, s.Weight)
			}
		}
	}
	check("at once")
	for i := range 50 {
		if _, server := e.web(fmt.Sprintf("/?conf=new-%d", i)); server != "as1" {
			t.Fatalf("a new key went to %s while as2 drains", server)
		}
	}
	stop()
	e.run()
	check("after a restart")
	if d, err := e.Drain("appservers", "as2"); err != nil || d.Note != "kernel" || d.By != "alice" || !d.Done {
		t.Errorf("drain after a restart: %+v, %v", d, err)
	}
	cleared, err := e.ClearOverrides(admin.Caller{By: "alice"}, "", "", false)
	if err != nil || len(cleared) != 2 {
		t.Fatalf("cleared %+v, %v", cleared, err)
	}
	for _, s := range e.Servers() {
		if s.AdminState.Effective != "ready" || s.Weight.Effective != 100 || s.Weight.Override != nil {
			t.Errorf("after clearing: %+v", s)
		}
	}
}

// A changed rule file is taken by itself; a broken one is not, and the old rules stay.
func TestRuleFileIsWatched(t *testing.T) {
	e, _ := start(t, 4)
	before := e.Status().Generation
	e.write("rules.xml", strings.Replace(goodRules, `parameter="conf" return="parameter.conf"`, `parameter="room" return="parameter.room"`, 1))
	e.eventually("the new rules", func() bool { return e.Status().Generation == before+1 })
	x, err := e.Explain(t.Context(), admin.ExplainRequest{HTTP: "GET http://x/?room=r1"})
	if err != nil || x.Key != "r1" || x.Source != "rule" {
		t.Errorf("explain by the new rules: %+v, %v", x, err)
	}
	e.write("rules.xml", rules)
	e.eventually("the refusal", func() bool { return e.Status().Reloads.Refused == 1 })
	if x, err := e.Explain(t.Context(), admin.ExplainRequest{HTTP: "GET http://x/?room=r1"}); err != nil || x.Key != "r1" {
		t.Errorf("a broken rule file changed the decision: %+v, %v", x, err)
	}
}

// Checking is building: nothing is opened, and all problems of all files come in one list.
func TestBuildFindsEverythingAtOnce(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rules.xml", rules)
	write("wyegate.yaml", `version: 1
listeners:
  - {protocol: sip, transport: udp, bind: "127.0.0.1:5060", srvices: [main]}
services:
  - {name: main, pool: app, affinity: {rules: rules.xml}}
pools:
  - {name: app, servers: [{name: as1, sip: "127.0.0.1:5061"}]}
`)
	cfg, problems := engine.LoadFile(filepath.Join(dir, "wyegate.yaml"))
	draft, problems := engine.Build(cfg, engine.Env{}, problems)
	if draft != nil || !config.HasErrors(problems) {
		t.Fatal("built in spite of errors")
	}
	found := map[string]bool{}
	for _, p := range problems {
		found[p.Code] = true
	}
	for _, code := range []string{"WG005", "WG119", "DCR105"} {
		if !found[code] {
			t.Errorf("%s is missing in %v", code, problems)
		}
	}
}
