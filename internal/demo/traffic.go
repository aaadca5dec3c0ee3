package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// traffic is the generator: calls that one side or the other ends, pages of the rooms with a call, help pages of one
// visitor, pages of the portal, and a websocket per worker. It has rooms of its own, so that it holds none of those that checks count.
type traffic struct {
	phones *phones
	web    *browsers

	calls  atomic.Int64
	pages  atomic.Int64
	texts  atomic.Int64 // echoed by websockets
	failed atomic.Int64
	lost   atomic.Int64 // failed because a check had stopped their server

	outage atomic.Int64 // odd while a server is stopped and the edge may not know

	mu  sync.Mutex
	why error // of the first failure that counts
}

const (
	pace    = 40 * time.Millisecond // between two rounds of one worker
	workers = 4                     // in the background
	spell   = 100                   // rounds of a worker with one websocket
)

// Run makes traffic until the context ends.
func (t *traffic) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for w := range workers {
		running.Go(func() { t.loop(ctx, w, pace) })
	}
}

// loop is one worker. A round that the end of the context cuts short counts for nothing.
func (t *traffic) loop(ctx context.Context, w int, pace time.Duration) {
	v := &visitor{browsers: t.web, cookies: map[string]string{}}
	var s *socket
	defer func() {
		if s != nil {
			s.close()
		}
	}()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	before := t.outage.Load()
	for n := w; ; n += workers {
		err := t.round(ctx, v, n)
		if err == nil {
			s, err = t.chat(ctx, s)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
		case before%2 == 1 || t.outage.Load() != before:
			t.lost.Add(1)
		default:
			t.failed.Add(1)
			t.mu.Lock()
			if t.why == nil {
				t.why = err
			}
			t.mu.Unlock()
		}
		// A websocket that died with its server is noticed a round later: what counts is whether all has been well
		// since the round before.
		before = t.outage.Load()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// round is a call with its page, and two pages of a visitor.
func (t *traffic) round(ctx context.Context, v *visitor, n int) error {
	room := fmt.Sprintf("hall-%d", rand.IntN(200))
	p := t.phones.pick(n)
	called := n%2 == 1 // the called side ends it
	var more []string
	if called {
		more = append(more, fieldHangUp+": yes")
	}
	c, err := p.call(ctx, room, more...)
	if err != nil {
		return err
	}
	t.calls.Add(1)
	server, err := t.web.room(ctx, room)
	if err != nil {
		_, _ = c.bye(ctx) // the page's error is the one that is told
		return err
	}
	t.pages.Add(1)
	if server != c.server && !called {
		_, _ = c.bye(ctx)
		return fmt.Errorf("%s: call on %s, page on %s", room, c.server, server)
	}
	if err := t.end(ctx, c, called); err != nil {
		return err
	}
	for _, p := range []page{{domain: webDomain, target: "/help"}, {domain: portalDomain, target: "/"}} {
		if _, err := v.get(ctx, p); err != nil {
			return err
		}
		t.pages.Add(1)
	}
	return nil
}

// chat says something over the websocket, opens the first one, and another from time to time, so that a drain can end.
func (t *traffic) chat(ctx context.Context, s *socket) (*socket, error) {
	if s != nil && s.said == spell {
		s.close()
		s = nil
	}
	if s == nil {
		var err error
		if s, err = t.web.openSocket(ctx, fmt.Sprintf("hall-%d", rand.IntN(200))); err != nil {
			return nil, err
		}
	}
	if err := s.say(); err != nil {
		s.close()
		return nil, err
	}
	t.texts.Add(1)
	return s, nil
}

func (t *traffic) end(ctx context.Context, c *call, called bool) error {
	if called {
		return c.wait(ctx)
	}
	server, err := c.bye(ctx)
	if err == nil && server != c.server {
		err = fmt.Errorf("call on %s, its BYE on %s", c.server, server)
	}
	return err
}

// because is the first failure that counts.
func (t *traffic) because() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// phones are those of all calls: most over UDP, one in four over TCP.
type phones struct {
	all     []*phone
	running sync.WaitGroup
}

func openPhones(ctx context.Context, edge string) (*phones, error) {
	ps := &phones{}
	for i := range 8 {
		var p *phone
		var err error
		id := fmt.Sprintf("p%d-%08x", i, rand.Uint32())
		if i%4 == 3 {
			p, err = dialTCP(ctx, edge, id)
		} else {
			p, err = dialUDP(edge, id)
		}
		if err != nil {
			ps.close()
			return nil, err
		}
		ps.all = append(ps.all, p)
		ps.running.Go(p.Run)
	}
	return ps, nil
}

func (ps *phones) pick(n int) *phone { return ps.all[n/2%len(ps.all)] }

// close closes the phones and waits until nothing of them runs.
func (ps *phones) close() {
	for _, p := range ps.all {
		p.close()
	}
	ps.running.Wait()
}
