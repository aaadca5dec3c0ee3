package h1

import (
	"context"
	"time"
)

// tick is how often Run looks at what is late.
const tick = 100 * time.Millisecond

// watchAfter is how long a request waits before the kernel is asked whether its client is still there (section 16, 12).
const watchAfter = int64(time.Second)

// What the deadline of a connection can hold besides a time in the future.
const (
	noDeadline = 0
	late       = -1 // it passed
	left       = -2 // the client has closed
	drained    = -3 // it was idle, and the node drains
	stopped    = -4 // one of the connection's two goroutines needs the other no more
	woken      = -5 // the connection is to end, whatever it does
)

// Run watches the time of all connections until ctx ends.
func (f *Front) Run(ctx context.Context) error {
	defer f.endLoops()
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			f.ended.Store(true)
			f.conns.each(func(c *conn) { c.fire(woken) })
			f.servers.closeIdle(1 << 62)
			f.pipes.closeAll()
			return nil
		case <-t.C:
			f.look()
		}
	}
}

// look wakes what is late. A drain ends idle connections; those that are busy end by themselves.
func (f *Front) look() {
	now, draining := f.now(), f.drain.Load()
	f.conns.each(func(c *conn) {
		switch d := c.deadline.Load(); {
		case d > 0 && now >= d:
			c.fireAt(d, late)
		case d > 0 && draining && c.idle.Load():
			c.fireAt(d, drained)
		default:
			c.lookForClient(now)
		}
	})
	f.servers.closeIdle(now)
}

// lookForClient ends a long request whose client has left.
func (c *conn) lookForClient(now int64) {
	w := c.watch.Load()
	if w == 0 || now < w {
		return
	}
	if d := c.deadline.Load(); d >= 0 && c.watch.CompareAndSwap(w, now+watchAfter) && c.client.left() {
		c.fireAt(d, left)
	}
}

// fireAt replaces a deadline by why and wakes the connection, unless it has moved on meanwhile.
func (c *conn) fireAt(d, why int64) {
	if c.deadline.CompareAndSwap(d, why) {
		c.wake()
	}
}

func (c *conn) fire(why int64) {
	c.deadline.Store(why)
	c.wake()
}

func (c *conn) wake() {
	c.client.wake()
	if s := c.server.Load(); s != nil {
		s.wake()
	}
	if c.lent.Load() {
		c.client.desc.l.post(c)
	}
}

// arm sets the time at which the connection gives up: d from now. A wake-up that came too late is taken back.
func (c *conn) arm(now int64, d time.Duration) { c.setDeadline(now + int64(d)) }

func (c *conn) disarm() { c.setDeadline(noDeadline) }

func (c *conn) setDeadline(to int64) {
	for {
		old := c.deadline.Load()
		if old == woken {
			c.wake() // the wake-up may have come before there was a server's connection to wake
			return
		}
		if c.deadline.CompareAndSwap(old, to) {
			if old < 0 {
				c.client.calm()
			}
			return
		}
	}
}

// spurious says of an error that it is a wake-up meant for somebody who is gone: the wait goes on.
func (c *conn) spurious(s *sock, err error) bool {
	if err == nil || c.deadline.Load() < 0 || !isDeadline(err) {
		return false
	}
	s.calm()
	return true
}
