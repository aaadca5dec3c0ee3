package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/wyegate/wyegate/internal/health"
)

// ProbeCmd is `wyegate probe`: one question from this host, with timing. It needs no daemon.
type ProbeCmd struct {
	Target  string        `arg:"" help:"sip:HOST, sips:HOST, http://HOST/ or https://HOST/; SIP takes ;transport=tcp, tls or ws."`
	Count   int           `help:"How many times." default:"1"`
	Timeout time.Duration `help:"How long to wait for each answer." default:"2s"`
	Trust   string        `help:"PEM file of those who sign the other side's certificate; default: those of the system." type:"existingfile"`
}

// probed is one question and its answer.
type probed struct {
	Target string  `json:"target"`
	State  string  `json:"state"` // up, down, maintenance or silent
	Status int     `json:"status,omitempty"`
	Reason string  `json:"reason,omitempty"`
	Millis float64 `json:"ms,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// Run asks, and ends with the worst of what it saw (operations.md 5.2).
func (c *ProbeCmd) Run(g *Globals) error {
	g.prepare()
	if strings.HasPrefix(strings.ToLower(c.Target), "aaa") {
		return &exitError{exitUsage, errors.New("probe: Diameter is not in this build")}
	}
	trust, err := c.trust()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var list []probed
	worst := 0
	for i := 0; i < max(1, c.Count) && ctx.Err() == nil; i++ {
		p, status, err := c.once(ctx, trust)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		list = append(list, p)
		worst = max(worst, status)
	}
	if err := g.show(list, func(w io.Writer) { printProbes(w, list) }); err != nil || worst == 0 {
		return err
	}
	return &exitError{worst, nil}
}

func (c *ProbeCmd) trust() (*tls.Config, error) {
	if c.Trust == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.Trust)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("probe: no certificate in %s", c.Trust)
	}
	return &tls.Config{RootCAs: pool}, nil
}

// once asks one time. The error is one of usage: everything else is an answer.
func (c *ProbeCmd) once(ctx context.Context, trust *tls.Config) (p probed, status int, err error) {
	within, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	p.Target = c.Target
	a, err := health.Ask(within, c.Target, trust)
	switch {
	case errors.Is(err, health.ErrTarget):
		return p, 0, err
	case errors.Is(err, health.ErrNoAnswer):
		p.State, p.Error = "silent", err.Error()
		return p, exitDeadline, nil
	case err != nil:
		p.State, p.Error = "down", err.Error()
		return p, exitWrong, nil
	}
	p.Status, p.Reason, p.Millis = a.Status, a.Reason, float64(a.Took.Microseconds())/1000
	web := strings.HasPrefix(strings.ToLower(c.Target), "http")
	switch {
	case a.Status == 503:
		p.State, status = "maintenance", exitRefused
	case web && (a.Status < 200 || a.Status > 399):
		p.State, status = "down", exitWrong
	default:
		p.State = "up"
	}
	return p, status, nil
}

func printProbes(w io.Writer, list []probed) {
	for _, p := range list {
		if p.Error != "" {
			fmt.Fprintf(w, "%-11s  %s  %s\n", p.State, p.Target, p.Error)
			continue
		}
		fmt.Fprintf(w, "%-11s  %s  %d %s  %.1f ms\n", p.State, p.Target, p.Status, p.Reason, p.Millis)
	}
}
