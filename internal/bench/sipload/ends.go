package sipload

import (
	"bytes"
	"context"
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/bench/load"
)

// Ends are the caller and the servers. One goroutine uses them.
type Ends struct {
	caller  *load.Socket
	servers []*load.Socket
	names   []string // addresses of the servers
	poller  *load.Poller
	write   writer

	run        Load
	slots      []slot
	free       []int
	generation uint32
	started    int
	began      time.Time
	result     Result
	latency    load.Histogram
	idle       bool // between runs: servers answer whatever comes, nothing counts
}

// slot is one unit under way.
type slot struct {
	generation uint32
	step       step
	server     int // that got its first message; -1: none yet
	since      time.Time
}

type step uint8

const (
	none    step = iota
	opening      // waits for the 200 to its first request
	closing      // waits for the 200 to its BYE
)

// New opens a caller and as many servers, on ports that the kernel chooses.
func New(servers int) (*Ends, error) {
	anyPort := netip.MustParseAddrPort("127.0.0.1:0")
	// Identifiers must not come again in the next run: a stateful proxy would take them for retransmissions.
	e := &Ends{idle: true, generation: uint32(time.Now().UnixMilli()) * 2654435761}
	for i := range servers + 1 {
		s, err := load.Listen(anyPort)
		if err != nil {
			e.Close()
			return nil, err
		}
		if i == 0 {
			e.caller, e.write.from = s, s.Addr.String()
			continue
		}
		e.servers = append(e.servers, s)
		e.names = append(e.names, s.Addr.String())
	}
	var err error
	e.poller, err = load.NewPoller(append([]*load.Socket{e.caller}, e.servers...)...)
	if err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Close closes the sockets.
func (e *Ends) Close() {
	if e.poller != nil {
		e.poller.Close()
	}
	if e.caller != nil {
		e.caller.Close()
	}
	for _, s := range e.servers {
		s.Close()
	}
}

// Servers are the addresses of the servers.
func (e *Ends) Servers() []string { return e.names }

// Idle answers what comes, probes of the proxies for one, for at most this long.
func (e *Ends) Idle(d time.Duration) { e.turn(d) }

// Run drives a load, waits for what it began, and gives the result. It ends early with its context.
func (e *Ends) Run(ctx context.Context, l Load) (Result, error) {
	if err := load.Loopback(l.Proxy); err != nil {
		return Result{}, err
	}
	e.begin(l)
	for now := e.began; ctx.Err() == nil; now = time.Now() {
		if now.Sub(e.began) < l.Time {
			e.start(now)
		} else if len(e.free) == len(e.slots) {
			break
		}
		e.turn(e.pause(now))
		e.sweep(time.Now())
	}
	return e.end(), ctx.Err()
}

func (e *Ends) begin(l Load) {
	if l.Window <= 0 {
		l.Window = 64
	}
	if l.Patience <= 0 {
		l.Patience = 2 * time.Second
	}
	e.run, e.idle, e.started, e.result, e.latency = l, false, 0, Result{}, load.Histogram{}
	e.slots, e.free = make([]slot, l.Window), e.free[:0]
	for i := range e.slots {
		e.free = append(e.free, i)
	}
	e.began = time.Now()
}

func (e *Ends) end() Result {
	e.idle = true
	r := &e.result
	r.Messages = r.Units * e.run.Mode.Messages()
	r.Seconds = time.Since(e.began).Seconds()
	r.Rate = float64(r.Messages) / r.Seconds
	us := func(q float64) float64 { return float64(e.latency.Quantile(q)) / 1e3 }
	r.P50, r.P99, r.P999 = us(0.5), us(0.99), us(0.999)
	return *r
}

// due is when the next unit of an open loop begins.
func (e *Ends) due() time.Time {
	return e.began.Add(time.Duration(float64(e.started) / e.run.Rate * float64(time.Second)))
}

// pause is how long to wait for messages.
func (e *Ends) pause(now time.Time) time.Duration {
	const often = 10 * time.Millisecond
	if e.run.Rate == 0 || len(e.free) == 0 {
		return often
	}
	return min(e.due().Sub(now), often)
}

// start begins as many units as the window and the rate let.
func (e *Ends) start(now time.Time) {
	for len(e.free) > 0 {
		since := now
		if e.run.Rate > 0 {
			if since = e.due(); since.After(now) {
				break
			}
		}
		i := e.free[len(e.free)-1]
		e.free = e.free[:len(e.free)-1]
		e.generation++
		e.started++
		e.slots[i] = slot{generation: e.generation, step: opening, server: -1, since: since}
		var buf [idOctets]byte
		id := appendID(buf[:0], i, e.generation)
		method, body := "INVITE", sdp
		if e.run.Mode == Options {
			method, body = "OPTIONS", ""
		}
		e.send(e.write.request(e.caller.Room(), method, 1, id, []byte("sip:+4670123456@proxy.example"), nil, nil, body))
	}
	e.caller.Flush()
}

func (e *Ends) send(m []byte) { e.caller.Send(len(m), e.run.Proxy) }

// turn waits for messages and handles what has come.
func (e *Ends) turn(pause time.Duration) {
	e.poller.Wait(pause, func(i int) {
		if i == 0 {
			for k := range e.caller.Receive() {
				m, _ := e.caller.Datagram(k)
				e.response(m)
			}
			e.caller.Flush()
			return
		}
		s := e.servers[i-1]
		for k := range s.Receive() {
			m, from := s.Datagram(k)
			e.request(i-1, s, m, from)
		}
		s.Flush()
	})
}

// sweep gives units up that nobody ends.
func (e *Ends) sweep(now time.Time) {
	for i := range e.slots {
		if s := &e.slots[i]; s.step != none && now.Sub(s.since) > e.run.Patience {
			e.finish(i, false)
		}
	}
}

func (e *Ends) finish(i int, well bool) {
	s := &e.slots[i]
	if well {
		e.result.Units++
		e.latency.Add(time.Since(s.since))
	} else {
		e.result.Lost++
	}
	s.step = none
	e.free = append(e.free, i)
}

// live finds the slot of a message; nil when it belongs to none that is under way.
func (e *Ends) live(m []byte) (i int, id []byte) {
	id, ok := unit(m)
	if !ok || e.idle {
		return -1, nil
	}
	i, generation, ok := readID(id)
	if !ok || i >= len(e.slots) || e.slots[i].generation != generation || e.slots[i].step == none {
		return -1, nil
	}
	return i, id
}

// request is what a server does with a request.
func (e *Ends) request(server int, s *load.Socket, m []byte, from netip.AddrPort) {
	if i, _ := e.live(m); i >= 0 {
		if at := &e.slots[i]; at.server < 0 {
			at.server = server
		} else if at.server != server {
			e.result.Moved++
		}
		if bytes.Contains(m, []byte("\r\nRoute:")) {
			e.result.Unlike++ // the proxy's own Route comes off, and there is no other
		}
	}
	reply := func(status string) {
		b := answer(s.Room(), m, status, e.names[server])
		s.Send(len(b), from)
	}
	switch {
	case bytes.HasPrefix(m, []byte("ACK ")):
		return
	case bytes.HasPrefix(m, []byte("INVITE ")) && e.run.Mode == Dialog:
		reply("180 Ringing")
	}
	reply("200 OK")
}

// response is what the caller does with a response.
func (e *Ends) response(m []byte) {
	i, id := e.live(m)
	if i < 0 {
		return
	}
	if bytes.HasPrefix(m, []byte("SIP/2.0 1")) {
		return
	}
	if !bytes.HasPrefix(m, []byte("SIP/2.0 2")) {
		e.finish(i, false)
		return
	}
	if !e.ownVia(m, id) {
		e.result.Unlike++
	}
	s := &e.slots[i]
	if e.run.Mode == Options || s.step == closing {
		e.finish(i, true)
		return
	}
	s.step = closing
	e.hangUp(m, id)
}

// hangUp sends ACK and BYE of the dialog that a 200 has made.
func (e *Ends) hangUp(m, id []byte) {
	target := []byte("sip:+4670123456@proxy.example")
	var routes [][]byte
	if e.run.Mode == Dialog {
		var room [4][]byte
		routes = room[:0]
		eachLine(m, func(name, line []byte) {
			switch string(name) {
			case "Contact":
				target = bytes.Trim(value(line), "<>")
			case "Record-Route":
				for _, v := range bytes.Split(value(line), []byte(",")) {
					routes = append(routes, bytes.TrimSpace(v))
				}
			}
		})
	}
	e.send(e.write.request(e.caller.Room(), "ACK", 1, id, target, []byte("as"), routes, ""))
	e.send(e.write.request(e.caller.Room(), "BYE", 2, id, target, []byte("as"), routes, ""))
}

// ownVia says that a response carries the caller's Via and no other.
func (e *Ends) ownVia(m, id []byte) bool {
	n, ours := 0, false
	eachLine(m, func(name, line []byte) {
		if string(name) == "Via" {
			n++
			v := value(line)
			ours = bytes.Contains(v, []byte(e.write.from)) && bytes.Contains(v, id) && !bytes.Contains(v, []byte(","))
		}
	})
	return n == 1 && ours
}
