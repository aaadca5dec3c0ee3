package engine

import (
	"net/netip"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/routing"
)

// Env is what a build asks of its surroundings. The zero value but for Registry is enough for check and explain.
type Env struct {
	Registry *routing.Registry // what outlives generations; a fresh one offline
	Number   uint64            // of the generation
	Metrics  *obs.Metrics      // nil: nothing is counted

	// Lookup gives the address of a server's name; nil: no name is resolved.
	Lookup func(host string) netip.Addr
	// Resolver answers ENUM for a service; nil: every number is missing an answer, offline that means null.
	Resolver func(service string, e *config.Enum) dcr.Resolver
	// Rules stand instead of the rule file of a service: candidates of explain and apply.
	Rules map[string][]byte
	// Weights are the operator's overrides, by pool and server.
	Weights map[string]map[string]int
	// Tables are those that run, by pool: a map of keys that did not change is not built again.
	Tables map[string]*routing.Table

	OnChange  func(routing.Change)
	OnSuspect func(*routing.Server, routing.Proto)
	OnSite    func(routing.SiteMove)
}

// Draft is everything a configuration comes to before a socket is opened. It is never written after Build.
type Draft struct {
	Config  *config.Config
	Number  uint64
	pools   map[string]*pool
	targets []*target
}

// builder makes one Draft and gathers what is wrong.
type builder struct {
	cfg      *config.Config
	env      Env
	draft    *Draft
	ruleSets map[*config.Affinity]*dcr.RuleSet
	problems []config.Problem
	rules    []config.Problem
}

// Build makes a Draft. It opens nothing and starts nothing; checking a configuration is loading and building it. All
// problems come back in the order in which they are shown; the Draft is nil when one of them is an error. problems are
// those that loading found.
func Build(cfg *config.Config, env Env, problems []config.Problem) (*Draft, []config.Problem) {
	if cfg == nil {
		return nil, problems
	}
	b := &builder{
		cfg: cfg, env: env, problems: problems, ruleSets: map[*config.Affinity]*dcr.RuleSet{},
		draft: &Draft{Config: cfg, Number: env.Number, pools: map[string]*pool{}},
	}
	b.buildRules()
	if !config.HasErrors(problems) {
		b.buildPools()
		b.buildTargets()
	}
	all := config.Sorted(append(b.problems, b.rules...), shownFiles(cfg))
	if config.HasErrors(all) {
		return nil, all
	}
	return b.draft, all
}

func (b *builder) problem(path string, sev config.Severity, code, text string) {
	b.problems = append(b.problems, b.cfg.ProblemAt(path, sev, code, text))
}

// Pool gives a pool by name; nil when there is none.
func (d *Draft) Pool(name string) *routing.Pool {
	if p := d.pools[name]; p != nil {
		return p.Pool
	}
	return nil
}

// Rules gives the rule set of a service's first application that has one; nil when there is none.
func (d *Draft) Rules(service string) *dcr.RuleSet {
	for _, t := range d.targets {
		if t.Service == service && t.rules != nil {
			return t.rules
		}
	}
	return nil
}
