package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// report prints one load: a line for each target, ratios to the first.
func report(out io.Writer, p *protocol, title string, list []*target, got map[*target][]sample) {
	fmt.Fprintf(out, "\n## %s (load of the machine %s)\n", title, machineLoad())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "target\tCPU µs/%s (min-max)\tratio\t%ss/s\tratio\tp50 µs\tp99 µs\tcore busy\tMiB\tlost\tfaults\n", p.unit, p.unit)
	for _, t := range list {
		x, first := got[t], got[list[0]]
		cost, rate := median(x, costOf), median(x, rateOf)
		low, high := extremes(x, costOf)
		fmt.Fprintf(w, "%s\t%.2f (%.2f-%.2f)\t%.2f\t%.0f\t%.2f\t%.0f\t%.0f\t%.0f %%\t%.0f\t%.0f\t%.0f\n", t.name,
			cost, low, high, cost/median(first, costOf), rate, rate/median(first, rateOf),
			median(x, func(s sample) float64 { return s.P50 }), median(x, func(s sample) float64 { return s.P99 }),
			100*median(x, func(s sample) float64 { return s.busy }), median(x, func(s sample) float64 { return s.pss }),
			sum(x, func(s sample) float64 { return s.Lost }), sum(x, func(s sample) float64 { return s.Faults }))
	}
	_ = w.Flush()
}

func costOf(s sample) float64 { return s.cost }
func rateOf(s sample) float64 { return s.Rate }

// median is the middle of what f takes out of the samples; of an even number the mean of both middles.
func median(x []sample, f func(sample) float64) float64 {
	v := sorted(x, f)
	switch n := len(v); {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return v[n/2]
	default:
		return (v[n/2-1] + v[n/2]) / 2
	}
}

func extremes(x []sample, f func(sample) float64) (low, high float64) {
	v := sorted(x, f)
	if len(v) == 0 {
		return math.NaN(), math.NaN()
	}
	return v[0], v[len(v)-1]
}

func sorted(x []sample, f func(sample) float64) []float64 {
	var v []float64
	for _, s := range x {
		v = append(v, f(s))
	}
	slices.Sort(v)
	return v
}

func sum(x []sample, f func(sample) float64) (n float64) {
	for _, s := range x {
		n += f(s)
	}
	return n
}

// machineLoad is the load average of the last minute: on a machine that does other work a figure says less.
func machineLoad() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
