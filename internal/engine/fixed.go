package engine

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/wyegate/wyegate/config"
)

// setting is one part of a configuration that a running node does not change.
type setting struct{ path, value string }

// fixedOf gives what is read once, when the process starts: who the node is, where it keeps its state, where it is
// administered, and whether and how it logs.
func fixedOf(cfg *config.Config) []setting {
	var sockets []string
	for _, s := range cfg.Admin.Sockets {
		sockets = append(sockets, fmt.Sprintf("%s %o %s %s", s.Path.Abs, uint32(s.Mode), s.Group, s.Role))
	}
	access := "off"
	if !cfg.Logging.Access.IsZero() {
		access = "on"
	}
	return []setting{
		{"node.name", cfg.Node.Name},
		{"node.state_dir", cfg.Node.StateDir.Abs},
		{"admin.sockets", strings.Join(sockets, ", ")},
		{"admin.metrics.address", cfg.Admin.Metrics.Address.String()},
		{"logging.access", access},
		{"logging.format", cfg.Logging.Format},
	}
}

// waits warns of each setting that a new configuration has otherwise than the process: it is taken with the next start.
// A log that is switched off by a reload goes on, one that is switched on does not begin.
func (e *Engine) waits(cfg *config.Config) {
	for i, s := range fixedOf(cfg) {
		if was := e.fixed[i]; was != s {
			e.log.Warn("a changed setting waits for a restart", slog.String("setting", s.path),
				slog.String("is", was.value), slog.String("wanted", s.value))
		}
	}
}
