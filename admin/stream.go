package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// beat is how often a stream without events says that it is alive.
const beat = 15 * time.Second

// stream writes server-sent events. Every write has a deadline: a reader that takes nothing loses its stream, nobody
// waits for it.
type stream struct {
	w   http.ResponseWriter
	ctl *http.ResponseController
}

const writeTimeout = 10 * time.Second

func newStream(w http.ResponseWriter) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return &stream{w, http.NewResponseController(w)}
}

// send writes one event; id 0 writes none.
func (s *stream) send(id uint64, event string, v any) error {
	body, err := json.Marshal(utc(v))
	if err != nil {
		return err
	}
	var b []byte
	if id != 0 {
		b = append(strconv.AppendUint(append(b, "id: "...), id, 10), '\n')
	}
	b = append(append(append(b, "event: "...), event...), '\n')
	b = append(append(append(b, "data: "...), body...), "\n\n"...)
	return s.put(b)
}

func (s *stream) put(b []byte) error {
	if err := s.ctl.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.ctl.Flush()
}

// events streams the feed: from Last-Event-ID on, else what comes. With ?since=0 all that is still known comes first.
func (a *API) events(r *request) (any, error) {
	feed := a.cfg.Node.Events()
	after := feed.Last()
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.ParseUint(last, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: Last-Event-ID %q is no number", ErrInvalid, last)
		}
		after = n
	} else if r.URL.Query().Get("since") == "0" {
		after = 0
	}
	out := newStream(r.w)
	if err := out.put([]byte(": wyegate events\n\n")); err != nil {
		return nil, nil
	}
	for {
		ctx, stop := context.WithTimeout(r.Context(), beat)
		events, gap, err := feed.After(ctx, after)
		stop()
		if r.Context().Err() != nil {
			return nil, nil
		}
		if err != nil { // the beat
			if out.put([]byte(": alive\n\n")) != nil {
				return nil, nil
			}
			continue
		}
		if gap && after != 0 {
			if out.send(0, "gap", map[string]uint64{"after": after}) != nil {
				return nil, nil
			}
		}
		for _, e := range events {
			if out.send(e.ID, e.Event, e) != nil {
				return nil, nil
			}
			after = e.ID
		}
		if len(events) == 0 {
			after = feed.Last()
		}
	}
}

// drain streams a drain's progress until it is done or overdue; who accepts JSON only gets one answer.
func (a *API) drain(r *request) (any, error) {
	pool, server := r.PathValue("pool"), r.PathValue("server")
	if _, err := a.find(pool, server); err != nil {
		return nil, err
	}
	d, err := a.cfg.Node.Drain(pool, server)
	if err != nil {
		return nil, err
	}
	d.NewKeysTo = list(d.NewKeysTo)
	if strings.HasPrefix(r.Header.Get("Accept"), "application/json") {
		return d, nil
	}
	out := newStream(r.w)
	step := time.NewTicker(a.cfg.Period)
	defer step.Stop()
	for id := uint64(1); ; id++ {
		event := "progress"
		switch {
		case d.Done:
			event = "done"
		case d.Overdue:
			event = "deadline"
		}
		if out.send(id, event, d) != nil || d.Done {
			return nil, nil
		}
		select {
		case <-r.Context().Done():
			return nil, nil
		case <-step.C:
		}
		next, err := a.cfg.Node.Drain(pool, server)
		switch {
		case errors.Is(err, ErrNotFound): // somebody made it ready
			out.send(id+1, "ended", d)
			return nil, nil
		case err != nil:
			return nil, nil
		}
		d = next
		d.NewKeysTo = list(d.NewKeysTo)
	}
}
