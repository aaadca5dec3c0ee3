package engine

import (
	"sync"
	"time"

	"github.com/wyegate/wyegate/config"
)

// onDisk remembers for a moment whether the file is what runs: status is asked often, and reading a configuration is
// work.
type onDisk struct {
	mu      sync.Mutex
	at      time.Time
	running string // digest of what ran when it was looked
	differs bool
}

const lookAtDisk = 2 * time.Second

// fileDiffers says whether the file on disk is another one than what runs.
func (e *Engine) fileDiffers(g *Generation) bool {
	d := &e.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.at) < lookAtDisk && d.running == g.digest {
		return d.differs
	}
	cfg, problems := loadFrom(disk{regular: true}, e.opts.File)
	d.at, d.running = time.Now(), g.digest
	d.differs = cfg == nil || config.HasErrors(problems) || cfg.Digest != g.digest
	return d.differs
}

// fileDigest is the digest of the node's file as it is now; empty when it cannot be read.
func (e *Engine) fileDigest() string {
	cfg, _ := loadFrom(disk{regular: true}, e.opts.File)
	if cfg == nil {
		return ""
	}
	return cfg.Digest
}
