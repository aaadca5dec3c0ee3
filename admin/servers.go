package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
)

func (a *API) warnings(*request) (any, error) { return list(a.cfg.Node.Status().Warnings), nil }

func (a *API) pools(*request) (any, error) { return a.tagged(list(a.cfg.Node.Pools())), nil }

// status is one screen's data; its pools are the objects that /v1/pools shows.
func (a *API) status(*request) (any, error) {
	s := a.cfg.Node.Status()
	s.Pools = a.tagged(list(s.Pools))
	return s, nil
}

// tagged gives each pool its tag: it changes with each of its servers.
func (a *API) tagged(pools []Pool) []Pool {
	for i := range pools {
		if p := &pools[i]; p.ETag == "" {
			parts := []string{p.Pool}
			for _, one := range a.servers(p.Pool) {
				parts = append(parts, one.ETag)
			}
			p.ETag = tag(parts...)
		}
	}
	return pools
}

// servers gives the servers of a pool, of all when pool is empty.
func (a *API) servers(pool string) []Server {
	out := []Server{}
	for _, one := range a.cfg.Node.Servers() {
		if pool == "" || one.Pool == pool {
			one.Describe()
			out = append(out, one)
		}
	}
	return out
}

func (a *API) poolServers(r *request) (any, error) {
	name := r.PathValue("pool")
	if !slices.ContainsFunc(a.cfg.Node.Pools(), func(p Pool) bool { return p.Pool == name }) {
		return nil, fmt.Errorf("%w: pool %q", ErrNotFound, name)
	}
	return a.servers(name), nil
}

func (a *API) find(pool, server string) (Server, error) {
	for _, one := range a.servers(pool) {
		if one.Server == server {
			return one, nil
		}
	}
	return Server{}, fmt.Errorf("%w: server %q of pool %q", ErrNotFound, server, pool)
}

func (a *API) server(r *request) (any, error) {
	one, err := a.find(r.PathValue("pool"), r.PathValue("server"))
	r.etag = one.ETag
	return one, err
}

// patch is the body of a change. deadline is seconds, or text with a unit.
type patch struct {
	AdminState string  `json:"admin_state"`
	Weight     *int    `json:"weight"`
	Deadline   *length `json:"deadline"`
	AtDeadline string  `json:"at_deadline"`
	Note       string  `json:"note"`
	Force      bool    `json:"force"`
}

// length is a duration in JSON.
type length time.Duration

// UnmarshalJSON takes a number of seconds, or text such as "2h".
func (l *length) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte(`"`)) {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		d, err := time.ParseDuration(text)
		*l = length(d)
		return err
	}
	var secs float64
	err := json.Unmarshal(b, &secs)
	*l = length(secs * float64(time.Second))
	return err
}

// maxWeight is the largest weight an override may have; what the file may say is the configuration's affair.
const maxWeight = 1_000_000

func (p *patch) check() error {
	switch {
	case p.AdminState == "" && p.Weight == nil && p.Deadline == nil && p.AtDeadline == "":
		return fmt.Errorf("%w: admin_state, weight, deadline or at_deadline is wanted", ErrInvalid)
	case p.AdminState != "" && !slices.Contains([]string{"ready", "drain", "maint"}, p.AdminState):
		return fmt.Errorf("%w: admin_state %q is none of ready, drain, maint", ErrInvalid, p.AdminState)
	case p.AtDeadline != "" && !slices.Contains([]string{"wait", "move", "cancel"}, p.AtDeadline):
		return fmt.Errorf("%w: at_deadline %q is none of wait, move, cancel", ErrInvalid, p.AtDeadline)
	case p.Weight != nil && (*p.Weight < 0 || *p.Weight > maxWeight):
		return fmt.Errorf("%w: weight %d is not between 0 and %d", ErrInvalid, *p.Weight, maxWeight)
	case p.Deadline != nil && *p.Deadline < 0:
		return fmt.Errorf("%w: deadline is in the past", ErrInvalid)
	}
	return nil
}

func (a *API) patchServer(r *request) (any, error) {
	var p patch
	if err := r.body(&p); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	c := Change{
		Caller: r.noted(p.Note), Pool: r.PathValue("pool"), Server: r.PathValue("server"), AdminState: p.AdminState,
		Weight: p.Weight, Deadline: (*time.Duration)(p.Deadline), AtDeadline: p.AtDeadline, Force: p.Force || r.flag("force"), DryRun: r.flag("dry_run"),
	}
	a.write.Lock()
	defer a.write.Unlock()
	was, err := a.find(c.Pool, c.Server)
	if err != nil {
		return nil, err
	}
	if !matches(r.Header.Get("If-Match"), was.ETag) {
		return nil, fmt.Errorf("%w: server %q has the tag %q now", ErrChanged, c.Server, was.ETag)
	}
	preview, err := a.cfg.Node.Change(r.Context(), c)
	if err != nil {
		return nil, err
	}
	if c.DryRun {
		r.etag = was.ETag
		return preview, nil
	}
	a.audit(c.Caller, "server changed", slog.String(obs.KeyPool, c.Pool), slog.String(obs.KeyServer, c.Server),
		slog.String("from", preview.From), slog.String("to", preview.To), slog.Bool("forced", c.Force))
	one, err := a.find(c.Pool, c.Server)
	r.etag = one.ETag
	return one, err
}

func (a *API) clearOverrides(r *request) (any, error) {
	a.write.Lock()
	defer a.write.Unlock()
	q := r.URL.Query()
	who, dry := r.noted(""), r.flag("dry_run")
	gone, err := a.cfg.Node.ClearOverrides(who, q.Get("pool"), q.Get("server"), dry)
	if err != nil {
		return nil, err
	}
	if !dry {
		a.audit(who, "overrides cleared", slog.Int("count", len(gone)))
	}
	return list(gone), nil
}

// noted is the caller with the note of the body, else of the query.
func (r *request) noted(note string) Caller {
	c := r.who
	if c.Note = note; note == "" {
		c.Note = r.URL.Query().Get("note")
	}
	return c
}

// flag reads a switch of the query: ?dry_run=1, ?dry_run=true, ?dry_run.
func (r *request) flag(name string) bool {
	q := r.URL.Query()
	if !q.Has(name) {
		return false
	}
	v := q.Get(name)
	return v == "" || v == "1" || v == "true"
}

func (a *API) audit(c Caller, what string, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String(obs.KeyBy, c.By), slog.String("role", c.Role.String()))
	if c.Note != "" {
		attrs = append(attrs, slog.String(obs.KeyNote, c.Note))
	}
	a.cfg.Log.LogAttrs(ctxNone, slog.LevelInfo, what, attrs...)
}
