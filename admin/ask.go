package admin

import (
	"context"
	"fmt"
	"strconv"
)

// ctxNone is for log lines: they belong to no request that could be cancelled.
var ctxNone = context.Background()

func (a *API) explain(r *request) (any, error) {
	var q ExplainRequest
	if err := r.body(&q); err != nil {
		return nil, err
	}
	given := 0
	for _, v := range []string{q.SIP, q.HTTP, q.Key} {
		if v != "" {
			given++
		}
	}
	if given != 1 {
		return nil, fmt.Errorf("%w: one of sip, http and key is wanted", ErrInvalid)
	}
	return a.cfg.Node.Explain(r.Context(), q)
}

func (a *API) where(r *request) (any, error) {
	q := r.URL.Query()
	place, err := a.cfg.Node.Where(r.PathValue("key"), q.Get("pool"), q.Get("service"))
	place.Then = list(place.Then)
	return place, err
}

// Bounds of what one answer holds.
const (
	maxSample = 1_000_000
	maxLive   = 10_000
	liveRows  = 1_000
)

func (a *API) spread(r *request) (any, error) {
	n, err := r.number("sample", 0, maxSample)
	if err != nil {
		return nil, err
	}
	shares, err := a.cfg.Node.Spread(n)
	return list(shares), err
}

func (a *API) live(r *request) (any, error) {
	n, err := r.number("limit", liveRows, maxLive)
	if err != nil {
		return nil, err
	}
	rows, err := a.cfg.Node.Live(r.URL.Query().Get("server"), n)
	return list(rows), err
}

func (a *API) listeners(*request) (any, error) {
	all := list(a.cfg.Node.Listeners())
	for i := range all {
		l := &all[i]
		l.Services = list(l.Services)
		if l.ETag == "" {
			l.ETag = tag(l.Listener, l.Address, strconv.FormatBool(l.Paused))
		}
	}
	return all, nil
}

// number reads a parameter of the query between 0 and max.
func (r *request) number(name string, otherwise, max int) (int, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > max {
		return 0, fmt.Errorf("%w: %s %q is not between 0 and %d", ErrInvalid, name, v, max)
	}
	return n, nil
}
