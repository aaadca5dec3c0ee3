package obs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func feed(t *testing.T) (*Events, *bytes.Buffer) {
	t.Helper()
	var b bytes.Buffer
	return NewEvents("edge-ams-1", slog.New(slog.NewJSONHandler(&b, nil)), time.Now), &b
}

func TestConditionIsRaisedOnceAndClearedOnce(t *testing.T) {
	e, out := feed(t)
	start := e.Last()
	for range 3 {
		e.Raise("pool_panic", "appservers", Major, map[string]any{"pool": "appservers"})
	}
	e.Raise("pool_panic", "web", Major, map[string]any{"pool": "web"})
	if n := len(e.Open()); n != 2 {
		t.Errorf("%d conditions hold", n)
	}
	e.Clear("pool_panic", "appservers")
	e.Clear("pool_panic", "appservers")
	events, gap, err := e.After(context.Background(), start)
	if err != nil || gap || len(events) != 3 {
		t.Fatalf("%v %v %v", events, gap, err)
	}
	b, err := json.Marshal(events[2])
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got["event"] != "pool_panic" || got["severity"] != "major" || got["node"] != "edge-ams-1" || got["pool"] != "appservers" || got["clear"] != true || got["since"] == "" {
		t.Errorf("%s", b)
	}
	if !events[2].Since.Equal(events[0].Since) {
		t.Error("the end of a condition does not say since when it held")
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines in the log", len(lines))
	}
	for i, line := range lines {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if uint64(l["id"].(float64)) != events[i].ID || l["event"] != "pool_panic" {
			t.Errorf("line %s beside event %v", line, events[i])
		}
	}
}

func TestSlowReaderHasAGapAndNobodyWaits(t *testing.T) {
	e, _ := feed(t)
	start := e.Last()
	for range kept + 10 {
		e.Note("server_state", Info, nil)
	}
	events, gap, err := e.After(context.Background(), start)
	if err != nil || !gap || len(events) != kept {
		t.Fatalf("%d events, gap %v, %v", len(events), gap, err)
	}
	for i := range events[1:] {
		if events[i+1].ID != events[i].ID+1 {
			t.Fatalf("%d follows %d", events[i+1].ID, events[i].ID)
		}
	}
	if _, gap, _ := e.After(context.Background(), e.Last()+5); !gap {
		t.Error("an id of another life is no gap")
	}
	if events, gap, _ := e.After(context.Background(), e.Last()-1); gap || len(events) != 1 {
		t.Errorf("%d events, gap %v after the last but one", len(events), gap)
	}
}

func TestReaderWaitsForWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := feed(t)
		got := make(chan []Event, 1)
		go func() {
			events, _, _ := e.After(t.Context(), e.Last())
			got <- events
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Error("it did not wait")
		default:
		}
		e.Note("certificate_refused", Major, nil)
		if events := <-got; len(events) != 1 || events[0].Event != "certificate_refused" {
			t.Errorf("%v", events)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := e.After(ctx, e.Last()); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
