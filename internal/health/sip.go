package health

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// BranchPrefix begins the branch of every probe of ours. A response whose top Via has such a branch is for Answered;
// forwarded messages have another one.
const BranchPrefix = "z9hG4bKwgprobe"

// again is when an OPTIONS over UDP is sent after the first time.
var again = []time.Duration{500 * time.Millisecond, 500 * time.Millisecond}

// waiting are the probes over UDP that have no answer yet, by branch.
type waiting struct {
	mu sync.Mutex
	by map[string]*asked
}

type asked struct {
	callID string
	to     netip.AddrPort
	answer chan outcomeOf // one place: the first answer counts
}

// outcomeOf is an answer, or that nobody is there.
type outcomeOf struct {
	Answer
	gone error
}

func (w *waiting) put(branch string, a *asked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[string]*asked{}
	}
	w.by[branch] = a
}

func (w *waiting) drop(branch string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.by, branch)
}

// Answered takes a datagram that came to a socket of traffic from an address and whose top Via has BranchPrefix. It
// counts if its branch, its Call-ID as octets and its source are those of a probe that waits; 1xx do not count. It
// never waits and keeps nothing of raw.
func (p *Prober) Answered(from netip.AddrPort, raw []byte) {
	if p.cfg.Parse == nil {
		return
	}
	a, n, err := p.cfg.Parse(raw)
	if err != nil || n == 0 || a.Status < 200 {
		return
	}
	p.waiting.mu.Lock()
	defer p.waiting.mu.Unlock()
	w := p.waiting.by[a.Branch]
	if w == nil || w.callID != a.CallID || w.to != from {
		return
	}
	select {
	case w.answer <- outcomeOf{Answer: a}:
	default:
	}
}

// Unreachable takes an ICMP error for an address: probes that wait for it have their answer. It never waits.
func (p *Prober) Unreachable(to netip.AddrPort, err error) {
	p.waiting.mu.Lock()
	defer p.waiting.mu.Unlock()
	for _, w := range p.waiting.by {
		if w.to != to {
			continue
		}
		select {
		case w.answer <- outcomeOf{gone: err}:
		default:
		}
	}
}

// askUDP sends an OPTIONS at 0, 0.5 and 1.0 s and waits for the answer that traffic's reader hands over.
func (p *Prober) askUDP(ctx context.Context, pr *probe, c *Check) outcome {
	if p.cfg.UDP == nil || p.cfg.Parse == nil {
		return outcome{result: Fail, brief: "error", text: "no socket to ask from"}
	}
	q := newQuestion(pr.number)
	a := &asked{callID: q.callID, to: c.Address.Addr, answer: make(chan outcomeOf, 1)}
	p.waiting.put(q.branch, a)
	defer p.waiting.drop(q.branch)
	msg := q.append(nil, c, "UDP", p.cfg.UDP.SentBy(c.Socket))
	wait := time.NewTimer(0)
	defer wait.Stop()
	for sent := 0; ; {
		select {
		case <-ctx.Done():
			return failed(context.DeadlineExceeded)
		case got := <-a.answer:
			if got.gone != nil {
				return outcome{result: Fail, refused: true, brief: "refused", text: "unreachable: " + got.gone.Error()}
			}
			return c.judgeSIP(got.Answer, c.Address.Addr.String())
		case <-wait.C:
			if err := p.cfg.UDP.SendProbe(c.Socket, c.Address.Addr, msg); err != nil {
				return failed(err)
			}
			if sent < len(again) {
				wait.Reset(again[sent])
			}
			sent++
		}
	}
}

// askStream sends an OPTIONS over the kept connection, or over a new one when there is none or it turns out to be
// broken.
func (p *Prober) askStream(ctx context.Context, pr *probe, c *Check, conn *net.Conn) outcome {
	if p.cfg.Parse == nil {
		return outcome{result: Fail, brief: "error", text: "no parser for answers"}
	}
	kept := *conn != nil
	for {
		if *conn == nil {
			n, err := p.cfg.Dial(ctx, c.Address)
			if err != nil {
				return failed(err)
			}
			*conn = n
		}
		a, err := p.ask(ctx, pr, c, *conn)
		if err == nil {
			return c.judgeSIP(a, c.Address.Addr.String())
		}
		_ = (*conn).Close()
		*conn = nil
		if ctx.Err() != nil {
			return failed(context.DeadlineExceeded)
		}
		if !kept {
			return failed(err)
		}
		kept = false
	}
}

// maxAnswer bounds what a server may send before its answer is whole.
const maxAnswer = 64 << 10

// errTooMuch says that an answer did not end.
var errTooMuch = errors.New("health: answer is too long")

// ask makes one exchange on a stream. Anything but the answer, late ones of earlier probes too, is read over.
func (p *Prober) ask(ctx context.Context, pr *probe, c *Check, conn net.Conn) (Answer, error) {
	if d, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(d); err != nil {
			return Answer{}, err
		}
	}
	cancelled := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer cancelled()
	q := newQuestion(pr.number)
	sentBy := "localhost"
	if a := conn.LocalAddr(); a != nil {
		sentBy = a.String()
	}
	if _, err := conn.Write(q.append(nil, c, strings.ToUpper(c.Address.Transport), sentBy)); err != nil {
		return Answer{}, err
	}
	buf := make([]byte, 0, 2048)
	for {
		a, n, err := p.cfg.Parse(buf)
		if err != nil {
			return Answer{}, err
		}
		if n > 0 {
			buf = buf[n:]
			if a.Status >= 200 && a.Branch == q.branch && a.CallID == q.callID {
				return a, nil
			}
			continue
		}
		if len(buf) >= maxAnswer {
			return Answer{}, errTooMuch
		}
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)+2048), buf...)
		}
		got, err := conn.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+got]
		if err != nil && got == 0 {
			return Answer{}, err
		}
	}
}

// judgeSIP says what a final answer means (SH-1).
func (s *Settings) judgeSIP(a Answer, from string) outcome {
	o := outcome{result: OK, from: from, brief: strconv.Itoa(a.Status), text: strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, a.Reason))}
	switch {
	case a.Status == 503 && s.DownOn503:
		o.result = Fail
	case a.Status == 503:
		o.result = Busy
		if o.rest = a.RetryAfter; o.rest > 0 {
			o.result = OK // it says for how long: that is what holds, not the next answer
		}
	case len(s.OK) > 0 && !in(s.OK, a.Status):
		o.result = Fail
	}
	return o
}

// question is what tells one probe from all others.
type question struct {
	branch string
	callID string
	tag    string
}

var letters = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newQuestion draws one. The check's number stands in the branch, so that an answer to a check that was replaced is
// told apart; the rest is random, so that nobody who does not see the probe can answer it.
func newQuestion(number uint32) question {
	var r [30]byte
	_, _ = rand.Read(r[:]) // never fails (crypto/rand)
	text := letters.EncodeToString(r[:])
	return question{
		branch: BranchPrefix + strconv.FormatUint(uint64(number), 16) + "." + text[:16],
		callID: text[16:32],
		tag:    text[32:],
	}
}

// append writes the request.
func (q *question) append(dst []byte, c *Check, transport, sentBy string) []byte {
	uri := "sip:" + c.host()
	if c.Address.Transport != "udp" {
		uri += ";transport=" + c.Address.Transport
	}
	return fmt.Appendf(dst, "%s %s SIP/2.0\r\n"+
		"Via: SIP/2.0/%s %s;branch=%s;rport\r\n"+
		"Max-Forwards: %d\r\n"+
		"From: <sip:wyegate@%s>;tag=%s\r\n"+
		"To: <sip:%s>\r\n"+
		"Call-ID: %s\r\n"+
		"CSeq: 1 %s\r\n"+
		"Accept: application/sdp\r\n"+
		"User-Agent: wyegate-probe\r\n"+
		"Content-Length: 0\r\n\r\n",
		c.Method, uri, transport, sentBy, q.branch, c.MaxForwards, sentBy, q.tag, c.host(), q.callID, c.Method)
}
