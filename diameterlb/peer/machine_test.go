package peer

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wyegate/wyegate/internal/diam"
	"github.com/wyegate/wyegate/internal/diam/base"
)

// A peer that connects is admitted, served, answered its watchdog, and leaves with DPR: DPA stands on the wire before
// the end (15.4 row 31).
func TestAcceptServeAndTheirDPR(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		defer b.stop()
		f := b.connect("Client.Example.net")
		f.open()
		if n := b.last(); n.Kind != Up || n.Peer.Host() != "Client.Example.net" || n.Caps.Product != "far" {
			t.Fatalf("%+v", n)
		}
		if p := b.node.Find([]byte("client.EXAMPLE.net")); len(p) != 1 || len(p[0].Links()) != 1 {
			t.Fatalf("not found by its identity: %v", p)
		}
		f.send(f.node.DWR(base.IDs{HopByHop: 5, EndToEnd: 6}))
		if h, _ := f.want(diam.CommandDeviceWatchdog, false); h.HopByHop != 5 || h.EndToEnd != 6 {
			t.Errorf("DWA %+v", h)
		}
		ccr := diam.Header{Len: 20, Flags: diam.FlagRequest | diam.FlagProxiable, Command: 272}.Append(nil)
		f.send(ccr)
		synctest.Wait()
		if len(b.got) != 1 || string(b.got[0]) != string(ccr) {
			t.Errorf("delivered %x", b.got)
		}
		f.send(f.node.DPR(base.IDs{HopByHop: 7, EndToEnd: 8}, diam.CauseRebooting))
		f.want(diam.CommandDisconnectPeer, false)
		_ = f.c.Close()
		synctest.Wait()
		if n := b.last(); n.Kind != Down || n.Cause != CauseDPR || n.DPR != diam.CauseRebooting {
			t.Errorf("%+v", n)
		}
		if len(b.node.Peers()) != 0 || len(b.node.Find([]byte("client.example.net"))) != 0 {
			t.Error("a peer that a rule admitted lingers")
		}
	})
}

// What is not admitted gets its code and is closed; what is no CER gets nothing (diameter.md 2.3, RFC 6733 5.6.1).
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  func(*far)
		change func(*NodeConfig)
		result uint32
		reason string
	}{
		{"unknown", func(f *far) { f.node.Host = "a.example.org"; f.cer() }, nil, 3010, "cer_3010"},
		{"unknown, dropped", func(f *far) { f.node.Host = "a.example.org"; f.cer() }, func(c *NodeConfig) { c.Unknown = UnknownDrop }, 0, ""},
		{"our own identity", func(f *far) { f.node.Host = "M.example.net"; f.cer() }, nil, 3010, "cer_3010"},
		{"no application", func(f *far) { f.node.Apps = []uint32{4}; f.cer() }, func(c *NodeConfig) { c.Local.Apps = []uint32{diam.AppGx} }, 5010, "cer_5010"},
		{"DWR first", func(f *far) { f.send(f.node.DWR(base.IDs{})) }, nil, 0, "no_cer"},
		{"CEA first", func(f *far) { f.send(f.node.CEA(base.IDs{}, addrs, base.Refusal{})) }, nil, 0, "no_cer"},
		{"not Diameter", func(f *far) { f.send([]byte("GET / HTTP/1.1\r\n\r\n")) }, nil, 0, "framing"},
		{"silence", func(*far) {}, nil, 0, "no_cer"},
		{"too many", func(*far) {}, func(c *NodeConfig) { c.Limits.Handshaking = 0 }, 0, "limit"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, c.change)
			defer b.stop()
			f := b.connect("client.example.net")
			c.first(f)
			if c.result != 0 {
				_, msg := f.want(diam.CommandCapabilitiesExchange, false)
				if got, _ := base.ReadCapabilities(msg); got.Result != c.result {
					t.Errorf("%s: CEA %d, want %d", c.name, got.Result, c.result)
				}
			}
			if !f.ended(11 * time.Second) {
				t.Errorf("%s: not closed", c.name)
			}
			synctest.Wait()
			if c.reason != "" && b.node.Stats.BadInput.Get(c.reason) != 1 {
				t.Errorf("%s: not counted as %s", c.name, c.reason)
			}
			if len(b.node.Peers()) != 0 {
				t.Errorf("%s: left a peer", c.name)
			}
		})
	}
}

// Tc between attempts, ±10 %, and an expected identity (diameter.md 2.4).
func TestDialTcAndIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		defer b.stop()
		d := newDialer(t, "s1.example.net")
		d.fail.Store(true)
		p := b.node.Add(Config{Name: "s1", Host: "s1.example.net", Dialer: d, Settings: DefaultSettings})
		synctest.Wait()
		if n := b.last(); n.Kind != Refused || n.Cause != CauseDial {
			t.Fatalf("%+v", n)
		}
		d.fail.Store(false)
		start := time.Now()
		f := <-d.got
		if waited := time.Since(start); waited < 27*time.Second || waited > 33*time.Second {
			t.Errorf("second attempt after %v", waited)
		}
		h, _ := f.want(diam.CommandCapabilitiesExchange, true)
		f.node.Host = "other.example.net"
		f.send(f.node.CEA(base.IDsOf(h), addrs, base.Refusal{}))
		if !f.ended(time.Second) {
			t.Error("another identity stays connected")
		}
		synctest.Wait()
		if n := b.last(); n.Kind != Refused || n.Cause != CauseCER || !strings.Contains(n.Detail, "other.example.net") {
			t.Errorf("%+v", n)
		}
		g := d.answer()
		if len(p.Links()) != 1 || b.last().Kind != Up {
			t.Fatalf("not open: %v", p.Status())
		}
		_ = g.c.Close()
		synctest.Wait()
		if n := b.last(); n.Kind != Down || n.Cause != CauseFIN || len(p.Links()) != 0 {
			t.Errorf("%+v", n)
		}
	})
}

// Both sides dial: the higher identity keeps what it accepted, ASCII without case (RFC 6733 5.6.4).
func TestElection(t *testing.T) {
	for _, c := range []struct {
		host string
		won  bool
	}{{"A.example.net", true}, {"Z.example.net", false}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, nil)
			defer b.stop()
			d := newDialer(t, c.host)
			p := b.node.Add(Config{Name: "x", Host: strings.ToLower(c.host), Dialer: d, Settings: DefaultSettings})
			i := <-d.got
			cer, _ := i.want(diam.CommandCapabilitiesExchange, true)
			r := b.connect(c.host)
			r.cer()
			synctest.Wait()
			if c.won {
				r.want(diam.CommandCapabilitiesExchange, false)
				if !i.ended(time.Second) {
					t.Error("we won and did not close what we dialled")
				}
			} else {
				i.send(i.node.CEA(base.IDsOf(cer), addrs, base.Refusal{}))
				if !r.ended(time.Second) {
					t.Error("we lost and did not close what we accepted")
				}
			}
			synctest.Wait()
			want := IOpen
			if c.won {
				want = ROpen
			}
			if s := p.Status()[0]; s.State != want || len(p.Links()) != 1 {
				t.Errorf("%s: %v, want %v", c.host, s.State, want)
			}
		})
	}
}

// A second CER of an open peer (diameter.md 2.5).
func TestSecondCER(t *testing.T) {
	for _, c := range []struct {
		how   Duplicate
		alive bool
		keeps bool // the old connection
	}{{DuplicateReject, true, true}, {DuplicateReplace, true, false}, {DuplicateProbe, true, true}, {DuplicateProbe, false, false}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, func(n *NodeConfig) { n.Defaults.Duplicate = c.how })
			defer b.stop()
			old := b.connect("client.example.net")
			old.open()
			fresh := b.connect("client.example.net")
			fresh.cer()
			synctest.Wait()
			if c.how == DuplicateProbe {
				h, _ := old.want(diam.CommandDeviceWatchdog, true)
				if c.alive {
					old.send(old.node.DWA(base.IDsOf(h)))
				} else {
					time.Sleep(time.Second + time.Millisecond)
				}
				synctest.Wait()
			}
			dead, lives := old, fresh
			if c.keeps {
				dead, lives = fresh, old
			} else {
				fresh.want(diam.CommandCapabilitiesExchange, false)
			}
			if !dead.ended(time.Second) {
				t.Errorf("%+v: the other connection stays open", c)
			}
			lives.send(lives.node.DWR(base.IDs{HopByHop: 9}))
			lives.want(diam.CommandDeviceWatchdog, false)
			if p := b.node.Peers(); len(p) != 1 || len(p[0].Links()) != 1 {
				t.Errorf("%+v: %d peers", c, len(p))
			}
		})
	}
}

// Our own leave: no new requests at once, drain, DPR with its cause, DPA, and we close (diameter.md 2.6).
func TestOurDPR(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		defer b.stop()
		d := newDialer(t, "s1.example.net")
		p := b.node.Add(Config{Name: "s1", Dialer: d, Settings: DefaultSettings})
		f := d.answer()
		b.pending = 1
		b.node.Remove(p, diam.CauseDoNotWant, 5*time.Second)
		synctest.Wait()
		if l := p.Links(); len(l) != 1 || l[0].Usable() {
			t.Error("takes new requests while it leaves")
		}
		start := time.Now()
		h, msg := f.want(diam.CommandDisconnectPeer, true)
		if w := time.Since(start); w != 5*time.Second {
			t.Errorf("DPR after %v, want the drain time", w)
		}
		if a, ok := diam.Find(msg[diam.HeaderLen:], diam.AVPDisconnectCause); !ok || a.Data[3] != 2 {
			t.Errorf("Disconnect-Cause %v", a.Data)
		}
		f.send(f.node.DPA(base.IDsOf(h), 2001))
		if !f.ended(time.Second) {
			t.Error("the receiver of the DPA closes, and did not")
		}
		<-p.Gone()
		if len(b.node.Peers()) != 0 {
			t.Error("it lingers")
		}
	})
}

// After their DPR the cause says when to come back; 0 is never (diameter.md 2.6 rule 4, 15.4 row 38).
func TestAfterDPRByCause(t *testing.T) {
	for cause, want := range map[diam.Cause]time.Duration{
		diam.CauseRebooting: 30 * time.Second, diam.CauseBusy: 5 * time.Minute, diam.CauseDoNotWant: 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, nil)
			defer b.stop()
			d := newDialer(t, "s1.example.net")
			s := DefaultSettings
			s.AfterDPR[2] = 0
			b.node.Add(Config{Name: "s1", Dialer: d, Settings: s})
			f := d.answer()
			f.send(f.node.DPR(base.IDs{}, cause))
			f.want(diam.CommandDisconnectPeer, false)
			_ = f.c.Close()
			synctest.Wait()
			start := time.Now()
			select {
			case <-d.got:
				if w := time.Since(start); w != want || want == 0 {
					t.Errorf("%v: again after %v, want %v", cause, w, want)
				}
			case <-time.After(time.Hour):
				if want != 0 {
					t.Errorf("%v: never again", cause)
				}
			}
		})
	}
}

// Their DPR, and they do not close: after closing_grace we do. Late answers are taken until then.
func TestClosingGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		defer b.stop()
		f := b.connect("client.example.net")
		f.open()
		f.send(f.node.DPR(base.IDs{}, diam.CauseBusy))
		f.want(diam.CommandDisconnectPeer, false)
		f.send(diam.Header{Len: 20, Command: 272}.Append(nil))
		synctest.Wait()
		if len(b.got) != 1 {
			t.Error("a late answer was not taken")
		}
		start := time.Now()
		if !f.ended(time.Minute) || time.Since(start) != 5*time.Second {
			t.Errorf("closed after %v", time.Since(start))
		}
		synctest.Wait()
		if !slices.Equal(b.calls, []string{"depart", "closed"}) {
			t.Error(b.calls)
		}
	})
}
