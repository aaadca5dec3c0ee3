package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"github.com/wyegate/wyegate/internal/engine"
)

// A client that stays within a request keeps the node up to shutdown.deadline, and the node says so.
func TestShutdownDeadlineShows(t *testing.T) {
	e, stop := start(t, 1)
	stop()
	eng, problems, err := engine.New(engine.Options{File: filepath.Join(e.dir, "wyegate.yaml"), Log: slog.New(slog.DiscardHandler)})
	if err != nil || eng == nil {
		t.Fatalf("no engine: %v, %v", err, problems)
	}
	e.Engine = eng
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx, context.Background()) }()
	e.eventually("ready", func() bool { return eng.Ready() == nil })
	var addr string
	for _, l := range e.Listeners() {
		if l.Protocol == "http" {
			addr = l.Address
		}
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")); err != nil {
		t.Fatal(err)
	}
	e.eventually("the request", func() bool { return e.servers[0].Hits.Load() > 0 })
	leave()
	if err := <-ended; !errors.Is(err, engine.ErrDeadline) {
		t.Errorf("run: %v, want %v", err, engine.ErrDeadline)
	}
}
