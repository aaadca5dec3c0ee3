package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wyegate/wyegate/admin"
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/statedir"
	"github.com/wyegate/wyegate/routing"
)

// stateDir is what the node keeps over restarts: overrides, the generations that were applied, and the secret.
type stateDir struct {
	dir *statedir.Dir

	mu   sync.Mutex // guards what follows; held for a copy or one write
	over []override
	past []record

	damaged []string // set aside at the start, with the reason; not written after
}

// override is an operator's change of a server.
type override struct {
	Pool   string    `json:"pool"`
	Server string    `json:"server"`
	What   string    `json:"what"` // state, weight
	Value  string    `json:"value"`
	By     string    `json:"by"`
	Note   string    `json:"note,omitempty"`
	Since  time.Time `json:"since"`
	drainIntent
}

// record is a generation in the history, with the files it was made of.
type record struct {
	Number    uint64            `json:"number"` // 0: refused
	Digest    string            `json:"digest"`
	OnDisk    string            `json:"on_disk,omitempty"` // digest of the node's file when this one came into force
	By        string            `json:"by"`
	Note      string            `json:"note,omitempty"`
	At        time.Time         `json:"at"`
	Confirmed bool              `json:"confirmed"`
	Main      string            `json:"main,omitempty"`
	Files     map[string][]byte `json:"files,omitempty"`
	Node      string            `json:"node,omitempty"` // that refused it
	Findings  []admin.Finding   `json:"findings,omitempty"`
}

const (
	overridesFile    = "overrides.json"
	generationPrefix = "generation-"
	keptGenerations  = 100
	keptRefusals     = 100
	shownRefusals    = 20
)

func openState(path string) (*stateDir, error) {
	dir, err := statedir.Open(path)
	if err != nil {
		return nil, err
	}
	s := &stateDir{dir: dir}
	if ok, err := s.read(overridesFile, &s.over); err != nil {
		return nil, err
	} else if !ok {
		s.over = nil
	}
	names, err := dir.List(generationPrefix)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		var r record
		ok, err := s.read(n, &r)
		if err != nil {
			return nil, err
		}
		if ok {
			s.past = append(s.past, r)
		}
	}
	slices.SortStableFunc(s.past, func(a, b record) int { return a.At.Compare(b.At) })
	return s, nil
}

// read decodes a state file; false: there is none that can be understood. A damaged one is set aside and told: a disk
// that has lost an old generation must not keep a node from serving.
func (s *stateDir) read(name string, into any) (bool, error) {
	data, err := s.dir.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("engine: state file %s: %w", name, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		s.damaged = append(s.damaged, fmt.Sprintf("state file %s is damaged and was set aside: %v", name, err))
		return false, s.dir.SetAside(name)
	}
	return true, nil
}

func (s *stateDir) write(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.dir.Write(name, data)
}

func (s *stateDir) secret() ([]byte, error) { return s.dir.Secret() }

func (s *stateDir) overrides() []override {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.over)
}

func (s *stateDir) override(pool, server, what string) (override, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.over {
		if o.Pool == pool && o.Server == server && o.What == what {
			return o, true
		}
	}
	return override{}, false
}

// weights are the overrides of weights, as a table takes them.
func (s *stateDir) weights() map[string]map[string]int {
	out := map[string]map[string]int{}
	for _, o := range s.overrides() {
		n, err := strconv.Atoi(o.Value)
		if o.What != "weight" || err != nil {
			continue
		}
		if out[o.Pool] == nil {
			out[o.Pool] = map[string]int{}
		}
		out[o.Pool][o.Server] = n
	}
	return out
}

func (s *stateDir) setOverride(n override) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(s.over), func(o override) bool {
		return o.Pool == n.Pool && o.Server == n.Server && o.What == n.What
	})
	next = append(next, n)
	if err := s.write(overridesFile, next); err != nil {
		return err
	}
	s.over = next
	return nil
}

func (s *stateDir) clearOverrides(pool, server string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(s.over), func(o override) bool {
		return (pool == "" || o.Pool == pool) && (server == "" || o.Server == server)
	})
	if err := s.write(overridesFile, next); err != nil {
		return err
	}
	s.over = next
	return nil
}

// lastGeneration is the highest number that was ever in force.
func (s *stateDir) lastGeneration() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := uint64(0)
	for _, r := range s.past {
		n = max(n, r.Number)
	}
	return n
}

// newest gives the generation that came into force last; false when there is none.
func (s *stateDir) newest() (record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.past) - 1; i >= 0; i-- {
		if r := s.past[i]; r.Number != 0 {
			return r, true
		}
	}
	return record{}, false
}

// took writes a generation that is in force now. A restart with an unchanged configuration is no new entry. onDisk is
// the digest of the node's file; empty when it cannot be read.
func (s *stateDir) took(g *Generation, onDisk string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.past, func(r record) bool { return r.Number == g.Number }) {
		return nil
	}
	r := record{
		Number: g.Number, Digest: g.digest, OnDisk: onDisk, By: g.by, Note: g.note, At: g.at, Confirmed: g.confirmed,
		Main: g.Config.Files[0].Path, Files: texts(g.Config, true),
	}
	s.past = append(s.past, r)
	if err := s.write(fileOf(r.Number), r); err != nil {
		return err
	}
	return s.prune()
}

func fileOf(number uint64) string { return fmt.Sprintf("%s%020d.json", generationPrefix, number) }

// prune keeps the last hundred generations. What was refused takes none of their places, however often it is tried.
func (s *stateDir) prune() error {
	kept := 0
	for i := len(s.past) - 1; i >= 0; i-- {
		if s.past[i].Number == 0 {
			continue
		}
		if kept++; kept <= keptGenerations {
			continue
		}
		if err := s.dir.Remove(fileOf(s.past[i].Number)); err != nil {
			return err
		}
		s.past = slices.Delete(s.past, i, i+1)
	}
	return nil
}

// refused keeps a configuration that changed nothing, for the history of this process: the last hundred.
func (s *stateDir) refused(cfg *config.Config, node string, c change, findings []admin.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := record{By: c.by, Note: c.note, Node: node, At: time.Now(), Findings: findings}
	if cfg != nil {
		r.Digest = cfg.Digest
	}
	if len(r.Findings) > shownRefusals {
		r.Findings = r.Findings[:shownRefusals]
	}
	s.past = append(s.past, r)
	kept := 0
	for i := len(s.past) - 1; i >= 0; i-- {
		if s.past[i].Number != 0 {
			continue
		}
		if kept++; kept > keptRefusals {
			s.past = slices.Delete(s.past, i, i+1)
		}
	}
}

func (s *stateDir) confirmed(number uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.past {
		if s.past[i].Number == number {
			s.past[i].Confirmed = true
			return s.write(fileOf(number), s.past[i])
		}
	}
	return nil
}

// generation gives a kept generation.
func (s *stateDir) generation(number uint64) (record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.past {
		if r.Number == number && number != 0 {
			return r, nil
		}
	}
	return record{}, fmt.Errorf("%w: generation %d", admin.ErrNotFound, number)
}

// before gives the generation a rollback goes to: the one asked for, else the last confirmed one before the running.
func (s *stateDir) before(running, asked uint64) (record, error) {
	if asked != 0 {
		return s.generation(asked)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.past) - 1; i >= 0; i-- {
		if r := s.past[i]; r.Confirmed && r.Number != 0 && r.Number < running {
			return r, nil
		}
	}
	return record{}, fmt.Errorf("%w: no confirmed generation before %d", admin.ErrNotFound, running)
}

// lastConfirmed gives the newest confirmed generation; false when there is none.
func (s *stateDir) lastConfirmed() (record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.past) - 1; i >= 0; i-- {
		if r := s.past[i]; r.Confirmed && r.Number != 0 {
			return r, true
		}
	}
	return record{}, false
}

// history lists what is kept, newest first: the running generation, the confirmed one that an unconfirmed one returns
// to, what came to nothing, and what went before.
func (s *stateDir) history(running *Generation) []admin.Generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []admin.Generation{}
	returns := !running.confirmed
	after := "" // who made the generation that came next
	for i := len(s.past) - 1; i >= 0; i-- {
		r := &s.past[i]
		g := admin.Generation{
			Generation: r.Number, By: r.By, When: r.At, Digest: short(r.Digest), Note: r.Note, Node: r.Node, Findings: r.Findings,
		}
		switch {
		case r.Number == 0:
			g.State = "refused"
		case r.Number == running.Number && !running.confirmed:
			g.State, g.UndoneAt = "unconfirmed", &running.undoneAt
		case r.Number == running.Number:
			g.State = "active"
		case r.Confirmed && returns:
			g.State, returns = "confirmed", false
		case !r.Confirmed && after == byTimer:
			g.State = "reverted"
		default:
			g.State = "superseded"
		}
		if r.Number != 0 {
			after = r.By
		}
		out = append(out, g)
	}
	return out
}

// byTimer is who undoes a generation that nobody confirmed.
const byTimer = "timer"

func short(digest string) string { return strings.ToLower(digest[:min(8, len(digest))]) }

// startConfig is operations.md 4.3: which configuration a start takes. With --resume the last confirmed generation runs
// when the file is unchanged since, or wrong. A file that waited for its confirmation when the node ended counts as
// unchanged: it was not confirmed (4.2).
func (e *Engine) startConfig(cfg *config.Config, problems []config.Problem) (*config.Config, []config.Problem) {
	for _, d := range e.state.damaged {
		e.log.Error(d)
	}
	if !e.opts.Resume {
		return cfg, problems
	}
	last, ok := e.state.lastConfirmed()
	if newest, _ := e.state.newest(); ok && cfg.Digest != "" && newest.OnDisk == cfg.Digest {
		if last.Digest == cfg.Digest {
			return cfg, problems
		}
		e.log.Info("the file is as it was; the last confirmed generation runs", slog.Uint64("generation", last.Number))
		return loadOverlay(last.Main, last.Files)
	}
	_, all := Build(cfg, Env{Registry: &routing.Registry{}}, problems)
	if !config.HasErrors(all) {
		return cfg, problems
	}
	if !ok {
		return nil, all
	}
	e.log.Warn("the file is wrong; the last confirmed generation runs", slog.Uint64("generation", last.Number))
	e.reloads.note(false, all)
	return loadOverlay(last.Main, last.Files)
}
