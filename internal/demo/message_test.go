package demo

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"testing"
)

const sample = "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 127.0.0.1:1;branch=z9hG4bK1\r\nrecord-route: <sip:a;lr>, \"x, y\" <sip:b,c;lr>\r\n" +
	"Record-Route: <sip:d;lr>\r\nCSeq: 7 BYE\r\nContact: \"as1\" <sip:as1@127.0.0.1:5>;q=1\r\nContent-Length: 0\r\n\r\n"

func TestMessage(t *testing.T) {
	m, err := parse(sample)
	if err != nil {
		t.Fatal(err)
	}
	if m.status() != 200 || m.method() != "BYE" || m.get("content-length") != "0" || m.get("Nothing") != "" {
		t.Errorf("status %d, method %q", m.status(), m.method())
	}
	if got, want := m.all("Record-Route"), []string{"<sip:a;lr>", `"x, y" <sip:b,c;lr>`, "<sip:d;lr>"}; !slices.Equal(got, want) {
		t.Errorf("routes %q, want %q", got, want)
	}
	if got := addrSpec(m.get("Contact")); got != "sip:as1@127.0.0.1:5" || userPart(got) != "as1" {
		t.Errorf("contact %q", got)
	}
	if got := addrSpec("sip:a@b;tag=1"); got != "sip:a@b" {
		t.Errorf("bare address %q", got)
	}
	r, err := parse("ACK sip:b@c SIP/2.0\r\nTo: x\r\n\r\n")
	if err != nil || r.status() != 0 || r.method() != "ACK" || r.uri() != "sip:b@c" {
		t.Errorf("request %+v, %v", r, err)
	}
	for _, bad := range []string{"", "SIP/2.0 200 OK\r\n", "SIP/2.0 200 OK\r\nno colon\r\n\r\n"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// TestStream: messages come off a stream one after the other, with their bodies and what may stand between them.
func TestStream(t *testing.T) {
	withBody := strings.Replace(sample, "Content-Length: 0\r\n\r\n", "Content-Length: 4\r\n\r\nbody", 1)
	r := bufio.NewReader(strings.NewReader("\r\n\r\n" + withBody + sample + "\r\n" + sample))
	for i := range 3 {
		m, err := readMessage(r)
		if err != nil || m.status() != 200 || m.get("CSeq") != "7 BYE" {
			t.Fatalf("message %d: %+v, %v", i, m, err)
		}
	}
	if _, err := readMessage(r); err != io.EOF {
		t.Errorf("after the last: %v", err)
	}
}

// FuzzParse: what is read and written again field for field is read the same.
func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("INVITE sip:a@b SIP/2.0\r\nTo : \r\n\r\nrest")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parse(text)
		if err != nil {
			return
		}
		again := m.start + "\r\n"
		for _, field := range m.fields {
			again += field[0] + ": " + field[1] + "\r\n"
		}
		n, err := parse(again + "\r\n")
		if err != nil {
			t.Fatalf("%q was read, %q is not: %v", text, again, err)
		}
		if n.start != m.start || !slices.Equal(n.fields, m.fields) || n.status() != m.status() || n.method() != m.method() {
			t.Fatalf("%+v became %+v", m, n)
		}
		for _, field := range m.fields {
			if got := strings.Join(splitList(field[1]), ","); strings.Count(got, ",") != strings.Count(field[1], ",") {
				t.Fatalf("list %q became %q", field[1], got)
			}
		}
	})
}
