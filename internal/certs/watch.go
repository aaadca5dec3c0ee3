package certs

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	quietFor = 200 * time.Millisecond // a file that is being written is left alone
	waitMost = time.Second            // and a folder that never rests is read all the same
)

// Run follows the files and changes the ticket keys at midnight, until the context ends.
func (s *Store) Run(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		s.failed("", err)
		w = &fsnotify.Watcher{} // nil channels: nothing comes from it
	} else {
		defer w.Close()
	}
	f := follower{store: s, watcher: w, watching: err == nil, refused: map[string][32]byte{}}
	midnight := time.NewTimer(untilMidnight(time.Now()))
	defer midnight.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	var first time.Time // change that was not looked at yet; zero: none
	changed := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		quiet.Reset(min(quietFor, max(0, first.Add(waitMost).Sub(now))))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
			f.follow()
			changed() // what changed before the watch stood is not missed
		case err := <-w.Errors:
			s.failed("", err)
			changed() // events may be lost
		case <-w.Events:
			changed()
		case <-quiet.C:
			first = time.Time{}
			f.look(time.Now())
		case <-midnight.C:
			s.tickets.rotate(time.Now())
			midnight.Reset(untilMidnight(time.Now()))
		}
	}
}

func (s *Store) failed(folder string, err error) {
	if s.cfg.Failed != nil {
		s.cfg.Failed(folder, err)
	}
}

// follower is what Run's goroutine knows of the files.
type follower struct {
	store    *Store
	watcher  *fsnotify.Watcher
	watching bool
	refused  map[string][32]byte // by certificate: what was refused last, so that it is said once
}

// follow watches the folders of the files, and of what they are links to: files are replaced, not written to, and some
// deployments replace only the link of a folder.
func (f *follower) follow() {
	if !f.watching {
		return
	}
	want := map[string]bool{}
	for _, e := range f.store.table.Load().list {
		if !e.Watch {
			continue
		}
		for _, file := range []string{e.CertFile, e.KeyFile} {
			want[filepath.Dir(file)] = true
			if real, err := filepath.EvalSymlinks(file); err == nil {
				want[filepath.Dir(real)] = true
			}
		}
	}
	for _, d := range f.watcher.WatchList() {
		if !want[d] {
			_ = f.watcher.Remove(d) // it may have gone by itself
		}
	}
	for d := range want {
		if err := f.watcher.Add(d); err != nil {
			f.store.failed(d, err)
		}
	}
}

// look reads the watched files and takes what has changed and is good.
func (f *follower) look(now time.Time) {
	s := f.store
	s.change.Lock()
	defer s.change.Unlock()
	old := s.table.Load()
	list := slices.Clone(old.list)
	var taken []*entry
	for i, e := range old.list {
		if !e.Watch {
			continue
		}
		if next := f.next(e, now); next != nil {
			list[i] = next
			taken = append(taken, next)
		}
	}
	if len(taken) == 0 {
		return
	}
	s.table.Store(newTable(list))
	f.follow()
	for _, e := range taken {
		if s.cfg.Taken != nil {
			s.cfg.Taken(e.Name, e.pair.Leaf.NotAfter)
		}
	}
}

// next gives what stands in the files of e now; nil: nothing new, or nothing good.
func (f *follower) next(e *entry, now time.Time) *entry {
	certPEM, keyPEM, err := files(e.Source)
	digest := sum(certPEM, keyPEM)
	if err == nil && digest == e.sum {
		if _, was := f.refused[e.Name]; was { // back to what is served
			delete(f.refused, e.Name)
			f.taken(e)
		}
		return nil
	}
	var n *entry
	if err == nil {
		n, err = f.store.parse(e.Source, certPEM, keyPEM, now)
	}
	if err == nil {
		delete(f.refused, e.Name)
		return n
	}
	if said, was := f.refused[e.Name]; !was || said != digest {
		f.refused[e.Name] = digest
		if f.store.cfg.Refused != nil {
			f.store.cfg.Refused(e.Name, err)
		}
	}
	return nil
}

func (f *follower) taken(e *entry) {
	if f.store.cfg.Taken != nil {
		f.store.cfg.Taken(e.Name, e.pair.Leaf.NotAfter)
	}
}
