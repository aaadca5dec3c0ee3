package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/engine"
)

// edge is the front door of the demo with its four servers and its folder.
type edge struct {
	dir      string
	sipPort  int
	httpPort int
	metrics  int
	servers  []*appServer
	ports    finder
	moved    []string // lines about ports that were taken

	engine  *engine.Engine
	logFile io.Closer
	stop    context.CancelFunc
	ended   chan error // of the engine's Run
}

var loopback = net.ParseIP(host)

// look is how often the demo looks whether something has come about.
const look = 20 * time.Millisecond

// newEdge finds ports, makes the folder and names the servers. Nothing is opened.
func newEdge(p Ports) (*edge, error) {
	e := &edge{ports: finder{}}
	var err error
	if e.sipPort, err = e.port("SIP", p.SIP, true); err != nil {
		return nil, err
	}
	if e.httpPort, err = e.port("HTTP", p.HTTP, false); err != nil {
		return nil, err
	}
	if e.metrics, err = e.ports.free(0, false); err != nil {
		return nil, err
	}
	for i, transport := range []string{"udp", "udp", "tcp", "tcp"} {
		s := &appServer{name: fmt.Sprintf("as%d", i+1), transport: transport, edge: address(e.sipPort), log: slog.New(slog.DiscardHandler)}
		want := [2]int{}
		if p.Servers != 0 {
			want = [2]int{p.Servers + 2*i, p.Servers + 2*i + 1}
		}
		if s.sipPort, err = e.ports.free(want[0], true); err != nil {
			return nil, err
		}
		if s.httpPort, err = e.ports.free(want[1], false); err != nil {
			return nil, err
		}
		e.servers = append(e.servers, s)
	}
	e.dir, err = makeFolder()
	return e, err
}

// port finds a port and remembers to say so when it is not the one that was wanted.
func (e *edge) port(what string, want int, udp bool) (int, error) {
	got, err := e.ports.free(want, udp)
	if err == nil && want != 0 && got != want {
		e.moved = append(e.moved, fmt.Sprintf("port %d is in use: %s is on %d", want, what, got))
	}
	return got, err
}

func (e *edge) socket() string { return filepath.Join(e.dir, socketName) }

// start opens servers and edge and returns when every server is known to be up.
func (e *edge) start(ctx context.Context, v admin.Version) error {
	for _, s := range e.servers {
		if err := s.start(); err != nil {
			return err
		}
	}
	if err := errors.Join(e.write(rulesName, rules), e.write(configName, e.configText("the demo"))); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(e.dir, "edge.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	e.logFile = f
	level := &slog.LevelVar{}
	log := slog.New(slog.NewJSONHandler(f, &slog.HandlerOptions{Level: level}))
	eng, problems, err := engine.New(engine.Options{File: filepath.Join(e.dir, configName), Version: v, Log: log, Level: level})
	if err != nil {
		return err
	}
	if eng == nil || config.HasErrors(problems) {
		return fmt.Errorf("the demo's configuration is refused: %v", problems)
	}
	e.engine = eng
	var run context.Context
	run, e.stop = context.WithCancel(context.Background())
	e.ended = make(chan error, 1)
	go func() { e.ended <- eng.Run(run, ctx) }()
	return e.await(ctx, func() bool {
		for _, s := range eng.Servers() {
			for _, h := range s.Health {
				if h.State != "up" {
					return false
				}
			}
		}
		return true
	})
}

// await blocks until something has come about.
func (e *edge) await(ctx context.Context, come func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, phoneWait)
	defer cancel()
	t := time.NewTicker(look)
	defer t.Stop()
	for !come() {
		select {
		case <-t.C:
		case err := <-e.ended:
			e.ended <- err
			return fmt.Errorf("the edge has ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// usable says whether a server of the application pool gets new traffic.
func (e *edge) usable(name string) bool {
	for _, s := range e.engine.Servers() {
		if s.Server == name {
			return s.Usable
		}
	}
	return false
}

// close ends everything and removes the folder.
func (e *edge) close() error {
	var err error
	if e.stop != nil {
		e.stop()
		if err = <-e.ended; errors.Is(err, engine.ErrDeadline) {
			err = nil // what was under way was the demo's own
		}
	}
	for _, s := range e.servers {
		s.stop()
	}
	if e.logFile != nil {
		err = errors.Join(err, e.logFile.Close())
	}
	if e.dir != "" {
		err = errors.Join(err, os.RemoveAll(e.dir))
	}
	return err
}
