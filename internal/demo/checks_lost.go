package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

func (c *checks) server(name string) *appServer {
	for _, s := range c.edge.servers {
		if s.name == name {
			return s
		}
	}
	return nil
}

// survey finds the server of each room by its page; rooms for which byCall says so are called as well, and
// both must agree.
func (c *checks) survey(ctx context.Context, byCall func(room int) bool) ([]string, error) {
	at := make([]string, rooms)
	err := each(ctx, rooms, func(i int) error {
		page, err := c.web.room(ctx, roomName(i))
		if err != nil {
			return err
		}
		at[i] = page
		if !byCall(i) {
			return nil
		}
		server, err := c.dial(ctx, i, roomName(i))
		if err == nil && server != page {
			err = fmt.Errorf("%s: call on %s, page on %s", roomName(i), server, page)
		}
		return err
	})
	return at, err
}

// stopped stops a server and looks at all rooms: its rooms, and no others, are with the survivors, spread evenly.
func (c *checks) stopped(ctx context.Context) (outcome, error) {
	o := outcome{title: lostServer + " stopped: its rooms moved"}
	if len(c.home) == 0 || count(c.home)[""] > 0 {
		return o, errBefore
	}
	c.traffic.outage.Add(1)
	c.server(lostServer).stop()
	err := c.edge.await(ctx, func() bool { return !c.edge.usable(lostServer) })
	c.traffic.outage.Add(1)
	if err != nil {
		return o, fmt.Errorf("%s is down and still usable: %w", lostServer, err)
	}
	at, err := c.survey(ctx, func(i int) bool { return c.home[i] == lostServer })
	if err != nil {
		return o, err
	}
	moved, stayed := map[string]int{}, 0
	for i, was := range c.home {
		switch {
		case was == lostServer:
			moved[at[i]]++
		case at[i] == was:
			stayed++
		default:
			err = errors.Join(err, fmt.Errorf("%s moved from %s to %s, both are up", roomName(i), was, at[i]))
		}
	}
	its := rooms - stayed
	names := c.others(lostServer)
	o.title = fmt.Sprintf("%s stopped: its %d rooms moved to %s (%s)", lostServer, its, strings.Join(names, ", "), c.numbers(moved, lostServer))
	o.detail = fmt.Sprintf("%d stayed", stayed)
	o.facts = fmt.Sprintf("%d rooms moved to %s (%s), %d stayed", its, strings.Join(names, ", "), c.numbers(moved, lostServer), stayed)
	for _, n := range names {
		// A third each; 250 keys thrown at three servers differ from it by a sixth, three times out of four by less.
		if share := its / len(names); err == nil && (moved[n] < share/2 || moved[n] > share*2) {
			err = fmt.Errorf("%s got %d of %d rooms", n, moved[n], its)
		}
	}
	return o, errors.Join(err, c.hold(ctx))
}

// hold begins calls in rooms whose server is away; they live until after it is back.
func (c *checks) hold(ctx context.Context) error {
	for i, was := range c.home {
		if was != lostServer || len(c.held) == heldCalls {
			continue
		}
		k, err := c.phones.pick(i).call(ctx, roomName(i))
		if err != nil {
			return err
		}
		c.held, c.away = append(c.held, k), append(c.away, i)
	}
	return nil
}

// back starts the server again: its rooms return but for those with a live call, and these when their call has ended.
func (c *checks) back(ctx context.Context) (outcome, error) {
	o := outcome{title: lostServer + " back: its rooms returned"}
	if len(c.home) == 0 {
		return o, errBefore
	}
	if err := c.server(lostServer).start(); err != nil {
		return o, err
	}
	if err := c.edge.await(ctx, func() bool { return c.edge.usable(lostServer) }); err != nil {
		return o, fmt.Errorf("%s is back and not usable: %w", lostServer, err)
	}
	waits := map[int]string{}
	for n, i := range c.away {
		waits[i] = c.held[n].server
	}
	at, err := c.survey(ctx, func(i int) bool { return c.home[i] == lostServer })
	if err != nil {
		return o, err
	}
	returned := 0
	for i, was := range c.home {
		want := was
		if w, ok := waits[i]; ok {
			want = w
		}
		if at[i] != want {
			err = errors.Join(err, fmt.Errorf("%s is on %s, not on %s", roomName(i), at[i], want))
		}
		if was == lostServer {
			returned++
		}
	}
	o.title = fmt.Sprintf("%s back: the same %d returned", lostServer, returned)
	o.detail = fmt.Sprintf("%d with live calls waited for their BYE", len(c.held))
	o.facts = fmt.Sprintf("the same %d returned, %s", returned, o.detail)
	if len(c.held) != heldCalls {
		err = errors.Join(err, fmt.Errorf("%d calls were held, not %d", len(c.held), heldCalls))
	}
	return o, errors.Join(err, c.release(ctx))
}

// release ends the held calls; their rooms must go home within moments.
func (c *checks) release(ctx context.Context) error {
	for n, k := range c.held {
		took, err := k.bye(ctx)
		if err != nil {
			return err
		}
		if took != k.server {
			return fmt.Errorf("a held call on %s, its BYE on %s", k.server, took)
		}
		room := roomName(c.away[n])
		if err := c.homeAgain(ctx, room); err != nil {
			return err
		}
	}
	return nil
}

// homeAgain waits until a room's page comes from its own server again.
func (c *checks) homeAgain(ctx context.Context, room string) error {
	ctx, cancel := context.WithTimeout(ctx, phoneWait)
	defer cancel()
	t := time.NewTicker(look)
	defer t.Stop()
	for {
		at, err := c.web.room(ctx, room)
		if err != nil || at == lostServer {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%s stays on %s after its call has ended", room, at)
		}
	}
}
