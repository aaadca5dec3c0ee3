package main

import (
	"bufio"
	"context"
	"net/http"
	"strings"
)

// event is one server-sent event.
type event struct {
	id, name, data string
}

// stream reads events until the daemon ends the stream, ctx ends, or use says that it has enough.
func (c *client) stream(ctx context.Context, path string, use func(event) (more bool, err error)) error {
	resp, err := c.do(ctx, http.MethodGet, path, nil, http.Header{"Accept": {"text/event-stream"}}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	var e event
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "" && e.data != "":
			more, err := use(e)
			if err != nil || !more {
				return err
			}
			e = event{}
		case name == "id":
			e.id = value
		case name == "event":
			e.name = value
		case name == "data":
			e.data += value
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return lines.Err()
}
