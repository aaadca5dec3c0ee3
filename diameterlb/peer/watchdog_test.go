package peer

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/diam/base"
)

// steady is the watchdog without jitter, so that times are exact to the tick.
func steady(c *NodeConfig) { c.Defaults.Watchdog.Jitter = 0 }

// Silence: DWR after Tw, SUSPECT after the second, DOWN after the third (RFC 3539 3.4; 15.4 rows 6 and 17).
func TestSilenceRFC3539(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, steady)
		defer b.stop()
		f := b.connect("client.example.net")
		f.open()
		start := time.Now()
		f.want(diam.CommandDeviceWatchdog, true)
		if w := time.Since(start); w != 30*time.Second {
			t.Errorf("DWR after %v", w)
		}
		time.Sleep(30*time.Second - time.Nanosecond)
		synctest.Wait()
		l := b.node.Peers()[0].Links()[0]
		if !l.Usable() {
			t.Error("suspect before Tw")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if l.State() != Suspect || l.Usable() || b.last().Kind != Suspected || b.last().Silent != time.Minute {
			t.Errorf("not suspect at Tw: %v, %+v", l.State(), b.last())
		}
		if !f.ended(31 * time.Second) {
			t.Error("not closed at DOWN")
		}
		if w := time.Since(start); w != 90*time.Second {
			t.Errorf("DOWN after %v, want three Tw", w)
		}
		synctest.Wait()
		if n := b.last(); n.Kind != Down || n.Cause != CauseWatchdog {
			t.Errorf("%+v", n)
		}
		if !slices.Equal(b.calls, []string{"suspend", "closed"}) {
			t.Error(b.calls)
		}
	})
}

// Any message restarts Tw, and brings a suspect back.
func TestSuspectAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, steady)
		defer b.stop()
		f := b.connect("client.example.net")
		f.open()
		start := time.Now()
		time.Sleep(20 * time.Second)
		f.send(diam.Header{Len: 20, Command: 272}.Append(nil))
		f.want(diam.CommandDeviceWatchdog, true)
		if w := time.Since(start); w != 50*time.Second {
			t.Errorf("DWR after %v, want 20 s + Tw", w)
		}
		time.Sleep(31 * time.Second)
		l := b.node.Peers()[0].Links()[0]
		if l.State() != Suspect {
			t.Fatal(l.State())
		}
		f.send(diam.Header{Len: 20, Command: 272}.Append(nil))
		synctest.Wait()
		if l.State() != Okay || b.last().Kind != Recovered {
			t.Errorf("%v after a message", l.State())
		}
		if !slices.Equal(b.calls, []string{"suspend", "resume"}) {
			t.Error(b.calls)
		}
	})
}

// A DWA that answers nothing is counted and otherwise any message (15.4 row 14).
func TestForeignDWA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, steady)
		defer b.stop()
		f := b.connect("client.example.net")
		f.open()
		h, _ := f.want(diam.CommandDeviceWatchdog, true)
		f.send(f.node.DWA(base.IDs{HopByHop: h.HopByHop, EndToEnd: h.EndToEnd + 1}))
		f.send(f.node.DWA(base.IDsOf(h)))
		f.send(f.node.DWA(base.IDsOf(h)))
		f.want(diam.CommandDeviceWatchdog, true)
		if n := b.node.Stats.BadInput.Get("unexpected"); n != 2 {
			t.Errorf("%d unexpected", n)
		}
	})
}

// A connection that is opened again shows three DWAs first, and takes no requests until then (RFC 3539 3.4.1).
func TestProving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		defer b.stop()
		d := newDialer(t, "s1.example.net")
		s := DefaultSettings
		s.Watchdog.Jitter = 0
		p := b.node.Add(Config{Name: "s1", Dialer: d, Settings: s})
		_ = d.answer().c.Close()
		f := d.answer()
		start := time.Now()
		for range 3 {
			if p.Links()[0].Usable() {
				t.Error("used before its proof")
			}
			h, _ := f.want(diam.CommandDeviceWatchdog, true)
			f.send(f.node.DWA(base.IDsOf(h)))
			synctest.Wait()
		}
		if !p.Links()[0].Usable() || b.last().Kind != Proven || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), b.last())
		}
	})
}

// The vendors' way: DWR after the interval, dead a quarter of it later, without SUSPECT; 0 sends none (diameter.md 2.7).
func TestSilenceFixed(t *testing.T) {
	for max, want := range map[int]time.Duration{1: 50 * time.Second, 3: 70 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, func(c *NodeConfig) {
				c.Defaults.Watchdog = Watchdog{Style: Fixed, Interval: 40 * time.Second, AnswerWithin: 25, MaxTimeouts: max}
			})
			defer b.stop()
			f := b.connect("client.example.net")
			f.open()
			start := time.Now()
			for range max {
				f.want(diam.CommandDeviceWatchdog, true)
			}
			if !f.ended(time.Minute) || time.Since(start) != want {
				t.Errorf("max %d: closed after %v, want %v", max, time.Since(start), want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, func(c *NodeConfig) { c.Defaults.Watchdog = Watchdog{Style: Fixed} })
		defer b.stop()
		f := b.connect("client.example.net")
		f.open()
		if _, msg := f.next(24 * time.Hour); msg != nil {
			t.Error("interval 0 sent a DWR")
		}
	})
}

// Every row of diameter.md 2.7, against the machine alone.
func TestWatchdogTable(t *testing.T) {
	type in = func(*watchdog) watchAction
	expired, answered, heard := (*watchdog).expired, (*watchdog).answered, (*watchdog).heard
	down := (*watchdog).down
	up := func(w *watchdog) watchAction { return w.up(true) }
	for _, c := range []struct {
		name  string
		from  watchdog
		on    in
		do    watchAction
		to    WatchState
		pend  bool
		proof int
	}{
		{"first connection", watchdog{}, up, 0, WatchOkay, false, 0},
		{"DWA", watchdog{state: WatchOkay, pending: true}, answered, 0, WatchOkay, false, 0},
		{"other", watchdog{state: WatchOkay, pending: true}, heard, 0, WatchOkay, true, 0},
		{"Tw", watchdog{state: WatchOkay}, expired, watchSend, WatchOkay, true, 0},
		{"Tw pending", watchdog{state: WatchOkay, pending: true}, expired, watchFailover, WatchSuspect, true, 0},
		{"suspect, DWA", watchdog{state: WatchSuspect, pending: true}, answered, watchFailback, WatchOkay, false, 0},
		{"suspect, other", watchdog{state: WatchSuspect, pending: true}, heard, watchFailback, WatchOkay, true, 0},
		{"suspect, Tw", watchdog{state: WatchSuspect, pending: true, missed: 1}, expired, watchClose, WatchDown, false, 0},
		{"up again", watchdog{state: WatchDown}, up, watchSend, WatchReopen, true, 0},
		{"first proof", watchdog{state: WatchReopen, pending: true}, answered, 0, WatchReopen, false, 1},
		{"last proof", watchdog{state: WatchReopen, pending: true, proofs: 2}, answered, watchFailback, WatchOkay, false, 3},
		{"reopen, Tw", watchdog{state: WatchReopen, proofs: 1}, expired, watchSend, WatchReopen, true, 1},
		{"reopen, Tw pending", watchdog{state: WatchReopen, pending: true, proofs: 1}, expired, 0, WatchReopen, true, -1},
		{"reopen, Tw again", watchdog{state: WatchReopen, pending: true, proofs: -1}, expired, watchClose, WatchDown, false, -1},
		{"okay, lost", watchdog{state: WatchOkay}, down, watchFailover, WatchDown, false, 0},
		{"suspect, lost", watchdog{state: WatchSuspect}, down, 0, WatchDown, false, 0},
		{"reopen, lost", watchdog{state: WatchReopen}, down, 0, WatchDown, false, 0},
	} {
		w := c.from
		w.cfg = DefaultWatchdog
		if do := c.on(&w); do != c.do || w.state != c.to || w.pending != c.pend || w.proofs != c.proof {
			t.Errorf("%s: %b to %v pending %v proofs %d", c.name, do, w.state, w.pending, w.proofs)
		}
	}
}
