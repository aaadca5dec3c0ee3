package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/emiago/sipgo"
	sipmsg "github.com/emiago/sipgo/sip"
)

// Asked is the answer to one question by hand (`wyegate probe`).
type Asked struct {
	Status int
	Reason string
	Took   time.Duration // connecting included
}

// What Ask can fail with.
var (
	ErrTarget   = errors.New("health: not a target to probe")
	ErrNoAnswer = errors.New("health: no answer")
	ErrDown     = errors.New("health: down")
)

// Ask sends an OPTIONS (sip:, sips:) or a GET (http:, https:) from this host and waits for the final answer until ctx
// ends: ErrNoAnswer then, ErrDown where the other side refuses, ErrTarget for what cannot be asked. trust may be nil.
func Ask(ctx context.Context, target string, trust *tls.Config) (Asked, error) {
	scheme, _, _ := strings.Cut(strings.ToLower(target), ":")
	switch scheme {
	case "sip", "sips":
		return askSIP(ctx, target, trust)
	case "http", "https":
		return askHTTP(ctx, target, trust)
	}
	return Asked{}, fmt.Errorf("%w: %q is no sip:, sips:, http: or https: address", ErrTarget, target)
}

func askSIP(ctx context.Context, target string, trust *tls.Config) (Asked, error) {
	var to sipmsg.Uri
	if err := sipmsg.ParseUri(target, &to); err != nil || to.Host == "" {
		return Asked{}, fmt.Errorf("%w: %q", ErrTarget, target)
	}
	transport, port := "udp", 5060
	if named, ok := to.UriParams.Get("transport"); ok {
		transport = strings.ToLower(named)
	}
	switch secure := strings.EqualFold(to.Scheme, "sips"); {
	case secure && transport == "ws":
		transport = "wss"
	case secure:
		transport = "tls"
	}
	switch transport {
	case "udp", "tcp":
	case "tls":
		port = 5061
	case "ws":
		port = 80
	case "wss":
		port = 443
	default:
		return Asked{}, fmt.Errorf("%w: transport %q", ErrTarget, transport)
	}
	if to.Port > 0 {
		port = to.Port
	}
	if trust == nil {
		trust = &tls.Config{}
	}
	quiet := slog.New(slog.DiscardHandler)
	ua, err := sipgo.NewUA(sipgo.WithUserAgent("wyegate-probe"), sipgo.WithUserAgenTLSConfig(trust),
		sipgo.WithUserAgentTransactionLayerOptions(sipmsg.WithTransactionLayerLogger(quiet)),
		sipgo.WithUserAgentTransportLayerOptions(sipmsg.WithTransportLayerLogger(quiet)))
	if err != nil {
		return Asked{}, fmt.Errorf("health: %w", err)
	}
	defer func() { _ = ua.Close() }()
	client, err := sipgo.NewClient(ua, sipgo.WithClientLogger(quiet), sipgo.WithClientNAT())
	if err != nil {
		return Asked{}, fmt.Errorf("health: %w", err)
	}
	defer func() { _ = client.Close() }()
	req := sipmsg.NewRequest(sipmsg.OPTIONS, to)
	req.SetTransport(strings.ToUpper(transport))
	req.SetDestination(net.JoinHostPort(strings.Trim(to.Host, "[]"), strconv.Itoa(port)))
	start := time.Now()
	res, err := client.Do(ctx, req)
	if err != nil {
		return Asked{}, failure(ctx, err)
	}
	return Asked{Status: int(res.StatusCode), Reason: res.Reason, Took: time.Since(start)}, nil
}

func askHTTP(ctx context.Context, target string, trust *tls.Config) (Asked, error) {
	if u, err := url.Parse(target); err != nil || u.Host == "" {
		return Asked{}, fmt.Errorf("%w: %q", ErrTarget, target)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return Asked{}, fmt.Errorf("%w: %w", ErrTarget, err)
	}
	t := &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}
	client := &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	start := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return Asked{}, failure(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	took := time.Since(start)
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	return Asked{Status: res.StatusCode, Reason: http.StatusText(res.StatusCode), Took: took}, nil
}

// failure tells silence from refusal.
func failure(ctx context.Context, err error) error {
	timeout := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, sipmsg.ErrTransactionTimeout)
	if !errors.Is(err, syscall.ECONNREFUSED) && (ctx.Err() != nil || timeout) {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return fmt.Errorf("%w: %w", ErrDown, err)
}
