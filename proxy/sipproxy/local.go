package sipproxy

import (
	"strconv"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/internal/sip/transport"
	"github.com/wyegate/wyegate/routing"
)

// answer makes a stateless answer (ST-6) and its line in the log. An ACK is never answered.
func (w *worker) answer(r *request, d *decision) { w.answerWith(r, d, nil) }

func (w *worker) answerWith(r *request, d *decision, bad *sip.Error) {
	d.lease.Done(routing.OutcomeClientFault)
	if r.class == ack {
		return
	}
	if d.t != nil {
		w.counted(r, d)
		if t := r.l.obsOf(d.t); t != nil {
			count(t.Responses[r.method][d.status/100])
		}
	}
	w.sendAnswer(r, d.status, w.extra(r, d, bad))
	if !w.port.Log.Enabled() {
		return
	}
	line := w.lines.take()
	if line == nil {
		return
	}
	w.begin(line, r, d)
	line.Code = d.status
	line.Disp = disposition(d.disp[0], d.disp[1], d.source.Letter(), lastLetter(d.how, line.NumTried, d.disp[1] == 'Q'))
	w.port.Log.Put(line)
	w.lines.give(line)
}

// answerOnly repeats an answer for a copy of its request: no second line in the log.
func (w *worker) answerOnly(r *request, d *decision) {
	if r.class != ack {
		w.sendAnswer(r, d.status, w.extra(r, d, nil))
	}
}

// settle ends a transaction that was remembered with an answer of ours: copies get the same one.
func (w *worker) settle(r *request, slot uint32, d *decision) {
	if slot == 0 {
		w.answer(r, d)
		return
	}
	e := w.mem.at(slot)
	e.place, e.phase, e.port = toNobody, final, uint16(d.status)
	w.mem.shorten(slot, life)
	if r.class != ack {
		w.sendAnswer(r, d.status, w.extra(r, d, nil))
	}
	q := w.pendingOf(e)
	if q == nil {
		return
	}
	q.lease.Done(routing.OutcomeClientFault)
	w.countClass(q, d.status/100)
	w.close(q, d.status, d.disp[0], d.disp[1])
	q.resend, q.trying, q.giveUp = noTime, noTime, noTime
	if len(q.left) > 0 && q.req != nil {
		w.over(q)
	} else {
		w.forget(slot)
	}
}

// sendAnswer writes an answer and sends it back to where the request came from. The To tag comes from d, so that every
// copy and every node gives the same; a 100 has none.
func (w *worker) sendAnswer(r *request, status int, extra []byte) {
	var text [16]byte
	a := sip.Answer{Status: status, Source: fold(r.in.Source), ForceRport: r.symmetric(), Overload: w.load(r.l), Extra: extra}
	if status > 100 {
		a.Tag = w.branches.appendToTag(text[:0], r.g.secrets.Writer(), r.d)
	}
	b, ok := sip.AppendAnswer(w.out[:0], r.m, &a)
	w.out = b
	if !ok {
		return
	}
	if r.in.Kind == transport.UDP {
		w.port.Out.Datagram(r.l.Listener, r.hop.addr, b)
		return
	}
	_ = w.port.Out.OnFlow(r.in.Flow, b) // gone: the answer of a stateless UAS is dropped
}

// extra are the fields that some answers carry.
func (w *worker) extra(r *request, d *decision, bad *sip.Error) []byte {
	b := w.value[:0]
	switch {
	case d.rest:
		b = append(b, "Retry-After: "...)
		after := d.after
		if after == 0 {
			after = 5 + r.d%11 // 5 to 15 s, spread over callers, the same for every copy
		}
		b = strconv.AppendUint(b, after, 10)
		b = append(b, "\r\n"...)
	case d.status == 200 && r.class == options:
		b = append(b, "Accept: application/sdp\r\nAllow: INVITE, ACK, CANCEL, BYE, OPTIONS, REGISTER, PRACK, SUBSCRIBE, NOTIFY, PUBLISH, INFO, REFER, MESSAGE, UPDATE\r\n"...)
	case d.status == 420 && bad != nil:
		b = append(b, "Unsupported: "...)
		b = sip.AppendUnsupported(b, r.m, &w.valid)
		b = append(b, "\r\n"...)
	}
	w.value = b
	return b
}

// unframed is a stream that cannot be cut into messages any more: what its sender is owed, if the head can be read, and
// then the end (SX-5).
func (w *worker) unframed(g *state, l *listener, in *transport.Inbound) {
	count(l.bad.ParseErrors[obs.ParseFraming])
	_ = w.msg.Parse(in.Bytes)
	if in.Bad.Status > 0 && !l.DropBad && w.msg.Request && w.msg.Count(sip.Via) > 0 {
		sip.Validate(&w.msg, &w.valid)
		w.read(&w.req, in, &w.msg, g, w.now)
		if w.req.class != ack {
			w.sendAnswer(&w.req, in.Bad.Status, nil)
		}
	}
	if in.Bad.Close {
		if c, ok := w.port.Out.(flowCloser); ok {
			c.CloseAfter(in.Flow)
		}
	}
}

// flowCloser closes a flow once what is queued on it was written.
type flowCloser interface{ CloseAfter(flow uint64) }
