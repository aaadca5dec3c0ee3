package h1

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/wyegate/wyegate/proxy"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// Section 11.5: a connection that has reached its age ends behind the next answer, which says so; idle it is left alone,
// and a new age counts for connections that are open.
func TestConnectionAge(t *testing.T) {
	for _, c := range []struct {
		name               string
		jitter             float64
		earliest, atLatest time.Duration
	}{
		{"exact", 0, time.Hour, time.Hour + time.Minute},
		{"with jitter", 0.2, 48 * time.Minute, 73 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, front *Front, client net.Conn) {
				front.Swap(&httpproxy.Generation{Number: 2, Limits: httpproxy.Limits{}.WithDefaults(),
					Listeners: map[string]*httpproxy.Listener{"http": {Name: "http", Matcher: &proxy.Matcher{}, MaxAge: time.Hour, AgeJitter: c.jitter}}})
				start, in := time.Now(), bufio.NewReader(client)
				for {
					go func() { _, _ = io.WriteString(client, get("/")) }()
					resp, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatalf("after %v: %v", time.Since(start), err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					took := time.Since(start)
					if resp.Close {
						if took < c.earliest || took > c.atLatest {
							t.Errorf("closed after %v", took)
						}
						break
					}
					if took > c.atLatest {
						t.Fatalf("still open after %v", took)
					}
					time.Sleep(time.Minute)
				}
				if n, err := in.Read(make([]byte, 1)); n != 0 || err != io.EOF {
					t.Errorf("behind the last answer: %d octets, %v", n, err)
				}
			})
		})
	}
}
