package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestReadRoutes(t *testing.T) {
	f := newFake()
	f.overrides = []Override{{Pool: "appservers", Server: "as1", What: "weight", File: "100", Override: "50"}}
	c, _ := serve(t, f, Viewer)
	for _, r := range []struct {
		path string
		at   []any
		want any
	}{
		{"/v1/status", []any{"generation"}, 42.0},
		{"/v1/status", []any{"started_at"}, "2026-11-27T06:00:00Z"},
		{"/v1/version", []any{"version"}, "1.0.0"},
		{"/v1/warnings", []any{0, "text"}, "as2 HTTP health down"},
		{"/v1/pools", []any{0, "pool"}, "appservers"},
		{"/v1/servers", []any{2, "pool"}, "web"},
		{"/v1/pools/appservers/servers", []any{1, "state"}, "down 503×4 (standby site)"},
		{"/v1/pools/appservers/servers", []any{2}, nil},
		{"/v1/pools/appservers/servers/as1", []any{"state"}, "ready"},
		{"/v1/pools/appservers/servers/as1", []any{"weight", "file"}, 100.0},
		{"/v1/pools/appservers/servers/as1", []any{"weight", "override"}, nil},
		{"/v1/pools/appservers/servers/as1", []any{"health", "sip", "state"}, "up"},
		{"/v1/overrides", []any{0, "override"}, "50"},
		{"/v1/keys/room-4711", []any{"owner"}, "as2"},
		{"/v1/keys/a%2F%2E%2E%2Fb%20c?pool=web", []any{"key"}, "a/../b c"},
		{"/v1/keys/%2E%2E?pool=web", []any{"key"}, ".."},
		{"/v1/keys:spread?sample=500", []any{0, "sampled"}, 500.0},
		{"/v1/listeners", []any{0, "listener"}, "sip-udp"},
		{"/v1/sites", []any{0, "serving"}, true},
		{"/v1/config", []any{"text"}, "version: 1\n# "},
		{"/v1/config", []any{"etag"}, "42"},
		{"/v1/rules/voice", []any{"text"}, "version: 1\n# voice"},
		{"/v1/config/history", []any{0, "generation"}, 42.0},
		{"/v1/config/diff?from=41&to=42", []any{"differs"}, true},
		{"/v1/config/diff?from=42&to=42", []any{"differs"}, false},
		{"/v1/config/schema", []any{"$schema"}, "https://json-schema.org/draft/2020-12/schema"},
	} {
		code, h, v := ask(t, c, "GET", r.path, "")
		if got := field(v, r.at...); code != 200 || got != r.want || h.Get("Content-Type") != "application/json" {
			t.Errorf("GET %s: %d, %v is %v, want %v", r.path, code, r.at, got, r.want)
		}
	}
	if _, _, v := ask(t, c, "GET", "/v1/keys:live", ""); fmt.Sprint(v) != "[]" {
		t.Errorf("an empty list is %v", v)
	}
	_, _, pools := ask(t, c, "GET", "/v1/pools", "")
	if _, _, v := ask(t, c, "GET", "/v1/status", ""); len(fmt.Sprint(field(pools, 0, "etag"))) < 8 || fmt.Sprint(field(v, "pools")) != fmt.Sprint(pools) {
		t.Errorf("pools of status %v, of their own route %v", field(v, "pools"), pools)
	}
	if _, _, v := ask(t, c, "POST", "/v1/explain", `{"key": 1}`); !strings.Contains(fmt.Sprint(v), `"key": a string expected, not a JSON number`) {
		t.Errorf("a number for a string: %v", v)
	}
	if _, h, v := ask(t, c, "GET", "/v1/config", "", "Accept", "application/yaml"); v != "version: 1\n# " || h.Get("ETag") != `"42"` {
		t.Errorf("as YAML: %v", v)
	}
}

func TestHealthAndMetrics(t *testing.T) {
	f := newFake()
	_, a := serve(t, f, Viewer)
	e, err := OpenMetrics("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	run(t, a, e)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (int, string) {
		resp, err := c.Get("http://" + e.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b := make([]byte, 200)
		n, _ := resp.Body.Read(b)
		return resp.StatusCode, string(b[:n])
	}
	for path, want := range map[string]string{"/healthz": "200 ok\n", "/readyz": "200 ready\n", "/metrics": "200 wyegate_build_info 1\n"} {
		if code, text := get(path); fmt.Sprint(code, " ", text) != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	f.ready = fmt.Errorf("draining")
	if code, text := get("/readyz"); code != 503 || text != "draining\n" {
		t.Errorf("while draining: %d %s", code, text)
	}
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("health while draining: %d", code)
	}
	if code, _ := get("/v1/status"); code != 404 {
		t.Errorf("the API on the metrics address: %d", code)
	}
}

func TestExplain(t *testing.T) {
	f := newFake()
	c, _ := serve(t, f, Viewer)
	code, _, v := ask(t, c, "POST", "/v1/explain", `{"key":"room-4711","service":"voice","if_down":["as2"]}`)
	if code != 200 || field(v, "server") != "as2" || field(v, "source") != "given" || fmt.Sprint(f.explains[0].IfDown) != "[as2]" {
		t.Errorf("%d %v", code, v)
	}
	for _, body := range []string{``, `{`, `[]`, `{"key":"a","sip":"b"}`, `{"service":"voice"}`, `{"key":"a","colour":1}`, `{"key":"a"} x`} {
		if code, h, v := ask(t, c, "POST", "/v1/explain", body); code != 400 || h.Get("Content-Type") != "application/problem+json" || field(v, "status") != 400.0 || field(v, "detail") == "" {
			t.Errorf("%s: %d %v", body, code, v)
		}
	}
	if code, _, v := ask(t, c, "POST", "/v1/explain", `{"key":"`+strings.Repeat("x", maxBody)+`"}`); code != 413 {
		t.Errorf("a body of %d octets: %d %v", maxBody, code, v)
	}
}

func TestErrorsAreProblems(t *testing.T) {
	f := newFake()
	c, _ := serve(t, f, Administrator)
	for _, r := range []struct {
		method, path, body string
		code               int
		kind               string
	}{
		{"GET", "/v1/nothing", "", 404, "no_route"},
		{"GET", "/", "", 404, "no_route"},
		{"DELETE", "/v1/status", "", 405, "method"},
		{"GET", "/v1/pools/none/servers", "", 404, "not_found"},
		{"GET", "/v1/pools/web/servers/as2", "", 404, "not_found"},
		{"GET", "/v1/pools/web/servers/as1/drain", "", 404, "not_found"},
		{"GET", "/v1/keys/x?pool=none", "", 404, "not_found"},
		{"GET", "/v1/keys:spread?sample=-1", "", 400, "invalid"},
		{"GET", "/v1/keys:spread?sample=1e9", "", 400, "invalid"},
		{"GET", "/v1/config?generation=x", "", 400, "invalid"},
		{"GET", "/v1/config?generation=99", "", 404, "not_found"},
		{"PATCH", "/v1/pools/web/servers/as9", `{"weight":1}`, 404, "not_found"},
		{"PATCH", "/v1/pools/web/servers/as1", `{}`, 400, "invalid"},
		{"PATCH", "/v1/pools/web/servers/as1", `{"admin_state":"off"}`, 400, "invalid"},
		{"PATCH", "/v1/pools/web/servers/as1", `{"weight":-1}`, 400, "invalid"},
		{"PATCH", "/v1/pools/web/servers/as1", `{"weight":"1"}`, 400, "invalid"},
		{"PATCH", "/v1/pools/web/servers/as1", `{"deadline":"soon"}`, 400, "invalid"},
		{"PATCH", "/v1/pools/web/servers/as1", `{"deadline":-5}`, 400, "invalid"},
		{"PATCH", "/v1/pools/web/servers/as1", `{"at_deadline":"run"}`, 400, "invalid"},
		{"POST", "/v1/config:apply?confirm=soon", `{}`, 400, "invalid"},
		{"POST", "/v1/config:apply", `{"path":"/x","text":"y"}`, 400, "invalid"},
		{"POST", "/v1/config:rollback", `{"path":"/x"}`, 400, "invalid"},
		{"POST", "/v1/config:confirm", "", 400, "invalid"},
		{"PUT", "/v1/config", "", 400, "invalid"},
	} {
		code, h, v := ask(t, c, r.method, r.path, r.body)
		if code != r.code || field(v, "code") != r.kind || field(v, "title") == nil || h.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s %s: %d %v, want %d %s", r.method, r.path, r.body, code, v, r.code, r.kind)
		}
	}
	for _, r := range []struct {
		err  error
		code int
		kind string
	}{
		{fmt.Errorf("%w: below its panic level", ErrGuard), 409, "guard"}, {ErrBusy, 409, "busy"}, {errBroken, 500, "internal"}, {ErrMissing, 501, "not_built"},
	} {
		f.refuse = r.err
		code, _, v := ask(t, c, "PATCH", "/v1/pools/web/servers/as1", `{"admin_state":"maint"}`)
		if code != r.code || field(v, "code") != r.kind || field(v, "detail") != r.err.Error() {
			t.Errorf("%v: %d %v", r.err, code, v)
		}
	}
	f.refuse = &Refused{[]Finding{{File: "wyegate.yaml", Line: 71, Col: 125, Severity: "error", Code: "WG104", Text: "no certificate"}}}
	if code, _, v := ask(t, c, "POST", "/v1/config:apply", ""); code != 422 || field(v, "errors", 0, "code") != "WG104" || field(v, "errors", 0, "line") != 71.0 {
		t.Errorf("refused: %d %v", code, v)
	}
}

// TestRoles: a viewer gets 403 on each mutating route, an operator on those of an administrator (F23).
func TestRoles(t *testing.T) {
	mutating := []struct {
		method, path, body string
		need               Role
	}{
		{"PATCH", "/v1/pools/web/servers/as1", `{"weight":1}`, Operator},
		{"DELETE", "/v1/overrides", "", Operator},
		{"POST", "/v1/config:apply", "{}", Administrator},
		{"POST", "/v1/config:confirm", "", Administrator},
		{"POST", "/v1/config:rollback", "{}", Administrator},
		{"PUT", "/v1/config", "version: 1", Administrator},
		{"PUT", "/v1/rules/voice", "<user-centric-rules/>", Administrator},
	}
	for role := Viewer; role <= Administrator; role++ {
		f := newFake()
		c, _ := serve(t, f, role)
		for _, m := range mutating {
			code, _, v := ask(t, c, m.method, m.path, m.body)
			if refused := code == 403; refused != (role < m.need) {
				t.Errorf("%s: %s %s: %d", role, m.method, m.path, code)
			} else if refused && field(v, "code") != "role" {
				t.Errorf("%v", v)
			}
		}
		if role == Viewer && len(f.changes)+len(f.applies)+len(f.cleared) > 0 {
			t.Error("a viewer changed something")
		}
	}
	for _, w := range []string{"viewer", "operator", "admin"} {
		if r, err := ParseRole(w); err != nil || r.String() != w {
			t.Errorf("%s: %v %v", w, r, err)
		}
	}
	if _, err := ParseRole("root"); err == nil {
		t.Error("root is a role")
	}
}

func TestChangeOfAServer(t *testing.T) {
	f := newFake()
	c, _ := serve(t, f, Operator)
	const path = "/v1/pools/appservers/servers/as2"
	_, h, _ := ask(t, c, "GET", path, "")
	first := h.Get("ETag")
	code, _, v := ask(t, c, "PATCH", path+"?dry_run=1", `{"admin_state":"drain","deadline":7200,"note":"kernel update"}`)
	if code != 200 || field(v, "dialogs") != 7.0 || field(v, "to") != "drain" {
		t.Fatalf("dry run: %d %v", code, v)
	}
	got := f.changes[0]
	if !got.DryRun || got.Note != "kernel update" || got.Deadline == nil || *got.Deadline != 2*time.Hour || got.By == "" || got.Weight != nil {
		t.Errorf("node was asked for %+v", got)
	}
	code, h, v = ask(t, c, "PATCH", path, `{"admin_state":"drain","deadline":"90m"}`, "If-Match", first)
	if code != 200 || field(v, "admin_state", "override") != "drain" || field(v, "admin_state", "file") != "ready" || h.Get("ETag") == first {
		t.Fatalf("%d %v", code, v)
	}
	if f.changes[1].DryRun || *f.changes[1].Deadline != 90*time.Minute {
		t.Errorf("node was asked for %+v", f.changes[1])
	}
	// Two writers: the second is late (F23).
	if code, _, v = ask(t, c, "PATCH", path, `{"admin_state":"ready"}`, "If-Match", first); code != 412 || field(v, "code") != "changed" {
		t.Errorf("second writer: %d %v", code, v)
	}
	if code, _, _ = ask(t, c, "PATCH", path, `{"weight":50}`, "If-Match", `"x", `+h.Get("ETag")); code != 200 {
		t.Errorf("one of several tags: %d", code)
	}
	if code, _, _ = ask(t, c, "PATCH", path, `{"weight":60}`, "If-Match", "*"); code != 200 {
		t.Errorf("any tag: %d", code)
	}
	if _, _, v = ask(t, c, "GET", path, ""); field(v, "weight", "override") != 60.0 || field(v, "weight", "file") != 100.0 {
		t.Errorf("weight %v", field(v, "weight"))
	}
	f.refuse = ErrGuard
	if code, _, _ = ask(t, c, "PATCH", path, `{"admin_state":"maint"}`); code != 409 {
		t.Errorf("guard: %d", code)
	}
	if code, _, _ = ask(t, c, "PATCH", path, `{"admin_state":"maint","force":true}`); code != 200 {
		t.Errorf("forced: %d", code)
	}
}

func TestApply(t *testing.T) {
	f := newFake()
	c, _ := serve(t, f, Administrator)
	code, h, v := ask(t, c, "POST", "/v1/config:apply?confirm=5m&dry_run=1", `{"path":"/etc/wyegate/wyegate.yaml","note":"n"}`)
	if code != 200 || field(v, "generation") != 42.0 {
		t.Fatalf("%d %v", code, v)
	}
	a := f.applies[0]
	if !a.DryRun || a.Confirm != 5*time.Minute || a.Path != "/etc/wyegate/wyegate.yaml" || a.Note != "n" || a.Role != Administrator {
		t.Errorf("node was asked for %+v", a)
	}
	if code, h, _ = ask(t, c, "POST", "/v1/config:apply", "", "If-Match", `"42"`); code != 200 || h.Get("ETag") != `"43"` {
		t.Errorf("%d %s", code, h.Get("ETag"))
	}
	if code, _, _ = ask(t, c, "POST", "/v1/config:apply", "", "If-Match", `"42"`); code != 412 {
		t.Errorf("somebody else was first: %d", code)
	}
	if code, _, _ = ask(t, c, "POST", "/v1/config:rollback", `{"generation":41}`); code != 200 || !f.applies[2].Rollback || f.applies[2].Generation != 41 {
		t.Errorf("rollback: %d %+v", code, f.applies[2])
	}
	if code, _, _ = ask(t, c, "PUT", "/v1/rules/voice?note=x&force=1", "<user-centric-rules/>"); code != 200 || f.applies[3].Service != "voice" || f.applies[3].Rules != "<user-centric-rules/>" || !f.applies[3].Force {
		t.Errorf("rules: %d %+v", code, f.applies[3])
	}
	if code, _, _ = ask(t, c, "DELETE", "/v1/overrides?server=as1&pool=web&dry_run=1&note=y", ""); code != 200 || f.cleared[0] != "web/as1 dry=true note=y" {
		t.Errorf("clear: %d %v", code, f.cleared)
	}
}

// TestStateIsTheWorstOfThree (operations.md 4.1): every display names the origin.
func TestStateIsTheWorstOfThree(t *testing.T) {
	for _, c := range []struct {
		admin, sip, http string
		standby          bool
		want             string
	}{
		{"ready", "up", "up", false, "ready"},
		{"ready", "up", "up", true, "ready (standby site)"},
		{"drain", "up", "up", false, "draining (admin)"},
		{"maint", "up", "down", false, "maint (admin), down cause"},
		{"ready", "draining", "up", false, "draining (server asked)"},
		{"ready", "draining", "down", false, "down cause"},
		{"ready", "ejected", "up", false, "ejected cause"},
		{"ready", "unknown", "up", false, "ready (not probed yet)"},
		{"drain", "unknown", "", false, "draining (admin)"},
	} {
		s := Server{AdminState: Setting[string]{Effective: c.admin}, Standby: c.standby, Health: map[string]Health{"sip": {State: c.sip, Cause: "cause"}}}
		if c.http != "" {
			s.Health["http"] = Health{State: c.http, Cause: "cause"}
		}
		if s.Describe(); s.State != c.want {
			t.Errorf("%s %s %s: %q, want %q", c.admin, c.sip, c.http, s.State, c.want)
		}
	}
}

// TestTimesAreUTC, wherever they stand in an answer (operations.md 5.1); the node's own values stay.
func TestTimesAreUTC(t *testing.T) {
	there := time.Date(2026, 11, 30, 12, 0, 0, 0, time.FixedZone("", 7200))
	st := []Server{{Since: there, Health: map[string]Health{"sip": {Since: there}}, Drain: &Drain{Since: there, Deadline: &there, Dialogs: Remaining{Expected: &there}}}}
	b, err := json.Marshal(utc(st))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "2026-11-30T10:00:00Z"); n != 5 || strings.Contains(string(b), "+02:00") {
		t.Errorf("%d of 5 times: %s", n, b)
	}
	if st[0].Since != there || *st[0].Drain.Deadline != there || st[0].Health["sip"].Since != there {
		t.Error("the node's values were changed")
	}
	for _, v := range []any{nil, 1, "x", map[string]any{"a": 1}, []string(nil), (*Drain)(nil)} {
		want, _ := json.Marshal(v)
		if got, err := json.Marshal(utc(v)); err != nil || string(got) != string(want) {
			t.Errorf("%v became %s", v, got)
		}
	}
}
