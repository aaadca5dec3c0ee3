package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sample is one target under one load, once.
type sample struct {
	outcome
	cost float64 // processor time of the target per count, µs
	busy float64 // share of one core that the target used
	pss  float64 // MiB
}

// compare runs every load on every target, round after round, and prints what came out.
func compare(ctx context.Context, p *protocol, s *settings, out io.Writer) error {
	dir := s.dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "wyegate-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	dir, err := filepath.Abs(dir) // targets run in it
	if err != nil {
		return err
	}
	where := *s
	where.dir = dir
	_, last := cores()
	d, err := startDriver(p.name, last)
	if err != nil {
		return err
	}
	defer d.stop()
	for load := range strings.SplitSeq(s.loads, ",") {
		if err := compareLoad(ctx, p, &where, d, load, out); err != nil {
			return err
		}
	}
	return nil
}

func compareLoad(ctx context.Context, p *protocol, s *settings, d *driver, load string, out io.Writer) error {
	list, err := p.targets(s, load, d.servers)
	if err != nil {
		return err
	}
	if s.only != "" {
		list = slices.DeleteFunc(list, func(t *target) bool { return !slices.Contains(strings.Split(s.only, ","), t.name) })
	}
	defer func() {
		for _, t := range list {
			t.stop()
		}
	}()
	first, _ := cores()
	for _, t := range list {
		if err := t.start(ctx, s.dir, first); err != nil {
			return err
		}
	}
	closed := func(*target) order { return order{Load: load, Window: s.window, Time: s.time} }
	warm := *s
	warm.rounds = 1
	if _, err := rounds(ctx, &warm, d, list, closed); err != nil {
		return err
	}
	full, err := rounds(ctx, s, d, list, closed)
	if err != nil {
		return err
	}
	report(out, p, fmt.Sprintf("%s %s, %d under way, %d rounds of %s", p.name, load, s.window, s.rounds, s.time), list, full)
	limit := func(t *target) float64 { return median(full[t], func(x sample) float64 { return x.Begun }) }
	for _, open := range []struct {
		title string
		rate  func(*target) float64
	}{
		{"each at half of its limit", func(t *target) float64 { return limit(t) / 2 }},
		{"all at half of the first one's limit", func(*target) float64 { return limit(list[0]) / 2 }},
	} {
		got, err := rounds(ctx, s, d, list, func(t *target) order {
			return order{Load: load, Window: 4096, Time: s.time, Rate: open.rate(t)}
		})
		if err != nil {
			return err
		}
		report(out, p, fmt.Sprintf("%s %s, %s", p.name, load, open.title), list, got)
	}
	return nil
}

// rounds runs one load on each target in turn, as often as the settings say.
func rounds(ctx context.Context, s *settings, d *driver, list []*target, what func(*target) order) (map[*target][]sample, error) {
	got := map[*target][]sample{}
	for range s.rounds {
		for _, t := range list {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			o := what(t)
			o.Addr = t.addr
			before, began := t.usage(), time.Now()
			res, err := d.run(o)
			took, after := time.Since(began), t.usage()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			used := after.cpu - before.cpu
			x := sample{outcome: res, busy: used.Seconds() / took.Seconds(), pss: after.pss}
			if res.Count > 0 {
				x.cost = float64(used.Nanoseconds()) / 1e3 / res.Count
			}
			got[t] = append(got[t], x)
		}
	}
	return got, nil
}
