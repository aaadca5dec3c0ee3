package obs

import "github.com/prometheus/client_golang/prometheus"

// SIPMethods are the values of the label method; Method gives the index of one.
var SIPMethods = [...]string{"INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "REGISTER", "PRACK", "SUBSCRIBE", "NOTIFY", "PUBLISH", "INFO", "REFER", "MESSAGE", "UPDATE", "other"}

// NumSIPMethods counts SIPMethods.
const NumSIPMethods = len(SIPMethods)

// SIPMethod gives the index of a method in SIPMethods; unknown ones share the last.
func SIPMethod(m []byte) int {
	for i := range SIPMethods {
		if SIPMethods[i] == string(m) {
			return i
		}
	}
	return NumSIPMethods - 1
}

// KeySources are the values of the label source of wyegate_key_total, in the order of proxy.KeySource from SourceRule
// on.
var KeySources = [...]string{"rule", "default", "token", "stale_token", "round_robin"}

// SIPListener are the counters of one SIP listener, resolved when the generation is built.
type SIPListener struct {
	ParseErrors     [NumParseReasons]prometheus.Counter
	Retransmissions prometheus.Counter
	Connections     prometheus.Gauge
	Accepted        prometheus.Counter
}

// ParseReason is the label reason of wyegate_sip_parse_errors_total.
type ParseReason uint8

// The reasons.
const (
	ParseMalformed ParseReason = iota // no start line, no readable head
	ParseInvalid                      // indexed, and answered with a status
	ParseForeignVia
	ParseFraming
	NumParseReasons = 4
)

// SIPTarget are the counters of one application behind one listener.
type SIPTarget struct {
	Requests  [NumSIPMethods]prometheus.Counter
	Responses [NumSIPMethods][7]prometheus.Counter // index: class 1-6; 0: none
}

// Target are the counters of one application, whatever the listener.
type Target struct {
	SIPKeys     [len(KeySources)]prometheus.Counter
	HTTPKeys    [len(KeySources)]prometheus.Counter
	Rules       []prometheus.Counter // by Result.Rule
	Duration    [NumSIPMethods]prometheus.Observer
	RuleSeconds prometheus.Observer // one request in 64
}

// Server are the counters of one server of a pool.
type Server struct {
	Requests  [2]prometheus.Counter // by protocol: SIP, HTTP
	Failovers [2]prometheus.Counter
}

// HTTPListener are the counters of one HTTP listener.
type HTTPListener struct {
	Refused     [NumRefused]prometheus.Counter
	Connections prometheus.Gauge
	Accepted    prometheus.Counter
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
	Requests [7]prometheus.Counter  // by class; 0: none
	Duration [7]prometheus.Observer // by class
}
