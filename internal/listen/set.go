package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
)

// Network is the kind of a socket.
type Network string

// The networks. The family follows from the address; an IPv6 socket carries IPv6 alone, so that 0.0.0.0 and [::] do not
// meet (SX-13: sockets per family).
const (
	TCP Network = "tcp"
	UDP Network = "udp"
)

// ErrTwice says that two wants of one generation name the same socket.
var ErrTwice = errors.New("listen: address is wanted twice")

// Want is one socket that a generation wants.
type Want struct {
	Name    string // of the listener; part of the identity only when the port is 0
	Network Network
	Addr    netip.AddrPort // port 0: the kernel chooses
	Sockets int            // UDP: how many sockets share the port; 0: one per CPU that Go uses
	Buffer  int            // octets of the kernel's buffers, each way; 0: 4 MiB on UDP, the kernel's own on TCP
}

// key identifies a socket over generations. With port 0 the address says nothing, so the name does.
type key struct {
	network Network
	addr    netip.AddrPort
	name    string
}

func (w Want) key() key {
	k := key{network: w.Network, addr: fold(w.Addr)}
	if w.Addr.Port() == 0 {
		k.name = w.Name
	}
	return k
}

// Set is all sockets of the process.
type Set struct {
	log *slog.Logger

	mu      sync.Mutex // held for bind, adopt and close (architecture.md 4.3)
	open    map[key]*Socket
	start   []*Socket // committed, their acceptors not started yet
	stopped bool      // StopAccepting was called: nothing accepts any more

	wake chan struct{} // start has something
}

// New makes an empty set. A nil logger discards.
func New(log *slog.Logger) *Set {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Set{log: log, open: map[key]*Socket{}, wake: make(chan struct{}, 1)}
}

// Change is what one Adopt did. Exactly one of Commit and Undo ends it; the engine makes one change at a time.
type Change struct {
	Sockets []*Socket // in the order of the wants

	set   *Set
	keys  []key
	fresh []*Socket
}

// Adopt finds or binds a socket for each want. An error (a port in use, an address that is not here) names the want,
// and nothing has changed. Nothing new accepts before Commit.
func (s *Set) Adopt(wants []Want) (*Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Change{set: s}
	seen := map[key]string{}
	for _, w := range wants {
		k := w.key()
		if other, twice := seen[k]; twice {
			c.closeFresh()
			return nil, fmt.Errorf("%w: listeners %q and %q, %s %s", ErrTwice, other, w.Name, w.Network, w.Addr)
		}
		seen[k] = w.Name
		sock := s.open[k]
		if sock == nil {
			var err error
			if sock, err = bind(w); err != nil {
				c.closeFresh()
				return nil, fmt.Errorf("listener %q: %w", w.Name, err)
			}
			c.fresh = append(c.fresh, sock)
		}
		c.Sockets, c.keys = append(c.Sockets, sock), append(c.keys, k)
	}
	return c, nil
}

// Commit makes the sockets of the change the sockets of the set and closes all others. Connections of those stay.
func (c *Change) Commit() {
	s := c.set
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[key]*Socket, len(c.keys))
	for i, k := range c.keys {
		next[k] = c.Sockets[i]
	}
	for k, sock := range s.open {
		if next[k] != sock {
			sock.close()
		}
	}
	s.open = next
	for _, sock := range c.fresh {
		switch {
		case sock.Network != TCP:
		case s.stopped:
			sock.close()
		default:
			s.start = append(s.start, sock)
		}
	}
	c.fresh = nil
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Undo closes what the change has bound.
func (c *Change) Undo() { c.closeFresh() }

func (c *Change) closeFresh() {
	for _, sock := range c.fresh {
		sock.close()
	}
	c.fresh = nil
}

// StopAccepting closes every stream listener for good and leaves connections and UDP sockets alone: the second step of
// a shutdown (architecture.md 4.8).
func (s *Set) StopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, sock := range s.open {
		if sock.Network == TCP {
			sock.close()
		}
	}
}

// Run accepts on every stream socket that is committed, now or later, until the context ends. It closes all sockets and
// returns when the last Handle has returned, so a Handle must end with the context it got.
func (s *Set) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for ctx.Err() == nil {
		for _, sock := range s.takeStart() {
			running.Go(func() { sock.accept(ctx, s.log, &running) })
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
	}
	s.closeAll()
	running.Wait()
	return nil
}

func (s *Set) takeStart() []*Socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.start
	s.start = nil
	return list
}

func (s *Set) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sock := range s.open {
		sock.close()
	}
	clear(s.open)
	s.start = nil
}
