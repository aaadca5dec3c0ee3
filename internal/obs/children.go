package obs

import "github.com/prometheus/client_golang/prometheus"

// SIPListener are the counters of one SIP listener, resolved when the generation is built.
type SIPListener struct {
	ParseErrors     [NumParseReasons]prometheus.Counter
	Retransmissions prometheus.Counter
}

// ParseReason is the label reason of wyegate_sip_parse_errors_total.
type ParseReason uint8

// The reasons.
const (
	ParseMalformed  ParseReason = iota // no start line, no readable head
	ParseInvalid                       // indexed, and answered with a status
	ParseForeignVia                    // a response whose top Via is not ours
	ParseFraming                       // a stream that cannot be cut into messages
	NumParseReasons = 4
)

// SIPTarget are the counters of one application behind one listener.
type SIPTarget struct {
	Requests  [NumSIPMethods]prometheus.Counter
	Responses [NumSIPMethods][len(CodeClasses)]prometheus.Counter // index: class 1-6; 0: none
}

// Target are the counters of one application, whatever the listener.
type Target struct {
	SIPKeys       [len(KeySources)]prometheus.Counter
	HTTPKeys      [len(KeySources)]prometheus.Counter
	Rules         []prometheus.Counter // by Result.Rule
	Duration      [NumSIPMethods]prometheus.Observer
	RuleSeconds   prometheus.Observer // one request in 64
	RuleLimits    [len(RuleLimitWords)]prometheus.Counter
	TokensRefused [len(TokenReasons)]prometheus.Counter
}

// Limited counts what one evaluation of the rules had to give up: steps of a pattern, elements of a list.
func (t *Target) Limited(steps, list bool) {
	if steps && t.RuleLimits[0] != nil {
		t.RuleLimits[0].Inc()
	}
	if list && t.RuleLimits[1] != nil {
		t.RuleLimits[1].Inc()
	}
}

// Enum are the counters of one service's ENUM look-ups.
type Enum struct {
	Results  [len(EnumResults)]prometheus.Counter
	Duration prometheus.Observer // seconds of the queries that were sent
	Parked   prometheus.Counter  // requests for which no place to wait was left
}

// Server are the counters of one server of a pool.
type Server struct {
	Requests  [len(Protocols)]prometheus.Counter
	Failovers [len(Protocols)]prometheus.Counter
	Checks    [len(Protocols)][len(CheckResults)]prometheus.Counter
	Ejections [len(Protocols)][len(EjectionCauses)]prometheus.Counter
}

// HTTPListener are the counters of one HTTP listener.
type HTTPListener struct {
	Refused [NumRefused]prometheus.Counter
}

// RefusedReason is the label reason of wyegate_http_refused_total.
type RefusedReason uint8

// The reasons.
const (
	RefusedSyntax  RefusedReason = iota // 400: the gate
	RefusedLimit                        // 413, 414, 431
	RefusedMethod                       // 405
	RefusedHost                         // 421, 404: no application
	RefusedTimeout                      // 408
	NumRefused     = 5
)

// HTTPTarget are the counters of one application behind one HTTP listener.
type HTTPTarget struct {
	Requests [len(CodeClasses)]prometheus.Counter  // by class; 0: none
	Duration [len(CodeClasses)]prometheus.Observer // by class
}
