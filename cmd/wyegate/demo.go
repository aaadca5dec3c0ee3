package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/wyegate/wyegate/internal/demo"
)

// DemoCmd is `wyegate demo`.
type DemoCmd struct {
	Seconds int `help:"End by itself after this time; without it Ctrl-C ends." placeholder:"N"`
}

// Run shows the main job on loopback. Exit status: 0 every check held, 1 one failed, 5 the time was up before the last.
func (d *DemoCmd) Run(g *Globals) error {
	g.prepare()
	if d.Seconds < 0 {
		return &exitError{exitUsage, fmt.Errorf("--seconds %d: not below 0", d.Seconds)}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	o := demo.Options{
		Length: time.Duration(d.Seconds) * time.Second, Ports: demo.DefaultPorts, Out: g.out, Program: os.Args[0], Version: builtAs(),
	}
	people := g.Output == "table" || g.Output == "text" || g.Output == "wide"
	if !people {
		o.Out = io.Discard
	}
	r, err := demo.Run(ctx, o)
	if err != nil {
		return &exitError{exitWrong, fmt.Errorf("demo: %w", err)}
	}
	if !people {
		err = g.show(r, func(io.Writer) {})
	}
	switch {
	case err != nil:
		return err
	case r.Failed():
		return &exitError{exitWrong, nil}
	case !r.Done:
		return &exitError{exitDeadline, nil}
	}
	return nil
}
