package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// Problem is the body of every error (RFC 9457), as application/problem+json. Kind is one word for programs.
type Problem struct {
	Type   string    `json:"type"`
	Title  string    `json:"title"`
	Status int       `json:"status"`
	Detail string    `json:"detail,omitempty"`
	Kind   string    `json:"code"`
	Errors []Finding `json:"errors,omitempty"`
}

// Error is the detail.
func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}

// The kinds of problems beside the sentinels of errors.go.
var (
	errTooLarge = errors.New("body is too large")
	errBody     = errors.New("body cannot be read")
	errRole     = errors.New("this role may not do it")
	errMethod   = errors.New("method not allowed")
	errRoute    = errors.New("no such path")
)

// status is the only place where an error becomes an HTTP status.
func status(err error) (code int, kind string) {
	if _, ok := errors.AsType[*Refused](err); ok {
		return http.StatusUnprocessableEntity, "refused"
	}
	for _, m := range []struct {
		err  error
		code int
		kind string
	}{
		{ErrNotFound, http.StatusNotFound, "not_found"},
		{errRoute, http.StatusNotFound, "no_route"},
		{ErrInvalid, http.StatusBadRequest, "invalid"},
		{errBody, http.StatusBadRequest, "invalid"},
		{errTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
		{errRole, http.StatusForbidden, "role"},
		{errMethod, http.StatusMethodNotAllowed, "method"},
		{ErrGuard, http.StatusConflict, "guard"},
		{ErrBusy, http.StatusConflict, "busy"},
		{ErrChanged, http.StatusPreconditionFailed, "changed"},
		{ErrMissing, http.StatusNotImplemented, "not_built"},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, "deadline"},
	} {
		if errors.Is(err, m.err) {
			return m.code, m.kind
		}
	}
	return http.StatusInternalServerError, "internal"
}

func writeProblem(w http.ResponseWriter, err error) {
	code, kind := status(err)
	p := Problem{Type: "about:blank", Title: http.StatusText(code), Status: code, Detail: err.Error(), Kind: kind}
	if r, ok := errors.AsType[*Refused](err); ok {
		p.Errors = r.Findings
	}
	body, merr := json.Marshal(p)
	if merr != nil {
		http.Error(w, err.Error(), code)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	w.Write(append(body, '\n'))
}
