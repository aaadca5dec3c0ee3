package peer

import (
	"sync"
	"sync/atomic"

	"github.com/wyegate/wyegate/internal/diam"
)

// Commands are the commands that are counted by name; the last word stands for all others.
var Commands = [...]string{"CER", "RAR", "AAR", "ACR", "CCR", "ASR", "STR", "DWR", "DPR", "other"}

// NumCommands is the number of words in Commands.
const NumCommands = len(Commands)

// CommandIndex is the place of a command in Commands.
func CommandIndex(command uint32) int {
	switch command {
	case diam.CommandCapabilitiesExchange:
		return 0
	case diam.CommandReAuth:
		return 1
	case diam.CommandAA:
		return 2
	case diam.CommandAccounting:
		return 3
	case diam.CommandCreditControl:
		return 4
	case diam.CommandAbortSession:
		return 5
	case diam.CommandSessionTermination:
		return 6
	case diam.CommandDeviceWatchdog:
		return 7
	case diam.CommandDisconnectPeer:
		return 8
	}
	return NumCommands - 1
}

// Traffic counts messages and bytes by direction (0 in, 1 out), command and kind (0 request, 1 answer).
type Traffic struct {
	Messages [2][NumCommands][2]atomic.Uint64
	Bytes    [2][NumCommands][2]atomic.Uint64
}

func (t *Traffic) count(out int, h diam.Flags, command uint32, n int) {
	kind := 1
	if h&diam.FlagRequest != 0 {
		kind = 0
	}
	c := CommandIndex(command)
	t.Messages[out][c][kind].Add(1)
	t.Bytes[out][c][kind].Add(uint64(n))
}

// AddTo adds all of t to to.
func (t *Traffic) AddTo(to *Traffic) {
	for d := range t.Messages {
		for c := range t.Messages[d] {
			for k := range t.Messages[d][c] {
				to.Messages[d][c][k].Add(t.Messages[d][c][k].Load())
				to.Bytes[d][c][k].Add(t.Bytes[d][c][k].Load())
			}
		}
	}
}

// Words is a set of counters by a word; words are few and known to the code that counts.
type Words struct {
	mu sync.Mutex
	m  map[string]*atomic.Uint64
}

// Add counts one more of word. It is not for the path of good messages.
func (w *Words) Add(word string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.m == nil {
		w.m = map[string]*atomic.Uint64{}
	}
	c := w.m[word]
	if c == nil {
		c = new(atomic.Uint64)
		w.m[word] = c
	}
	c.Add(1)
}

// Each gives every word with its count.
func (w *Words) Each(f func(word string, n uint64)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for word, c := range w.m {
		f(word, c.Load())
	}
}

// Get is the count of one word.
func (w *Words) Get(word string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.m[word]; c != nil {
		return c.Load()
	}
	return 0
}

// Side is where a connection stands: Client has connected to us, Server we connected to.
type Side uint8

// The sides.
const (
	Client Side = iota
	Server
)

// String is the word of labels.
func (s Side) String() string {
	if s == Server {
		return "server"
	}
	return "client"
}

// Stats counts what the node's connections did (diameter.md 13.1). Ended is the traffic of links that have ended.
type Stats struct {
	Ended     [2]Traffic // by Side
	QueueFull [2]atomic.Uint64
	Panics    atomic.Uint64

	BadInput   Words    // by reason of diameter.md 12.5
	Handshakes [2]Words // failures, by reason
	Hangups    [2]Words // direction (0 theirs, 1 ours), by cause
	Watchdog   Words
	Elections  Words
	Duplicates Words
}
