//go:build !linux

package h1

import "sync/atomic"

// Elsewhere than on Linux there are no loops: every connection is served by its goroutine.
type (
	loop  struct{}
	loops struct{}
	stage uint8
	fast  struct{ unsent bool }
	desc  struct {
		l   *loop
		hup atomic.Bool
		fd  int
	}
)

func loopsWanted() int { return 0 }

func (f *Front) endLoops()          {}
func (f *Front) adopt(*conn) error  { return nil }
func (s *server) adopt(*conn) error { return nil }
func (l *loop) post(*conn)          {}
func (s *sock) ordinary() bool      { return true }
func (c *conn) home() int           { return 0 }
func (c *conn) now() int64          { return c.f.now() }
func (c *conn) takeTurns()          {}
