package obs

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestRingDropsAndCountsWhenFull(t *testing.T) {
	lost := prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	r := NewRing(3, lost) // four slots
	for i := range 6 {
		r.Put(&Record{Code: i})
	}
	var got []int
	for r.Take(func(rec *Record) { got = append(got, rec.Code) }) {
	}
	if len(got) != 4 || got[0] != 0 || got[3] != 3 {
		t.Errorf("took %v, want the first four in order", got)
	}
	if n := testutil.ToFloat64(lost); n != 2 {
		t.Errorf("%v counted as dropped, want 2", n)
	}
	for i := range 100 { // round and round
		r.Put(&Record{Code: i})
		if !r.Take(func(rec *Record) { got = append(got[:0], rec.Code) }) || got[0] != i {
			t.Fatalf("round %d gave %v", i, got)
		}
	}
	if r.Take(func(*Record) {}) {
		t.Error("an empty ring gave a record")
	}
}

func TestNilRingTakesNothing(t *testing.T) {
	var r *Ring
	r.Put(&Record{})
	if r.Enabled() || !NewRing(2, nil).Enabled() {
		t.Error("only a nil ring is off")
	}
	var l *AccessLog
	if l.NewRing() != nil {
		t.Error("a log that is off gave a ring")
	}
	l.Reopen()
}

// TestManyWritersOneReader: no record is lost without being counted, none comes twice, those of one writer stay in
// order.
func TestManyWritersOneReader(t *testing.T) {
	const writers, each = 8, 5000
	lost := prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	r := NewRing(64, lost)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			var rec Record
			for i := range each {
				rec.Reset()
				rec.Code, rec.NumTried = i, w
				var b [8]byte
				binary.LittleEndian.PutUint64(b[:], uint64(w*each+i))
				rec.Key = rec.Put(b[:], 8)
				r.Put(&rec)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	last := [writers]int{}
	for i := range last {
		last[i] = -1
	}
	taken := 0
	take := func(rec *Record) {
		taken++
		if rec.Code <= last[rec.NumTried] {
			t.Errorf("writer %d: %d after %d", rec.NumTried, rec.Code, last[rec.NumTried])
		}
		last[rec.NumTried] = rec.Code
		if got := binary.LittleEndian.Uint64(rec.Bytes(rec.Key)); got != uint64(rec.NumTried*each+rec.Code) {
			t.Errorf("record of writer %d is torn", rec.NumTried)
		}
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		for r.Take(take) {
		}
	}
	if n := int(testutil.ToFloat64(lost)); taken+n != writers*each {
		t.Errorf("%d taken, %d dropped, %d put", taken, n, writers*each)
	}
}

func TestPutAllocatesNothing(t *testing.T) {
	r := NewRing(64, prometheus.NewCounter(prometheus.CounterOpts{Name: "x"}))
	var rec Record
	uri := []byte("sip:room-4711@sip.example.net")
	use := func(*Record) {}
	if n := testing.AllocsPerRun(1000, func() {
		rec.Reset()
		rec.URI = rec.Put(uri, 256)
		rec.SetKey(uri)
		rec.AddTried("as1")
		r.Put(&rec)
		r.Take(use)
	}); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}

func TestRecordCutsWhatIsTooLong(t *testing.T) {
	var r Record
	long := make([]byte, 1000)
	r.SetKey(long)
	if n := len(r.Bytes(r.Key)); n != KeyMax || r.KeyLen != 1000 {
		t.Errorf("key of %d octets, length %d", n, r.KeyLen)
	}
	a, b := r.Put(long, 300), r.Put(long, 300)
	if len(r.Bytes(a)) != 300 || len(r.Bytes(b)) != TextMax-KeyMax-300 {
		t.Errorf("texts of %d and %d octets", len(r.Bytes(a)), len(r.Bytes(b)))
	}
	if len(r.Bytes(r.Put(long, 10))) != 0 {
		t.Error("a full record took more")
	}
	for range 10 {
		r.AddTried("s")
	}
	if r.NumTried != 10 {
		t.Errorf("%d tried", r.NumTried)
	}
	AppendJSON(nil, &r, "n") // must not look beyond what Tried holds
}

func BenchmarkRing(b *testing.B) {
	r := NewRing(1024, nil)
	var rec Record
	use := func(*Record) {}
	b.ReportAllocs()
	for b.Loop() {
		r.Put(&rec)
		r.Take(use)
	}
}
