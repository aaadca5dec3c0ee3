package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/wyegate/wyegate/admin"
)

// ServersDrainCmd is `servers drain S`.
type ServersDrainCmd struct {
	Server     string        `arg:"" help:"Name, pool/name or a prefix."`
	Wait       bool          `help:"Show progress until it is done; Ctrl-C leaves the drain running."`
	Deadline   time.Duration `help:"When it must end; the pool's unless written." placeholder:"2h"`
	AtDeadline string        `help:"What then: wait, move or cancel; the pool's unless written." enum:"wait,move,cancel," default:"" placeholder:"wait|move|cancel"`
}

// exitInterrupted is what a shell shows for a program that Ctrl-C ended: the drain goes on.
const exitInterrupted = 130

// Run drains and, where wanted, waits.
func (s *ServersDrainCmd) Run(g *Globals) error {
	g.prepare()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c, err := g.ask(ctx)
	if err != nil {
		return err
	}
	one, err := c.server(ctx, s.Server)
	if err != nil {
		return err
	}
	want := map[string]any{"admin_state": "drain"}
	if s.Deadline > 0 {
		want["deadline"] = s.Deadline.Seconds()
	}
	if s.AtDeadline != "" {
		want["at_deadline"] = s.AtDeadline
	}
	changed, err := g.patch(ctx, c, one, want)
	if err != nil || changed == nil {
		return err
	}
	if s.Wait {
		return g.waitDrained(ctx, c, changed)
	}
	d := changed.Drain
	if d == nil {
		return g.show(changed, func(w io.Writer) { fmt.Fprintf(w, "%s  %s\n", changed.Server, changed.State) })
	}
	return g.show(changed, func(w io.Writer) { drainText(w, d, g.now(), false) })
}

// waitDrained shows the progress until the last call has ended (0), the deadline has passed (5), or somebody made the
// server ready (6).
func (g *Globals) waitDrained(ctx context.Context, c *client, s *admin.Server) error {
	v := &drainView{g: g}
	ended := ""
	err := c.stream(ctx, serverPath(*s)+"/drain", func(e event) (bool, error) {
		var d admin.Drain
		if err := json.Unmarshal([]byte(e.data), &d); err != nil {
			return false, fmt.Errorf("progress cannot be read: %w", err)
		}
		ended = e.name
		v.show(&d)
		return e.name == "progress", nil
	})
	switch {
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, fmt.Errorf("the drain of %s goes on", s.Server)}
	case err != nil:
		return err
	}
	switch ended {
	case "done":
		return nil
	case "deadline":
		return &exitError{exitDeadline, fmt.Errorf("deadline passed; %s still has traffic", s.Server)}
	case "ended":
		return &exitError{exitChanged, fmt.Errorf("%s is no longer drained", s.Server)}
	}
	return &exitError{exitUnreachable, errors.New("the daemon ended the stream; the drain goes on")}
}

// drainView shows one step after the other: in place on a terminal, as a line elsewhere.
type drainView struct {
	g     *Globals
	lines int
	last  string
}

func (v *drainView) show(d *admin.Drain) {
	switch {
	case !v.g.forPeople():
		// One object per line as it happens, whatever shape of JSON was asked for.
		if b, err := json.Marshal(d); err == nil {
			fmt.Fprintf(v.g.out, "%s\n", b)
		}
	case v.g.terminal:
		var b strings.Builder
		drainText(&b, d, v.g.now(), !d.Done)
		if v.lines > 0 {
			fmt.Fprintf(v.g.out, "\x1b[%dA\x1b[J", v.lines)
		}
		v.lines = strings.Count(b.String(), "\n")
		io.WriteString(v.g.out, b.String())
	default:
		line := fmt.Sprintf("%s  %s, %s, %s left\n", d.Server, plural(d.Dialogs.Left, "dialog", "dialogs"),
			plural(d.Sessions.Left, "HTTP session", "HTTP sessions"), plural(d.Websockets.Left, "websocket", "websockets"))
		if line != v.last {
			io.WriteString(v.g.out, line)
		}
		v.last = line
	}
}

const barCells = 23

func drainText(w io.Writer, d *admin.Drain, now time.Time, waiting bool) {
	state := "draining"
	if d.Done {
		state = "drained"
	}
	to := "no other server takes its keys"
	if len(d.NewKeysTo) > 0 {
		to = "new keys go to " + strings.Join(d.NewKeysTo, ", ")
	}
	fmt.Fprintf(w, "%s  %s   %-60s by %s, %s\n", d.Server, state, to, dash(d.By), clock(d.Since, now, "15:04:05"))
	remaining(w, "SIP dialogs", d.Dialogs, now, 0, 0)
	remaining(w, "HTTP sessions", d.Sessions, now, 0, 0)
	remaining(w, "websockets", d.Websockets, now, d.Closing, d.CloseCode)
	if d.Deadline != nil {
		fmt.Fprintf(w, "deadline %s (then: wait | move | cancel; set: %s)", clock(*d.Deadline, now, "15:04:05"), d.AtDeadline)
		if waiting {
			fmt.Fprint(w, "   Ctrl-C leaves the drain running")
		}
		fmt.Fprintln(w)
	}
}

func remaining(w io.Writer, what string, r admin.Remaining, now time.Time, closing float64, code int) {
	fmt.Fprintf(w, "  %-13s %s %6s of %5s left", what, bar(r.Total, r.Left, barCells, closing > 0), thousands(r.Left), thousands(r.Total))
	if closing > 0 {
		fmt.Fprintf(w, "   closing %.0f/s with %d", closing, code)
	} else if r.PerMinute > 0 {
		fmt.Fprintf(w, "   −%.0f/min", r.PerMinute)
	}
	if r.Expected != nil && r.Left > 0 {
		fmt.Fprintf(w, "   last one expected %s", clock(*r.Expected, now, "15:04"))
	}
	fmt.Fprintln(w)
}
