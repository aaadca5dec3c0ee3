package engine_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// 21.3: TLS records of one octet carry two requests with a ping between them, and the answers are those of whole ones.
func TestRecordsOfOneOctet(t *testing.T) {
	e, ca := tlsEdge(t)
	c, err := tls.Dial("tcp", e.at("sips").String(), secureClient(ca))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	request := func(n int) string {
		return strings.Join([]string{
			"OPTIONS sip:" + e.at("sips").String() + ";transport=tls SIP/2.0",
			fmt.Sprintf("Via: SIP/2.0/TLS client.example.net;branch=z9hG4bKoctet%d", n),
			"Max-Forwards: 70", "From: <sip:a@example.net>;tag=a", "To: <sip:b@example.net>",
			fmt.Sprintf("Call-ID: octet-%d", n), "CSeq: 1 OPTIONS", "Content-Length: 3", "", "abc",
		}, "\r\n")
	}
	all := request(1) + "\r\n\r\n" + request(2)
	for i := range all {
		if _, err := io.WriteString(c, all[i:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	r := bufio.NewReader(c)
	var told []string
	for len(told) < 3 {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %q", err, told)
		}
		if line == "\r\n" {
			told = append(told, "pong")
			continue
		}
		id := ""
		for field := line; field != "\r\n"; {
			if field, err = r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if _, v, ok := strings.Cut(field, "Call-ID: "); ok {
				id = strings.TrimSpace(v)
			}
		}
		told = append(told, strings.Fields(line)[1]+" "+id)
	}
	pongs := 0
	var answers []string
	for _, s := range told { // answers come from workers, the pong from the reader
		if s == "pong" {
			pongs++
		} else {
			answers = append(answers, s)
		}
	}
	if got := strings.Join(answers, ", "); pongs != 1 || got != "200 octet-1, 200 octet-2" && got != "200 octet-2, 200 octet-1" {
		t.Errorf("told %q", told)
	}
}
