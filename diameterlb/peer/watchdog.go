package peer

// WatchState is a state of the watchdog (RFC 3539 3.4).
type WatchState uint8

// The states.
const (
	WatchInitial WatchState = iota
	WatchOkay
	WatchSuspect
	WatchDown
	WatchReopen
)

// String is the word of outputs.
func (s WatchState) String() string {
	return [...]string{"initial", "okay", "suspect", "down", "reopen"}[s]
}

// watchAction is what the watchdog asks for; several may be set.
type watchAction uint8

const (
	watchSend     watchAction = 1 << iota // a DWR
	watchFailover                         // pending requests go elsewhere
	watchFailback                         // the link is as good as before
	watchClose
)

// watchdog is the machine of RFC 3539 App. A, by its table and not by its pseudo-code, which sets DOWN before it looks
// at the state (diameter.md 2.7). It reads no clock: its owner tells it when Tw is over.
type watchdog struct {
	cfg     Watchdog
	state   WatchState
	pending bool // a DWR waits for its DWA
	proofs  int  // DWAs of a connection that was opened again; -1 after a silent period
	missed  int  // silent periods in a row
}

// up: capabilities were exchanged. prove is false where the connection need not prove itself.
func (w *watchdog) up(prove bool) watchAction {
	again := w.state == WatchDown
	w.pending, w.proofs, w.missed = false, 0, 0
	if again && prove && w.cfg.Proving > 0 {
		w.state, w.pending = WatchReopen, true
		return watchSend
	}
	w.state = WatchOkay
	if again {
		return watchFailback
	}
	return 0
}

// down: the connection has ended.
func (w *watchdog) down() watchAction {
	was := w.state
	w.state, w.pending = WatchDown, false
	if was == WatchOkay {
		return watchFailover
	}
	return 0
}

// heard: a message came that is no DWA.
func (w *watchdog) heard() watchAction {
	w.missed = 0
	if w.state == WatchSuspect {
		w.state = WatchOkay
		return watchFailback
	}
	return 0
}

// answered: the DWA to our DWR came.
func (w *watchdog) answered() watchAction {
	w.pending, w.missed = false, 0
	switch w.state {
	case WatchSuspect:
		w.state = WatchOkay
		return watchFailback
	case WatchReopen:
		if w.proofs++; w.proofs >= w.cfg.Proving {
			w.state = WatchOkay
			return watchFailback
		}
	}
	return 0
}

// expired: Tw is over, and nothing was heard in it.
func (w *watchdog) expired() watchAction {
	switch w.state {
	case WatchOkay:
		return w.silentOkay()
	case WatchSuspect:
		if w.missed++; w.missed >= w.cfg.MaxTimeouts {
			return w.dead()
		}
		return watchSend // more than two periods are ours, with one DWR each
	case WatchReopen:
		return w.silentReopen()
	}
	return 0
}

func (w *watchdog) silentOkay() watchAction {
	if !w.pending {
		w.pending = true
		return watchSend
	}
	w.missed++
	if w.missed >= w.cfg.MaxTimeouts {
		return w.dead() | watchFailover
	}
	if w.cfg.Style == Fixed {
		return watchSend // of several missing answers each sends a new DWR at once
	}
	w.state = WatchSuspect
	if w.cfg.OnDown {
		return 0
	}
	return watchFailover
}

func (w *watchdog) silentReopen() watchAction {
	switch {
	case !w.pending:
		w.pending = true
		return watchSend
	case w.proofs < 0:
		return w.dead()
	}
	w.proofs = -1
	return 0
}

func (w *watchdog) dead() watchAction {
	w.state, w.pending = WatchDown, false
	return watchClose
}
