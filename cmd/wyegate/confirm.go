package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
)

// agree shows what a change would do and asks on a terminal. Without one it wants --yes where something is lost.
func (g *Globals) agree(preview, loss string) error {
	if g.Yes {
		return nil
	}
	if !g.terminal {
		if loss == "" {
			return nil
		}
		return &exitError{exitUsage, fmt.Errorf("%s; say --yes to do it", loss)}
	}
	fmt.Fprint(g.errOut, preview)
	fmt.Fprint(g.errOut, "go on? [y/N] ")
	line, err := bufio.NewReader(g.in).ReadString('\n')
	if err != nil && line == "" {
		return &exitError{exitWrong, errors.New("nothing was changed")}
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return &exitError{exitWrong, errors.New("nothing was changed")}
}
