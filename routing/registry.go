package routing

import (
	"sync"
	"sync/atomic"
	"time"
)

// Registry is what outlives generations, by pool and name: servers with their states and counts, live keys, turns. The
// zero value is ready. Asking it for something changes no traffic, so that a build may be thrown away.
type Registry struct {
	mu    sync.Mutex // held for one map operation
	pools map[string]*shared
}

// shared is what the generations of one pool have in common.
type shared struct {
	name     string
	epoch    atomic.Uint64 // one more with each edge of a server; derived values are of one epoch
	rotor    atomic.Uint64 // turns of round robin
	detour   atomic.Uint64 // turns of those whose server may not get it
	keysMov  atomic.Int64
	strays   atomic.Int64 // live keys away from their owner
	bindings bindings

	mu      sync.Mutex // guards servers and sites
	servers map[string]*Server
	sites   [numProtos]siteState
}

// siteState is the memory that a revert hold needs.
type siteState struct {
	known   bool
	serving int       // rank that carries the traffic
	better  time.Time // since when a lower rank has been usable; zero: it is not
}

func (r *Registry) shared(pool string) *shared {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.pools[pool]
	if s == nil {
		if r.pools == nil {
			r.pools = map[string]*shared{}
		}
		s = &shared{name: pool, servers: map[string]*Server{}}
		r.pools[pool] = s
	}
	return s
}

// Server gives the server of that pool and name, made on first use.
func (r *Registry) Server(pool, name string) *Server {
	sh := r.shared(pool)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.servers[name]
	if s == nil {
		s = &Server{Name: name, Pool: pool, Tag: Tag(name), shared: sh}
		sh.servers[name] = s
	}
	return s
}

// Known gives the server of that pool and name if it was made before; else nil.
func (r *Registry) Known(pool, name string) *Server {
	sh := r.shared(pool)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.servers[name]
}

// Forget drops a server that left the configuration. A server of that name that comes later begins anew; until it is
// forgotten, its state and counts come back with its name.
func (r *Registry) Forget(pool, name string) {
	sh := r.shared(pool)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	delete(sh.servers, name)
}

// edge says that something a choice depends on has changed.
func (s *Server) edge() {
	if s.shared != nil {
		s.shared.epoch.Add(1)
	}
}
