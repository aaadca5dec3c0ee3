package demo

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Names under which the applications are asked for, as in operations.md 3.2.
const (
	sipDomain    = "sip.example.net"
	webDomain    = "phone.example.net"
	portalDomain = "www.example.net"
)

// browsers is the way of all web clients to the edge: they share its kept connections, not their cookies.
type browsers struct {
	client *http.Client
	edge   string
}

func newBrowsers(edge string) *browsers {
	dial := net.Dialer{Timeout: 2 * time.Second}
	return &browsers{edge: edge, client: &http.Client{
		Timeout:       phoneWait,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial.DialContext(ctx, "tcp", edge) },
			MaxIdleConnsPerHost: 64, IdleConnTimeout: 20 * time.Second, DisableCompression: true,
		},
	}}
}

func (b *browsers) close() { b.client.CloseIdleConnections() }

// visitor is one web client with its cookies.
type visitor struct {
	*browsers
	cookies map[string]string
}

// page is a request target with what else a request may have.
type page struct {
	domain string
	target string
	header map[string]string
}

func roomPage(room string) page { return page{domain: webDomain, target: "/room?conf=" + room} }

// text is the request as explain reads it.
func (p page) text(cookies string) string {
	t := "GET " + p.target + " HTTP/1.1\r\nHost: " + p.domain + "\r\n"
	for k, v := range p.header {
		t += k + ": " + v + "\r\n"
	}
	if cookies != "" {
		t += "Cookie: " + cookies + "\r\n"
	}
	return t + "\r\n"
}

// room asks for the page of a room, without cookies, and gives the server that answered.
func (b *browsers) room(ctx context.Context, room string) (string, error) {
	return (&visitor{browsers: b}).get(ctx, roomPage(room))
}

// get asks for a page and gives the server that answered.
func (v *visitor) get(ctx context.Context, p page) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.domain+p.target, nil)
	if err != nil {
		return "", err
	}
	for k, val := range p.header {
		req.Header.Set(k, val)
	}
	if c := v.cookieLine(); c != "" {
		req.Header.Set("Cookie", c)
	}
	resp, err := v.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %s", p.target, resp.Status)
	}
	if v.cookies != nil {
		for _, c := range resp.Cookies() {
			v.cookies[c.Name] = c.Value
		}
	}
	return resp.Header.Get(fieldServer), nil
}

// cookieLine is what the visitor says in Cookie; the order does not matter to anybody.
func (v *visitor) cookieLine() string {
	line := ""
	for name, value := range v.cookies {
		if line != "" {
			line += "; "
		}
		line += name + "=" + value
	}
	return line
}
