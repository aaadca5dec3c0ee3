package h1

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
)

// packed is text as a server stores it: gzip, so that whatever unpacked it on the way would change length and octets.
func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// HB-6: a coded body passes in both directions octet for octet with the fields that describe it; no Accept-Encoding is
// added to a request, and no Content-Type, Date, Server or Vary to an answer that came without.
func TestCodingUntouched(t *testing.T) {
	body := packed(t, string(pattern(40<<10)))
	stored := map[string]string{
		"/whole": fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nETag: \"strong\"\r\nServer: origin/1\r\n"+
			"Date: Tue, 01 Dec 2026 00:00:00 GMT\r\nVary: Accept-Encoding\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
		"/chunked": fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nETag: W/\"weak\"\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"%x\r\n%s\r\n0\r\n\r\n", len(body), body),
		"/range": fmt.Sprintf("HTTP/1.1 206 Partial Content\r\nContent-Encoding: gzip\r\nContent-Range: bytes 0-9/%d\r\n"+
			"Accept-Ranges: bytes\r\nContent-Length: 10\r\n\r\n%s", len(body), body[:10]),
	}
	described := []string{"Content-Encoding", "Etag", "Server", "Date", "Vary", "Content-Type", "Content-Range", "Accept-Ranges", "Content-Length"}
	type sent struct {
		accept, coding []string
		body           string
	}
	requests := make(chan sent, 1)
	o := newOrigin(t, func(c *originConn) {
		for {
			req, got, err := c.request()
			if err != nil {
				return
			}
			requests <- sent{req.Header["Accept-Encoding"], req.Header["Content-Encoding"], got}
			if _, err := io.WriteString(c, stored[req.URL.Path]); err != nil {
				return
			}
		}
	})
	w := newRig(t, []string{o.addr}).dial()

	want := map[string]http.Header{
		"/whole": {"Content-Encoding": {"gzip"}, "Etag": {`"strong"`}, "Server": {"origin/1"}, "Date": {"Tue, 01 Dec 2026 00:00:00 GMT"},
			"Vary": {"Accept-Encoding"}, "Content-Length": {itoa(len(body))}},
		"/chunked": {"Content-Encoding": {"gzip"}, "Etag": {`W/"weak"`}},
		"/range": {"Content-Encoding": {"gzip"}, "Content-Range": {"bytes 0-9/" + itoa(len(body))}, "Accept-Ranges": {"bytes"},
			"Content-Length": {"10"}},
	}
	for _, path := range []string{"/whole", "/chunked", "/range"} {
		for _, accept := range [][]string{nil, {"gzip, br;q=0.5"}, {"identity"}} {
			head := "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: " + itoa(len(body)) + "\r\n"
			for _, v := range accept {
				head += "Accept-Encoding: " + v + "\r\n"
			}
			w.send(head + "\r\n" + body)
			resp, down := w.answer("POST")
			up := <-requests
			if !slices.Equal(up.accept, accept) || !slices.Equal(up.coding, []string{"gzip"}) || up.body != body {
				t.Errorf("%s %q: server got Accept-Encoding %q, Content-Encoding %q, %d octets", path, accept, up.accept, up.coding, len(up.body))
			}
			whole := body
			if path == "/range" {
				whole = body[:10]
			}
			if down != whole {
				t.Errorf("%s %q: %d octets of body, want %d as they were", path, accept, len(down), len(whole))
			}
			for _, name := range described {
				if got := resp.Header[name]; !slices.Equal(got, want[path][name]) {
					t.Errorf("%s %q: %s is %q, want %q", path, accept, name, got, want[path][name])
				}
			}
		}
	}
}
