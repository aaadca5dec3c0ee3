package obs

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func openTestLog(t *testing.T, cfg AccessConfig) (*AccessLog, string) {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "access.log")
	}
	cfg.Node = "n"
	l, err := NewAccessLog(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l, cfg.Path
}

// skip says why a test cannot run here; in CI that is a failure.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("WYEGATE_CI") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func run(t *testing.T, l *AccessLog) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func codes(t *testing.T, path string) []int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []int
	for s := bufio.NewScanner(f); s.Scan(); {
		var line struct{ Code int }
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		out = append(out, line.Code)
	}
	return out
}

// until polls: the writer is another goroutine with timers of its own, and a file is no place for virtual time.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

func TestEveryRecordIsALine(t *testing.T) {
	lost := prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	l, path := openTestLog(t, AccessConfig{Ring: 64, Dropped: lost})
	a, b := l.NewRing(), l.NewRing()
	stop := run(t, l)
	const each = 500
	var wg sync.WaitGroup
	for _, r := range []*Ring{a, b, b} { // b is shared
		wg.Go(func() {
			for i := range each {
				r.Put(&Record{Code: 100 + i})
			}
		})
	}
	wg.Wait()
	stop()
	if got := len(codes(t, path)); got+int(testutil.ToFloat64(lost)) != 3*each || got < 64 {
		t.Errorf("%d lines and %v dropped of %d records", got, testutil.ToFloat64(lost), 3*each)
	}
}

func TestSleepingLogIsWoken(t *testing.T) {
	l, path := openTestLog(t, AccessConfig{})
	r := l.NewRing()
	run(t, l)
	until(t, "sleep", l.asleep.Load)
	r.Put(&Record{Code: 200})
	until(t, "a line", func() bool { return len(codes(t, path)) == 1 })
}

// TestReopen: a rename and SIGHUP both lead to a new file (operations.md 8.3); a ring added meanwhile is read.
func TestReopen(t *testing.T) {
	l, path := openTestLog(t, AccessConfig{})
	r := l.NewRing()
	run(t, l)
	r.Put(&Record{Code: 201})
	until(t, "the first line", func() bool { return len(codes(t, path)) == 1 })
	old := path + ".1"
	if err := os.Rename(path, old); err != nil {
		t.Fatal(err)
	}
	r.Put(&Record{Code: 202})
	until(t, "a line in the new file", func() bool { return len(codes(t, path)) == 1 })
	if c := codes(t, old); len(c) != 1 || c[0] != 201 {
		t.Errorf("old file has %v", c)
	}
	if err := os.Rename(path, path+".2"); err != nil {
		t.Fatal(err)
	}
	l.Reopen()
	until(t, "a new file after the signal", func() bool { _, err := os.Stat(path); return err == nil })
	second := l.NewRing()
	second.Put(&Record{Code: 203})
	until(t, "a line of the second ring", func() bool { c := codes(t, path); return len(c) == 1 && c[0] == 203 })
}

func TestConfigureWhileItRuns(t *testing.T) {
	l, path := openTestLog(t, AccessConfig{})
	r := l.NewRing()
	run(t, l)
	r.Put(&Record{Code: 200})
	until(t, "a line", func() bool { return len(codes(t, path)) == 1 })
	other := filepath.Join(t.TempDir(), "other.log")
	if err := l.Configure(AccessConfig{Path: filepath.Join(t.TempDir(), "no", "such")}); err == nil {
		t.Error("a path that cannot be opened was taken")
	}
	if err := l.Configure(AccessConfig{Path: other, Format: FormatLine}); err != nil {
		t.Fatal(err)
	}
	until(t, "the change", func() bool { return l.next.Load() == nil })
	r.Put(&Record{Code: 204})
	until(t, "a line in the other file", func() bool {
		b, err := os.ReadFile(other)
		return err == nil && strings.Contains(string(b), " 204 ---- ")
	})
	if c := codes(t, path); len(c) != 1 {
		t.Errorf("first file has %v", c)
	}
}

func TestLinesAFileRefusesAreCounted(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		skip(t, "no /dev/full")
	}
	lost := prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	var log strings.Builder
	l, _ := openTestLog(t, AccessConfig{Path: "/dev/full", Dropped: lost, Log: slog.New(slog.NewTextHandler(&log, nil))})
	r := l.NewRing()
	stop := run(t, l)
	for range 3 {
		r.Put(&Record{Code: 200})
	}
	until(t, "the count", func() bool { return testutil.ToFloat64(lost) == 3 })
	r.Put(&Record{Code: 200})
	until(t, "the count", func() bool { return testutil.ToFloat64(lost) == 4 })
	stop()
	if n := strings.Count(log.String(), "lost lines"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// TestSampleThinsAClassEvenly; errors are never thinned.
func TestSampleThinsAClassEvenly(t *testing.T) {
	var s sampler
	if err := s.set(map[string]float64{"status_2xx": 0.25, "status_3xx": 0}); err != nil {
		t.Fatal(err)
	}
	count := func(r Record) (n int) {
		for range 1000 {
			if s.keep(&r) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		code int
		disp string
		want int
	}{
		{200, "--R-", 250}, {204, "L---", 250}, {302, "--N-", 0}, {180, "--R-", 1000}, {404, "--N-", 1000}, {503, "S-N-", 1000}, {0, "TWR-", 1000},
		{200, "CDR-", 1000}, // the client went away while it got its 200
	} {
		if got := count(Record{Code: c.code, Disp: [4]byte([]byte(c.disp))}); got != c.want {
			t.Errorf("%d %s: %d of 1000 written, want %d", c.code, c.disp, got, c.want)
		}
	}
	for _, bad := range []map[string]float64{{"status_4xx": 0.5}, {"status_2xx": 1.5}, {"status_2xx": -1}, {"": 1}} {
		if err := s.set(bad); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}
