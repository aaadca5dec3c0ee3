package dcr

import "github.com/wyegate/wyegate/internal/sip"

// Scratch is the memory one worker evaluates in: the request index, memo arrays and the buffer for values that differ
// from the received bytes. It grows to what the rule sets of its worker need and stays there. An epoch marks what
// belongs to the request at hand, so that nothing is cleared between two requests.
type Scratch struct {
	Req Request
	// GiveUp makes a missing ENUM answer count as none: the request's budget is spent (dcr.md section 14).
	GiveUp bool

	epoch   uint32
	slots   []uint16 // per field: header item that it belongs to, plus one
	heads   []presence
	params  []slot
	cookies []slot
	memo    []memo
	buf     []byte // values that differ from the received bytes
	number  []byte // digits of the number at hand
	runes   []rune // subject of the backtracking engine
	offsets []int

	uri      sip.URI
	uriOK    bool
	uriRead  bool
	split    bool // query or URI parameters were looked through
	crumbled bool // cookies were looked through
	kase     sessionCase
	why      caseReason
	caseRead bool

	group   []byte // match
	current []byte // value of the instruction at hand
	note    note   // how resolve came to its result
	limits  Limits
}

// presence is where the first field of an item stands.
type presence struct {
	epoch uint32
	field int32
}

// slot is the raw value of a query parameter, URI parameter or cookie.
type slot struct {
	epoch uint32
	raw   []byte
}

// memo keeps the value of a variable: the same variable is evaluated once per request.
type memo struct {
	epoch uint32
	state state
	value []byte
}

// state is what became of a variable.
type state uint8

const (
	null state = iota
	found
	missing // an ENUM answer is missing
)

// note says for a trace how resolve came to its result.
type note uint8

const (
	noteNone     note = iota
	noteIdentity      // not a tel URI
	noteKnown         // ENUM knows the number
	noteNull          // ENUM has nothing for it
	noteSelf          // no enum block: the number stands for itself
	noteNoNumber      // a tel URI without a number that can be asked for
	noteMissing
)

// begin makes room for a program and starts a new epoch.
func (s *Scratch) begin(p *program) {
	if s.epoch++; s.epoch == 0 { // once in four thousand million requests old marks could be taken for new ones
		clear(s.heads[:cap(s.heads)])
		clear(s.params[:cap(s.params)])
		clear(s.cookies[:cap(s.cookies)])
		clear(s.memo[:cap(s.memo)])
		s.epoch = 1
	}
	s.heads = room(s.heads, len(p.heads.items))
	s.params = room(s.params, len(p.params.names))
	s.cookies = room(s.cookies, len(p.cookies.names))
	s.memo = room(s.memo, len(p.vars))
	s.slots = room(s.slots, len(s.Req.Fields))
	s.buf = s.buf[:0]
	s.uriRead, s.split, s.crumbled, s.caseRead = false, false, false, false
	s.limits = Limits{}
	s.group, s.current = nil, nil
}

// room gives a slice of n elements with what was in it, so that marks of older epochs stay readable as such.
func room[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s[:cap(s)], make([]T, n-cap(s))...)[:n]
}

// Limits counts what an evaluation had to give up (wyegate_rule_limits_total).
type Limits struct {
	Steps int // patterns that ran into the limit of the engine or of the subject, and counted as no match
	List  int // list variables with more elements than are walked
}

// Limits tells which limits the last evaluation met.
func (s *Scratch) Limits() Limits { return s.limits }
