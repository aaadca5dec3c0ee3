package health

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wyegate/wyegate/routing"
)

// SH-1, section 10: an OPTIONS over UDP leaves at 0, 0.5 and 1.0 s; silence is a miss after 2 s; three make it down,
// and then the short interval counts.
func TestSilenceOverUDP(t *testing.T) {
	start := time.Time{}
	watch(t, silence, nil, func(s *scene) {
		start = time.Now()
		time.Sleep(11900 * time.Millisecond)
		synctest.Wait()
		ms := time.Millisecond
		want := []time.Duration{0, 500 * ms, 1000 * ms, 5000 * ms, 5500 * ms, 6000 * ms, 10000 * ms, 10500 * ms, 11000 * ms}
		if got := s.wire.times(start); !slices.Equal(got, want) {
			t.Errorf("asked at %v", got)
		}
		if h := s.server.Health(routing.SIP); h != routing.Unknown {
			t.Errorf("before the third miss: %v", h)
		}
		time.Sleep(200 * ms)
		synctest.Wait()
		d := s.server.Detail(routing.SIP)
		if d.Health != routing.Down || d.Cause != "timeout×3" || d.Refused {
			t.Errorf("after the third: %+v", d)
		}
		n := len(s.wire.times(start))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := len(s.wire.times(start)); got < n+3 {
			t.Errorf("while it is down only %d copies more in 2 s", got-n)
		}
	})
}

// One copy is enough when the answer is there, and one hit makes an unknown server up.
func TestFirstHit(t *testing.T) {
	watch(t, status("200 OK", ""), nil, func(s *scene) {
		if s.server.Health(routing.SIP) != routing.Up || len(s.wire.times(time.Now())) != 1 {
			t.Errorf("%v after %d copies", s.server.Health(routing.SIP), len(s.wire.when()))
		}
		st := s.prober.Statuses()
		if len(st) != 1 || st[0].Text != "200 OK" || st[0].From != "192.0.2.7:5060" || st[0].Why != "hit" || st[0].Result != OK {
			t.Errorf("%+v", st)
		}
		if !s.prober.Ready("p") {
			t.Error("not ready after the first result")
		}
	})
}

func TestNotReadyBeforeTheFirstResult(t *testing.T) {
	watch(t, silence, nil, func(s *scene) {
		if s.prober.Ready("p") {
			t.Error("ready with a probe under way")
		}
		time.Sleep(2100 * time.Millisecond)
		synctest.Wait()
		if !s.prober.Ready("p") {
			t.Error("one time-out is a result")
		}
	})
}

func TestRequest(t *testing.T) {
	watch(t, status("404 Not Found", ""), func(c *Check, _ *Config) { c.Address.Host = "as1.example.net" }, func(s *scene) {
		req := string(s.wire.sent()[0])
		for _, want := range []string{
			"OPTIONS sip:as1.example.net:5060 SIP/2.0\r\n", "Via: SIP/2.0/UDP 192.0.2.1:5060;branch=" + BranchPrefix,
			"Max-Forwards: 0\r\n", "CSeq: 1 OPTIONS\r\n", ";rport\r\n", "Content-Length: 0\r\n\r\n",
		} {
			if !strings.Contains(req, want) {
				t.Errorf("no %q in\n%s", want, req)
			}
		}
		if s.server.Health(routing.SIP) != routing.Up {
			t.Error("any final answer but 503 is alive")
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		line := func(b []byte) []byte { return bytes.Split(b, []byte("\r\n"))[6-1] }
		if bytes.Equal(line(s.wire.sent()[0]), line(s.wire.sent()[1])) {
			t.Error("two probes with one Call-ID")
		}
	})
}

// rise: a server that is down is up after two hits in a row, not one.
func TestRise(t *testing.T) {
	var up atomic.Bool
	watch(t, func(n int, req []byte) []byte {
		if !up.Load() {
			return nil
		}
		return answer(req, "200 OK", "")
	}, nil, func(s *scene) {
		time.Sleep(12500 * time.Millisecond)
		synctest.Wait()
		if s.server.Health(routing.SIP) != routing.Down {
			t.Fatal("not down")
		}
		up.Store(true)
		at := time.Now()
		for s.server.Health(routing.SIP) != routing.Up {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if time.Since(at) > 10*time.Second {
				t.Fatal("stays down")
			}
		}
		hits := 0
		for _, a := range s.wire.when() {
			if a.After(at) {
				hits++
			}
		}
		if hits < 2 {
			t.Errorf("up after %d hits", hits)
		}
		if got := s.edges(); !slices.Equal(got, []string{"down", "up"}) {
			t.Errorf("edges %v", got)
		}
	})
}

// 21.6, flapping probe: an answer between the misses begins the count anew, so that a server which misses two of three is
// never down; and one that is down does not come up by answering every other probe.
func TestFlappingProbe(t *testing.T) {
	var dead atomic.Bool
	var probes atomic.Int64
	last := ""
	flapping := func(n int, req []byte) []byte {
		_, id, _ := strings.Cut(string(req), "Call-ID: ")
		if id, _, _ = strings.Cut(id, "\r\n"); id != last {
			last = id
			probes.Add(1)
		}
		if dead.Load() {
			return nil
		}
		every := int64(3)
		if probes.Load() > 1000 {
			every = 2
		}
		if probes.Load()%every == 1 {
			return answer(req, "200 OK", "")
		}
		return nil
	}
	watch(t, flapping, nil, func(s *scene) {
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := s.edges(); probes.Load() < 40 || len(got) > 1 || s.server.Health(routing.SIP) != routing.Up {
			t.Fatalf("after %d probes: edges %v", probes.Load(), got)
		}
		dead.Store(true)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if s.server.Health(routing.SIP) != routing.Down {
			t.Fatal("not down while it is dead")
		}
		probes.Store(1000) // from here on every other one is answered
		dead.Store(false)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if h := s.server.Health(routing.SIP); probes.Load() < 1060 || h != routing.Down {
			t.Errorf("after %d probes more it is %v: %v", probes.Load()-1000, h, s.edges())
		}
	})
}

// F10: 503 on OPTIONS is the server's wish to be drained, until another answer.
func Test503IsBusy(t *testing.T) {
	var code atomic.Value
	code.Store("503 Service Unavailable")
	watch(t, func(n int, req []byte) []byte { return answer(req, code.Load().(string), "") }, nil, func(s *scene) {
		if s.server.Word(routing.SIP) != "draining" {
			t.Fatalf("shown as %s", s.server.Word(routing.SIP))
		}
		code.Store("486 Busy Here")
		time.Sleep(5100 * time.Millisecond)
		synctest.Wait()
		if s.server.Word(routing.SIP) != "up" {
			t.Errorf("after another answer: %s", s.server.Word(routing.SIP))
		}
	})
}

func Test503AsDown(t *testing.T) {
	watch(t, status("503 Service Unavailable", ""), func(c *Check, _ *Config) { c.DownOn503 = true }, func(s *scene) {
		time.Sleep(10100 * time.Millisecond)
		synctest.Wait()
		if d := s.server.Detail(routing.SIP); d.Health != routing.Down || d.Cause != "503×3" {
			t.Errorf("%+v", d)
		}
	})
}

// With Retry-After a 503 holds for that long.
func Test503WithRetryAfter(t *testing.T) {
	watch(t, func(n int, req []byte) []byte {
		if n == 1 {
			return answer(req, "503 Service Unavailable", "Retry-After: 17 (soon);duration=3\r\n")
		}
		return answer(req, "200 OK", "")
	}, nil, func(s *scene) {
		time.Sleep(16 * time.Second)
		s.pool.Tick(time.Now())
		synctest.Wait()
		if !s.server.Detail(routing.SIP).Held {
			t.Error("let go too early")
		}
		time.Sleep(time.Second)
		s.pool.Tick(time.Now())
		if s.server.Word(routing.SIP) != "up" {
			t.Errorf("after 17 s: %s", s.server.Word(routing.SIP))
		}
	})
}

func TestConfiguredCodes(t *testing.T) {
	watch(t, status("500 Server Internal Error", ""), func(c *Check, _ *Config) {
		c.OK = []Range{{200, 200}, {404, 405}}
	}, func(s *scene) {
		time.Sleep(10100 * time.Millisecond)
		synctest.Wait()
		if s.server.Health(routing.SIP) != routing.Down {
			t.Error("a code that is not in the list is alive")
		}
	})
}

// SH-1: an answer counts only with its Call-ID, its branch and its source.
func TestForeignAnswersDoNotCount(t *testing.T) {
	for name, forge := range map[string]func(w *wire, a []byte) []byte{
		"source":  func(w *wire, a []byte) []byte { w.from = netip.MustParseAddrPort("192.0.2.7:5061"); return a },
		"Call-ID": func(_ *wire, a []byte) []byte { return bytes.Replace(a, []byte("Call-ID: "), []byte("Call-ID: x"), 1) },
		"branch": func(_ *wire, a []byte) []byte {
			return bytes.Replace(a, []byte(BranchPrefix), []byte(BranchPrefix+"1"), 1)
		},
		"1xx":    func(_ *wire, a []byte) []byte { return bytes.Replace(a, []byte("200 OK"), []byte("100 Trying"), 1) },
		"cut":    func(_ *wire, a []byte) []byte { return a[:20] },
		"binary": func(_ *wire, a []byte) []byte { return []byte{0, 0xff, 1} },
	} {
		t.Run(name, func(t *testing.T) {
			var w *wire
			watch(t, func(_ int, req []byte) []byte { return forge(w, answer(req, "200 OK", "")) },
				func(_ *Check, c *Config) { w = c.UDP.(*wire) }, func(s *scene) {
					time.Sleep(12100 * time.Millisecond)
					synctest.Wait()
					if s.server.Health(routing.SIP) != routing.Down {
						t.Errorf("%v", s.server.Health(routing.SIP))
					}
				})
		})
	}
}

// SH-2: an answer that comes after its time, or after the check was replaced, revives nobody.
func TestLateAnswer(t *testing.T) {
	watch(t, silence, nil, func(s *scene) {
		time.Sleep(12500 * time.Millisecond)
		synctest.Wait()
		for _, req := range s.wire.sent() {
			s.prober.Answered(serverAddr, answer(req, "200 OK", ""))
			s.prober.Answered(serverAddr, answer(req, "200 OK", ""))
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		st := s.prober.Statuses()[0]
		if s.server.Health(routing.SIP) != routing.Down {
			t.Errorf("late answers revived it: %+v", st)
		}
		s.prober.Swap(nil)
		synctest.Wait()
		for _, req := range s.wire.sent() {
			s.prober.Answered(serverAddr, answer(req, "200 OK", ""))
		}
		synctest.Wait()
		if s.server.Health(routing.SIP) != routing.Down || len(s.prober.Statuses()) != 0 {
			t.Error("a check that is gone still counts")
		}
	})
}

// ICMP unreachable: the miss is a refused one, so that panic does not send traffic there.
func TestUnreachable(t *testing.T) {
	var w *wire
	watch(t, func(int, []byte) []byte { go w.prober.Unreachable(serverAddr, net.ErrClosed); return nil },
		func(_ *Check, c *Config) { w = c.UDP.(*wire) }, func(s *scene) {
			time.Sleep(10100 * time.Millisecond)
			synctest.Wait()
			if d := s.server.Detail(routing.SIP); d.Health != routing.Down || !d.Refused || d.Cause != "refused×3" {
				t.Errorf("%+v", d)
			}
		})
}

// The first failure of traffic starts 3 probes 0.5 s apart: all silent, and it is down within 3 s.
func TestBurst(t *testing.T) {
	var quiet atomic.Bool
	watch(t, func(n int, req []byte) []byte {
		if quiet.Load() {
			return nil
		}
		return answer(req, "200 OK", "")
	}, nil, func(s *scene) {
		time.Sleep(time.Second)
		quiet.Store(true)
		n := len(s.wire.when())
		s.pool.Report(s.server, routing.SIP, routing.OutcomeTimeout)
		time.Sleep(2900 * time.Millisecond)
		synctest.Wait()
		if s.server.Health(routing.SIP) == routing.Down {
			t.Error("down before the last of the three had its time")
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if s.server.Health(routing.SIP) != routing.Down {
			t.Errorf("not down 3 s after the failure: %v", s.prober.Statuses())
		}
		branches := map[string]bool{}
		for _, r := range s.wire.sent()[n:] {
			a, _, err := parse(answer(r, "200 OK", ""))
			if err != nil {
				t.Fatal(err)
			}
			branches[a.Branch] = true
		}
		if len(branches) != 3 {
			t.Errorf("%d probes in the burst", len(branches))
		}
	})
}

// One answer ends the burst: the failure was the call's, not the server's.
func TestBurstAnswered(t *testing.T) {
	watch(t, status("200 OK", ""), nil, func(s *scene) {
		time.Sleep(time.Second)
		s.pool.Report(s.server, routing.SIP, routing.OutcomeTimeout)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if s.server.Health(routing.SIP) != routing.Up || len(s.wire.when()) != 2 {
			t.Errorf("%v after %d probes", s.server.Health(routing.SIP), len(s.wire.when()))
		}
	})
}

// Traffic alone never brings a server up; two hits end an ejection before its time.
func TestHitsEndAnEjection(t *testing.T) {
	watch(t, status("200 OK", ""), nil, func(s *scene) {
		for range 5 {
			s.pool.Report(s.server, routing.SIP, routing.OutcomeServerError)
		}
		if s.server.Word(routing.SIP) != "ejected" {
			t.Fatalf("%s", s.server.Word(routing.SIP))
		}
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if s.server.Word(routing.SIP) != "ejected" {
			t.Error("one hit, or none, ended it")
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if s.server.Word(routing.SIP) != "up" {
			t.Errorf("two hits: %s", s.server.Word(routing.SIP))
		}
	})
}

// SH-2: a reload goes on with what was counted; a refused connect of traffic needs probes to come back.
func TestSwapKeepsCounts(t *testing.T) {
	watch(t, silence, nil, func(s *scene) {
		time.Sleep(7100 * time.Millisecond)
		synctest.Wait()
		next := Check{Pool: s.pool, Server: s.server, Socket: "udp", Address: routing.Address{Proto: routing.SIP, Transport: "udp", Addr: serverAddr}}
		s.prober.Swap([]Check{next})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s.server.Health(routing.SIP) != routing.Down {
			t.Error("the third miss after a reload does not count: the counts began anew")
		}
	})
}

// A server that has moved to another address is unknown again: what was found out at the old one says nothing.
func TestMovedServer(t *testing.T) {
	watch(t, func(_ int, req []byte) []byte {
		if bytes.Contains(req, []byte("192.0.2.8")) {
			return answer(req, "200 OK", "")
		}
		return nil
	}, nil, func(s *scene) {
		time.Sleep(13 * time.Second)
		synctest.Wait()
		if s.server.Health(routing.SIP) != routing.Down {
			t.Fatal("not down")
		}
		s.prober.Swap([]Check{{Pool: s.pool, Server: s.server, Socket: "udp", Address: routing.Address{
			Proto: routing.SIP, Transport: "udp", Addr: netip.MustParseAddrPort("192.0.2.8:5060")}}})
		synctest.Wait()
		if got := s.edges(); !slices.Equal(got, []string{"down", "unknown", "up"}) {
			t.Errorf("edges %v", got)
		}
	})
}

// Of two sockets the worse one decides; when its check ends, the other one speaks for the server.
func TestTwoSockets(t *testing.T) {
	watch(t, func(_ int, req []byte) []byte { return nil }, nil, func(s *scene) {
		time.Sleep(13 * time.Second)
		synctest.Wait()
		addr := routing.Address{Proto: routing.SIP, Transport: "udp", Addr: serverAddr}
		one := Check{Pool: s.pool, Server: s.server, Socket: "udp", Address: addr}
		two := one
		two.Socket = "udp2"
		s.wire.set(func(socket string, req []byte) []byte {
			if socket == "udp" {
				return nil
			}
			return answer(req, "200 OK", "")
		})
		s.prober.Swap([]Check{one, two})
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if s.server.Health(routing.SIP) != routing.Down {
			t.Error("one socket hears nothing, and the server is up")
		}
		s.prober.Swap([]Check{two})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s.server.Health(routing.SIP) != routing.Up {
			t.Error("the check that missed is gone, and the server stays down")
		}
	})
}

// Jitter spreads the probes of many nodes, within its share of the interval.
func TestJitter(t *testing.T) {
	watch(t, status("200 OK", ""), func(c *Check, _ *Config) { c.Jitter = 20 }, func(s *scene) {
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		var sum time.Duration
		seen := map[time.Duration]bool{}
		for i := 1; i < len(s.wire.when()); i++ {
			d := s.wire.when()[i].Sub(s.wire.when()[i-1])
			if d < 4500*time.Millisecond || d > 5500*time.Millisecond {
				t.Errorf("%v between two probes", d)
			}
			sum += d
			seen[d] = true
		}
		if len(seen) < 10 {
			t.Error("no jitter")
		}
		if mean := sum / time.Duration(len(s.wire.when())-1); mean < 4800*time.Millisecond || mean > 5200*time.Millisecond {
			t.Errorf("mean interval %v", mean)
		}
	})
}

// streamServer answers each OPTIONS on one end of a pipe.
func streamServer(t *testing.T, c net.Conn, reply func(req []byte) []byte) {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if r := reply(buf[:n]); r != nil {
			if _, err := c.Write(r); err != nil {
				return
			}
		} else {
			_ = c.Close()
			return
		}
	}
}

// SIP over TCP: the probe's own connection, kept; one that turned out broken is replaced at once.
func TestStream(t *testing.T) {
	var dials atomic.Int32
	var drop atomic.Bool
	watch(t, silence, func(c *Check, cfg *Config) {
		c.Address.Transport, c.Socket = "tcp", ""
		cfg.Dial = func(context.Context, routing.Address) (net.Conn, error) {
			dials.Add(1)
			a, b := net.Pipe()
			go streamServer(t, b, func(req []byte) []byte {
				if drop.Swap(false) {
					return nil
				}
				late := answer(bytes.Replace(req, []byte(BranchPrefix), []byte(BranchPrefix+"0"), 1), "200 OK", "")
				return append(append(late, answer(req, "100 Trying", "")...), answer(req, "200 OK", "")...)
			})
			return a, nil
		}
	}, func(s *scene) {
		time.Sleep(21 * time.Second)
		synctest.Wait()
		if s.server.Health(routing.SIP) != routing.Up || dials.Load() != 1 {
			t.Errorf("%v after %d connections: %+v", s.server.Health(routing.SIP), dials.Load(), s.prober.Statuses())
		}
		drop.Store(true)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if st := s.prober.Statuses()[0]; st.Result != OK || dials.Load() != 2 {
			t.Errorf("broken connection: %+v, %d connections", st, dials.Load())
		}
	})
}

func TestStreamRefused(t *testing.T) {
	watch(t, silence, func(c *Check, cfg *Config) {
		c.Address.Transport, c.Socket, cfg.Dial = "tcp", "", refusing
	}, func(s *scene) {
		time.Sleep(10100 * time.Millisecond)
		synctest.Wait()
		if d := s.server.Detail(routing.SIP); d.Health != routing.Down || !d.Refused {
			t.Errorf("%+v", d)
		}
	})
}

// A server that accepts and says nothing is a time-out, bounded.
func TestStreamSilent(t *testing.T) {
	watch(t, silence, func(c *Check, cfg *Config) {
		c.Address.Transport, c.Socket = "tcp", ""
		cfg.Dial = func(context.Context, routing.Address) (net.Conn, error) {
			a, b := net.Pipe()
			go func() {
				buf := make([]byte, 1024)
				for {
					if _, err := b.Read(buf); err != nil {
						return
					}
				}
			}()
			return a, nil
		}
	}, func(s *scene) {
		time.Sleep(2100 * time.Millisecond)
		synctest.Wait()
		if st := s.prober.Statuses()[0]; st.Result != Timeout || st.Took > 2010*time.Millisecond {
			t.Errorf("%+v", st)
		}
	})
}
