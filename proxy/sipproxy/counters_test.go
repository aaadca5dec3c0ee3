package sipproxy

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/wyegate/wyegate/internal/obs"
)

func fresh() prometheus.Counter { return prometheus.NewCounter(prometheus.CounterOpts{Name: "c"}) }

// operations.md 8.1: what a call, a copy, a bad message and a foreign response count.
func TestCounters(t *testing.T) {
	l, app, all := &obs.SIPListener{}, &obs.SIPTarget{}, &obs.Target{}
	l.Retransmissions = fresh()
	for i := range l.ParseErrors {
		l.ParseErrors[i] = fresh()
	}
	for m := range app.Requests {
		app.Requests[m] = fresh()
		for c := range app.Responses[m] {
			app.Responses[m][c] = fresh()
		}
	}
	for i := range all.SIPKeys {
		all.SIPKeys[i] = fresh()
	}
	for i := range all.TokensRefused {
		all.TokensRefused[i] = fresh()
	}
	b := newBed(t, bedOptions{
		listener: func(c *ListenerConfig) { c.Obs, c.Targets = l, []*obs.SIPTarget{app} },
		target:   func(c *TargetConfig) { c.Obs = all },
	})
	a := alice("count")
	inv := b.one(b.in(aliceAt, a.request("INVITE", 1)))
	b.one(b.in(aliceAt, a.request("INVITE", 1)))
	b.one(b.from(inv, respond(inv.text, 180, "b1")))
	ok := b.one(b.from(inv, respond(inv.text, 200, "b1")))
	a.to, a.routes, a.uri = "b1", routeSet(ok.text), "sip:x@host.invalid"
	b.one(b.in(aliceAt, a.request("ACK", 1)))
	bye := b.one(b.in(aliceAt, a.request("BYE", 2)))
	b.one(b.from(bye, respond(bye.text, 200, "")))
	a.routes = []string{"<sip:203.0.113.10;lr;wg=forged>"}
	lost := b.one(b.in(aliceAt, a.request("FROB", 3)))
	b.in(aliceAt, "INVITE sip:x SIP/2.0\r\n\r\n")
	b.none(b.from(lost, "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 198.51.100.1\r\nFrom: <sip:a@b>\r\nTo: <sip:a@b>\r\nCall-ID: x\r\nCSeq: 1 OPTIONS\r\n\r\n"))
	b.pass(2 * life)
	method := func(m string) int { return obs.SIPMethod([]byte(m)) }
	for name, c := range map[string]struct {
		c    prometheus.Counter
		want float64
	}{
		"INVITE":          {app.Requests[method("INVITE")], 1},
		"ACK":             {app.Requests[method("ACK")], 1},
		"BYE":             {app.Requests[method("BYE")], 1},
		"other":           {app.Requests[method("FROB")], 1},
		"1xx":             {app.Responses[method("INVITE")][1], 1},
		"2xx":             {app.Responses[method("INVITE")][2], 1},
		"BYE 2xx":         {app.Responses[method("BYE")][2], 1},
		"no answer":       {app.Responses[method("FROB")][0], 1},
		"retransmissions": {l.Retransmissions, 1},
		"foreign Via":     {l.ParseErrors[obs.ParseForeignVia], 1},
		"default key":     {all.SIPKeys[1], 1},
		"token":           {all.SIPKeys[2], 1}, // the BYE; an ACK takes no key, the forged token is none
		"refused token":   {all.TokensRefused[0], 1},
	} {
		if got := testutil.ToFloat64(c.c); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
