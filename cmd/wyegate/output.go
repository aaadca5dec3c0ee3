package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"reflect"
	"syscall"
	"text/tabwriter"
	"time"
)

// show writes a value in the wanted shape; table is how people see it. A list is one object per line in jsonl.
func (g *Globals) show(v any, table func(w io.Writer)) error {
	switch g.Output {
	case "json":
		e := encoder(g.out)
		e.SetIndent("", "  ")
		return e.Encode(v)
	case "jsonl":
		return g.lines(v)
	case "yaml":
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		out, err := yaml(b)
		if err != nil {
			return err
		}
		_, err = g.out.Write(out)
		return err
	default:
		var b bytes.Buffer
		table(&b)
		_, err := g.out.Write(b.Bytes())
		return err
	}
}

// encoder writes "&" and "<" as they are: the output is for jq and people, not for a web page.
func encoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

func (g *Globals) lines(v any) error {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Slice {
		return encoder(g.out).Encode(v)
	}
	for i := range rv.Len() {
		if err := encoder(g.out).Encode(rv.Index(i).Interface()); err != nil {
			return err
		}
	}
	return nil
}

// forPeople says whether the output is text.
func (g *Globals) forPeople() bool {
	return g.Output == "" || g.Output == "table" || g.Output == "text" || g.Output == "wide"
}

// watching runs a read verb once, or again and again until the user has enough.
func (g *Globals) watching(once func(ctx context.Context) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if g.Watch == 0 {
		return once(ctx)
	}
	tick := time.NewTicker(time.Duration(g.Watch))
	defer tick.Stop()
	for {
		if g.terminal && g.forPeople() {
			fmt.Fprint(g.out, "\x1b[H\x1b[2J")
		}
		if err := once(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// rows writes a table: columns are as wide as their widest cell.
func rows(w io.Writer, head []string, lines [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range append([][]string{head}, lines...) {
		for i, cell := range line {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, cell)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}
