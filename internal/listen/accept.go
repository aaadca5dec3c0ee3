package listen

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/wyegate/wyegate/internal/limit"
)

const (
	backOffFirst  = 5 * time.Millisecond
	backOffMost   = time.Second
	headersAtOnce = 1024 // connections of one socket whose PROXY header is awaited
)

// accept takes connections until the socket is closed. The kernel's refusals (no descriptors, no memory) pass: it waits
// a little, twice as long each time, and goes on; the backlog holds those who come meanwhile.
func (s *Socket) accept(ctx context.Context, log *slog.Logger, running *sync.WaitGroup) {
	wait := backOffFirst
	for {
		c, err := s.tcp.AcceptTCP()
		if err == nil {
			wait = backOffFirst
			s.Stats.Accepted.Add(1)
			s.hand(ctx, c, running)
			continue
		}
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return
		}
		s.Stats.Failed.Add(1)
		if wait == backOffFirst { // once per spell, not once per try
			log.Warn("accept failed", slog.String("address", s.Addr.String()), slog.Any("err", err))
		}
		if !pause(ctx, wait) {
			return
		}
		wait = min(2*wait, backOffMost)
	}
}

// hand gives a connection to the service of the moment.
func (s *Socket) hand(ctx context.Context, c *net.TCPConn, running *sync.WaitGroup) {
	v := s.service.Load()
	if v == nil {
		s.refuse(c)
		return
	}
	remote := fold(c.RemoteAddr().(*net.TCPAddr).AddrPort())
	if len(v.ProxyFrom) == 0 {
		if !s.caps.Acquire(remote.Addr()) {
			s.refuse(c)
			return
		}
		running.Go(func() { s.run(ctx, v, c, remote.Addr()) })
		return
	}
	if !limit.NewExempt(v.ProxyFrom).Has(remote.Addr()) {
		s.Stats.BadHeader.Add(1)
		_ = c.Close()
		return
	}
	if s.headers.Add(1) > headersAtOnce {
		s.headers.Add(-1)
		s.refuse(c)
		return
	}
	running.Go(func() { s.proxied(ctx, v, c) })
}

// proxied reads the PROXY header first: the caps count the source that it carries.
func (s *Socket) proxied(ctx context.Context, v *Service, c *net.TCPConn) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	wrapped, err := ReadProxyHeader(c, headerTimeout)
	stop()
	s.headers.Add(-1)
	if err != nil {
		s.Stats.BadHeader.Add(1)
		_ = c.Close()
		return
	}
	source := wrapped.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	if !s.caps.Acquire(source) {
		s.refuse(c)
		return
	}
	s.run(ctx, v, wrapped, source)
}

func (s *Socket) run(ctx context.Context, v *Service, c net.Conn, source netip.Addr) {
	defer s.caps.Release(source)
	defer func() { _ = c.Close() }()
	if v.TLS != nil {
		secure := s.handshake(ctx, v.TLS, c)
		if secure == nil {
			return
		}
		defer func() { _ = secure.Close() }() // it says goodbye before the socket is closed
		c = secure
	}
	v.Handle(ctx, c)
}

// refuse resets a connection: a flood leaves no TIME_WAIT behind.
func (s *Socket) refuse(c *net.TCPConn) {
	s.Stats.Refused.Add(1)
	_ = c.SetLinger(0)
	_ = c.Close()
}

// pause waits, and says false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
