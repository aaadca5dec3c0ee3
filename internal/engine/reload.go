package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/listen"
	"github.com/wyegate/wyegate/internal/obs"
)

// Indices of obs.ReloadResults.
const (
	reloadApplied = iota
	reloadRefused
	reloadReverted
)

// change is one configuration that is offered to the node.
type change struct {
	by, note string
	load     func() (*config.Config, []config.Problem)
	rules    map[string][]byte // candidates by service
	current  uint64            // only if this generation runs; 0: whatever runs
	undo     bool              // only if nobody has confirmed what runs
	confirm  time.Duration
	force    bool
	dryRun   bool
}

// Reload takes the file the node was started with: SIGHUP.
func (e *Engine) Reload(by string) error {
	e.access.Reopen()
	_, err := e.offer(change{by: by, load: func() (*config.Config, []config.Problem) { return loadFrom(disk{regular: true}, e.opts.File) }})
	return err
}

// offer builds a configuration and, if nothing is wrong, puts it in force. A refused one changes nothing; the error says
// which generation stays.
func (e *Engine) offer(c change) (admin.Applied, error) {
	e.apply.Lock()
	defer e.apply.Unlock()
	old := e.current.Load()
	if c.current != 0 && c.current != old.Number {
		return admin.Applied{}, fmt.Errorf("%w: generation %d runs, not %d", admin.ErrChanged, old.Number, c.current)
	}
	if c.undo && old.confirmed {
		return admin.Applied{}, fmt.Errorf("%w: generation %d has been confirmed", admin.ErrChanged, old.Number)
	}
	if c.confirm > 0 && !old.confirmed {
		return admin.Applied{}, fmt.Errorf("%w: generation %d waits for its confirmation", admin.ErrBusy, old.Number)
	}
	cfg, problems := c.load()
	env := e.env(cfg, c.rules)
	if c.dryRun {
		env.Metrics = nil
	}
	draft, problems := Build(cfg, env, problems)
	if draft == nil {
		return admin.Applied{}, e.refused(c, cfg, problems)
	}
	digest := draft.Config.Digest
	out := admin.Applied{
		Generation: draft.Number, Digest: digest, Nodes: 1, Of: 1, Diff: config.Diff(old.Config, draft.Config),
		Warnings: Findings(problems), Moved: moved(old.Draft, draft),
	}
	if err := old.guard(draft); err != nil && !c.force {
		return admin.Applied{}, fmt.Errorf("%w: %w", admin.ErrGuard, err)
	}
	if c.dryRun {
		out.State = "valid"
		return out, nil
	}
	g, sockets, err := e.bind(draft)
	if err != nil {
		return admin.Applied{}, e.refused(c, cfg, []config.Problem{{File: e.opts.File, Severity: config.Error, Text: err.Error()}})
	}
	e.enforce(old, g, sockets, c)
	out.State = "active"
	if c.confirm > 0 {
		out.State, out.UndoneAt = "unconfirmed", &g.undoneAt
	}
	return out, nil
}

// enforce swaps a built generation in and writes it into the history.
func (e *Engine) enforce(old, g *Generation, sockets *listen.Change, c change) {
	g.by, g.note, g.confirmed = c.by, c.note, c.confirm == 0
	if old.undo != nil {
		old.undo.Stop()
	}
	if c.confirm > 0 {
		g.undoneAt = time.Now().Add(c.confirm)
		g.undo = time.AfterFunc(c.confirm, func() { e.revert(g.Number) })
	}
	e.swap(g, sockets, c.force && !c.undo)
	e.waits(g.Config)
	e.reloads.note(true, nil)
	e.metrics.Reloads(reloadApplied).Inc()
	e.log.Info("generation in force", slog.Uint64("generation", g.Number), slog.String("digest", g.digest[:8]), slog.String("by", g.by))
	if err := e.state.took(g, e.fileDigest()); err != nil {
		e.log.Warn("history is not written", slog.Any(obs.KeyErr, err))
	}
}

// refused notes a configuration that changes nothing, and gives the error for whoever offered it.
func (e *Engine) refused(c change, cfg *config.Config, problems []config.Problem) error {
	if !c.dryRun {
		e.reloads.note(false, problems)
		e.metrics.Reloads(reloadRefused).Inc()
		e.state.refused(cfg, e.name, c, Findings(problems))
		running := e.current.Load().Number
		for _, p := range problems {
			if p.Severity == config.Error {
				e.log.Error("configuration refused", slog.Uint64("generation_stays", running), slog.String("finding", p.String()))
			}
		}
	}
	return &admin.Refused{Findings: Findings(problems)}
}

// revert brings the last confirmed generation back, unless the one of that number was confirmed or replaced meanwhile:
// offer decides, under its lock.
func (e *Engine) revert(number uint64) {
	old, err := e.state.before(number, 0)
	if err == nil {
		_, err = e.offer(change{
			by: byTimer, note: fmt.Sprintf("generation %d was not confirmed", number), current: number, undo: true, force: true,
			load: func() (*config.Config, []config.Problem) { return loadOverlay(old.Main, old.Files) },
		})
	}
	switch {
	case errors.Is(err, admin.ErrChanged):
	case err != nil:
		e.log.Error("cannot return to the last confirmed generation", slog.Any(obs.KeyErr, err))
	default:
		e.metrics.Reloads(reloadReverted).Inc()
		e.log.Warn("not confirmed in time", slog.Uint64("generation", number))
	}
}

// stopUndo ends the timer of an unconfirmed generation: the node leaves, and its next start goes by the history.
func (e *Engine) stopUndo() {
	e.apply.Lock()
	defer e.apply.Unlock()
	if t := e.current.Load().undo; t != nil {
		t.Stop()
	}
}

// moved counts the partitions whose owner would change.
func moved(old, next *Draft) int {
	n := 0
	for name, p := range next.pools {
		was := old.Pool(name)
		if was == nil || was.Table() == nil {
			continue
		}
		n += was.Table().Moved(p.Table())
	}
	return n
}

// watch takes changed rule files. A change is read when the files have been quiet for half a second; one that was
// refused is not tried again until it changes (dcr.md 10.3).
func (e *Engine) watch(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		e.log.Warn("rule files are not watched", slog.Any(obs.KeyErr, err))
		<-ctx.Done()
		return nil
	}
	defer w.Close()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	files := map[string]bool{}
	refused := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.wake:
			files = e.follow(w)
			quiet.Reset(500 * time.Millisecond) // what changed before the watch stood is not missed
		case err := <-w.Errors:
			e.log.Warn("watching rule files", slog.Any(obs.KeyErr, err))
		case ev := <-w.Events:
			if files[ev.Name] {
				quiet.Reset(500 * time.Millisecond)
			}
		case <-quiet.C:
			refused = e.takeRules(refused)
		}
	}
}

// follow watches the folders of the rule files: editors and deployments replace files, so the file itself is not enough.
func (e *Engine) follow(w *fsnotify.Watcher) map[string]bool {
	files := map[string]bool{}
	dirs := map[string]bool{}
	for _, f := range e.current.Load().Config.RuleFiles {
		if !f.Affinity.RulesWatch {
			continue
		}
		path := filepath.Join("/", f.Path)
		files[path] = true
		dirs[filepath.Dir(path)] = true
	}
	for _, d := range w.WatchList() {
		if !dirs[d] {
			_ = w.Remove(d)
		}
	}
	for d := range dirs {
		if err := w.Add(d); err != nil {
			e.log.Warn("rule files are not watched", slog.String(obs.KeyFile, d), slog.Any(obs.KeyErr, err))
		}
	}
	return files
}

// takeRules applies the running YAML with the rule files as they are now. The YAML itself is not watched.
func (e *Engine) takeRules(refused string) string {
	g := e.current.Load()
	cfg, problems := e.reloadRules(g)
	switch {
	case cfg != nil && cfg.Digest == g.digest:
		return "" // back to what runs
	case cfg != nil && cfg.Digest == refused:
		return refused
	}
	_, err := e.offer(change{by: "rules_watch", load: func() (*config.Config, []config.Problem) { return cfg, problems }})
	var bad *admin.Refused
	if errors.As(err, &bad) {
		e.events.Raise("rules_refused", "rules", obs.Minor, map[string]any{"errors": len(bad.Findings)})
		if cfg != nil {
			return cfg.Digest
		}
		return refused
	}
	e.events.Clear("rules_refused", "rules")
	return ""
}
