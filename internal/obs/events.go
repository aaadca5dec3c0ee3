package obs

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Severity of an event.
type Severity string

// The severities of operations.md 8.6.
const (
	Info     Severity = "info"
	Minor    Severity = "minor"
	Major    Severity = "major"
	Critical Severity = "critical"
)

// Event is something that happened, or a condition that began or ended. Fields are its own: they stand beside the
// others in the JSON and cannot replace them.
type Event struct {
	ID       uint64
	Event    string
	Severity Severity
	Since    time.Time // when it happened, or the condition began
	Node     string
	Clear    bool // the condition ended
	Fields   map[string]any
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) {
	out := maps.Clone(e.Fields)
	if out == nil {
		out = map[string]any{}
	}
	out["id"], out["event"], out["severity"], out["node"] = e.ID, e.Event, e.Severity, e.Node
	out["since"] = e.Since.UTC().Format(timeLayout)
	if e.Clear {
		out["clear"] = true
	}
	return json.Marshal(out)
}

// kept is how many events a reader may be behind before it has a gap.
const kept = 1024

// Events is the feed of the node: the last events and the conditions that hold. Readers keep their own place in it, so
// a slow one holds up nobody.
type Events struct {
	node string
	log  *slog.Logger
	now  func() time.Time

	mu   sync.Mutex
	last uint64 // id of the newest event
	from uint64 // id before the first event of this process
	ring [kept]Event
	open map[string]Event // conditions that hold
	more chan struct{}    // closed when an event is added
}

// NewEvents makes an empty feed. Ids go on over a restart of the process, since they begin at the time of the start.
func NewEvents(node string, log *slog.Logger, now func() time.Time) *Events {
	first := uint64(now().UnixMilli()) * 1000
	return &Events{node: node, log: log, now: now, last: first, from: first, open: map[string]Event{}, more: make(chan struct{})}
}

// Note adds something that happened and has no end.
func (e *Events) Note(name string, sev Severity, fields map[string]any) {
	e.add(Event{Event: name, Severity: sev, Since: e.now(), Fields: fields}, "", false)
}

// Raise says that a condition holds. It is an event only when it did not hold yet. condition tells conditions of one
// name apart: "appservers/as2".
func (e *Events) Raise(name, condition string, sev Severity, fields map[string]any) {
	e.add(Event{Event: name, Severity: sev, Since: e.now(), Fields: fields}, name+"\x00"+condition, true)
}

// Clear says that a condition has ended; nothing happens when it did not hold.
func (e *Events) Clear(name, condition string) {
	key := name + "\x00" + condition
	e.mu.Lock()
	was, held := e.open[key]
	delete(e.open, key)
	e.mu.Unlock()
	if held {
		was.Clear = true
		e.add(was, "", false)
	}
}

func (e *Events) add(ev Event, key string, condition bool) {
	e.mu.Lock()
	if condition {
		if _, holds := e.open[key]; holds {
			e.mu.Unlock()
			return
		}
	}
	e.last++
	ev.ID, ev.Node = e.last, e.node
	e.ring[e.last%kept] = ev
	if condition {
		e.open[key] = ev
	}
	close(e.more)
	e.more = make(chan struct{})
	e.mu.Unlock()
	e.write(ev)
}

// write puts the event into the log of the process, as one line.
func (e *Events) write(ev Event) {
	level := slog.LevelInfo
	switch {
	case ev.Clear || ev.Severity == Info:
	case ev.Severity == Critical:
		level = slog.LevelError
	default:
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.Uint64("id", ev.ID), slog.String(KeyEvent, ev.Event), slog.String(KeySeverity, string(ev.Severity)),
		slog.Time("since", ev.Since.UTC()), slog.String(KeyNode, ev.Node),
	}
	if ev.Clear {
		attrs = append(attrs, slog.Bool("clear", true))
	}
	for _, k := range slices.Sorted(maps.Keys(ev.Fields)) {
		attrs = append(attrs, slog.Any(k, ev.Fields[k]))
	}
	e.log.LogAttrs(context.Background(), level, "event", attrs...)
}

// Open lists the conditions that hold, oldest first.
func (e *Events) Open() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := slices.Collect(maps.Values(e.open))
	slices.SortFunc(out, func(a, b Event) int { return int(int64(a.ID) - int64(b.ID)) })
	return out
}

// Last is the id of the newest event: a reader that wants only what comes begins after it.
func (e *Events) Last() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last
}

// After gives the events that came after an id, at once if there are any, else when one comes or ctx ends. gap says
// that some in between are no longer known.
func (e *Events) After(ctx context.Context, id uint64) (events []Event, gap bool, err error) {
	for {
		events, gap, more := e.since(id)
		if len(events) > 0 || gap {
			return events, gap, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

func (e *Events) since(id uint64) (events []Event, gap bool, more chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	oldest := e.from
	if e.last > oldest+kept {
		oldest = e.last - kept
	}
	if id < oldest || id > e.last {
		gap, id = true, oldest
	}
	for i := id + 1; i <= e.last; i++ {
		events = append(events, e.ring[i%kept])
	}
	return events, gap, e.more
}
