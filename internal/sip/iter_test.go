package sip

import (
	"strings"
	"testing"
)

// One walk for all readers: over lines and commas, past what cannot be read, and over a single field as one element.
func TestWalks(t *testing.T) {
	const raw = "BYE sip:b@h SIP/2.0\r\nRoute: <sip:a;lr> , nonsense, \"x, y\" <sip:b;lr>,\r\nX: 1\r\nroute:\r\nRoute: <sip:c>\r\n" +
		"From: Bell, A <sip:f@h>;tag=1\r\nSupported: path ,, gruu\r\nk:\r\n outbound\r\nVia: SIP/2.0/UDP a, x, SIP/2.0/UDP b\r\nv: SIP/2.0/UDP c\r\n\r\n"
	var m Msg
	if err := m.Parse([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for it := m.Addrs(Route); it.Next(); {
		if it.Err != nil {
			got = append(got, "?")
			continue
		}
		got = append(got, string(it.Addr.URI))
	}
	for it := m.Addrs(From); it.Next(); {
		got = append(got, string(it.Addr.Display))
	}
	for it := m.Tokens(Supported); it.Next(); {
		got = append(got, string(it.Token))
	}
	for it := m.Vias(); it.Next(); {
		if it.Err != nil {
			got = append(got, "?")
			continue
		}
		got = append(got, string(it.Via.Host))
	}
	for it := m.Addrs(Contact); it.Next(); {
		t.Error("a Contact where there is none")
	}
	if want := "sip:a;lr|?|sip:b;lr|sip:c|Bell, A|path|gruu|outbound|a|?|b|c"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %s", got, want)
	}
	if !From.Single() || Route.Single() || PAssertedIdentity.Single() {
		t.Error("lists and single fields are mixed up")
	}
}

// Every status of ST-6 has the reason phrase of its RFC.
func TestReasons(t *testing.T) {
	for _, status := range []int{100, 200, 400, 403, 404, 408, 414, 416, 420, 430, 480, 481, 482, 483, 488, 500, 503, 505, 513} {
		if r := Reason(status); r == "" || r == Reason(999) {
			t.Errorf("%d: %q", status, r)
		}
	}
	if got := error(ErrTooManyHops).Error(); got != "sip: Max-Forwards is 0" {
		t.Errorf("text %q", got)
	}
}

// A stream without a message of its own lends its buffer to others.
func TestFramerLendsItsBuffer(t *testing.T) {
	f := NewFramer(Limits{})
	f.Lend(make([]byte, 100, 2048))
	f.Feed([]byte(streamMessage(3) + "BYE"))
	if p, msg, _ := f.Next(); p != Message || string(msg) != streamMessage(3) {
		t.Errorf("piece %d, %q", p, msg)
	}
	if b := f.Reclaim(); b != nil {
		t.Error("the buffer goes although half a message is in it")
	}
	f.Feed([]byte(streamMessage(0)[3:]))
	if p, _, _ := f.Next(); p != Message {
		t.Errorf("piece %d", p)
	}
	if b := f.Reclaim(); cap(b) != 2048 || f.Held() {
		t.Errorf("a buffer of %d octets came back", cap(b))
	}
	f.Feed([]byte(streamMessage(1)))
	if p, msg, _ := f.Next(); p != Message || string(msg) != streamMessage(1) {
		t.Errorf("piece %d, %q", p, msg)
	}
}
