package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Sizes of the load under the reloads.
const (
	loadWorkers = 8
	loadPace    = 5 * time.Millisecond
	loadRounds  = 24 // that must have gone through between two reloads
)

var errTaken = errors.New("the broken configuration was taken")

// reloads takes three configurations while calls, pages and websockets go on; the second is broken and must change nothing.
func (c *checks) reloads(ctx context.Context) (outcome, error) {
	o := outcome{title: "3 reloads under traffic, one of them broken"}
	load := &traffic{phones: c.phones, web: c.web}
	run, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for w := range loadWorkers {
		running.Go(func() { load.loop(run, w, loadPace) })
	}
	before := c.edge.engine.Status().Generation
	err := c.good(ctx, load, "first reload")
	if err == nil {
		err = c.broken(ctx, load)
	}
	if err == nil {
		err = c.good(ctx, load, "third reload")
	}
	if err == nil {
		err = c.some(ctx, load)
	}
	stop()
	running.Wait()
	failed := load.failed.Load()
	o.detail = fmt.Sprintf("%d failed; the broken one changed nothing", failed)
	o.facts = fmt.Sprintf("%d calls, %d pages, %d texts over %d websockets, %s", load.calls.Load(), load.pages.Load(), load.texts.Load(), loadWorkers, o.detail)
	after := c.edge.engine.Status().Generation
	switch {
	case err != nil:
	case failed > 0:
		err = load.because()
	case after != before+2:
		err = fmt.Errorf("generation %d became %d, not %d", before, after, before+2)
	}
	return o, err
}

// good writes a configuration that differs in a note, and has it taken.
func (c *checks) good(ctx context.Context, load *traffic, note string) error {
	if err := c.some(ctx, load); err != nil {
		return err
	}
	if err := c.edge.write(configName, c.edge.configText(note)); err != nil {
		return err
	}
	return c.edge.engine.Reload("demo")
}

// broken writes one with a second `pools`: it is refused, and nothing changes.
func (c *checks) broken(ctx context.Context, load *traffic) error {
	if err := c.some(ctx, load); err != nil {
		return err
	}
	if err := c.edge.write(configName, c.edge.configText("broken")+"\npools: []\n"); err != nil {
		return err
	}
	was := c.edge.engine.Status()
	if err := c.edge.engine.Reload("demo"); err == nil {
		return errTaken
	}
	if is := c.edge.engine.Status(); was.Generation != is.Generation || was.Digest != is.Digest {
		return fmt.Errorf("the broken configuration was refused, and generation %d became %d", was.Generation, is.Generation)
	}
	return nil
}

// some waits until more of the load has gone through.
func (c *checks) some(ctx context.Context, load *traffic) error {
	want := load.calls.Load() + loadRounds
	return c.edge.await(ctx, func() bool { return load.calls.Load() >= want || load.failed.Load() > 0 })
}
