package resolver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

var errSilent = errors.New("silent")

// scriptedZone is a scripted resolver in virtual time: lines of a zone file, and names for which nobody answers.
type scriptedZone struct {
	mu     sync.Mutex // the test changes the script while the watch asks
	rrs    []string
	silent map[string]bool // "name type", or "*"
	asked  []time.Duration // of SRV or A queries of the watched name
	began  time.Time
	watch  string
}

func (z *scriptedZone) exchange(_ context.Context, name string, qtype uint16) (*dns.Msg, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if q := name + " " + dns.TypeToString[qtype]; q == z.watch {
		z.asked = append(z.asked, time.Since(z.began))
	}
	if z.silent["*"] || z.silent[name+" "+dns.TypeToString[qtype]] {
		return nil, errSilent
	}
	m := new(dns.Msg)
	for _, line := range z.rrs {
		rr, err := dns.NewRR(line)
		if err != nil {
			return nil, err
		}
		if rr.Header().Rrtype == qtype && rr.Header().Name == dns.Fqdn(name) {
			m.Answer = append(m.Answer, rr)
		}
	}
	return m, nil
}

func (z *scriptedZone) change(f func()) {
	z.mu.Lock()
	defer z.mu.Unlock()
	f()
}

const pcrf = "_diameter._tcp.pcrf.test"

func watchOf(z *scriptedZone, c WatchConfig) *Watch {
	w := NewWatch(c)
	w.ask, z.began, z.watch = z, time.Now(), c.SRV+" SRV"
	if c.SRV == "" {
		z.watch = c.Host + " A"
	}
	if z.silent == nil {
		z.silent = map[string]bool{}
	}
	return w
}

// watching runs the watch in the bubble for the time of the test's body.
func watching(t *testing.T, w *Watch, body func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	synctest.Wait()
	body()
	stop()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}
}

func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func twoServers() []string {
	return []string{
		pcrf + ". 60 IN SRV 20 5 3869 b.test.", pcrf + ". 60 IN SRV 10 7 3868 A.test.",
		"a.test. 30 IN A 192.0.2.1", "a.test. 40 IN AAAA 2001:db8::1", "b.test. 50 IN A 192.0.2.2",
	}
}

func TestWatchReadsSRVAndAsksWhenTheTTLEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &scriptedZone{rrs: twoServers()}
		w := watchOf(z, WatchConfig{SRV: pcrf})
		watching(t, w, func() {
			got, _ := w.Last()
			want := Set{TTL: 30 * time.Second, SRV: true, Targets: []Target{
				{"a.test", 3868, 10, 7, []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}},
				{"b.test", 3869, 20, 5, []netip.Addr{netip.MustParseAddr("192.0.2.2")}},
			}}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("set %+v, want %+v", got, want)
			}
			after(61 * time.Second)
		})
		if want := []time.Duration{0, 30 * time.Second, time.Minute}; !reflect.DeepEqual(z.asked, want) {
			t.Errorf("asked at %v, want %v", z.asked, want)
		}
	})
}

// diameter.md 5.1: after a failure 5 s, doubling, until a valid reply; cached servers stay; success begins again at 5 s.
func TestWatchDoublesItsWaitAndKeepsTheLastAnswer(t *testing.T) {
	for _, how := range []string{"silent", "no records", "no address", "target dot"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				z := &scriptedZone{rrs: twoServers()}
				var waits []time.Duration
				w := watchOf(z, WatchConfig{SRV: pcrf, RetryMax: 20 * time.Second,
					Failed: func(_ error, again time.Duration) { waits = append(waits, again) }})
				watching(t, w, func() {
					before, _ := w.Last()
					z.change(func() {
						switch how {
						case "silent":
							z.silent["*"] = true
						case "no records":
							z.rrs = nil
						case "no address":
							z.rrs = z.rrs[:2]
						case "target dot":
							z.rrs = []string{pcrf + ". 60 IN SRV 0 0 0 ."}
						}
					})
					after(30*time.Second + (5+10+20+20)*time.Second + time.Second)
					if now, ok := w.Last(); !ok || !reflect.DeepEqual(now, before) {
						t.Errorf("the last answer was not kept: %+v", now)
					}
					z.change(func() { z.rrs, z.silent = twoServers(), map[string]bool{} })
					after(20 * time.Second)
					z.change(func() { z.silent["*"] = true })
					after(35 * time.Second)
				})
				if got, want := fmt.Sprint(waits), "[5s 10s 20s 20s 20s 5s 10s]"; got != want {
					t.Errorf("waits %s, want %s", got, want)
				}
			})
		})
	}
}

func TestWatchAsksForAddressesWithoutSRV(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &scriptedZone{rrs: []string{"pcrf.test. 1 IN A 192.0.2.9", "pcrf.test. 1 IN A 192.0.2.8"}}
		for _, c := range []WatchConfig{{Host: "pcrf.test"}, {SRV: pcrf, Host: "pcrf.test"}} {
			w := watchOf(z, c)
			watching(t, w, func() {
				got, _ := w.Last()
				want := Set{TTL: 5 * time.Second, Targets: []Target{{Host: "pcrf.test",
					Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.8"), netip.MustParseAddr("192.0.2.9")}}}}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("set %+v, want %+v", got, want)
				}
			})
		}
	})
}

func TestWatchKeepsAddressesOfATargetNobodyAnswersFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &scriptedZone{rrs: twoServers()}
		w := watchOf(z, WatchConfig{SRV: pcrf})
		watching(t, w, func() {
			z.change(func() { z.silent["b.test A"], z.silent["b.test AAAA"] = true, true })
			after(31 * time.Second)
			got, _ := w.Last()
			if len(got.Targets) != 2 || len(got.Targets[1].Addrs) != 1 || got.TTL != 5*time.Second {
				t.Errorf("set %+v", got)
			}
		})
	})
}

func TestWatchRefreshAsksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &scriptedZone{rrs: twoServers()}
		learnt := 0
		w := watchOf(z, WatchConfig{SRV: pcrf, Learnt: func(Set) { learnt++ }})
		watching(t, w, func() {
			after(3 * time.Second)
			w.Refresh()
			after(29 * time.Second)
		})
		if want := []time.Duration{0, 3 * time.Second}; !reflect.DeepEqual(z.asked, want) || learnt != 2 {
			t.Errorf("asked at %v, learnt %d, want %v", z.asked, learnt, want)
		}
	})
}

// diameter.md 5.1 rule 3: addresses of the other family are as if they were not there.
func TestWatchOfOneFamily(t *testing.T) {
	for family, want := range map[Family]string{IPv4: "192.0.2.1", IPv6: "2001:db8::1"} {
		synctest.Test(t, func(t *testing.T) {
			z := &scriptedZone{rrs: twoServers()}
			w := watchOf(z, WatchConfig{SRV: pcrf, Family: family})
			watching(t, w, func() {
				got, _ := w.Last()
				if len(got.Targets) == 0 || len(got.Targets[0].Addrs) != 1 || got.Targets[0].Addrs[0].String() != want {
					t.Errorf("family %d: %+v", family, got.Targets)
				}
				if family == IPv6 && len(got.Targets) != 1 {
					t.Errorf("b.test has no such address, and stands in %+v", got.Targets)
				}
			})
		})
	}
}

// A watch whose owner does the timing asks once, and then when it is told to (diameter.md 5.2).
func TestWatchThatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, waits := 0, []time.Duration(nil)
		w := NewWatch(WatchConfig{Asked: true, Query: func(context.Context) (Set, error) {
			if asked++; asked == 2 {
				return Set{}, errSilent
			}
			return Set{TTL: time.Second}, nil
		}, Failed: func(_ error, again time.Duration) { waits = append(waits, again) }})
		watching(t, w, func() {
			after(time.Hour)
			w.Refresh()
			after(time.Hour)
		})
		if asked != 2 || len(waits) != 1 || waits[0] != 0 {
			t.Errorf("asked %d times, failures %v", asked, waits)
		}
	})
}

// retry_factor: 3 gives 5, 15, 45 s; an answer from before stands until a query succeeds.
func TestWatchGrowsByItsFactor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		w := NewWatch(WatchConfig{Factor: 3, Query: func(context.Context) (Set, error) { return Set{}, errSilent },
			Failed: func(_ error, again time.Duration) { waits = append(waits, again) }})
		w.Keep(Set{TTL: time.Minute})
		watching(t, w, func() {
			after(50 * time.Second)
			if got, ok := w.Last(); !ok || got.TTL != time.Minute {
				t.Errorf("kept %+v, %v", got, ok)
			}
		})
		if want := []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second}; !reflect.DeepEqual(waits, want) {
			t.Errorf("waits %v, want %v", waits, want)
		}
	})
}
