package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
)

// Socket is one line of admin.sockets.
type Socket struct {
	Path  string
	Mode  fs.FileMode // 0: 0660
	Group string      // empty: the process's own
	Role  Role
}

// Endpoint is an open socket of the API. Serve serves and closes it.
type Endpoint struct {
	ln   net.Listener
	role Role
	unix string // path to remove; empty for TCP
	open bool   // the metrics address: no API
}

// Addr is where the endpoint listens.
func (e *Endpoint) Addr() net.Addr { return e.ln.Addr() }

// Close ends an endpoint that is not served.
func (e *Endpoint) Close() error {
	if e.unix != "" {
		os.Remove(e.unix)
	}
	return e.ln.Close()
}

// maxSocketPath is what a socket's address holds on Linux, less the octet that ends it.
const maxSocketPath = 107

// OpenSocket binds a unix socket. It is made under another name and moved to its place when mode and group are right,
// so that nobody connects before; a socket that a dead process left goes by the same move. A group that does not exist
// on this host narrows the socket to its owner: fewer may, never more. Another process that listens there is an error.
func OpenSocket(s Socket, log *slog.Logger) (*Endpoint, error) {
	if len(s.Path)+1 > maxSocketPath {
		return nil, fmt.Errorf("admin socket %s: path is longer than %d octets", s.Path, maxSocketPath-1)
	}
	if c, err := net.DialTimeout("unix", s.Path, time.Second); err == nil {
		c.Close()
		return nil, fmt.Errorf("admin socket %s: another process listens there", s.Path)
	}
	if st, err := os.Lstat(s.Path); err == nil && st.Mode()&fs.ModeSocket == 0 {
		return nil, fmt.Errorf("admin socket %s: there is something else", s.Path)
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o755); err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	temporary := s.Path + "~"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	ln.SetUnlinkOnClose(false)
	if err := errors.Join(grant(temporary, s, log), os.Rename(temporary, s.Path)); err != nil {
		ln.Close()
		os.Remove(temporary)
		return nil, fmt.Errorf("admin socket %s: %w", s.Path, err)
	}
	return &Endpoint{ln: ln, role: s.Role, unix: s.Path}, nil
}

func grant(path string, s Socket, log *slog.Logger) error {
	mode := s.Mode
	if mode == 0 {
		mode = 0o660
	}
	if s.Group != "" {
		g, err := user.LookupGroup(s.Group)
		if err != nil {
			log.Warn("admin socket is for its owner only", slog.String(obs.KeyFile, s.Path), slog.Any(obs.KeyErr, err))
			return os.Chmod(path, mode&0o700)
		}
		id, err := strconv.Atoi(g.Gid)
		if err != nil {
			return err
		}
		if err := os.Chown(path, -1, id); err != nil {
			log.Warn("admin socket is for its owner only", slog.String(obs.KeyFile, s.Path), slog.Any(obs.KeyErr, err))
			return os.Chmod(path, mode&0o700)
		}
	}
	return os.Chmod(path, mode)
}

// OpenMetrics binds the metrics address: /metrics, /healthz and /readyz, nothing else.
func OpenMetrics(address string) (*Endpoint, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return &Endpoint{ln: ln, open: true}, nil
}

// Serve answers on an endpoint until ctx ends; then open streams end, requests get a second, and the socket is removed.
func (a *API) Serve(ctx context.Context, e *Endpoint) error {
	var h http.Handler = a.api
	if e.open {
		h = a.open
	}
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10,
		ErrorLog:    slog.NewLogLogger(a.cfg.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if e.open {
				return ctx
			}
			return context.WithValue(ctx, callerKey{}, Caller{By: peer(c), Role: e.role})
		},
	}
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-stop:
		}
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			srv.Close()
		}
	}()
	err := srv.Serve(e.ln)
	close(stop)
	<-ended
	if e.unix != "" {
		a.unlink(e)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("admin: %w", err)
}

// unlink removes our socket, not one that a successor has put in its place meanwhile: that one answers.
func (a *API) unlink(e *Endpoint) {
	if c, err := net.DialTimeout("unix", e.unix, time.Second); err == nil {
		c.Close()
		return
	}
	if err := os.Remove(e.unix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.cfg.Log.Warn("admin socket stays", slog.String(obs.KeyFile, e.unix), slog.Any(obs.KeyErr, err))
	}
}
