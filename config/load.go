package config

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Options is what a configuration may ask of the machine it is read on.
type Options struct {
	// Env looks a variable up; nil: none is set.
	Env func(name string) (value string, ok bool)
	// HostName is the default of node.name.
	HostName string
	// Now is the day that certificates are held against; the zero time leaves their dates alone.
	Now time.Time
	// WorkDir is the folder, as a path of the file system, below which files are shown relative to it. Others are shown
	// from the root.
	WorkDir string
}

// File is a file that was read: the main file, an include, a rule file.
type File struct {
	Path  string // within the file system: no leading slash
	Shown string // as people see it
	Data  []byte
}

// Load reads the configuration whose main file is name. The root of fsys stands for the root of the machine's file
// system: a path /etc/x in a file is read as etc/x. All mistakes of all files come back, sorted, as Sorted cuts them;
// a Config comes back with them when the main file could be read, so that a caller can go on looking (rule files) in
// the same run. It may be used only when HasErrors says no.
func Load(fsys fs.FS, name string, opts Options) (*Config, []Problem) {
	s := &source{fsys: fsys, opts: opts, seen: map[string]bool{}}
	root := s.read(path.Clean(name), nil)
	if root == nil {
		return nil, Sorted(s.problems, s.shown())
	}
	cfg := &Config{}
	d := newDecoder(s, refusedHere)
	setDefaults(cfg)
	d.top(root, cfg)
	cfg.Version = version
	cfg.derive(opts)
	cfg.where, cfg.keyAt, cfg.root, cfg.rebased = d.pos, d.keys, root, d.rebased
	c := &checker{cfg: cfg, source: s, items: d.items}
	c.all()
	cfg.Files = s.files
	cfg.RuleFiles = s.rules
	cfg.Digest = digest(root, s.rules)
	return cfg, Sorted(s.problems, s.shown())
}

// source reads files and gathers what is wrong with them.
type source struct {
	fsys     fs.FS
	opts     Options
	files    []File
	rules    []RuleFile
	seen     map[string]bool // files read, by path
	problems []Problem
	broken   bool // a file could not be read: what it defines is not known
}

func (s *source) report(p Problem) { s.problems = append(s.problems, p) }

// at reports a mistake at a place.
func (s *source) at(p Pos, sev Severity, code, where, text, suggestion string) {
	s.report(Problem{File: p.File, Line: p.Line, Col: p.Col, Severity: sev, Code: code, Text: text, Path: where,
		Suggestion: suggestion})
}

func (s *source) shown() []string {
	var names []string
	for _, f := range s.files {
		names = append(names, f.Shown)
	}
	return names
}

func (s *source) main() File { return s.files[0] }

// show is the name of a file for people.
func (s *source) show(p string) string {
	if s.opts.WorkDir == "" {
		return p
	}
	if w := strings.Trim(s.opts.WorkDir, "/"); w != "" && strings.HasPrefix(p, w+"/") {
		return p[len(w)+1:]
	}
	return "/" + p
}

// resolve turns a path of a file in dir into one of the file system.
func resolve(dir, p string) string {
	if strings.HasPrefix(p, "/") {
		return strings.TrimPrefix(path.Clean(p), "/")
	}
	return path.Join(dir, p)
}

// read gives the merged tree of a file and its includes. from is where the file is named; nil for the main file.
func (s *source) read(name string, from *node) *node {
	root := s.readOne(name, from)
	if root == nil {
		return nil
	}
	return s.includes(root)
}

// readOne gives the tree of one file, without its version.
func (s *source) readOne(name string, from *node) *node {
	shown := s.show(name)
	s.seen[name] = true
	data, err := fs.ReadFile(s.fsys, name)
	if err != nil {
		at := Pos{shown, 1, 1}
		if from != nil {
			at = from.pos
		}
		s.at(at, Error, "WG001", "", fmt.Sprintf("cannot read %s: %s", shown, reason(err)), "")
		if from == nil {
			s.files = append(s.files, File{Path: name, Shown: shown})
		}
		return nil
	}
	s.files = append(s.files, File{name, shown, data})
	r := &reader{report: s.report, file: shown, dir: path.Dir(name)}
	root := r.parse(data)
	if root == nil {
		return nil
	}
	if root.kind != mapNode {
		s.at(root.pos, Error, "WG006", "", "a map of sections expected, not "+root.kind.String(), "")
		return nil
	}
	s.version(root, from == nil)
	return root
}

// reason is the part of a file error that is the same on every machine.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return text
}

// version is the only one there is.
const version = 1

// version checks that key and takes it out. An included file may leave it out.
func (s *source) version(root *node, required bool) {
	i := slices.IndexFunc(root.keys, func(e entry) bool { return e.name == "version" })
	if i < 0 {
		if required {
			s.at(root.pos, Error, "WG007", "version", "version is missing; write version: 1", "version: 1")
		}
		return
	}
	if v := root.keys[i].val; v.kind != scalarNode || v.text != "1" {
		text := "version must be 1"
		if v.kind == scalarNode {
			text = fmt.Sprintf("version %q is unknown; this program reads version 1", v.text)
		}
		s.at(v.pos, Error, "WG007", "version", text, "1")
	}
	root.keys = slices.Delete(root.keys, i, i+1)
}

// includes takes the key `include` out and merges what it names behind the file's own keys.
func (s *source) includes(root *node) *node {
	i := slices.IndexFunc(root.keys, func(e entry) bool { return e.name == "include" })
	if i < 0 {
		return root
	}
	list := root.keys[i].val
	root.keys = slices.Delete(root.keys, i, i+1)
	if list.kind != listNode {
		if !list.empty() {
			s.at(list.pos, Error, "WG006", "include", "include: a list expected, not "+list.kind.String(), "")
		}
		return root
	}
	for _, item := range list.items {
		if item.kind != scalarNode {
			s.at(item.pos, Error, "WG006", "include", "include: a file name expected, not "+item.kind.String(), "")
			continue
		}
		for _, name := range s.glob(item) {
			if s.seen[name] {
				continue // named twice, or by itself: its keys are there
			}
			more := s.read(name, item)
			if more == nil {
				s.broken = true
				continue
			}
			s.merge(root, more, "")
		}
	}
	return root
}

// glob gives the files that an item of `include` names, sorted.
func (s *source) glob(item *node) []string {
	pattern, err := s.fill(item.text)
	if err != "" {
		s.at(item.pos, Error, "WG011", "include", "include: "+err, "")
		return nil
	}
	pattern = resolve(item.dir, pattern)
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}
	}
	names, bad := fs.Glob(s.fsys, pattern)
	if bad != nil {
		s.at(item.pos, Error, "WG001", "include", fmt.Sprintf("include: %q is no pattern", item.text), "")
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(n string) bool {
		info, err := fs.Stat(s.fsys, n)
		return err == nil && info.IsDir()
	})
}
