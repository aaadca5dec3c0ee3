package limit

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// SS-5: a source gets its burst and then its rate, to the message.
func TestSS5BurstThenRate(t *testing.T) {
	r := NewRates(Config{PerSource: Rate{PerSecond: 200, Burst: 400}})
	a, now := addr("192.0.2.1"), int64(1e18)
	passed := 0
	for range 1000 {
		if r.Allow(a, now) {
			passed++
		}
	}
	if passed != 400 {
		t.Fatalf("at once: %d passed, want the burst of 400", passed)
	}
	passed = 0
	for i := range 10_000 { // ten seconds, one message a millisecond
		if r.Allow(a, now+int64(i)*int64(time.Millisecond)) {
			passed++
		}
	}
	if passed < 1995 || passed > 2005 {
		t.Fatalf("in ten seconds: %d passed, want 2000", passed)
	}
}

// SS-5: a flood from one source leaves the others unharmed, and the common bucket too.
func TestSS5FloodHarmsNobodyElse(t *testing.T) {
	r := NewRates(Config{PerSource: Rate{PerSecond: 10, Burst: 10}, Total: Rate{PerSecond: 1000, Burst: 100}})
	now := int64(1e18)
	for range 5000 {
		r.Allow(addr("192.0.2.1"), now)
	}
	for i := range 9 {
		for range 10 {
			if !r.Allow(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), now) {
				t.Fatal("a quiet source was refused")
			}
		}
	}
	if r.Allow(addr("203.0.113.9"), now) {
		t.Fatal("the common bucket of 100 gave more than 100")
	}
}

func TestExemptAndIPv6(t *testing.T) {
	r := NewRates(Config{PerSource: Rate{PerSecond: 1, Burst: 1}, Exempt: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::ffff:172.16.0.0/108")}})
	now := int64(1e18)
	for _, a := range []string{"10.1.2.3", "::ffff:10.1.2.3", "172.16.0.9"} {
		for range 5 {
			if !r.Allow(addr(a), now) {
				t.Fatalf("%s is exempt", a)
			}
		}
	}
	if !r.Allow(addr("2001:db8::1"), now) || r.Allow(addr("2001:db8::ffff"), now) {
		t.Fatal("one /64 is one source")
	}
	if !r.Allow(addr("2001:db8:0:1::1"), now) {
		t.Fatal("another /64 is another source")
	}
	if !r.Allow(addr("192.0.2.1"), now) || r.Allow(addr("::ffff:192.0.2.1"), now) {
		t.Fatal("a v4-mapped address is its IPv4 address (SX-13)")
	}
}

func TestNothingLimited(t *testing.T) {
	if r := NewRates(Config{}); r != nil || !r.Allow(addr("192.0.2.1"), 1) {
		t.Fatal("no rates: everything passes")
	}
}

// The table is bounded: a million sources change nothing for one that keeps within its rate.
func TestManySourcesFlatMemory(t *testing.T) {
	r := NewRates(Config{PerSource: Rate{PerSecond: 10, Burst: 5}, Sources: 1024})
	for i := range uint32(1_000_000) {
		a := netip.AddrFrom4([4]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})
		if !r.Allow(a, int64(1e18)+int64(i)) {
			t.Fatalf("the first message of %v was refused", a)
		}
	}
	if len(r.sources)*ways != 1024 {
		t.Fatalf("table has %d places", len(r.sources)*ways)
	}
}

// Whatever the arrivals: never more than burst + rate × time.
func TestNeverMoreThanTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{PerSecond: float64(rapid.IntRange(1, 1000).Draw(t, "rate")), Burst: rapid.IntRange(1, 50).Draw(t, "burst")}
		r := NewRates(Config{PerSource: rate})
		start := int64(1e18)
		now, passed := start, 0
		for _, gap := range rapid.SliceOf(rapid.Int64Range(0, int64(50*time.Millisecond))).Draw(t, "gaps") {
			now += gap
			if r.Allow(addr("192.0.2.1"), now) {
				passed++
			}
		}
		// One token of slack: a step is rounded down to whole nanoseconds.
		most := float64(rate.Burst) + rate.PerSecond*float64(now-start)/1e9 + 1
		if float64(passed) > most {
			t.Fatalf("%d passed, at most %.1f may", passed, most)
		}
	})
}

func TestConcurrentTakersShareOneBucket(t *testing.T) {
	r := NewRates(Config{Total: Rate{PerSecond: 1, Burst: 1000}})
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if r.Allow(addr("192.0.2.1"), 1e18) {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if passed.Load() != 1000 {
		t.Fatalf("%d passed, want 1000", passed.Load())
	}
}

func TestCaps(t *testing.T) {
	c := NewCaps(3, 2, NewExempt([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}))
	a, b, x := addr("192.0.2.1"), addr("192.0.2.2"), addr("10.0.0.1")
	if !c.Acquire(a) || !c.Acquire(a) || c.Acquire(a) {
		t.Fatal("two per source")
	}
	if !c.Acquire(b) || c.Acquire(x) {
		t.Fatal("three in all, exempt ones too")
	}
	c.Release(a)
	c.Release(a)
	c.Release(b)
	if c.Open() != 0 || len(c.sources) != 0 {
		t.Fatalf("open %d, sources %v after all were released", c.Open(), c.sources)
	}
	for range 3 {
		if !c.Acquire(x) {
			t.Fatal("an exempt source has no cap of its own")
		}
	}
	c.Change(4, 1, Exempt{})
	if c.Acquire(x) || !c.Acquire(b) {
		t.Fatal("the new bounds count")
	}
}

func TestAllowDoesNotAllocate(t *testing.T) {
	r := NewRates(Config{PerSource: Rate{PerSecond: 1000}, Total: Rate{PerSecond: 1e6}})
	now, i := int64(1e18), byte(0)
	if n := testing.AllocsPerRun(1000, func() {
		i++
		r.Allow(netip.AddrFrom4([4]byte{192, 0, 2, i}), now)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkAllow(b *testing.B) {
	r := NewRates(Config{PerSource: Rate{PerSecond: 1000}})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Allow(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), int64(i)*1000)
	}
}
