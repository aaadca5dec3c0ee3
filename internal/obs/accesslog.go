package obs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// AccessConfig says where the access log goes and what it holds.
type AccessConfig struct {
	Path    string
	Format  Format
	Node    string
	Sample  map[string]float64 // share that is written, by the words of logging.sample: status_1xx to status_3xx
	Ring    int                // records one ring holds; 0: 2048
	Dropped prometheus.Counter // lines lost; may be nil
	Log     *slog.Logger       // told when the file refuses lines and when it takes them again
}

// AccessLog writes one line per transaction. Whoever has transactions takes a Ring of it; Run takes them out. A nil
// AccessLog is one that is off.
type AccessLog struct {
	// Set by NewAccessLog, never written again.
	node    string
	size    int
	dropped prometheus.Counter
	log     *slog.Logger
	wake    chan struct{}
	reopen  chan struct{}

	asleep atomic.Bool
	next   atomic.Pointer[output] // what Configure wants

	mu    sync.Mutex // guards rings, for one append or one copy of the slice
	rings []*Ring

	// Owned by Run once it began.
	out    *output
	buf    []byte
	lines  int
	failed bool
}

// output is a file and what is written to it.
type output struct {
	path   string
	format Format
	sample sampler
	file   *os.File
}

const (
	lookAgain  = 20 * time.Millisecond // between two looks while traffic comes
	idleLooks  = 25                    // empty looks before the writer sleeps until it is woken
	flushAt    = 64 << 10
	ringSize   = 2048
	accessMode = 0o640
)

// NewAccessLog opens the file for appending. Nothing is written before Run.
func NewAccessLog(cfg AccessConfig) (*AccessLog, error) {
	out, err := newOutput(cfg)
	if err != nil {
		return nil, err
	}
	l := &AccessLog{
		node: cfg.Node, size: cfg.Ring, dropped: cfg.Dropped, log: cfg.Log, out: out,
		wake: make(chan struct{}, 1), reopen: make(chan struct{}, 1),
	}
	if l.size == 0 {
		l.size = ringSize
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	return l, nil
}

// Configure changes path, format and sampling of a log that runs; rings stay. On an error nothing changes.
func (l *AccessLog) Configure(cfg AccessConfig) error {
	out, err := newOutput(cfg)
	if err != nil {
		return err
	}
	if unused := l.next.Swap(out); unused != nil {
		unused.file.Close()
	}
	l.Reopen()
	return nil
}

func newOutput(cfg AccessConfig) (*output, error) {
	o := &output{path: cfg.Path, format: cfg.Format}
	if err := o.sample.set(cfg.Sample); err != nil {
		return nil, err
	}
	f, err := openLog(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	o.file = f
	return o, nil
}

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, accessMode)
}

// NewRing adds a ring for a worker, or for all connections of a front; nil from a log that is off.
func (l *AccessLog) NewRing() *Ring {
	if l == nil {
		return nil
	}
	r := newRing(l.size, l.dropped, l.wake, &l.asleep)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rings = append(l.rings, r)
	return r
}

// Reopen asks for the file to be opened anew: SIGHUP.
func (l *AccessLog) Reopen() {
	if l == nil {
		return
	}
	select {
	case l.reopen <- struct{}{}:
	default: // asked already
	}
}

// Run writes until ctx ends, then what is left in the rings, and closes the file.
func (l *AccessLog) Run(ctx context.Context) error {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	for idle := 0; ; {
		if l.drain() {
			idle = 0
		} else {
			idle++
		}
		var tick <-chan time.Time
		if idle < idleLooks {
			timer.Reset(lookAgain)
			tick = timer.C
		} else {
			// What was put before the flag was seen is found by this last look; what is put later wakes.
			l.asleep.Store(true)
			if l.drain() {
				l.asleep.Store(false)
				idle = 0
				continue
			}
		}
		select {
		case <-ctx.Done():
			l.drain()
			return l.out.file.Close()
		case <-l.reopen:
			l.change()
		case <-l.wake:
			idle = 0
		case <-tick:
		}
		l.asleep.Store(false)
	}
}

// drain writes all that the rings hold; it reports whether there was anything.
func (l *AccessLog) drain() bool {
	l.mu.Lock()
	rings := l.rings[:len(l.rings):len(l.rings)]
	l.mu.Unlock()
	any := false
	for _, r := range rings {
		// A ring that is filled as fast as it is emptied must not keep the others waiting.
		for range len(r.slots) {
			if !r.Take(l.line) {
				break
			}
			any = true
			if len(l.buf) >= flushAt {
				l.flush()
			}
		}
	}
	l.flush()
	return any
}

func (l *AccessLog) line(r *Record) {
	if !l.out.sample.keep(r) {
		return
	}
	if l.out.format == FormatLine {
		l.buf = AppendLine(l.buf, r, l.node)
	} else {
		l.buf = AppendJSON(l.buf, r, l.node)
	}
	l.lines++
}

// flush writes what was formatted. Before it looks whether the file still has its name: who rotates by renaming needs
// no signal.
func (l *AccessLog) flush() {
	if l.lines == 0 {
		return
	}
	if !l.current() {
		l.open("the file has gone")
	}
	if _, err := l.out.file.Write(l.buf); err != nil {
		l.lost(err)
	} else if l.failed {
		l.failed = false
		l.log.Info("access log writes again", slog.String(KeyFile, l.out.path))
	}
	l.buf, l.lines = l.buf[:0], 0
}

// lost counts the lines of one write; the first failure in a row is logged.
func (l *AccessLog) lost(err error) {
	if l.dropped != nil {
		l.dropped.Add(float64(l.lines))
	}
	if !l.failed {
		l.log.Warn("access log lost lines", slog.String(KeyFile, l.out.path), slog.Int("lines", l.lines), slog.Any(KeyErr, err))
	}
	l.failed = true
}

// change takes what Configure wants, else the same file anew.
func (l *AccessLog) change() {
	next := l.next.Swap(nil)
	if next == nil {
		l.open("asked to")
		return
	}
	l.drain()
	old := l.out
	l.out = next
	if err := old.file.Close(); err != nil {
		l.log.Warn("access log: old file", slog.Any(KeyErr, err))
	}
}

func (l *AccessLog) current() bool {
	named, err := os.Stat(l.out.path)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	open, err2 := l.out.file.Stat()
	return err != nil || err2 != nil || os.SameFile(named, open)
}

// open takes the new file, or stays with the old one when there is none to be had.
func (l *AccessLog) open(why string) {
	f, err := openLog(l.out.path)
	if err != nil {
		if !l.failed {
			l.log.Warn("access log stays with its old file", slog.String(KeyFile, l.out.path), slog.Any(KeyErr, err))
		}
		l.failed = true
		return
	}
	old := l.out.file
	l.out.file = f
	if err := old.Close(); err != nil {
		l.log.Warn("access log: old file", slog.Any(KeyErr, err))
	}
	l.log.Debug("access log opened", slog.String(KeyFile, l.out.path), slog.String("why", why))
}
