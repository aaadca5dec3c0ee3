// Package dcr is the language of data-centric rules: an XML file in, the key of a request out, and the steps that led to
// it (dcr.md).
//
// The way of one file: it is recoded to UTF-8, read by etree with the places of everything beside it, held against the
// grammar, looked through for what is allowed and probably not meant, and flattened into instructions with two jumps.
// All findings come back at once; a file that compiled can't fail when it runs.
//
// The way of one request: a proxy hands over its index of the received bytes (Message); one pass marks which header
// fields the rules ask for; the instructions run, each a condition and a variable; the value of the last one that held
// is the key, a piece of the received bytes or of the worker's Scratch. With a Trace the same run tells every step.
//
// The package computes. It never waits (an ENUM answer that is missing ends the run with NeedNumber, and the caller
// comes again), starts no goroutine, and keeps nothing of a request.
package dcr

import (
	"net/netip"

	"github.com/wyegate/wyegate/internal/sip"
)

// Proto is the protocol of a request, as rules tell them apart.
type Proto uint8

// SIP stands for SIP and SIPS, HTTP for HTTP and HTTPS.
const (
	SIP Proto = iota
	HTTP
)

// Field is one header field as rules see it. Name and Value are pieces of the received bytes; Value is trimmed and may
// hold folds (SIP).
type Field struct {
	ID    sip.HeaderID // number of a known SIP name; HeaderOther for all HTTP fields
	Name  []byte
	Value []byte
}

// Request is the index of one request that rules read. It belongs to the Scratch; a Message fills it.
type Request struct {
	Proto  Proto
	Method []byte
	Target []byte         // Request-URI, or the request target in origin form, as received
	Fields []Field        // in the order received, without what the trust filter took off
	Remote netip.AddrPort // peer of the connection, or what the PROXY protocol carried: the HTTP default key
}

// Message is what a rule may ask of a request. The proxies implement it over their index; Describe is called once per
// evaluation and appends to r.Fields[:0].
type Message interface {
	Describe(r *Request)
}

// Outcome is what an evaluation ended with.
type Outcome uint8

// NoKey means that no rule matched and the default key applies; NeedNumber that the answer to an ENUM query is missing.
const (
	NoKey Outcome = iota
	Matched
	NeedNumber
)

// Result of one evaluation. Key and Number are lent: valid until the Scratch is used again or the message is gone.
type Result struct {
	Outcome Outcome
	Key     []byte
	Rule    int    // which rule gave the key: index into RuleSet.Rules; -1 without a key
	Number  []byte // for NeedNumber: digits without the plus
}

// Keyer gives the key of an initial request. A RuleSet is one, a plug-in the other.
type Keyer interface {
	// Key evaluates m. s belongs to the calling worker; tr may be nil, and then nothing is recorded.
	Key(m Message, s *Scratch, tr *Trace) Result
	// Rules lists what Result.Rule counts, for logs, metrics and explain.
	Rules() []Rule
}

// Rule names an element that can give a key.
type Rule struct {
	Path string // "/sip-rules/if[1]/else"
	Line int
}

// Answer of a Resolver.
type Answer uint8

// AnswerMissing asks the caller to find out and evaluate again; AnswerNull is a failed or empty look-up.
const (
	AnswerMissing Answer = iota
	AnswerNull
	AnswerKnown
)

// Resolver says what ENUM knows about a number (digits without the plus). It never waits. A nil Resolver in the rule
// set means that the service has no enum block: numbers stand for themselves (dcr.md 3.5, item 7).
type Resolver interface {
	Resolve(number []byte) (uri []byte, a Answer)
}

// Trace collects the steps of an evaluation for explain and tests. A nil Trace records nothing.
type Trace struct {
	Steps []Step
}

// Step is one rule element that was asked.
type Step struct {
	Rule    string `json:"rule"` // path
	Line    int    `json:"line"`
	Matched bool   `json:"matched"`
	Text    string `json:"text"`            // what was found and what would have been needed: "session case is EXTERNAL, wants ORIGINATING"
	Value   string `json:"value,omitempty"` // value when matched, escaped and cut at 256 octets
}
