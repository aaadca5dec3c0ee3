package demo

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// printer writes the lines for people (the sample of operations.md 2.1). Where they go cannot be helped when it fails.
type printer struct{ io.Writer }

// column is where the right side of a line begins.
const column = 64

func (e *edge) address() string { return address(e.sipPort) }

func (p printer) folder(e *edge) {
	for _, m := range e.moved {
		fmt.Fprintln(p, m)
	}
	fmt.Fprintf(p, "files      %s\n", e.dir)
}

func (p printer) up(e *edge) {
	fmt.Fprintf(p, "edge       SIP %s (UDP, TCP)   HTTP %s   metrics http://%s/metrics\n", e.address(), address(e.httpPort), address(e.metrics))
	var list []string
	for _, s := range e.servers {
		list = append(list, fmt.Sprintf("%s SIP %d/%s HTTP %d", s.name, s.sipPort, s.transport, s.httpPort))
	}
	fmt.Fprintf(p, "servers    %s\n", strings.Join(list, "   "))
	fmt.Fprintln(p, "timers     shortened: health every 500 ms, every 250 ms while down (5 s and 2 s outside the demo)")
}

func (p printer) step(o outcome, err error) {
	mark, detail := "✓", o.detail
	if err != nil {
		mark = "✗"
		detail = strings.TrimSpace(detail + "  " + oneLine(err))
	}
	pad := max(2, column-utf8.RuneCountInString(o.title))
	fmt.Fprintf(p, "%s %s%s%s\n", mark, o.title, strings.Repeat(" ", pad), detail)
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (p printer) cut() { fmt.Fprintln(p, "the time was up before the last check") }

// sum is what was not built, the count, and what to try.
func (p printer) sum(e *edge, r *Result, o Options) {
	held := 0
	for _, s := range r.Steps {
		if s.OK {
			held++
		}
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(p, "– %s: skipped: %s\n", s.Name, s.Reason)
	}
	running := "Running; Ctrl-C ends."
	if o.Length > 0 {
		running = fmt.Sprintf("Running; ends after %s in all.", o.Length)
	}
	fmt.Fprintf(p, "%d held, %d failed, %d skipped.   %s\n", held, len(r.Steps)-held, len(r.Skipped), running)
	fmt.Fprintf(p, "try:  %s --socket %s explain --live --key room-4711\n", o.Program, e.socket())
	fmt.Fprintf(p, "      %s --socket %s servers drain as3 --wait\n", o.Program, e.socket())
	fmt.Fprintf(p, "      %s dcr lint %s\n", o.Program, filepath.Join(e.dir, rulesName))
}

func (p printer) traffic(t *traffic) {
	fmt.Fprintf(p, "traffic    %d calls, %d pages, %d texts over websockets, %d failed", t.calls.Load(), t.pages.Load(), t.texts.Load(), t.failed.Load())
	if n := t.lost.Load(); n > 0 {
		fmt.Fprintf(p, ", %d lost with %s when it was stopped", n, lostServer)
	}
	fmt.Fprintln(p, ".")
	if err := t.because(); err != nil {
		fmt.Fprintf(p, "           first failure: %s\n", oneLine(err))
	}
}
