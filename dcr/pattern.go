package dcr

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// pattern is the compiled text of a match element. It is never written after it was made; what a match needs of memory
// belongs to the Scratch.
type pattern struct {
	source  string
	groups  int
	literal []byte // every match contains it
	mode    MatchMode
	maxLen  int // longest subject, octets

	full, search   *regexp.Regexp  // nil when Go has no words for the pattern
	full2, search2 *regexp2.Regexp // nil when nothing needs them
	ends, words    bool            // which subjects need them beside Go's
}

// shortestLimit is how long the backtracking engine may take. regexp2 counts no steps, so the limit is a time, and so
// generous that only a hostile pattern or subject meets it (section 3.7).
const (
	shortestLimit = 100 * time.Millisecond
	longestLimit  = time.Second
)

// compilePattern reads Java 5 syntax and prepares the engines.
func compilePattern(src []letter, o *Options) (*pattern, *badPattern) {
	tree, groups, bad := parsePattern(src)
	if bad != nil {
		return nil, bad
	}
	if instructions(tree) > maxInsts {
		return nil, &badPattern{"DCR113", "pattern: its repeats multiply to more than 10000 instructions", 0}
	}
	p := &pattern{source: text(src), groups: groups, literal: []byte(longestLiteral(tree)), mode: o.MatchMode, maxLen: o.maxSubject()}
	boom := explosive(tree, false, nil)
	if !needsBacktracking(tree) {
		if bad := p.compileGo(tree); bad != nil {
			return nil, bad
		}
		p.ends, p.words = places(tree)
		if (p.ends || p.words) && boom == nil {
			return p, p.compile2(tree, o)
		}
		p.ends, p.words = false, false // where backtracking could explode, Go's reading holds for every subject
		if p.full != nil {
			return p, nil
		}
	}
	if boom != nil {
		return nil, &badPattern{"DCR209", "pattern: " + nameOf(boom, src) + " inside a repeat can take the same text in many ways, which may never end", boom.at}
	}
	return p, p.compile2(tree, o)
}

// nameOf cuts the text of a node out of the pattern, for a finding.
func nameOf(n *reNode, src []letter) string {
	end := min(n.at+20, len(src))
	if n.kind == reAlt {
		return quoted(text(src[n.at:end]))
	}
	return "the repeat at " + quoted(text(src[n.at:end]))
}

// compileGo fills full and search; both stay nil for repeats that Go refuses though they are within our limits.
func (p *pattern) compileGo(tree *reNode) *badPattern {
	body := printFor(false, tree)
	re, err := syntax.Parse(body, syntax.Perl)
	if err != nil {
		return nil
	}
	if prog, err := syntax.Compile(re.Simplify()); err != nil || len(prog.Inst) > maxInsts {
		return &badPattern{"DCR113", "pattern: it becomes more than 10000 instructions", 0}
	}
	var err1, err2 error
	p.full, err1 = regexp.Compile(`\A(?:` + body + `)\z`)
	p.search, err2 = regexp.Compile(body)
	if err1 != nil || err2 != nil {
		p.full, p.search = nil, nil
	}
	return nil
}

// compile2 fills full2 and search2.
func (p *pattern) compile2(tree *reNode, o *Options) *badPattern {
	body := printFor(true, tree)
	var err1, err2 error
	p.full2, err1 = regexp2.Compile(`\A(?:`+body+`)\z`, regexp2.None)
	p.search2, err2 = regexp2.Compile(body, regexp2.None)
	if err1 != nil || err2 != nil {
		return &badPattern{"DCR207", "pattern: the engine does not accept it", 0}
	}
	limit := shortestLimit * time.Duration(o.maxSteps()) / DefaultMaxSteps
	p.full2.MatchTimeout = min(max(limit, shortestLimit), longestLimit)
	p.search2.MatchTimeout = p.full2.MatchTimeout
	return nil
}

func (o *Options) maxSubject() int {
	if o.MaxSubject > 0 {
		return o.MaxSubject
	}
	return DefaultMaxSubject
}

func (o *Options) maxSteps() int {
	if o.MaxSteps > 0 {
		return min(o.MaxSteps, HighestMaxSteps)
	}
	return DefaultMaxSteps
}

// hit is what holding a pattern against a subject gave.
type hit uint8

const (
	missed  hit = iota
	matched     // group may still be empty
	limited     // the subject is too long, or the engine ran out of its limit
)

// match holds the pattern against a subject. group is group 1, a piece of the subject; nil when it took no part.
func (p *pattern) match(subject []byte, s *Scratch) (group []byte, h hit) {
	if len(subject) > p.maxLen {
		return nil, limited
	}
	if len(p.literal) > 0 && !bytes.Contains(subject, p.literal) {
		return nil, missed
	}
	if p.full == nil || p.full2 != nil && (p.ends && endsLine(subject) || p.words && !ascii(subject)) {
		return p.match2(subject, s)
	}
	if p.mode != MatchSearch {
		if group, h = find(p.full, subject, p.groups > 0); h == matched || p.mode == MatchFull {
			return group, h
		}
	}
	return find(p.search, subject, p.groups > 0)
}

// find runs Go's engine, which is linear in the subject. A pattern without groups allocates nothing.
func find(re *regexp.Regexp, subject []byte, group bool) ([]byte, hit) {
	if !group {
		if re.Match(subject) {
			return nil, matched
		}
		return nil, missed
	}
	loc := re.FindSubmatchIndex(subject)
	switch {
	case loc == nil:
		return nil, missed
	case loc[2] < 0:
		return nil, matched
	}
	return subject[loc[2]:loc[3]], matched
}

// match2 runs the backtracking engine. It counts in characters, so their offsets are kept: an octet that is no UTF-8
// must come out of the group as it went in.
func (p *pattern) match2(subject []byte, s *Scratch) ([]byte, hit) {
	s.runes, s.offsets = s.runes[:0], s.offsets[:0]
	for i := 0; i < len(subject); {
		r, n := utf8.DecodeRune(subject[i:])
		s.runes, s.offsets = append(s.runes, r), append(s.offsets, i)
		i += n
	}
	s.offsets = append(s.offsets, len(subject))
	if p.mode != MatchSearch {
		if group, h := find2(p.full2, subject, s); h != missed || p.mode == MatchFull {
			return group, h
		}
	}
	return find2(p.search2, subject, s)
}

func find2(re *regexp2.Regexp, subject []byte, s *Scratch) ([]byte, hit) {
	m, err := re.FindRunesMatch(s.runes)
	switch {
	case err != nil:
		return nil, limited
	case m == nil:
		return nil, missed
	}
	g := m.GroupByNumber(1)
	if g == nil || len(g.Captures) == 0 {
		return nil, matched
	}
	return subject[s.offsets[g.Index]:s.offsets[g.Index+g.Length]], matched
}

// endsLine reports whether the last character is a line terminator of Java.
func endsLine(b []byte) bool {
	r, _ := utf8.DecodeLastRune(b)
	return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
