package admin

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/wyegate/wyegate/internal/obs"
)

type sent struct{ id, name, data string }

// listen opens a stream; next gives its events one by one.
func listen(t *testing.T, c *http.Client, path string, header ...string) (next func() (sent, bool), stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", "http://w"+path, nil)
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
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	stop = func() { cancel(); resp.Body.Close() }
	t.Cleanup(stop)
	lines := bufio.NewScanner(resp.Body)
	return func() (e sent, ok bool) {
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if e.name != "" {
					return e, true
				}
			}
		}
		return e, false
	}, stop
}

func TestEventsStream(t *testing.T) {
	f := newFake()
	f.feed.Note("server_state", obs.Info, map[string]any{"server": "as0"})
	first := f.feed.Last()
	f.feed.Note("server_state", obs.Minor, map[string]any{"server": "as1"})
	c, _ := serve(t, f, Viewer)
	next, _ := listen(t, c, "/v1/events", "Last-Event-ID", fmt.Sprint(first))
	f.feed.Raise("pool_panic", "web", obs.Major, map[string]any{"pool": "web"})
	for _, want := range []string{`"server":"as1"`, `"pool":"web"`} {
		e, ok := next()
		if !ok || !strings.Contains(e.data, want) || !strings.Contains(e.data, `"id":`+e.id) {
			t.Errorf("%+v has no %s", e, want)
		}
	}
	all, _ := listen(t, c, "/v1/events?since=0")
	if e, _ := all(); !strings.Contains(e.data, "as0") {
		t.Errorf("everything begins with %+v", e)
	}
	only, _ := listen(t, c, "/v1/events")
	f.feed.Clear("pool_panic", "web")
	if e, _ := only(); !strings.Contains(e.data, `"clear":true`) {
		t.Errorf("what comes begins with %+v", e)
	}
	missed, _ := listen(t, c, "/v1/events", "Last-Event-ID", "5")
	if e, _ := missed(); e.name != "gap" {
		t.Errorf("a reader that missed something gets %+v", e)
	}
	if code, _, _ := ask(t, c, "GET", "/v1/events", "", "Last-Event-ID", "x"); code != 400 {
		t.Errorf("no number: %d", code)
	}
}

func TestDrainStream(t *testing.T) {
	step := func(left int, done, overdue bool) Drain {
		return Drain{Pool: "appservers", Server: "as2", Dialogs: Remaining{Total: 3, Left: left}, Done: done, Overdue: overdue}
	}
	for _, c := range []struct {
		steps []Drain
		want  string
	}{
		{[]Drain{step(3, false, false), step(1, false, false), step(0, true, false)}, "progress 3, progress 1, done 0"},
		{[]Drain{step(3, false, false), step(2, false, true), step(0, true, false)}, "progress 3, deadline 2, done 0"},
		{[]Drain{step(3, false, false), {Pool: "gone"}}, "progress 3, ended 3"},
	} {
		f := newFake()
		f.drains = c.steps
		cl, _ := serve(t, f, Viewer)
		next, stop := listen(t, cl, "/v1/pools/appservers/servers/as2/drain")
		var got []string
		for e, ok := next(); ok; e, ok = next() {
			_, left, _ := strings.Cut(e.data, `"left":`)
			got = append(got, e.name+" "+left[:1])
		}
		stop()
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s, want %s", s, c.want)
		}
	}
	f := newFake()
	f.drains = []Drain{step(2, false, false)}
	c, _ := serve(t, f, Viewer)
	if code, _, v := ask(t, c, "GET", "/v1/pools/appservers/servers/as2/drain", "", "Accept", "application/json"); code != 200 || field(v, "dialogs", "left") != 2.0 || fmt.Sprint(field(v, "new_keys_to")) != "[]" {
		t.Errorf("%d %v", code, v)
	}
}

// TestStreamsEndWithTheServer: an open stream does not hold up the end of the process.
func TestStreamsEndWithTheServer(t *testing.T) {
	f := newFake()
	path := t.TempDir() + "/a.sock"
	a := New(Config{Node: f})
	e, err := OpenSocket(Socket{Path: path}, a.cfg.Log)
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, a, e)
	next, _ := listen(t, dialer(t, path), "/v1/events")
	stop()
	if e, ok := next(); ok {
		t.Errorf("an event after the end: %+v", e)
	}
}
