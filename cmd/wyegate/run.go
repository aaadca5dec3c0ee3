package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/engine"
)

// RunCmd is `wyegate run`.
type RunCmd struct {
	Config     string `short:"c" help:"Configuration; wyegate.yaml here, else /etc/wyegate/wyegate.yaml." placeholder:"FILE"`
	CheckFirst bool   `help:"Resolve names and read certificates before any port is opened."`
	Resume     bool   `help:"Start with the last confirmed generation where the file is wrong, or as it was when that came into force."`
}

// gcPercent is how far the heap may grow over what lives before it is collected. Messages allocate nothing, so the
// collector has little to do, and idle clients are what the heap holds: half of Go's own default keeps them cheap.
const gcPercent = 50

// configFile is the file that is meant when none is named.
func configFile(named string) string {
	if named != "" {
		return named
	}
	if _, err := os.Stat("wyegate.yaml"); err == nil {
		return "wyegate.yaml"
	}
	if _, err := os.Stat("/etc/wyegate/wyegate.yaml"); err == nil {
		return "/etc/wyegate/wyegate.yaml"
	}
	return "wyegate.yaml"
}

// Run runs the daemon until SIGTERM or SIGINT; a second one ends it at once. SIGHUP takes the file anew.
func (r *RunCmd) Run(g *Globals) error {
	g.prepare()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	level := &slog.LevelVar{}
	file := configFile(r.Config)
	log := slog.New(handler(file, level))
	e, problems, err := engine.New(engine.Options{File: file, Version: builtAs(), Resume: r.Resume, Log: log, Level: level})
	if err != nil {
		return &exitError{exitWrong, err}
	}
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if e == nil {
		return &exitError{exitWrong, errors.New("the configuration is refused")}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	now, atOnce := context.WithCancel(context.Background())
	defer atOnce()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	go func() {
		for s := range signals {
			switch {
			case s == syscall.SIGHUP:
				_ = e.Reload("SIGHUP") // the engine logs what is wrong with it
			case ctx.Err() == nil:
				log.Info("leaving", slog.String("signal", s.String()))
				stop()
			default:
				atOnce()
			}
		}
	}()
	if err = e.Run(ctx, now); errors.Is(err, engine.ErrDeadline) {
		return &exitError{exitDeadline, err}
	}
	return err
}

// handler is the log in the form that the file asks for; a file that cannot be read leaves the default.
func handler(file string, level *slog.LevelVar) slog.Handler {
	opts := &slog.HandlerOptions{Level: level}
	cfg, problems := engine.LoadFile(file)
	if cfg != nil && !config.HasErrors(problems) {
		_ = level.UnmarshalText([]byte(cfg.Logging.Level)) // the configuration allows only its words
		if cfg.Logging.Format == "text" {
			return slog.NewTextHandler(os.Stderr, opts)
		}
	}
	return slog.NewJSONHandler(os.Stderr, opts)
}
