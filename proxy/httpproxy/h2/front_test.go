package h2

import (
	"strings"
	"testing"
)

// What the server gets: the octets of the target and of values, names in lower case, crumbs of Cookie joined, the
// authority as Host, Via with the version (H2-1, HF-6, HH-1, HH-2).
func TestForwardedHead(t *testing.T) {
	o := newServer(t, rawAnswers(ok))
	r := newRig(t, []string{o.addr})
	c := r.dial()
	got := c.ask(request("GET", "/a%zz/..;x=1//b?q=%2F&r", "accept", "*/*", "cookie", "a=1", "x-odd", "in  between", "cookie", "b=2",
		"host", "A.example.net", "te", "trailers", "accept", "text/html")...)
	if got.status != "200" || got.body != "ok" || got.header["content-length"][0] != "2" || got.header["via"][0] != "1.1 wyegate" {
		t.Fatalf("%+v", got)
	}
	for _, invented := range []string{"date", "content-type", "server"} {
		if got.header[invented] != nil {
			t.Errorf("%s: %q was invented", invented, got.header[invented])
		}
	}
	head := o.received()
	want := "GET /a%zz/..;x=1//b?q=%2F&r HTTP/1.1\r\nhost: a.example.net\r\naccept: */*\r\nx-odd: in  between\r\naccept: text/html\r\ncookie: a=1; b=2\r\nVia: 2.0 wyegate\r\n"
	if !strings.HasPrefix(head, want) || !strings.Contains(head, "\r\nConnection: TE\r\nTE: trailers\r\n") {
		t.Errorf("received\n%s", head)
	}
	rec := r.record()
	if rec.Code != 200 || rec.Server != "as1" || string(rec.Bytes(rec.URI)) != "/a%zz/..;x=1//b?q=%2F&r" {
		t.Errorf("record %+v", rec)
	}
}
