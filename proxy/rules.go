package proxy

import "github.com/wyegate/wyegate/dcr"

// What a rule reads of a request, under the names of this package: the proxies describe their messages to the rules
// without importing the language.
type (
	// RuleRequest is the index that Message.Describe fills.
	RuleRequest = dcr.Request
	// RuleField is one header field of it.
	RuleField = dcr.Field
	// RuleStep is one rule element that was asked.
	RuleStep = dcr.Step
)

// RuleSIP marks a RuleRequest as one of SIP, RuleHTTP as one of HTTP.
const (
	RuleSIP  = dcr.SIP
	RuleHTTP = dcr.HTTP
)
