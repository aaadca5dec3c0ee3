package load

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestHistogramKeepsQuantiles(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	r := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for range 20000 {
		d := time.Duration(r.ExpFloat64() * float64(300*time.Microsecond))
		all = append(all, d)
		h.Add(d)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[min(int(q*float64(len(all))), len(all)-1)]
		got := h.Quantile(q)
		if diff := want - got; diff < 0 || float64(diff) > 0.04*float64(want)+1 {
			t.Errorf("quantile %v is %v, the values say %v", q, got, want)
		}
	}
}

func TestPlacesAreInOrder(t *testing.T) {
	for i := 1; i < places; i++ {
		if lowest(i) <= lowest(i-1) {
			t.Fatalf("place %d begins at %d, the one before at %d", i, lowest(i), lowest(i-1))
		}
		if place(lowest(i)) != i {
			t.Fatalf("%d is of place %d, not %d", lowest(i), place(lowest(i)), i)
		}
	}
	if p := place(1<<63 + 12345); p >= places {
		t.Errorf("the largest values have place %d of %d", p, places)
	}
}

func TestDatagramsGoInBatches(t *testing.T) {
	any := netip.MustParseAddrPort("127.0.0.1:0")
	a, err := Listen(any)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Listen(any)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	p, err := NewPoller(a, b)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()

	const n = 2*batch + 3
	for i := range n {
		m := append(a.Room(), bytes.Repeat([]byte{byte(i)}, i+1)...)
		a.Send(len(m), b.Addr)
	}
	a.Flush()
	got := 0
	for deadline := time.Now().Add(10 * time.Second); got < n && time.Now().Before(deadline); {
		p.Wait(time.Second, func(i int) {
			if i != 1 {
				t.Errorf("socket %d is ready, only 1 has something", i)
			}
			for k := range b.Receive() {
				m, from := b.Datagram(k)
				if len(m) != got+1 || m[0] != byte(got) || from != a.Addr {
					t.Errorf("datagram %d: %d octets of %d from %s", got, len(m), m[0], from)
				}
				got++
			}
		})
	}
	if got != n || a.Lost != 0 {
		t.Errorf("%d of %d came, %d were not taken", got, n, a.Lost)
	}
	if b.Receive() != 0 {
		t.Error("an empty socket gave something")
	}
}

func TestOnlyLoopbackTakesLoad(t *testing.T) {
	if _, err := Listen(netip.MustParseAddrPort("192.0.2.1:0")); !errors.Is(err, ErrNotLoopback) {
		t.Errorf("a socket outside of loopback: %v", err)
	}
}
