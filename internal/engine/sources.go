package engine

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/wyegate/wyegate/config"
)

// overlay is the machine's file system with some files replaced: the YAML that runs, a candidate, an old generation.
type overlay struct {
	base  fs.FS
	files map[string][]byte // by path without leading slash
}

// Open implements fs.FS.
func (o overlay) Open(name string) (fs.File, error) {
	data, ok := o.files[name]
	if !ok {
		return o.base.Open(name)
	}
	return &memFile{name: filepath.Base(name), size: int64(len(data)), Reader: bytes.NewReader(data)}, nil
}

// memFile is one replaced file.
type memFile struct {
	*bytes.Reader
	name string
	size int64
}

func (f *memFile) Stat() (fs.FileInfo, error) { return memInfo{f.name, f.size}, nil }
func (f *memFile) Close() error               { return nil }

// memInfo says that only the owner may read the file: what runs was allowed to be read once.
type memInfo struct {
	name string
	size int64
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return 0o400 }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return false }
func (i memInfo) Sys() any           { return nil }

var _ io.ReaderAt = (*memFile)(nil)

// loadOverlay reads a configuration whose main file and others may be replaced.
func loadOverlay(main string, files map[string][]byte) (*config.Config, []config.Problem) {
	wd, err := os.Getwd()
	if err != nil {
		wd = "/"
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return config.Load(overlay{disk{regular: true}, files}, strings.TrimPrefix(main, "/"), config.Options{
		Env: os.LookupEnv, HostName: host, Now: time.Now(), WorkDir: wd,
	})
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
