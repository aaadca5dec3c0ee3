package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Sizes of the checks, as the sample of operations.md 2.1 shows them.
const (
	rooms      = 1000
	explained  = 200
	guests     = 120
	visitors   = 400
	heldCalls  = 3
	lostServer = "as2"
	parallel   = 24 // calls or pages of a check at a time
)

// checks share what the first one found out: which server has which room.
type checks struct {
	edge    *edge
	phones  *phones
	web     *browsers
	traffic *traffic

	home []string // server of each room, before anything was stopped
	held []*call  // live calls of rooms whose server is away
	away []int    // their rooms
}

// outcome is what a check has to say: title is the left side of its line, detail the right side, facts both for machines.
type outcome struct{ title, detail, facts string }

// step is one check; its name is stable, its title carries numbers.
type step struct {
	name string
	run  func(ctx context.Context) (outcome, error)
}

func (c *checks) steps() []step {
	return []step{
		{"call and page of a room meet", c.meet},
		{"explain says what traffic did", c.explain},
		{"BYE from the called side reached the server of its call", c.called},
		{"help pages (web): spread over new clients, sticky by cookie", c.help},
		{"server stopped: its rooms move, the others stay", c.stopped},
		{"server back: its rooms return, live calls wait for their BYE", c.back},
		{"reloads under traffic, one of them broken", c.reloads},
	}
}

// skipped are the lines of the demo that need parts which are not in this build.
func skipped() []Skipped {
	var list []Skipped
	for _, name := range []string{
		"policy cluster pcrf: active lost, standby takes over", "DNS silent: old answer kept, asked again", "policy cluster psx: random pick, a dead one replaced",
		"distributor: connections over weights 1 and 2", "direct routing with a VRRP pair", "dashboard",
	} {
		list = append(list, Skipped{Name: name, Reason: notBuilt})
	}
	return list
}

const notBuilt = "not built"

func roomName(n int) string { return fmt.Sprintf("room-%d", n+1) }

// each runs f for 0 to n-1, a bounded number at a time, and gives the first error with how many there were.
func each(ctx context.Context, n int, f func(i int) error) error {
	var next, bad atomic.Int64
	var once sync.Once
	var first error
	var running sync.WaitGroup
	for range min(n, parallel) {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					bad.Add(1)
					once.Do(func() { first = err })
				}
			}
		})
	}
	running.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	if first != nil {
		return fmt.Errorf("%d of %d failed: %w", bad.Load(), n, first)
	}
	return nil
}

// dial makes a call and ends it, and gives the server that had all of it.
func (c *checks) dial(ctx context.Context, n int, room string) (string, error) {
	k, err := c.phones.pick(n).call(ctx, room)
	if err != nil {
		return "", err
	}
	took, err := k.bye(ctx)
	if err == nil && took != k.server {
		err = fmt.Errorf("%s: call on %s, BYE on %s", room, k.server, took)
	}
	return k.server, err
}

// meet calls every room and asks for its page.
func (c *checks) meet(ctx context.Context) (outcome, error) {
	c.home = make([]string, rooms)
	var agree atomic.Int64
	err := each(ctx, rooms, func(i int) error {
		server, err := c.dial(ctx, i, roomName(i))
		if err != nil {
			return err
		}
		page, err := c.web.room(ctx, roomName(i))
		if err != nil {
			return err
		}
		c.home[i] = server
		if page != server || server == "" {
			return fmt.Errorf("%s: call on %q, page on %q", roomName(i), server, page)
		}
		agree.Add(1)
		return nil
	})
	sample := "room-4711"
	server, shown := c.sample(ctx, sample)
	if err == nil {
		err = shown
	}
	o := outcome{title: fmt.Sprintf("call to %s and page ?conf=%s → both %s", sample, sample, server)}
	o.detail = fmt.Sprintf("%d of %d rooms agree", agree.Load(), rooms)
	o.facts = o.detail
	return o, err
}

// sample is the one room that the output names.
func (c *checks) sample(ctx context.Context, room string) (string, error) {
	server, err := c.dial(ctx, 0, room)
	if err != nil {
		return "", err
	}
	page, err := c.web.room(ctx, room)
	if err == nil && page != server {
		err = fmt.Errorf("%s: call on %s, page on %s", room, server, page)
	}
	return server, err
}

// called lets servers call guests who hang up: the BYE must reach the server that has the call, and no other.
func (c *checks) called(ctx context.Context) (outcome, error) {
	var good atomic.Int64
	err := each(ctx, guests, func(i int) error {
		guest := c.phones.all[0] // one that UDP reaches, as a registered phone is reached
		name := fmt.Sprintf("guest-%d", i)
		took, stop := guest.expect(name)
		defer stop()
		k, err := c.phones.pick(i).call(ctx, fmt.Sprintf("bridge-%d", i), fieldDial+": sip:"+name+"@"+guest.local)
		if err != nil {
			return err
		}
		if err := k.wait(ctx); err != nil { // the server hangs up the caller when the guest has gone
			return fmt.Errorf("bridge-%d: %w", i, err)
		}
		select {
		case server := <-took:
			if server != k.server {
				return fmt.Errorf("bridge-%d: call on %s, BYE of the guest on %q", i, k.server, server)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		good.Add(1)
		return nil
	})
	o := outcome{title: "BYE from the called side reached the server of its call"}
	o.detail = fmt.Sprintf("%d of %d", good.Load(), guests)
	o.facts = o.detail
	return o, err
}

// help opens the help pages as new clients do, and comes back with the cookies that were set.
func (c *checks) help(ctx context.Context) (outcome, error) {
	help := page{domain: webDomain, target: "/help"}
	first := make([]string, visitors)
	var stayed atomic.Int64
	err := each(ctx, visitors, func(i int) error {
		v := &visitor{browsers: c.web, cookies: map[string]string{}}
		server, err := v.get(ctx, help)
		if err != nil {
			return err
		}
		first[i] = server
		for range 2 {
			again, err := v.get(ctx, help)
			if err != nil {
				return err
			}
			if again != server {
				return fmt.Errorf("a client with its cookie went from %s to %s", server, again)
			}
		}
		stayed.Add(1)
		return nil
	})
	counts := count(first)
	share := visitors / len(c.edge.servers)
	for _, s := range c.edge.servers {
		// The generator's own visitors begin sessions, too, and take turns of the same wheel.
		if n := counts[s.name]; err == nil && (n < share-workers || n > share+workers) {
			err = fmt.Errorf("%s got %d of %d new clients", s.name, n, visitors)
		}
	}
	o := outcome{title: "help pages (web): new clients " + c.numbers(counts, "")}
	o.detail = fmt.Sprintf("%d of %d stayed with their cookie", stayed.Load(), visitors)
	o.facts = "new clients " + c.numbers(counts, "") + "; " + o.detail
	return o, err
}

func count(servers []string) map[string]int {
	n := map[string]int{}
	for _, s := range servers {
		n[s]++
	}
	return n
}

// numbers writes the counts of the servers in their order, but for one.
func (c *checks) numbers(counts map[string]int, without string) string {
	var list []string
	for _, s := range c.edge.servers {
		if s.name != without {
			list = append(list, fmt.Sprint(counts[s.name]))
		}
	}
	return strings.Join(list, "/")
}

// others gives the names of the servers but for one.
func (c *checks) others(without string) []string {
	var names []string
	for _, s := range c.edge.servers {
		if s.name != without {
			names = append(names, s.name)
		}
	}
	slices.Sort(names)
	return names
}

var errBefore = errors.New("the rooms were not found before")
