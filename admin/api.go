package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/obs"
)

// Bounds of a request. A candidate rule file has at most 1 MiB (dcr.md 15.1), and JSON can double it.
const (
	maxBody      = 4 << 20
	headTimeout  = 5 * time.Second
	idleTimeout  = 2 * time.Minute
	streamPeriod = time.Second
)

// Config is what an API needs.
type Config struct {
	Node    Node
	Version Version
	Metrics http.Handler // of /metrics
	Log     *slog.Logger // audit and faults; nil: none
	Now     func() time.Time
	Period  time.Duration // between two steps of a drain's progress; 0: 1 s
}

// API is the HTTP API of one node. It is the same behind every socket; the socket only says the role.
type API struct {
	cfg   Config
	api   *http.ServeMux
	open  *http.ServeMux // the metrics address
	write sync.Mutex     // one change of a server at a time, so that If-Match and the change are one step
	apply sync.Mutex     // one apply at a time
}

// New makes the API. It opens nothing.
func New(cfg Config) *API {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Period == 0 {
		cfg.Period = streamPeriod
	}
	if cfg.Metrics == nil {
		cfg.Metrics = http.NotFoundHandler()
	}
	a := &API{cfg: cfg, api: http.NewServeMux(), open: http.NewServeMux()}
	a.routes()
	return a
}

// handler answers a request with a value that becomes JSON, or an error that becomes a problem.
type handler func(r *request) (any, error)

// request is one call with who makes it.
type request struct {
	*http.Request
	w    http.ResponseWriter
	who  Caller
	etag string // set by a handler: of what it answers with
}

func (a *API) routes() {
	read, change, admin := a.route(Viewer), a.route(Operator), a.route(Administrator)
	read("GET /v1/status", a.status)
	read("GET /v1/version", func(*request) (any, error) { return a.cfg.Version, nil })
	read("GET /v1/warnings", a.warnings)
	read("POST /v1/explain", a.explain)
	read("GET /v1/pools", a.pools)
	read("GET /v1/servers", func(*request) (any, error) { return a.servers(""), nil })
	read("GET /v1/pools/{pool}/servers", a.poolServers)
	read("GET /v1/pools/{pool}/servers/{server}", a.server)
	change("PATCH /v1/pools/{pool}/servers/{server}", a.patchServer)
	read("GET /v1/pools/{pool}/servers/{server}/drain", a.drain)
	read("GET /v1/overrides", func(*request) (any, error) { return list(a.cfg.Node.Overrides()), nil })
	change("DELETE /v1/overrides", a.clearOverrides)
	read("GET /v1/keys/{key}", a.where)
	read("GET /v1/keys:spread", a.spread)
	read("GET /v1/keys:live", a.live)
	read("GET /v1/listeners", a.listeners)
	read("GET /v1/sites", func(*request) (any, error) { return list(a.cfg.Node.Status().Sites), nil })
	read("GET /v1/config", a.config)
	read("GET /v1/config/history", func(*request) (any, error) { return list(a.cfg.Node.History()), nil })
	read("GET /v1/config/diff", a.diff)
	read("GET /v1/config/schema", func(*request) (any, error) { return json.RawMessage(config.Schema()), nil })
	admin("PUT /v1/config", a.putConfig)
	admin("POST /v1/config:apply", a.applyConfig)
	admin("POST /v1/config:confirm", a.confirm)
	admin("POST /v1/config:rollback", a.rollback)
	read("GET /v1/rules/{service}", a.rules)
	admin("PUT /v1/rules/{service}", a.putRules)
	read("GET /v1/events", a.events)
	a.health(a.api)
	a.health(a.open)
	a.fallback(a.api)
}

// route makes the function that adds handlers for a role.
func (a *API) route(need Role) func(pattern string, h handler) {
	return func(pattern string, h handler) {
		a.api.HandleFunc(pattern, func(w http.ResponseWriter, hr *http.Request) {
			hr.Body = http.MaxBytesReader(w, hr.Body, maxBody)
			r := &request{Request: hr, w: w, who: caller(hr.Context())}
			if r.who.Role < need {
				writeProblem(w, fmt.Errorf("%w: %s wants %s, this socket gives %s", errRole, pattern, need, r.who.Role))
				return
			}
			v, err := h(r)
			switch {
			case err != nil:
				if code, _ := status(err); code == http.StatusInternalServerError {
					a.cfg.Log.Error("admin request failed", slog.String("route", pattern), slog.Any(obs.KeyErr, err))
				}
				writeProblem(w, err)
			case v != nil:
				answer(r, v)
			}
		})
	}
}

// answer writes JSON, with the tag of what it is about.
func answer(r *request, v any) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // the type is JSON, and URIs should be readable
	if err := e.Encode(utc(v)); err != nil {
		writeProblem(r.w, err)
		return
	}
	if r.etag != "" {
		r.w.Header().Set("ETag", `"`+r.etag+`"`)
	}
	r.w.Header().Set("Content-Type", "application/json")
	r.w.Header().Set("Cache-Control", "no-store")
	r.w.Write(body.Bytes())
}

// fallback answers what no route takes as a problem, too.
func (a *API) fallback(mux *http.ServeMux) {
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		for _, m := range []string{"GET", "POST", "PATCH", "PUT", "DELETE"} {
			probe := r.Clone(r.Context())
			probe.Method = m
			if _, pattern := mux.Handler(probe); m != r.Method && pattern != "/" {
				writeProblem(w, fmt.Errorf("%w: %s %s", errMethod, r.Method, r.URL.Path))
				return
			}
		}
		writeProblem(w, fmt.Errorf("%w: %s", errRoute, r.URL.Path))
	})
}

// health adds what monitoring asks: on the sockets and on the metrics address.
func (a *API) health(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.cfg.Node.Ready(); err != nil {
			plain(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		plain(w, http.StatusOK, "ready")
	})
	mux.Handle("GET /metrics", a.cfg.Metrics)
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	io.WriteString(w, text+"\n")
}

// body reads a JSON object strictly: a word that is not known is a mistake of the caller, not noise.
func (r *request) body(into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return fmt.Errorf("%w: more than %d octets", errTooLarge, maxBody)
		}
		if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("%w: %q: %s expected, not a JSON %s", errBody, bad.Field, jsonKind(bad.Type), bad.Value)
		}
		return fmt.Errorf("%w: %s", errBody, strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: something follows the object", errBody)
	}
	return nil
}

// jsonKind names what a field takes, for people who know JSON and not Go.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a number"
	}
}

// list makes JSON of an empty slice an empty list.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

type callerKey struct{}

// caller is who the socket says it is; a viewer without a name when none said so.
func caller(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
