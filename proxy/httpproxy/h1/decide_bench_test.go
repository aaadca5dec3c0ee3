package h1

import (
	"testing"

	"github.com/wyegate/wyegate/internal/http1"
)

// BenchmarkDecide is what one request costs besides sockets: parse, decide, write both heads, fill the log line.
func BenchmarkDecide(b *testing.B) {
	r := newRig(b, []string{"127.0.0.1:1"})
	c := &conn{f: r.front, gen: r.gen, l: r.gen.Listeners["http"], listener: "http"}
	x := r.front.exchange(c)
	c.x = x
	resp := []byte(kilobyte)
	b.ReportAllocs()
	for b.Loop() {
		x.begin(c)
		x.fill = copy(x.in, asked)
		x.head, _ = x.req.ParseRequest(x.in[:x.fill], &x.headLimits)
		if err := c.decide(); err != nil {
			b.Fatal(err)
		}
		if err := c.compose(); err != nil {
			b.Fatal(err)
		}
		x.have = copy(x.resp, resp)
		x.answer.Reset()
		if _, err := x.answer.ParseResponse(x.resp[:x.have], &http1.Limits{}); err != nil {
			b.Fatal(err)
		}
		x.answer.CutHopByHop()
		c.composeHead(false)
		c.record(r.front.now())
		x.choice.End()
	}
}
