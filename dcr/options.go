package dcr

// MatchMode says how a pattern is held against its subject (section 3.7).
type MatchMode uint8

// MatchAuto tries the whole subject first and searches in it second; the other two do one of both.
const (
	MatchAuto MatchMode = iota
	MatchFull
	MatchSearch
)

// Limits and defaults of section 15.1 and of the settings.
const (
	DefaultMaxSteps   = 20_000
	HighestMaxSteps   = 1_000_000
	DefaultMaxSubject = 8 << 10 // octets of limits.max_uri

	maxFile     = 1 << 20
	maxDepth    = 64
	maxElements = 10_000
	maxItems    = 512
	maxName     = 256
	maxWalk     = 32 // elements of a list variable
)

// Options are the settings of a service that change what a rule file means, and the facts about the service that lint
// needs. The zero value is the language as documented, without a service.
type Options struct {
	HeaderMatch        bool              // affinity.sip.header_match
	SessionCaseAliases map[string]string // affinity.sip.session_case_aliases: value of call= to keyword
	MatchMode          MatchMode         // affinity.match.mode
	MaxSteps           int               // affinity.match.max_steps; 0: DefaultMaxSteps
	MaxSubject         int               // longest subject of a pattern, octets; 0: DefaultMaxSubject
	PlusIsSpace        bool              // affinity.http.plus_is_space
	Resolver           Resolver          // nil: the service has no enum block
	Service            *Service          // nil: findings that need the service are not looked for
}

// Service is what lint must know of the service that uses the rules (DCR401, DCR403, DCR408).
type Service struct {
	Enum      bool     // it has an enum block
	Converged bool     // it has a converged application
	Stripped  []string // header fields that a listener of the service takes off strangers' requests
}
