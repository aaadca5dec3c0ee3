package h1

import (
	"net/netip"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
)

// The most octets of target and host that one log line keeps.
const (
	targetMax = 256
	hostMax   = 100
)

// record fills the request's line of the access log and hands it over (operations.md 8.3).
func (c *conn) record(now int64) {
	c.fillRecord(now)
	c.f.cfg.Ring.Put(&c.x.rec)
}

// record101 gives a tunnel the line it will write at its end.
func (c *conn) record101(t *tunnel) {
	if c.f.cfg.Ring.Enabled() {
		c.x.phase = '-'
		c.fillRecord(c.f.now())
		t.rec = c.x.rec
	}
}

func (c *conn) fillRecord(now int64) {
	x := c.x
	r, v, ch := &x.rec, &x.view, &x.choice
	r.Reset()
	r.Start, r.Generation, r.Listener, r.Proto = c.f.wall(x.start), c.gen.Number, c.listener, obs.HTTP
	r.Client = c.remote
	if v.Client.IsValid() && v.Client != c.remote.Addr() {
		r.Client = netip.AddrPortFrom(v.Client, 0)
	}
	if ch.App != nil {
		r.App = ch.App.Target.Name
		r.Rule = ch.RuleName()
		if ch.Source != 0 && ch.Tried > 0 {
			r.KeySource = ch.Source.String()
		}
		for _, name := range ch.Servers() {
			r.AddTried(name)
			r.Server = name
		}
	}
	r.Code, r.Disp = x.code, [4]byte{x.end, x.phase, ch.Source.Letter(), ch.Letter()}
	if ch.Tried == 0 && ch.App == nil {
		r.Disp[2], r.Disp[3] = '-', '-'
	}
	r.Rules, r.Connect = ch.Rules, time.Duration(x.connect)
	if x.first > 0 {
		r.First = time.Duration(x.first - x.start)
	}
	r.Final = time.Duration(now - x.start)
	r.BytesIn, r.BytesOut = x.bytesIn, x.bytesOut
	r.Method = r.Put(x.req.Method.Of(x.req.Buf), 32)
	target := v.Target
	if target == nil {
		target = x.req.Target.Of(x.req.Buf)
	}
	r.URI = r.Put(target, targetMax)
	r.Host = r.Put(v.Authority, hostMax)
	if ch.Key != nil {
		r.SetKey(ch.Key)
	}
}
