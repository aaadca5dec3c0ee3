package sip

import (
	"bytes"
	"testing"
)

// A framer whose buffer is taken away whenever that is possible gives the same pieces, and keeps none between messages.
func TestFramerWithBorrowedMemory(t *testing.T) {
	msg := "OPTIONS sip:a SIP/2.0\r\nCall-ID: x\r\nContent-Length: 3\r\n\r\nabc"
	stream := []byte("\r\n\r\n" + msg + "\r\n" + msg + msg + "\r\n\r\n")
	run := func(borrow bool) (out []byte, reclaimed int) {
		f := NewFramer(Limits{})
		for _, c := range stream {
			if borrow && !f.Held() {
				f.Lend(make([]byte, 0, 64))
			}
			f.Feed([]byte{c})
			for {
				p, b, _ := f.Next()
				if p == More {
					break
				}
				out = append(append(out, byte('0'+p)), b...)
			}
			if !borrow {
				continue
			}
			if b := f.Reclaim(); b != nil {
				reclaimed++
			} else if f.Part() == Between && c == '\n' {
				t.Fatal("a buffer is kept between messages")
			}
		}
		return out, reclaimed
	}
	plain, _ := run(false)
	borrowed, n := run(true)
	if !bytes.Equal(plain, borrowed) || bytes.Count(plain, []byte(msg)) != 3 {
		t.Fatalf("got\n%q\nwant\n%q", borrowed, plain)
	}
	if n < 8 {
		t.Fatalf("the buffer came back %d times", n)
	}
}
