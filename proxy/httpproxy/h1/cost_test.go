package h1

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/proxy"
)

// quickServer answers every head of one write with a text, and allocates nothing.
func quickServer(tb testing.TB, text string) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = ln.Close() })
	answer := []byte(text)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 4096)
				for {
					n, err := c.Read(b)
					if err != nil {
						return
					}
					if bytes.HasSuffix(b[:n], []byte("\r\n\r\n")) {
						if _, err := c.Write(answer); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// asker sends one request again and again, and reads answers of one length.
func asker(tb testing.TB, addr, request string, answer int) func() {
	tb.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	req, b := []byte(request), make([]byte, answer)
	return func() {
		if _, err := c.Write(req); err != nil {
			tb.Fatal(err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			tb.Fatal(err)
		}
	}
}

var kilobyte = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n" + strings.Repeat("k", 1024)

func answerLength(tb testing.TB, addr, request string) int {
	tb.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, strings.Replace(request, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
	all, _ := io.ReadAll(c)
	return len(all) - len("Connection: close\r\n")
}

const asked = "GET /room/1?conf=4711 HTTP/1.1\r\nHost: phone.example.net\r\nUser-Agent: curl/8.0\r\nAccept: */*\r\nCookie: x=y\r\nX-Key: 4711\r\n\r\n"

// Rule 1 of architecture.md 4.2, end to end: a proxied request on connections that are open costs no allocation, with
// stickiness, log and counters on.
func TestRequestAllocatesNothing(t *testing.T) {
	r := newRig(t, []string{quickServer(t, kilobyte)}, func(r *rig, c *Config) { r.app.Target.Sticky.Mode = proxy.CookieAlways })
	ask := asker(t, r.addr, asked, answerLength(t, r.addr, asked))
	for range 100 {
		ask()
	}
	var before, after runtime.MemStats
	const rounds = 2000
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range rounds {
		ask()
		r.ring.Take(func(*obs.Record) {})
	}
	runtime.ReadMemStats(&after)
	if n := float64(after.Mallocs-before.Mallocs) / rounds; n > 0.1 { // the watch ticks and the runtime breathes
		t.Errorf("%.2f allocations a request", n)
	}
}

// The same without sockets: parse, decide, write.
func TestDecideAllocatesNothing(t *testing.T) {
	r := newRig(t, []string{"127.0.0.1:1"})
	c := &conn{f: r.front, gen: r.gen, l: r.gen.Listeners["http"], listener: "http"}
	x := r.front.exchange(c)
	c.x = x
	resp := []byte(kilobyte)
	work := func() {
		x.begin(c)
		x.fill = copy(x.in, asked)
		n, err := x.req.ParseRequest(x.in[:x.fill], &x.headLimits)
		if x.head = n; n == 0 || err != nil {
			t.Fatal(err)
		}
		if err := c.decide(); err != nil {
			t.Fatal(err)
		}
		if err := c.compose(); err != nil {
			t.Fatal(err)
		}
		x.have = copy(x.resp, resp)
		x.answer.Reset()
		if _, err := x.answer.ParseResponse(x.resp[:x.have], &http1.Limits{}); err != nil {
			t.Fatal(err)
		}
		x.answer.CutHopByHop()
		c.composeHead(false)
		c.fillRecord(r.front.now())
		x.choice.End()
	}
	work()
	if n := testing.AllocsPerRun(200, work); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// An idle keep-alive client costs less than 12 KiB (the task of this package; section 16, row 4).
func TestIdleMemory(t *testing.T) {
	n := 1000
	if os.Getenv("WYEGATE_SOAK") != "" {
		n = 7000
	}
	r := newRig(t, []string{quickServer(t, kilobyte)})
	length := answerLength(t, r.addr, asked)
	measure := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	open := func(count int) {
		for range count {
			asker(t, r.addr, asked, length)()
		}
	}
	open(100)
	before := measure()
	open(n)
	r.until("all idle", func() bool {
		idle := 0
		r.front.conns.each(func(c *conn) {
			if c.idle.Load() {
				idle++
			}
		})
		return idle == n+100
	})
	after := measure()
	// Both ends of every connection are in this process: what the client's end costs is measured apart.
	per := int64(after-before) / int64(n)
	t.Logf("%d octets per idle connection, both ends", per)
	if per > 12<<10 {
		t.Errorf("%d octets per idle connection", per)
	}
}

func BenchmarkRequest(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("k", size))
			r := newRig(b, []string{quickServer(b, answer)})
			length := answerLength(b, r.addr, asked)
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			go func() {
				for ctx.Err() == nil {
					if !r.ring.Take(func(*obs.Record) {}) {
						time.Sleep(time.Millisecond)
					}
				}
			}()
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				ask := asker(b, r.addr, asked, length)
				for pb.Next() {
					ask()
				}
			})
		})
	}
}
