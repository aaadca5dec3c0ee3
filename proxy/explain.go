package proxy

import (
	"time"

	"github.com/wyegate/wyegate/dcr"
)

// Explanation says where a message goes and why. The routers of SIP and HTTP fill it while they decide: explain is the
// decision with an Explanation that is not nil. Field names of the JSON are the contract of operations.md 6.
type Explanation struct {
	Listener    string     `json:"listener,omitempty"`
	Address     string     `json:"listener_address,omitempty"` // "udp 203.0.113.10:5060"
	Application string     `json:"application,omitempty"`      // "service/application"
	Service     string     `json:"service,omitempty"`
	Kind        string     `json:"kind,omitempty"` // converged, web, sip
	Method      string     `json:"method,omitempty"`
	Target      string     `json:"target,omitempty"` // Request-URI, or host and request target
	Initial     bool       `json:"initial"`          // a new key is wanted
	Key         string     `json:"key,omitempty"`
	Source      string     `json:"source,omitempty"`
	Rule        string     `json:"rule,omitempty"`
	RuleLine    int        `json:"rule_line,omitempty"`
	RuleFile    string     `json:"rule_file,omitempty"`
	Generation  uint64     `json:"generation,omitempty"`
	Hash        string     `json:"hash,omitempty"` // "0xfdea3fc9cc41581c"
	Partition   *int       `json:"partition,omitempty"`
	Steps       []Step     `json:"steps"`      // how the decision went, in order
	Rules       []dcr.Step `json:"rules"`      // every rule that was asked
	Candidates  []string   `json:"candidates"` // order of servers
	// Weights are those of the candidates, with overrides.
	Weights map[string]int `json:"weights,omitempty"`
	// UsableSince is when the server was last found up; nil where nothing looks (offline).
	UsableSince *time.Time   `json:"usable_since,omitempty"`
	PassedOver  []PassedOver `json:"passed_over,omitempty"`
	Server      string       `json:"server,omitempty"`
	Decided     string       `json:"decided,omitempty"` // memory, address, token, hint, replaces, rule, default, round_robin, flow, outward, local, refused
	Status      int          `json:"status,omitempty"`  // when wyegate answers itself
	Error       string       `json:"error,omitempty"`
	Removed     []string     `json:"removed,omitempty"` // trust fields taken off
	IfDown      Alternatives `json:"if_down,omitempty"`
}

// Step is one decision on the way.
type Step struct {
	Step string `json:"step"`
	Text string `json:"text"`
}

// PassedOver is a server that could not get the message.
type PassedOver struct {
	Server string `json:"server"`
	Why    string `json:"why"`
}

// Alternatives maps a server that is assumed down to the server the message would then go to.
type Alternatives map[string]string

// Note adds a step; it does nothing on nil, so that deciding code calls it without asking.
func (e *Explanation) Note(step, text string) {
	if e == nil {
		return
	}
	e.Steps = append(e.Steps, Step{step, text})
}

// RuleTrace gives the trace that rules write to: nil on nil.
func (e *Explanation) RuleTrace() *dcr.Trace {
	if e == nil {
		return nil
	}
	return &dcr.Trace{}
}
