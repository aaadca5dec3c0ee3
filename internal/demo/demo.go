package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/wyegate/wyegate/admin"
)

// Options say how a demo runs.
type Options struct {
	Length  time.Duration // ends by itself after this time; 0: with the context
	Ports   Ports
	Out     io.Writer // lines for people as they come about
	Program string    // as the user called it, for the lines to try
	Version admin.Version
}

// Result is what `-o json` prints (operations.md 2.1).
type Result struct {
	OK      bool      `json:"ok"` // every check was made, and held
	Seconds float64   `json:"seconds"`
	Steps   []Step    `json:"steps"`
	Skipped []Skipped `json:"skipped"`

	Done bool `json:"-"` // the last check was made
}

// Step is one check.
type Step struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Skipped is a check that was not made.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Failed says whether a check did not hold.
func (r *Result) Failed() bool {
	for _, s := range r.Steps {
		if !s.OK {
			return true
		}
	}
	return false
}

// Run makes the demo: servers, edge, traffic and checks, until the time is up or the context ends. Nothing is left of it
// when it returns. The error is of a demo that could not be put up; checks that do not hold are in the Result.
func Run(ctx context.Context, o Options) (*Result, error) {
	began := time.Now()
	quiet()
	if o.Length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Length)
		defer cancel()
	}
	r := &Result{Steps: []Step{}, Skipped: skipped()}
	err := attempt(ctx, o, r)
	for n := 1; n < attempts && errors.Is(err, syscall.EADDRINUSE); n++ {
		err = attempt(ctx, o, r) // somebody took a port between the look and the bind: another demo, begun at once
	}
	r.Seconds = time.Since(began).Round(time.Millisecond).Seconds()
	if err != nil && ctx.Err() != nil {
		return r, nil // the end came while it was being put up
	}
	return r, err
}

// attempts bounds how often the demo looks for other ports.
const attempts = 5

func attempt(ctx context.Context, o Options, r *Result) error {
	e, err := newEdge(o.Ports)
	if err != nil {
		return err
	}
	err = run(ctx, o, e, r)
	if gone := e.close(); err == nil {
		err = gone
	}
	return err
}

// run is the demo between the making of its folder and its removal.
func run(ctx context.Context, o Options, e *edge, r *Result) error {
	p := printer{o.Out}
	if err := e.start(ctx, o.Version); err != nil {
		return err
	}
	p.folder(e)
	ps, err := openPhones(ctx, e.address())
	if err != nil {
		return err
	}
	defer ps.close()
	web := newBrowsers(address(e.httpPort))
	defer web.close()
	t := &traffic{phones: ps, web: web}
	c := &checks{edge: e, phones: ps, web: web, traffic: t}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { t.Run(ctx) })
	p.up(e)
	for _, s := range c.steps() {
		out, err := s.run(ctx)
		if ctx.Err() != nil {
			p.cut()
			return nil
		}
		p.step(out, err)
		r.Steps = append(r.Steps, s.result(out, err))
	}
	r.Done, r.OK = true, !r.Failed()
	p.sum(e, r, o)
	<-ctx.Done()
	running.Wait()
	p.traffic(t)
	return nil
}

func (s step) result(o outcome, err error) Step {
	if err == nil {
		return Step{Name: s.name, OK: true, Detail: o.facts}
	}
	detail := err.Error()
	if o.facts != "" {
		detail = fmt.Sprintf("%s: %s", o.facts, detail)
	}
	return Step{Name: s.name, Detail: detail}
}
