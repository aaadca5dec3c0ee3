package sipproxy

import (
	"errors"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/routing"
)

var noTime time.Time

const (
	lineMethod = 32
	lineURI    = 200
	lineID     = 128
)

// begin fills what the access log says of a transaction when it begins.
func (w *worker) begin(line *obs.Record, r *request, d *decision) {
	if line == nil {
		return
	}
	line.Reset()
	line.Start, line.Generation, line.Listener, line.Proto = w.now, r.g.number, r.l.Listener.Name, obs.SIP
	line.Client = fold(r.in.Source)
	if d.t != nil {
		line.App = d.t.Target.Name
	}
	line.Method = line.Put(r.text, lineMethod)
	line.URI = line.Put(r.m.Bytes(r.m.URI), lineURI)
	line.CallID = line.Put(r.id.callID, lineID)
	if d.source != proxy.SourceNone {
		line.KeySource = d.source.String()
	}
	if d.rule >= 0 && d.t != nil && d.source == proxy.SourceRule {
		line.Rule = d.t.Target.Keyer.Rules()[d.rule].Path
	}
	line.SetKey(d.key)
	if d.s != nil {
		line.Server = d.s.name
	}
}

// end writes the line of a transaction that has its final response.
func (w *worker) end(q *pending, p *reply) {
	who, phase := byte('-'), byte('-')
	switch {
	case q.cancelled && p.m.Status == 487:
		who, phase = 'C', 'W'
	case p.m.Status == 503 || p.m.Status == 500 || p.m.Status == 504:
		who = 'S'
	}
	w.close(q, p.status, who, phase)
}

// close writes the line of a pending, once.
func (w *worker) close(q *pending, code int, who, phase byte) {
	line := q.line
	if line == nil {
		return
	}
	q.line = nil
	line.Code = code
	line.Final = w.now.Sub(q.start)
	if q.s != nil {
		line.Server = q.s.name
	}
	none := who == 'S' && phase == 'C'
	line.Disp = disposition(who, phase, q.source, lastLetter(q.how, line.NumTried, none))
	w.port.Log.Put(line)
	w.lines.give(line)
}

func disposition(who, phase, source, choice byte) [4]byte {
	return [4]byte{who, phase, source, choice}
}

// lastLetter is the fourth letter of the disposition: the first of X M V H 2-9 that fits (operations.md 8.4).
func lastLetter(how routing.How, tried int, none bool) byte {
	switch {
	case none:
		return 'X'
	case how == routing.HowPanic:
		return 'M'
	case how == routing.HowStandby:
		return 'V'
	case how == routing.HowHeld:
		return 'H'
	case tried > 1:
		return '0' + byte(min(tried, 9))
	}
	return '-'
}

// proxySource is the source that a letter of the disposition stands for.
func proxySource(letter byte) proxy.KeySource {
	for s := proxy.SourceRule; s < proxy.SourceGiven; s++ {
		if s.Letter() == letter {
			return s
		}
	}
	return proxy.SourceNone
}

// counted counts a new request: by listener, application and method, and by the source of its key.
func (w *worker) counted(r *request, d *decision) {
	if t := r.l.obsOf(d.t); t != nil {
		count(t.Requests[r.method])
	}
	if d.t == nil || d.source == proxy.SourceNone {
		return
	}
	if i := int(d.source - proxy.SourceRule); i < len(d.t.Obs.SIPKeys) {
		count(d.t.Obs.SIPKeys[i])
	}
	if d.source == proxy.SourceRule && d.rule < len(d.t.Obs.Rules) {
		count(d.t.Obs.Rules[d.rule])
	}
}

// countToken counts what is no token, at the first application: whose it was meant to be nobody can tell.
func (w *worker) countToken(r *request, err error) {
	if len(r.g.targets) == 0 {
		return
	}
	reason := 0
	switch {
	case errors.Is(err, proxy.ErrTokenVersion):
		reason = 1
	case errors.Is(err, proxy.ErrTokenSecret):
		reason = 2
	case errors.Is(err, proxy.ErrTokenMAC):
		reason = 3
	case errors.Is(err, errForeignApp):
		reason = 4
	}
	if c := &r.g.targets[0].Obs.TokensRefused; reason < len(c) {
		count(c[reason])
	}
}
