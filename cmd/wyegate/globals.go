package main

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/alecthomas/kong"
)

// Exit statuses (operations.md 5.1), the same for every verb.
const (
	exitWrong       = 1 // the thing asked about is wrong, differs or is down
	exitUsage       = 2
	exitUnreachable = 3
	exitRefused     = 4 // by a guard, or by role
	exitDeadline    = 5
	exitChanged     = 6
)

// exitError is an error that ends the process with a status. Without a cause it says nothing: the output said it.
type exitError struct {
	code int
	err  error
}

// Error is the text for standard error.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap gives the cause.
func (e *exitError) Unwrap() error { return e.err }

// exitStatus is the status an error ends the process with: 1 unless it says otherwise.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitWrong
}

const defaultSocket = "/run/wyegate/admin.sock"

// Globals are the flags of every verb.
type Globals struct {
	Socket string `help:"Admin socket of the daemon. Default: /run/wyegate/admin.sock." placeholder:"PATH" env:"WYEGATE_SOCKET" group:"Daemon"`
	URL    string `help:"Remote daemon, with WYEGATE_TOKEN." placeholder:"URL" env:"WYEGATE_URL" group:"Daemon"`
	Node   string `help:"Node to ask, or all." placeholder:"NAME" group:"Daemon"`

	Output string `help:"Shape of the output: table, wide, json, yaml or jsonl." short:"o" default:"table" enum:"table,text,wide,json,yaml,jsonl" placeholder:"FORMAT" group:"Output"`
	Watch  Watch  `help:"Show it again and again; every 2s unless written." placeholder:"2s" group:"Output"`

	DryRun bool   `help:"Show what would happen; change nothing." group:"Changes"`
	Note   string `help:"Reason, kept with the change." placeholder:"TEXT" group:"Changes"`
	Yes    bool   `help:"Do not ask." short:"y" group:"Changes"`
	Force  bool   `help:"Past a guard; it is written to the audit." group:"Changes"`

	// Set by prepare, replaced by tests.
	in       io.Reader        `kong:"-"`
	out      io.Writer        `kong:"-"`
	errOut   io.Writer        `kong:"-"`
	terminal bool             `kong:"-"` // a person sits there: ask, redraw, colour
	now      func() time.Time `kong:"-"`
}

// prepare gives the verbs the streams of the process, where nothing else was set.
func (g *Globals) prepare() {
	if g.in == nil {
		g.in = os.Stdin
	}
	if g.out == nil {
		g.out = os.Stdout
		g.terminal = isTerminal(os.Stdin) && isTerminal(os.Stdout)
	}
	if g.errOut == nil {
		g.errOut = os.Stderr
	}
	if g.now == nil {
		g.now = time.Now
	}
}

// socket is where the daemon listens: --socket, WYEGATE_SOCKET, the default.
func (g *Globals) socket() string {
	if g.Socket != "" {
		return g.Socket
	}
	return defaultSocket
}

// Watch is an interval that may be left out: --watch is --watch=2s.
type Watch time.Duration

// Decode implements kong.MapperValue.
func (w *Watch) Decode(ctx *kong.DecodeContext) error {
	*w = Watch(2 * time.Second)
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	d, err := time.ParseDuration(ctx.Scan.Pop().String())
	if err != nil {
		return err
	}
	if d < 100*time.Millisecond {
		return errors.New("an interval below 100ms is not for people")
	}
	*w = Watch(d)
	return nil
}

// IsBool says to kong that the flag stands without a value, too.
func (*Watch) IsBool() bool { return true }
