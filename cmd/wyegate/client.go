package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/wyegate/wyegate/admin"
)

// client talks to one daemon.
type client struct {
	http  *http.Client
	base  string
	token string
	where string // for messages
}

const (
	dialTimeout = 3 * time.Second
	callTimeout = 2 * time.Minute // an apply resolves names and binds ports
)

// client makes the way to the daemon: --url, else the socket. Nothing is opened before the first call.
func (g *Globals) client() (*client, error) {
	if g.URL != "" {
		u, err := url.Parse(g.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, &exitError{exitUsage, fmt.Errorf("--url %q is no http or https address", g.URL)}
		}
		return &client{http: &http.Client{}, base: strings.TrimSuffix(u.String(), "/"), token: os.Getenv("WYEGATE_TOKEN"), where: g.URL}, nil
	}
	path := g.socket()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := net.Dialer{Timeout: dialTimeout}
		return d.DialContext(ctx, "unix", path)
	}
	return &client{http: &http.Client{Transport: &http.Transport{DialContext: dial}}, base: "http://wyegate", where: path}, nil
}

// call is one request. into may be nil. A problem becomes an error with the status of the command line.
func (c *client) call(ctx context.Context, method, path string, query url.Values, header http.Header, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.do(ctx, method, path, query, header, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return &exitError{exitUnreachable, fmt.Errorf("%s: answer cannot be read: %w", c.where, err)}
	}
	return nil
}

func (c *client) get(ctx context.Context, path string, query url.Values, into any) error {
	return c.call(ctx, http.MethodGet, path, query, nil, nil, into)
}

// do sends a request and gives the answer when it is none of an error.
func (c *client) do(ctx context.Context, method, path string, query url.Values, header http.Header, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, r)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	default:
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, &exitError{exitUnreachable, fmt.Errorf("daemon not reachable at %s: %w", c.where, err)}
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, problem(resp)
}

// problem reads an answer of the API that says no, and gives the exit status of its kind.
func problem(resp *http.Response) error {
	p := &admin.Problem{Status: resp.StatusCode, Title: http.StatusText(resp.StatusCode)}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || json.Unmarshal(b, p) != nil {
		p.Detail = fmt.Sprintf("daemon answered %s", resp.Status)
	}
	code := exitWrong
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusNotImplemented, http.StatusMethodNotAllowed:
		code = exitUsage
	case http.StatusForbidden, http.StatusUnauthorized:
		code = exitRefused
	case http.StatusConflict:
		code = exitRefused
		if p.Kind == "busy" {
			code = exitChanged
		}
	case http.StatusPreconditionFailed:
		code = exitChanged
	case http.StatusGatewayTimeout:
		code = exitDeadline
	}
	return &exitError{code, p}
}

// explain asks the running state where a message would go.
func (c *client) explain(ctx context.Context, q admin.ExplainRequest) (*admin.Explanation, error) {
	e := &admin.Explanation{}
	return e, c.call(ctx, http.MethodPost, "/v1/explain", nil, nil, q, e)
}

// config gives the text of a generation: the running one for 0.
func (c *client) config(ctx context.Context, v admin.ConfigView) (admin.ConfigText, error) {
	q := url.Values{}
	if v.Generation != 0 {
		q.Set("generation", fmt.Sprint(v.Generation))
	}
	if v.Defaults {
		q.Set("defaults", "1")
	}
	if v.Effective {
		q.Set("effective", "1")
	}
	path := "/v1/config"
	if v.Service != "" {
		path = "/v1/rules/" + url.PathEscape(v.Service)
	}
	var t admin.ConfigText
	return t, c.get(ctx, path, q, &t)
}

// diff compares two configurations: a generation's number, "running" or "file". Empty: no difference.
func (c *client) diff(ctx context.Context, from, to string) (configDiff, error) {
	var d configDiff
	return d, c.get(ctx, "/v1/config/diff", url.Values{"from": {from}, "to": {to}}, &d)
}
