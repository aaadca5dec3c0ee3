package httpproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/routing"
)

// What a request can end with besides a server's answer and what internal/http1 refuses.
var (
	ErrOptions       = errors.New("httpproxy: options answered here")
	ErrMethod        = errors.New("httpproxy: method not forwarded")
	ErrNoApplication = errors.New("httpproxy: no application for host and path")
	ErrMisdirected   = errors.New("httpproxy: host of another certificate")
	ErrExpectation   = errors.New("httpproxy: unknown expectation")
	ErrLoop          = errors.New("httpproxy: request has passed here too often")
	ErrBodyLong      = errors.New("httpproxy: body too long")
	ErrClientSlow    = errors.New("httpproxy: client too slow")
	ErrClientGone    = errors.New("httpproxy: client has left")
	ErrBadResponse   = errors.New("httpproxy: malformed response")
	ErrServerGone    = errors.New("httpproxy: server closed without an answer")
	ErrServerSlow    = errors.New("httpproxy: no answer in time")
	ErrConnect       = errors.New("httpproxy: connect failed")
	ErrConnectSlow   = errors.New("httpproxy: connect timed out")
	ErrBusy          = errors.New("httpproxy: no connection to the server is free")
	ErrDraining      = errors.New("httpproxy: node drains")
	ErrWait          = errors.New("httpproxy: a number must be waited for") // never an answer: Decider.NoWait
	ErrPanic         = errors.New("httpproxy: internal fault")
	ErrNoServer      = routing.ErrNoServer
)

// Status is the only place where an error becomes an HTTP status. 499 is logged and never sent.
func Status(err error) int {
	if bad := http1.AsError(err); bad != nil && !errors.Is(err, ErrBadResponse) {
		return bad.Status
	}
	for i := range statuses {
		if errors.Is(err, statuses[i].err) {
			return statuses[i].code
		}
	}
	if isTimeout(err) {
		return 504
	}
	return 502
}

var statuses = [...]struct {
	err  error
	code int
}{
	{ErrOptions, 200},
	{ErrMethod, 405},
	{ErrNoApplication, 404},
	{ErrMisdirected, 421},
	{ErrExpectation, 417},
	{ErrLoop, 508},
	{ErrBodyLong, 413},
	{ErrClientSlow, 408},
	{ErrClientGone, 499},
	{ErrBadResponse, 502},
	{ErrServerGone, 502},
	{ErrServerSlow, 504},
	{ErrConnectSlow, 504},
	{ErrConnect, 502},
	{ErrBusy, 503},
	{ErrDraining, 503},
	{ErrPanic, 500},
	{ErrNoServer, 503},
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// OutcomeOf says what an error that ended an attempt tells of the server (section 10, passive). What is the client's
// fault tells nothing (HB-9).
func OutcomeOf(err error) routing.Outcome {
	switch {
	case err == nil:
		return routing.OutcomeOK
	case errors.Is(err, ErrClientGone), errors.Is(err, ErrClientSlow), errors.Is(err, ErrBodyLong),
		errors.Is(err, ErrBusy), errors.Is(err, ErrDraining), errors.Is(err, ErrPanic),
		http1.AsError(err) != nil && !errors.Is(err, ErrBadResponse):
		return routing.OutcomeClientFault
	case errors.Is(err, syscall.ECONNREFUSED):
		return routing.OutcomeRefused
	case errors.Is(err, ErrConnectSlow), errors.Is(err, ErrServerSlow), isTimeout(err):
		return routing.OutcomeTimeout
	}
	return routing.OutcomeServerError
}

// Closed says that err is the end of a connection, however it came.
func Closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

// refusal sorts a status into the reasons of wyegate_http_refused_total; false when it is none of them.
func refusal(code int) (obs.RefusedReason, bool) {
	switch code {
	case 400, 417, 501, 505, 508:
		return obs.RefusedSyntax, true
	case 413, 414, 431:
		return obs.RefusedLimit, true
	case 405:
		return obs.RefusedMethod, true
	case 404, 421:
		return obs.RefusedHost, true
	case 408:
		return obs.RefusedTimeout, true
	}
	return 0, false
}

// CountRefused counts an answer that we gave instead of a server.
func (l *Listener) CountRefused(code int) {
	if l.Obs == nil {
		return
	}
	if why, ok := refusal(code); ok {
		l.Obs.Refused[why].Inc()
	}
}
