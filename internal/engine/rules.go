package engine

import (
	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/dcr"
)

// stripped are the fields that are taken off requests of strangers (SS-3, HH-3): a rule that reads one sees it only on
// listeners whose peers are trusted (DCR408).
var stripped = []string{
	"P-Asserted-Identity", "P-Preferred-Identity", "P-Charging-Vector", "P-Charging-Function-Addresses",
	"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "X-Real-IP", "Forwarded",
}

// buildRules compiles every rule file where it is named. A file that two services name is compiled for each, since their
// settings may differ.
func (b *builder) buildRules() {
	for _, f := range b.cfg.RuleFiles {
		if data, ok := b.env.Rules[f.Service]; ok {
			f.Data = data
		}
		opts := RuleOptions(b.cfg, f)
		if b.env.Resolver != nil && f.Affinity.Enum != nil {
			opts.Resolver = b.env.Resolver(f.Service, f.Affinity.Enum)
		}
		set, problems := dcr.Compile(f.Shown, f.Data, opts)
		b.rules = append(b.rules, ruleProblems(problems)...)
		if dcr.HasErrors(problems) || set == nil {
			b.problems = append(b.problems, b.cfg.Refused(f, "see its own findings"))
			continue
		}
		if facts := set.Facts(); !facts.HTTP && b.cfg.Serves(f, "converged") {
			b.problems = append(b.problems, b.cfg.NoHTTPRules(f))
		}
		b.ruleSets[f.Affinity] = set
	}
}

// RuleOptions are the settings and facts of the service that names a rule file, for compiler and lint.
func RuleOptions(cfg *config.Config, f config.RuleFile) dcr.Options {
	aff := f.Affinity
	o := dcr.Options{
		HeaderMatch: aff.SIP.HeaderMatch, SessionCaseAliases: aff.SIP.SessionCaseAliases, MaxSteps: aff.Match.MaxSteps,
		MaxSubject: int(max(cfg.Limits.SIP.MaxURI, cfg.Limits.HTTP.MaxTarget)), PlusIsSpace: aff.HTTP.PlusIsSpace,
		Service: &dcr.Service{Enum: aff.Enum != nil, Converged: cfg.Serves(f, "converged")},
	}
	switch aff.Match.Mode {
	case "full":
		o.MatchMode = dcr.MatchFull
	case "search":
		o.MatchMode = dcr.MatchSearch
	}
	for i := range cfg.Services {
		if s := &cfg.Services[i]; s.Name == f.Service && len(s.TrustHeadersFrom) == 0 {
			o.Service.Stripped = stripped
		}
	}
	return o
}
