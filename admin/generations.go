package admin

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/wyegate/wyegate/internal/obs"
)

// applyBody names the file to apply; without any the one the node was started with.
type applyBody struct {
	Path            string `json:"path"`
	Text            string `json:"text"`
	Note            string `json:"note"`
	Force           bool   `json:"force"`
	MoveConnections bool   `json:"move_connections"`
	Generation      uint64 `json:"generation"` // of a rollback
}

func (a *API) config(r *request) (any, error) {
	view, err := r.view()
	if err != nil {
		return nil, err
	}
	return a.text(r, view)
}

func (a *API) rules(r *request) (any, error) {
	view, err := r.view()
	if err != nil {
		return nil, err
	}
	view.Service = r.PathValue("service")
	return a.text(r, view)
}

func (r *request) view() (ConfigView, error) {
	v := ConfigView{Defaults: r.flag("defaults"), Effective: r.flag("effective")}
	if g := r.URL.Query().Get("generation"); g != "" {
		n, err := strconv.ParseUint(g, 10, 64)
		if err != nil {
			return v, fmt.Errorf("%w: generation %q is no number", ErrInvalid, g)
		}
		v.Generation = n
	}
	return v, nil
}

// text answers with JSON, or with the bare text for who prefers YAML or XML.
func (a *API) text(r *request, view ConfigView) (any, error) {
	t, err := a.cfg.Node.Config(view)
	if err != nil {
		return nil, err
	}
	r.etag = strconv.FormatUint(t.Generation, 10)
	t.ETag = r.etag
	for _, kind := range []string{"application/yaml", "application/xml", "text/plain"} {
		if strings.HasPrefix(r.Header.Get("Accept"), kind) {
			r.w.Header().Set("ETag", `"`+r.etag+`"`)
			r.w.Header().Set("Content-Type", kind+"; charset=utf-8")
			io.WriteString(r.w, t.Text)
			return nil, nil
		}
	}
	return t, nil
}

func (a *API) diff(r *request) (any, error) {
	q := r.URL.Query()
	from, to := q.Get("from"), q.Get("to")
	if from == "" {
		from = "running"
	}
	if to == "" {
		to = "file"
	}
	text, err := a.cfg.Node.Diff(from, to)
	if err != nil {
		return nil, err
	}
	return map[string]any{"from": from, "to": to, "differs": text != "", "diff": text}, nil
}

func (a *API) applyConfig(r *request) (any, error) {
	var b applyBody
	if err := r.optional(&b); err != nil {
		return nil, err
	}
	if b.Path != "" && b.Text != "" || b.Generation != 0 {
		return nil, fmt.Errorf("%w: path or text is wanted", ErrInvalid)
	}
	return a.change(r, Apply{Path: b.Path, Text: b.Text, MoveConns: b.MoveConnections}, b)
}

func (a *API) putConfig(r *request) (any, error) {
	text, err := r.whole()
	if err != nil {
		return nil, err
	}
	return a.change(r, Apply{Text: text}, applyBody{})
}

func (a *API) putRules(r *request) (any, error) {
	text, err := r.whole()
	if err != nil {
		return nil, err
	}
	return a.change(r, Apply{Service: r.PathValue("service"), Rules: text}, applyBody{})
}

func (a *API) rollback(r *request) (any, error) {
	var b applyBody
	if err := r.optional(&b); err != nil {
		return nil, err
	}
	if b.Path != "" || b.Text != "" {
		return nil, fmt.Errorf("%w: a rollback takes a generation only", ErrInvalid)
	}
	return a.change(r, Apply{Rollback: true, Generation: b.Generation}, b)
}

// change fills in what every apply has, and does it.
func (a *API) change(r *request, order Apply, b applyBody) (any, error) {
	order.Caller = r.noted(b.Note)
	order.Force = b.Force || r.flag("force")
	order.DryRun = r.flag("dry_run")
	if text := r.URL.Query().Get("confirm"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("%w: confirm %q is no time", ErrInvalid, text)
		}
		order.Confirm = d
	}
	if m := strings.Trim(r.Header.Get("If-Match"), `"`); m != "" && m != "*" {
		n, err := strconv.ParseUint(m, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: If-Match %q is no generation", ErrInvalid, m)
		}
		order.IfCurrent = n
	}
	a.apply.Lock()
	defer a.apply.Unlock()
	if now := a.cfg.Node.Status().Generation; order.IfCurrent != 0 && order.IfCurrent != now {
		return nil, fmt.Errorf("%w: generation %d runs", ErrChanged, now)
	}
	done, err := a.cfg.Node.Apply(r.Context(), order)
	if err != nil {
		return nil, err
	}
	if !order.DryRun {
		a.audit(order.Caller, "configuration applied", slog.Uint64(obs.KeyGeneration, done.Generation), slog.Bool("forced", order.Force))
	}
	done.Warnings = list(done.Warnings)
	r.etag = strconv.FormatUint(done.Generation, 10)
	return done, nil
}

func (a *API) confirm(r *request) (any, error) {
	a.apply.Lock()
	defer a.apply.Unlock()
	who := r.noted("")
	done, err := a.cfg.Node.Confirm(who)
	if err != nil {
		return nil, err
	}
	a.audit(who, "configuration confirmed", slog.Uint64(obs.KeyGeneration, done.Generation))
	done.Warnings = list(done.Warnings)
	return done, nil
}

// optional reads a JSON object that may be left out.
func (r *request) optional(into any) error {
	if r.ContentLength == 0 {
		return nil
	}
	return r.body(into)
}

// whole reads a body that is a file.
func (r *request) whole() (string, error) {
	b, err := io.ReadAll(r.Body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return "", fmt.Errorf("%w: more than %d octets", errTooLarge, maxBody)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBody, err)
	}
	if len(b) == 0 {
		return "", fmt.Errorf("%w: it is empty", errBody)
	}
	return string(b), nil
}
