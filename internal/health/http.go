package health

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// maxText is how much of a body is looked through for Settings.Text.
const maxText = 64 << 10

// get is the HTTP probe with a path: GET over a connection of its own, which ends with it.
func (p *Prober) get(ctx context.Context, c *Check) outcome {
	tr := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxText,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.cfg.Dial(ctx, c.Address) },
	}
	defer tr.CloseIdleConnections()
	// The connection is what Dial makes of it, TLS included: the scheme here only says what is written on it.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Address.Addr.String()+c.Path, nil)
	if err != nil {
		return failed(err)
	}
	req.Host = c.host()
	req.Header.Set("User-Agent", "wyegate-probe")
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return failed(err)
	}
	defer resp.Body.Close()
	o := outcome{from: c.Address.Addr.String(), text: resp.Status, brief: strconv.Itoa(resp.StatusCode)}
	o.result = c.judgeHTTP(resp.StatusCode)
	if o.result != Fail && c.Text != "" {
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxText))
		if err != nil {
			return failed(err)
		}
		if !bytes.Contains(body, []byte(c.Text)) {
			o.result, o.brief, o.text = Fail, "text", resp.Status+", without the text"
		}
	}
	return o
}

func (s *Settings) judgeHTTP(code int) Result {
	switch {
	case in(s.Drains, code):
		return Busy
	case len(s.OK) == 0 && code >= 200 && code <= 399, in(s.OK, code):
		return OK
	default:
		return Fail
	}
}

// host is what the Host field and a SIP URI name: what was configured, else the address.
func (c *Check) host() string {
	switch {
	case c.Host != "":
		return c.Host
	case c.Address.Host != "":
		return withPort(c.Address.Host, c.Address.Addr.Port())
	default:
		return c.Address.Addr.String()
	}
}

// withPort adds a port to a name or an address that has none.
func withPort(host string, port uint16) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return netip.AddrPortFrom(a, port).String()
	}
	return host + ":" + strconv.Itoa(int(port))
}
