package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/wyegate/wyegate/admin"
)

// noon is the present of these tests.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)

// cannedNode answers from what a test puts into it, behind the real API. What it does not have panics.
type cannedNode struct {
	admin.Node
	mu      sync.Mutex
	status  admin.Status
	servers []admin.Server
	preview admin.Preview
	changes []admin.Change
	applies []admin.Apply
	drains  []admin.Drain
	refuse  error
}

func (n *cannedNode) Status() admin.Status { return n.status }
func (n *cannedNode) Pools() []admin.Pool  { return []admin.Pool{{Pool: "appservers"}, {Pool: "web"}} }
func (n *cannedNode) Servers() []admin.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]admin.Server(nil), n.servers...)
}
func (n *cannedNode) Listeners() []admin.Listener {
	return []admin.Listener{{Listener: "sip-udp", Protocol: "sip", Transport: "udp", Address: "127.0.0.1:5060", Services: []string{"voice"}}}
}
func (n *cannedNode) Change(_ context.Context, c admin.Change) (admin.Preview, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes = append(n.changes, c)
	if c.DryRun {
		return n.preview, nil
	}
	if n.refuse != nil && !c.Force {
		return n.preview, n.refuse
	}
	for i := range n.servers {
		if s := &n.servers[i]; s.Server == c.Server && s.Pool == c.Pool && c.AdminState != "" {
			s.AdminState.Override, s.AdminState.Effective = &c.AdminState, c.AdminState
		}
	}
	return n.preview, nil
}
func (n *cannedNode) Drain(string, string) (admin.Drain, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.drains) == 0 {
		return admin.Drain{}, admin.ErrNotFound
	}
	d := n.drains[0]
	n.drains = n.drains[1:]
	return d, nil
}
func (n *cannedNode) Overrides() []admin.Override {
	return []admin.Override{
		{Pool: "appservers", Server: "as1", What: "weight", File: "100", Override: "50", By: "bob", Since: noon.Add(-48 * time.Hour), Note: "cache warming"},
		{Pool: "appservers", Server: "as2", What: "state", File: "ready", Override: "drain", By: "alice", Since: noon.Add(-time.Hour), Note: "kernel update"},
	}
}
func (n *cannedNode) ClearOverrides(_ admin.Caller, pool, server string, _ bool) ([]admin.Override, error) {
	if server == "" {
		return n.Overrides(), nil
	}
	return n.Overrides()[:1], nil
}
func (n *cannedNode) Where(key, _, _ string) (admin.KeyPlace, error) {
	return admin.KeyPlace{Key: key, Partition: 42930, Owner: "as2", State: "ready", Server: "as2", Then: []string{"as1", "as4", "as3"},
		Live: &admin.LiveKey{Server: "as2", Dialogs: 1, Sessions: 2, Since: noon.Add(-139 * time.Minute)}}, nil
}
func (n *cannedNode) Spread(int) ([]admin.Share, error) {
	half := 0.5
	return []admin.Share{{Pool: "appservers", Server: "as1", Partitions: 16380, Table: 0.25, Weight: 0.25, Traffic: &half, Sampled: 1000}}, nil
}
func (n *cannedNode) Live(string, int) ([]admin.LiveKey, error) {
	return []admin.LiveKey{{Hash: "0xfdea3fc9cc41581c", Pool: "appservers", Server: "as2", Dialogs: 1}}, nil
}
func (n *cannedNode) Apply(_ context.Context, a admin.Apply) (admin.Applied, error) {
	n.applies = append(n.applies, a)
	if n.refuse != nil {
		return admin.Applied{}, n.refuse
	}
	until := noon.Add(5 * time.Minute)
	return admin.Applied{Generation: 43, State: "unconfirmed", Nodes: 1, Of: 1, UndoneAt: &until, Diff: "-a\n+b\n", Moved: 3}, nil
}
func (n *cannedNode) Config(admin.ConfigView) (admin.ConfigText, error) {
	return admin.ConfigText{Generation: n.status.Generation, Text: smallConfig}, nil
}
func (n *cannedNode) Diff(string, string) (string, error) { return "-a\n+b\n", nil }
func (n *cannedNode) History() []admin.Generation {
	until := noon.Add(4*time.Minute + 12*time.Second)
	at := time.Date(2026, 11, 27, 8, 1, 0, 0, time.Local)
	return []admin.Generation{
		{Generation: 43, State: "unconfirmed", By: "alice", When: at, Digest: "9f1c22ab00", Note: "new DCR rules", UndoneAt: &until},
		{Generation: 42, State: "confirmed", By: "bob", When: at, Digest: "51ab90e7", Note: "as4 added"},
		{State: "refused", By: "bob", When: at, Digest: "c0de1177", Node: "edge-fra-1", Findings: []admin.Finding{{Code: "WG113", Text: `certificate "public"`}}},
	}
}

func sampleServers() []admin.Server {
	server := func(pool, name, site, state string, weight int) admin.Server {
		return admin.Server{Pool: pool, Server: name, Site: site, AdminState: admin.Setting[string]{File: "ready", Effective: state},
			Weight: admin.Setting[int]{File: weight, Effective: weight}, Health: map[string]admin.Health{"sip": {State: "up"}, "http": {State: "up"}}, Since: noon.Add(-76 * time.Hour)}
	}
	as1, as2, as4 := server("appservers", "as1", "ams", "ready", 100), server("appservers", "as2", "ams", "drain", 100), server("appservers", "as4", "fra", "ready", 100)
	p95 := 18.2
	as1.KeysPerSecond, as1.Dialogs, as1.Websockets, as1.P95 = 41.2, 3120, 402, &p95
	as4.Standby, as4.Health["http"] = true, admin.Health{State: "down", Cause: "503×4"}
	return []admin.Server{as1, as2, as4, server("web", "web1", "", "ready", 1), server("web", "as1", "", "ready", 1)}
}

// verbs is the command line of these tests, with the parts that talk to a daemon.
type verbs struct {
	Globals

	Status    StatusCmd         `cmd:""`
	Servers   ServersCmd        `cmd:""`
	Keys      KeysCmd           `cmd:""`
	Listeners ListenersCmd      `cmd:""`
	Logs      LogsCmd           `cmd:""`
	Version   VersionCmd        `cmd:""`
	Apply     ConfigApplyCmd    `cmd:""`
	Rollback  ConfigRollbackCmd `cmd:""`
	History   ConfigHistoryCmd  `cmd:""`
	Config    ConfigCmd         `cmd:""`
}

// answer is what a verb gave.
type answer struct {
	out, err string
	status   int
}

// daemon serves a node on a socket; say runs a verb against it, typing what a person would type.
func daemon(t *testing.T, n *cannedNode, role admin.Role) (say func(typed string, args ...string) answer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "admin.sock")
	e, err := admin.OpenSocket(admin.Socket{Path: path, Role: role}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	api := admin.New(admin.Config{Node: n, Period: time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, e) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func(typed string, args ...string) answer {
		return runVerb(t, typed, append([]string{"--socket", path}, args...)...)
	}
}

func runVerb(t *testing.T, typed string, args ...string) answer {
	t.Helper()
	var out, errOut bytes.Buffer
	v := &verbs{Globals: Globals{in: strings.NewReader(typed), out: &out, errOut: &errOut, terminal: typed != "", now: func() time.Time { return noon }}}
	p, err := kong.New(v, kong.Exit(func(int) {}), kong.Writers(&out, &errOut))
	if err != nil {
		t.Fatal(err)
	}
	k, err := p.Parse(args)
	if err != nil {
		return answer{err: err.Error(), status: exitUsage}
	}
	err = k.Run(&v.Globals)
	a := answer{out.String(), errOut.String(), exitStatus(err)}
	if err != nil {
		a.err += err.Error()
	}
	return a
}

func expect(t *testing.T, a answer, status int, parts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("status %d, want %d: %s", a.status, status, a.err)
	}
	for _, p := range parts {
		if !strings.Contains(a.out+a.err, p) {
			t.Errorf("no %q in\n%s%s", p, a.out, a.err)
		}
	}
}

func TestServersList(t *testing.T) {
	say := daemon(t, &cannedNode{servers: sampleServers()}, admin.Viewer)
	want := `POOL        SERVER  SITE  STATE                           HEALTH sip/http   WEIGHT  KEYS/s  DIALOGS  WSS  P95 ms  SINCE
appservers  as1     ams   ready                           up / up           100     41.2    3,120    402  18      3d4h
appservers  as2     ams   draining (admin)                up / up           100     0.0     0        0    -       3d4h
appservers  as4     fra   down 503×4 (standby site)       up / down 503×4   100     0.0     0        0    -       3d4h
`
	a := say("", "servers", "list", "--pool", "appservers")
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if squeeze(a.out) != squeeze(want) || a.status != 0 {
		t.Errorf("%s", a.out)
	}
	head, first, _ := strings.Cut(a.out, "\n")
	if strings.Index(head, "STATE") != strings.Index(first, "ready") {
		t.Errorf("columns do not meet:\n%s", a.out)
	}
	var all []map[string]any
	if a = say("", "servers", "list", "-o", "json"); json.Unmarshal([]byte(a.out), &all) != nil || len(all) != 5 || all[1]["state"] != "draining (admin)" {
		t.Errorf("%s", a.out)
	}
	if a = say("", "servers", "list", "-o", "jsonl"); strings.Count(a.out, "\n") != 5 || !json.Valid([]byte(strings.Split(a.out, "\n")[0])) {
		t.Errorf("%s", a.out)
	}
	expect(t, say("", "servers", "list", "-o", "yaml"), 0, "- pool: appservers\n  server: as1\n", `cause: "503×4"`)
	expect(t, say("", "servers", "list", "-o", "wide"), 0, "PARTITIONS")
	expect(t, say("", "servers", "list", "-o", "xml"), exitUsage)
	expect(t, say("", "servers", "list", "--pool", "none"), exitUsage, `"none"`)
	expect(t, say("", "servers", "show", "as4"), 0, "down 503×4 (standby site)", "new traffic: no")
}

// TestNamesMayBeShortened: to a unique prefix; an ambiguous one lists the candidates, exit status 2.
func TestNamesMayBeShortened(t *testing.T) {
	all := sampleServers()
	for name, want := range map[string]string{
		"as2": "appservers/as2", "web1": "web/web1", "we": "web/web1", "web/as1": "web/as1", "appservers/as1": "appservers/as1", "web/w": "web/web1",
	} {
		if s, err := pick(all, name); err != nil || s.Pool+"/"+s.Server != want {
			t.Errorf("%s is %s/%s, %v", name, s.Pool, s.Server, err)
		}
	}
	for name, parts := range map[string][]string{
		"as":  {"as2", "as4", "appservers/as1", "web/as1"},
		"as1": {"appservers/as1", "web/as1"},
		"x":   {"unknown", "web1"},
		"":    {"unknown"},
	} {
		_, err := pick(all, name)
		if exitStatus(err) != exitUsage {
			t.Errorf("%q: %v", name, err)
			continue
		}
		for _, p := range parts {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("%q: %v does not name %s", name, err, p)
			}
		}
	}
}

func TestStatus(t *testing.T) {
	n := &cannedNode{status: admin.Status{
		Node: "edge-ams-1", Version: "1.0.0", UptimeSeconds: (76 * time.Hour).Seconds(), Ready: true, Generation: 42, GenerationState: "confirmed",
		Sites: []admin.Site{{Site: "ams", Rank: 1, Serving: true}, {Site: "fra", Rank: 2}}, SIPPerSecond: 412, HTTPPerSecond: 890, Websockets: 419, KeysByRule: 0.972, KeysByDefault: 0.028,
		FileDiffers: true, Warnings: []admin.Warning{{Text: "as4 HTTP health down (503)", Since: ptr(noon.Add(-41 * time.Second))}},
	}}
	say := daemon(t, n, admin.Viewer)
	expect(t, say("", "status"), 0, "edge-ams-1  1.0.0  up 3 d 4 h  generation 42 (confirmed)",
		"site ams serving (rank 1)   SIP 412 req/s   HTTP 890 req/s   WSS 419   keys by rule 97.2%, default 2.8%",
		"file differs from running generation 42", "as4 HTTP health down (503)   41s")
	expect(t, say("", "status", "--node", "edge"), 0, "edge-ams-1")
	expect(t, say("", "status", "--node", "all"), 0, "edge-ams-1")
	expect(t, say("", "status", "--node", "fra"), exitUsage, "this is edge-ams-1")
}

func ptr[T any](v T) *T { return &v }

func TestExitStatuses(t *testing.T) {
	expect(t, runVerb(t, "", "--socket", filepath.Join(t.TempDir(), "none.sock"), "status"), exitUnreachable, "not reachable")
	expect(t, runVerb(t, "", "--url", "ftp://x", "status"), exitUsage)
	say := daemon(t, &cannedNode{servers: sampleServers()}, admin.Viewer)
	expect(t, say("", "servers", "maint", "as2"), exitRefused, "viewer")
	expect(t, say("", "servers", "maint", "nobody"), exitUsage)
	expect(t, say("", "servers", "maint"), exitUsage)
	n := &cannedNode{servers: sampleServers(), refuse: fmt.Errorf("%w: pool below its panic level", admin.ErrGuard)}
	say = daemon(t, n, admin.Operator)
	expect(t, say("", "servers", "maint", "as2"), exitRefused, "panic level")
	n.preview.Guard = "pool below its panic level"
	expect(t, say("y\n", "servers", "maint", "as2"), exitRefused, "--force")
	expect(t, say("", "servers", "maint", "as2", "--force"), 0, "maint (admin)")
	if got := exitStatus(fmt.Errorf("x: %w", &exitError{exitDeadline, nil})); got != exitDeadline {
		t.Errorf("a wrapped status is %d", got)
	}
	if exitStatus(nil) != 0 || exitStatus(errors.New("x")) != exitWrong {
		t.Error("0 and 1")
	}
}

// TestPreviewThenChange: a terminal is asked, elsewhere a loss wants --yes, --dry-run changes nothing.
func TestPreviewThenChange(t *testing.T) {
	n := &cannedNode{servers: sampleServers(), preview: admin.Preview{Server: "as1", From: "ready", To: "maint", Dialogs: 1204, Longest: 2820, PartitionsMove: 16380,
		Takes: []admin.Share{{Server: "as2", Table: 0.71}}, Loss: "1,204 dialogs end"}}
	say := daemon(t, n, admin.Operator)
	done := func() (real int) {
		for _, c := range n.changes {
			if !c.DryRun {
				real++
			}
		}
		return real
	}
	expect(t, say("", "servers", "maint", "as4", "--dry-run"), 0, "as1: ready → maint", "1,204 dialogs", "longest dialog 47m", "as2 would have 71.0%", "loss: 1,204 dialogs end")
	expect(t, say("", "servers", "maint", "as4"), exitUsage, "--yes")
	expect(t, say("n\n", "servers", "maint", "as4"), exitWrong, "go on?", "nothing was changed")
	if done() != 0 {
		t.Fatal("something was changed")
	}
	expect(t, say("y\n", "servers", "maint", "as4", "--note", "disk"), 0, "maint (admin)")
	expect(t, say("", "servers", "weight", "as4", "50", "--yes"), 0)
	if done() != 2 {
		t.Errorf("%d changes", done())
	}
	last := n.changes[len(n.changes)-1]
	if last.Weight == nil || *last.Weight != 50 || n.changes[len(n.changes)-3].Note != "disk" {
		t.Errorf("%+v", n.changes)
	}
}

func TestDrainWaits(t *testing.T) {
	step := func(left int, done, overdue bool) admin.Drain {
		deadline := noon.Add(2 * time.Hour)
		return admin.Drain{Server: "as2", By: "alice", Since: noon, Deadline: &deadline, AtDeadline: "wait", NewKeysTo: []string{"as1"},
			Dialogs: admin.Remaining{Total: 3402, Left: left, PerMinute: 212}, Done: done, Overdue: overdue}
	}
	args := []string{"servers", "drain", "as2", "--wait", "--deadline", "2h", "--at-deadline", "move", "--yes"}
	// A daemon of its own each time: a stream that its reader left may ask the node once more.
	drain := func(typed string, more []string, steps ...admin.Drain) (answer, admin.Change) {
		n := &cannedNode{servers: sampleServers(), drains: steps}
		a := daemon(t, n, admin.Operator)(typed, append(args, more...)...)
		return a, n.changes[len(n.changes)-1]
	}
	a, last := drain("", nil, step(1204, false, false), step(3, false, false), step(0, true, false))
	expect(t, a, 0, "1,204 dialogs", "as2  0 dialogs")
	if last.AdminState != "drain" || *last.Deadline != 2*time.Hour || last.AtDeadline != "move" || last.DryRun {
		t.Errorf("%+v", last)
	}
	a, _ = drain("", nil, step(1204, false, false), step(1, false, true))
	expect(t, a, exitDeadline, "still has traffic")
	a, _ = drain("", nil, step(1204, false, false))
	expect(t, a, exitChanged, "no longer drained")
	a, _ = drain("y\n", nil, step(1204, false, false), step(0, true, false))
	expect(t, a, 0, "as2  draining   new keys go to as1", "by alice, 12:00:00", "1,204 of 3,402 left   −212/min",
		"deadline 14:00:00 (then: wait | move | cancel; set: wait)   Ctrl-C leaves the drain running", "\x1b[5A\x1b[J", "drained")
	a, _ = drain("", []string{"-o", "jsonl"}, step(1204, false, false), step(0, true, false))
	var d admin.Drain
	if json.Unmarshal([]byte(strings.Split(a.out, "\n")[0]), &d) != nil || d.Dialogs.Left != 1204 {
		t.Errorf("%s", a.out)
	}
	say := daemon(t, &cannedNode{servers: sampleServers()}, admin.Operator)
	expect(t, say("", "servers", "drain", "as2", "--at-deadline", "run"), exitUsage)
}

func TestOverrides(t *testing.T) {
	say := daemon(t, &cannedNode{servers: sampleServers()}, admin.Operator)
	a := say("", "servers", "override", "list")
	expect(t, a, 0)
	want := "POOL        SERVER  WHAT    FILE   OVERRIDE  BY     SINCE     NOTE\n" +
		"appservers  as1     weight  100    50        bob    2d        cache warming\n" +
		"appservers  as2     state   ready  drain     alice  11:00:00  kernel update\n"
	if a.out != want {
		t.Errorf("%s", a.out)
	}
	expect(t, say("", "servers", "override", "clear", "appservers/as1"), 0, "cache warming")
	expect(t, say("n\n", "servers", "override", "clear"), exitWrong, "2 overrides would return")
}

func TestKeysListenersLogs(t *testing.T) {
	say := daemon(t, &cannedNode{servers: sampleServers()}, admin.Viewer)
	a := say("", "keys", "where", "room-4711")
	if want := "room-4711  partition 42930  owner as2 (ready)  then as1, as4, as3   live: 1 dialog, 2 HTTP sessions, on as2 since 09:41\n"; a.out != want {
		t.Errorf("%s", a.out)
	}
	expect(t, say("", "keys", "where", "../a b%/ü.?#"), 0, "../a b%/ü.?#")
	expect(t, say("", "keys", "spread", "--sample", "1000"), 0, "16,380", "50.0%", "SAMPLED")
	expect(t, say("", "keys", "live", "--server", "as2"), 0, "0xfdea3fc9cc41581c")
	expect(t, say("", "listeners", "list"), 0, "sip-udp", "127.0.0.1:5060", "open", "voice")
	a = say("", "logs", "explain", "TWR2")
	if want := "TWR2  timer ran out while waiting for a final answer; key from a rule; second server was tried\n"; a.out != want {
		t.Errorf("%s", a.out)
	}
	expect(t, say("", "logs", "explain", "TWR1"), exitUsage, "letter 4")
	expect(t, say("", "version", "-o", "json"), 0, `"go_version"`)
}

func TestApplyAndHistory(t *testing.T) {
	n := &cannedNode{}
	say := daemon(t, n, admin.Administrator)
	expect(t, say("", "apply", "x.yaml", "--confirm", "5m", "--note", "n"), 0, "generation 43 active on 1 of 1 nodes; undone at 12:05:00 unless `wyegate config confirm`")
	if a := n.applies[0]; !filepath.IsAbs(a.Path) || a.Confirm != 5*time.Minute || a.Note != "n" || a.DryRun {
		t.Errorf("%+v", a)
	}
	expect(t, say("", "apply", "x.yaml", "--dry-run"), 0, "+b", "3 partitions would move")
	expect(t, say("n\n", "apply", "x.yaml"), exitWrong, "+b", "go on?")
	if n.applies[len(n.applies)-1].DryRun != true {
		t.Error("a no was a yes")
	}
	n.status.Generation = 42
	expect(t, say("", "apply", "--if-generation", "41"), exitChanged, "42")
	n.refuse = &admin.Refused{Findings: []admin.Finding{{File: "wyegate.yaml", Line: 71, Col: 125, Severity: "error", Code: "WG104", Text: "no certificate"}}}
	expect(t, say("", "apply"), exitWrong, "wyegate.yaml:71:125: error: WG104: no certificate", "nothing was changed")
	n.refuse = admin.ErrBusy
	expect(t, say("", "rollback", "41"), exitChanged)
	a := say("", "history")
	want := "GEN  STATE                      BY     WHEN              DIGEST    NOTE\n" +
		"43   active, unconfirmed 4m12s  alice  2026-11-27 08:01  9f1c22ab  new DCR rules\n" +
		"42   confirmed                  bob    2026-11-27 08:01  51ab90e7  as4 added\n" +
		"–    refused on edge-fra-1      bob    2026-11-27 08:01  c0de1177  WG113 certificate \"public\"\n"
	if a.out != want {
		t.Errorf("%s", a.out)
	}
}

// TestFlagsOfEveryVerb: --watch stands with and without a value, the socket comes from the environment.
func TestFlagsOfEveryVerb(t *testing.T) {
	parse := func(args ...string) (*verbs, error) {
		v := &verbs{}
		p, err := kong.New(v)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Parse(args)
		return v, err
	}
	for want, args := range map[time.Duration][]string{
		0: {"status"}, 2 * time.Second: {"status", "--watch"}, 500 * time.Millisecond: {"--watch=500ms", "status"}, 3 * time.Second: {"servers", "list", "--watch=3s", "-o", "json"},
	} {
		v, err := parse(args...)
		if err != nil || time.Duration(v.Watch) != want {
			t.Errorf("%v: %v, %v", args, time.Duration(v.Watch), err)
		}
	}
	for _, bad := range []string{"--watch=soon", "--watch=1ms", "--output=csv"} {
		if _, err := parse("status", bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	t.Setenv("WYEGATE_SOCKET", "/x.sock")
	if v, err := parse("status"); err != nil || v.socket() != "/x.sock" {
		t.Errorf("%s, %v", v.socket(), err)
	}
	if v, err := parse("status", "--socket", "/y.sock"); err != nil || v.socket() != "/y.sock" {
		t.Errorf("%s, %v", v.socket(), err)
	}
	if g := (&Globals{}); g.socket() != "/run/wyegate/admin.sock" {
		t.Error(g.socket())
	}
}

// TestWatchRepeats until the daemon is gone.
func TestWatchRepeats(t *testing.T) {
	g := &Globals{Watch: Watch(time.Millisecond)}
	g.out = &bytes.Buffer{}
	n := 0
	err := g.watching(func(context.Context) error {
		if n++; n == 3 {
			return &exitError{exitUnreachable, nil}
		}
		return nil
	})
	if n != 3 || exitStatus(err) != exitUnreachable {
		t.Errorf("%d rounds, %v", n, err)
	}
}
