package sip

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func streamMessage(body int) string {
	return fmt.Sprintf("BYE sip:b@h SIP/2.0\r\nl: %d\r\n\r\n%s", body, strings.Repeat("b", body))
}

// SX-5: nothing is allocated by an announced length.
func TestFramerMemoryFollowsWhatCame(t *testing.T) {
	f := NewFramer(Limits{})
	f.Feed([]byte("BYE sip:b@h SIP/2.0\r\nl: 1000000\r\n\r\nbody"))
	if p, _, _ := f.Next(); p != More {
		t.Fatalf("piece %d", p)
	}
	if cap(f.buf) > 4096 {
		t.Errorf("%d octets kept for 38 received", cap(f.buf))
	}
	if f.Part() != InBody {
		t.Errorf("waits for part %d", f.Part())
	}
}

func TestFramerLimits(t *testing.T) {
	for name, c := range map[string]struct {
		in     string
		status int // 0: a message
	}{
		"body at the limit":   {streamMessage(64), 0},
		"body over the limit": {streamMessage(65), 513},
		"head at the limit":   {"BYE sip:b@h SIP/2.0\r\nX: " + strings.Repeat("y", 96-21-2-3-6-2) + "\r\nl: 0\r\n\r\n", 0},
		"head over the limit": {"BYE sip:b@h SIP/2.0\r\nX: " + strings.Repeat("y", 97-21-2-3-6-2) + "\r\nl: 0\r\n\r\n", 513},
		"endless line":        {"BYE sip:b@h SIP/2.0\r\nX: " + strings.Repeat("y", 200), 513},
		"endless start line":  {strings.Repeat("y", 200), 513},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFramer(Limits{Head: 96, Body: 64})
			for _, b := range []byte(c.in) {
				f.Feed([]byte{b})
				p, msg, bad := f.Next()
				switch {
				case p == Broken:
					if bad.Status != c.status || !bad.Close || len(msg) > 96 {
						t.Errorf("status %d, close %v, %d octets", bad.Status, bad.Close, len(msg))
					}
					return
				case p == Message && (c.status != 0 || string(msg) != c.in):
					t.Errorf("message %q", msg)
				}
			}
			if c.status != 0 {
				t.Error("not refused")
			}
		})
	}
}

// A long-lived connection: messages of all sizes, reads that end anywhere, an idle buffer that stays small.
func TestFramerRoom(t *testing.T) {
	f := NewFramer(Limits{})
	var all []byte
	for i := range 200 {
		all = append(all, streamMessage(i*i)...)
	}
	r := bytes.NewReader(all)
	got := 0
	for {
		n, err := r.Read(f.Room(700)[:min(700, 1+got*13%700)])
		if err != nil {
			break
		}
		f.Filled(n)
		for {
			p, msg, _ := f.Next()
			if p == More {
				break
			}
			if want := streamMessage(got * got); p != Message || string(msg) != want {
				t.Fatalf("message %d: piece %d, %d octets, want %d", got, p, len(msg), len(want))
			}
			got++
		}
	}
	if got != 200 || f.Part() != Between {
		t.Fatalf("%d messages, waits for part %d", got, f.Part())
	}
	if f.Room(512); cap(f.buf) > keepBuffer {
		t.Errorf("an idle connection keeps %d octets", cap(f.buf))
	}
}

func TestFramerAllocatesNothing(t *testing.T) {
	f := NewFramer(Limits{})
	raw := []byte(invite)
	do := func() {
		f.Feed(raw)
		if p, _, _ := f.Next(); p != Message {
			t.Error("no message")
		}
	}
	do()
	if n := testing.AllocsPerRun(100, do); n != 0 {
		t.Errorf("%v allocations for one message", n)
	}
}

func BenchmarkFramer(b *testing.B) {
	f := NewFramer(Limits{})
	raw := []byte(invite)
	b.ReportAllocs()
	for b.Loop() {
		f.Feed(raw)
		f.Next()
	}
}
