package proxy

import (
	"time"

	"github.com/wyegate/wyegate/dcr"
	"github.com/wyegate/wyegate/routing"
)

// Target is one application of a service: where its messages get their key and which pool serves them. It belongs to a
// generation and is never written after it was built.
type Target struct {
	Service     string
	Application string
	Name        string // "service/application"
	Tag         uint32 // low 32 bits of xxhash64 of Name
	Kind        routing.ServiceKind
	Pool        *routing.Pool

	Keyer      dcr.Keyer // nil without rules
	RuleFile   string    // for explain
	SIPKey     []KeyPart // default key of SIP requests
	HTTPKey    []KeyPart // default key of HTTP requests of a converged application with rules
	Tokens     TokenNames
	Sticky     Sticky
	TellKey    string        // header field with the key towards the server; empty: none
	TellToken  string        // header field with a token towards the server; empty: none
	EnumBudget time.Duration // how long one request may wait for numbers; 0: no ENUM
	ReadBEKey  bool
	Number     int // position among the generation's targets, for arrays of counters
}

// TokenNames are the names of the token's carriers.
type TokenNames struct {
	SIPParameter      string // "wg"
	HTTPCookie        string // "WGROUTE"
	HTTPPathParameter string // "wgroute"
}

// CookieMode says when a response sets the sticky cookie.
type CookieMode uint8

// The words of affinity.http.cookie.
const (
	CookieSession CookieMode = iota // when the response sets one of SessionCookies
	CookieAlways
	CookieOff
)

// Sticky is how HTTP clients stay with their server (sip-http.md section 7).
type Sticky struct {
	Mode           CookieMode
	SessionCookies []string
	SameSite       string // "Lax", "Strict", "None"
	Path           string // path_prefix of the application, else "/"
	RuleFirst      bool   // rules before a token
}

// KeyPart is a part of a default key.
type KeyPart uint8

// The words of affinity.*.default_key.
const (
	PartFromTag KeyPart = iota
	PartCallID
	PartToTag
	PartFrom
	PartTo
	PartRequestURI
	PartRemoteHost    // address without port
	PartRemotePort    // written behind a colon: "192.0.2.7:51000", "[2001:db8::7]:51000"
	PartClientAddress // found through trusted forwarding fields
)

// Message is what a key is taken from.
type Message interface {
	dcr.Message
	// AppendPart appends one part of a default key to dst; nothing when the message has none.
	AppendPart(dst []byte, p KeyPart) []byte
}

// KeySource says where a key came from: letter 3 of the disposition and the label of wyegate_key_total.
type KeySource uint8

// The sources.
const (
	SourceNone KeySource = iota
	SourceRule
	SourceDefault
	SourceToken
	SourceStaleToken
	SourceRoundRobin
	SourceGiven // explain --key
)

// String is the word of metrics, access log and explain.
func (s KeySource) String() string {
	return [...]string{"none", "rule", "default", "token", "stale_token", "round_robin", "given"}[s]
}

// Letter is the third letter of the disposition.
func (s KeySource) Letter() byte { return "-RFTSN-"[s] }
