package peer

import (
	"errors"
	"io"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/diam/base"
)

// LinkState is what a link may be used for.
type LinkState uint32

// The states. Only Okay takes new requests; a session that is pinned may stay with a suspect link.
const (
	Opening LinkState = iota
	Okay
	Suspect
	Reopening
	Departing // DPR sent or received, or about to be sent
	Ended
)

// String is the word of outputs.
func (s LinkState) String() string {
	return [...]string{"opening", "okay", "suspect", "reopen", "leaving", "closed"}[min(s, Ended)]
}

// Link is one connection to a peer: its reader and its write queue. It is made when the transport is there, and is given
// to a Receiver when capabilities were exchanged.
type Link struct {
	node   *Node
	conn   Conn
	framer diam.Framer
	q      queue
	wake   chan struct{} // the writer has something

	peer  *Peer                   // set before the first message of the peer is delivered
	m     atomic.Pointer[machine] // the same; end may come before
	recv  Receiver                // set before opened is closed
	side  Side
	since time.Time

	opened chan struct{} // closed when messages may be delivered
	dead   chan struct{} // closed when the link has ended
	once   sync.Once
	cause  atomic.Pointer[string]

	state  atomic.Uint32
	listen atomic.Bool  // the machine wants to hear of every message
	heard  atomic.Int64 // when the last bytes came, Unix nanoseconds

	Traffic Traffic
	caps    base.Capabilities
	routeRR []byte // Route-Record with the peer's Origin-Host
	local   *base.Node
	shaking func() bool // ends the wait for a CER; the reader's
	paceAt  time.Time
	paced   int
}

func newLink(n *Node, c Conn, side Side, s *Settings) *Link {
	l := &Link{
		node: n, conn: c, side: side, since: time.Now(), framer: diam.NewFramer(n.cfg.Limits.MaxMessage),
		wake: make(chan struct{}, 1), opened: make(chan struct{}), dead: make(chan struct{}),
	}
	l.q.maxMessages, l.q.maxBytes = s.QueueMessages, s.QueueBytes
	l.q.space, l.q.again = make(chan struct{}, 1), make(chan struct{}, 1)
	l.heard.Store(l.since.UnixNano())
	return l
}

// Peer is whose connection it is.
func (l *Link) Peer() *Peer { return l.peer }

// State is what it may be used for now.
func (l *Link) State() LinkState { return LinkState(l.state.Load()) }

// Usable says whether new requests may be sent: Okay, and its queue not known to be full.
func (l *Link) Usable() bool { return l.State() == Okay && !l.q.full.Load() }

// Full says whether its queue was full and is not half empty yet.
func (l *Link) Full() bool { return l.q.full.Load() }

// Side is who connected.
func (l *Link) Side() Side { return l.side }

// Receiver is who takes its messages.
func (l *Link) Receiver() Receiver { return l.recv }

// Caps is what the peer showed in its CER or CEA.
func (l *Link) Caps() *base.Capabilities { return &l.caps }

// RouteRecord is a whole AVP that names the peer: what a request that came from it gets (RFC 6733 6.1.9).
func (l *Link) RouteRecord() []byte { return l.routeRR }

// Local is what we are toward this peer.
func (l *Link) Local() *base.Node { return l.local }

// Since is when the connection was made.
func (l *Link) Since() time.Time { return l.since }

// Heard is when the last bytes came.
func (l *Link) Heard() time.Time { return time.Unix(0, l.heard.Load()) }

// Queued is the number of messages that wait to be written.
func (l *Link) Queued() int { return int(l.q.depth.Load()) }

// Remote is the address of the other end; zero where there is none.
func (l *Link) Remote() netip.AddrPort { return first(l.conn.Remote()) }

func first(a []netip.AddrPort) netip.AddrPort {
	if len(a) == 0 {
		return netip.AddrPort{}
	}
	return a[0]
}

// Send queues a relayed message with its edits; the bytes are copied. Flush then writes it. Errors: ErrFull, ErrClosed.
func (l *Link) Send(msg []byte, e Edit) error {
	err := l.q.put(msg, e)
	if err == nil {
		l.Traffic.count(1, e.Flags, commandOf(msg), len(msg)+len(e.Tail))
	} else if errors.Is(err, ErrFull) {
		l.node.Stats.QueueFull[l.side].Add(1)
	}
	return err
}

// Await waits until a full queue is half empty again, up to d. False: it still is full, or the link has ended.
func (l *Link) Await(d time.Duration) bool {
	if d <= 0 {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-l.q.space:
		return !l.q.full.Load()
	case <-l.dead:
	case <-t.C:
	}
	return false
}

func commandOf(msg []byte) uint32 { return uint32(msg[5])<<16 | uint32(msg[6])<<8 | uint32(msg[7]) }

// urgent queues a message of ours ahead of all relayed ones and writes it.
func (l *Link) urgent(msg []byte) {
	if len(msg) < diam.HeaderLen || l.q.putUrgent(msg) != nil {
		return // closed, or the peer takes none of what it asks for: the watchdog or the writer ends that
	}
	l.Traffic.count(1, diam.Flags(msg[4]), commandOf(msg), len(msg))
	l.Flush()
}

// maxTurns bounds how long one reader writes for others before the writer takes over.
const maxTurns = 4

// Flush writes what is queued: as much as the socket takes at once, the rest by the writer. It never waits.
func (l *Link) Flush() {
	if !l.q.claim() {
		return
	}
	p, ok := l.conn.(prompt)
	if !ok {
		l.handOver()
		return
	}
	b := l.q.next(0)
	for turn := 0; len(b) > 0; turn++ {
		n, err := p.TryWrite(b)
		if err != nil {
			l.end(causeOf(err), true)
			return
		}
		if n < len(b) || turn == maxTurns {
			l.q.advance(n)
			l.handOver()
			return
		}
		b = l.q.next(n)
	}
}

// handOver leaves a claim to the writer.
func (l *Link) handOver() {
	signal(l.wake) // there can be no other claim
}

// write is the writer: it waits for the socket, so that nobody else has to.
func (l *Link) write() {
	var bufs [1][]byte
	for {
		select {
		case <-l.wake:
		case <-l.dead:
			return
		}
		for b := l.q.next(0); len(b) > 0; {
			bufs[0] = b
			n, err := l.conn.Writev(bufs[:], 0)
			if err != nil {
				l.end(causeOf(err), true)
				return
			}
			b = l.q.next(int(n))
		}
	}
}

// read is the reader. It ends with the link.
func (l *Link) read() {
	l.end(l.readAll(), false)
}

func (l *Link) readAll() (cause string) {
	for {
		got := 0
		for {
			msg, err := l.framer.Next()
			if err != nil {
				l.node.Stats.BadInput.Add("framing")
				l.end(CauseFraming, true)
				return CauseFraming
			}
			if msg == nil {
				break
			}
			got++
			if cause := l.takeSafely(msg); cause != "" {
				return cause
			}
		}
		if got > 0 {
			l.endBatch(got)
		}
		n, _, err := l.conn.Read(l.framer.Space())
		l.framer.Filled(n)
		if n > 0 {
			l.heard.Store(time.Now().UnixNano())
			if l.listen.Load() {
				l.tell(event{kind: evHeard, link: l})
			}
		}
		if err != nil && n == 0 {
			if l.framer.Rest() > 0 {
				l.node.Stats.BadInput.Add("framing") // cut in the middle of a message
			}
			return causeOf(err)
		}
	}
}

func causeOf(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return CauseFIN
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return CauseRST
	case isTimeout(err):
		return CauseSlow
	}
	return CauseRST
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// takeSafely keeps a defect in the handling of one message from ending the process: the message is dropped and counted.
func (l *Link) takeSafely(msg []byte) (cause string) {
	defer func() {
		if r := recover(); r != nil {
			l.node.Stats.Panics.Add(1)
			l.node.panicked(r, debug.Stack())
		}
	}()
	return l.take(msg)
}

// take gives one message to whom it belongs. cause is not empty where the link has to end.
func (l *Link) take(msg []byte) (cause string) {
	h, err := diam.ParseHeader(msg, len(msg))
	if err != nil {
		return CauseFraming // cannot be: the framer has read it
	}
	l.Traffic.count(0, h.Flags, h.Command, len(msg))
	if l.State() == Opening {
		return l.opening(h, msg)
	}
	switch h.Command {
	case diam.CommandDeviceWatchdog:
		if h.IsRequest() {
			l.urgent(l.local.DWA(base.IDsOf(h)))
		} else {
			l.tell(event{kind: evDWA, link: l, ids: base.IDsOf(h)})
		}
	case diam.CommandDisconnectPeer:
		l.disconnect(h, msg)
	case diam.CommandCapabilitiesExchange:
		l.node.Stats.BadInput.Add("unexpected") // capabilities are exchanged once
	default:
		l.recv.Message(h, msg)
	}
	return ""
}

func (l *Link) disconnect(h diam.Header, msg []byte) {
	e := event{kind: evDPA, link: l, ids: base.IDsOf(h)}
	if h.IsRequest() {
		e.kind = evDPR
		if a, ok := diam.Find(msg[diam.HeaderLen:], diam.AVPDisconnectCause); ok {
			v, _ := a.Uint32()
			e.dpr = diam.Cause(v)
		}
	}
	l.tell(e)
}

// endBatch is what is done once for all messages of one read.
func (l *Link) endBatch(n int) {
	if l.recv != nil {
		l.recv.Flush()
	}
	if l.q.full.Load() {
		// What fills our own queue is what this peer has asked for and does not read: it is heard again when it does.
		// The write time-out ends it where it never does.
		select {
		case <-l.q.again:
		case <-l.dead:
		}
	}
	l.pace(n)
}

// pace keeps a peer to max_ingress_rate by reading later.
func (l *Link) pace(n int) {
	if l.peer == nil || l.peer.cfg.MaxIngressRate == 0 {
		return
	}
	now := time.Now()
	if now.Sub(l.paceAt) > time.Second {
		l.paceAt, l.paced = now, 0
	}
	l.paced += n
	due := l.paceAt.Add(time.Duration(l.paced) * time.Second / time.Duration(l.peer.cfg.MaxIngressRate))
	wait := due.Sub(now)
	if wait < time.Millisecond {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.dead:
	}
}

// end closes the transport and tells the machine, once; the first cause counts.
func (l *Link) end(cause string, abort bool) {
	l.once.Do(func() {
		l.cause.Store(&cause)
		l.state.Store(uint32(Ended))
		l.q.close()
		if abort {
			_ = l.conn.Abort() // nothing to be done about a failed close
		} else {
			_ = l.conn.Close()
		}
		close(l.dead)
		l.tell(event{kind: evClosed, link: l})
	})
}

// tell gives an event to the machine, once there is one.
func (l *Link) tell(e event) {
	if m := l.m.Load(); m != nil {
		m.post(e)
	}
}

// Cause is why the link has ended.
func (l *Link) Cause() string {
	if c := l.cause.Load(); c != nil {
		return *c
	}
	return ""
}
