package main

import (
	"fmt"
	"io"

	"github.com/wyegate/wyegate/internal/obs"
)

// LogsCmd is `wyegate logs`.
type LogsCmd struct {
	Explain LogsExplainCmd `cmd:"" help:"Put the four letters of a log line in words."`
}

// LogsExplainCmd is `logs explain CODE`.
type LogsExplainCmd struct {
	Code string `arg:"" help:"Disposition of an access log line: TWR2."`
}

// Run needs no daemon.
func (l *LogsExplainCmd) Run(g *Globals) error {
	g.prepare()
	text, err := obs.Explain(l.Code)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	return g.show(map[string]string{"code": l.Code, "text": text}, func(w io.Writer) {
		fmt.Fprintf(w, "%s  %s\n", l.Code, text)
	})
}
