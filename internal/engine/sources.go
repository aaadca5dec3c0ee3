package engine

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/wyegate/wyegate/config"
)

// loadOverlay reads a configuration whose main file and others may be replaced.
func loadOverlay(main string, files map[string][]byte) (*config.Config, []config.Problem) {
	return config.Load(config.Overlay{FS: disk{regular: true}, Files: files}, strings.TrimPrefix(main, "/"), here())
}

// LoadFile reads a configuration from the machine's file system, a pipe too.
func LoadFile(file string) (*config.Config, []config.Problem) { return loadFrom(disk{}, file) }

// loadFrom reads a configuration from a disk.
func loadFrom(d disk, file string) (*config.Config, []config.Problem) {
	abs, err := filepath.Abs(file)
	if err != nil {
		abs = file
	}
	return config.Load(d, abs[1:], here())
}

// here is what a configuration may ask of the machine.
func here() config.Options {
	wd, err := os.Getwd()
	if err != nil {
		wd = "/"
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return config.Options{Env: os.LookupEnv, HostName: host, Now: time.Now(), WorkDir: wd}
}

// texts are the files of a configuration by path; with the rule files when rules is set.
func texts(cfg *config.Config, rules bool) map[string][]byte {
	out := map[string][]byte{}
	for _, f := range cfg.Files {
		out[f.Path] = f.Data
	}
	if rules {
		for _, f := range cfg.RuleFiles {
			out[f.Path] = f.Data
		}
	}
	return out
}

// reloadRules reads the running YAML with the rule files as they are on disk.
func (e *Engine) reloadRules(g *Generation) (*config.Config, []config.Problem) {
	return loadOverlay(g.Config.Files[0].Path, texts(g.Config, false))
}
