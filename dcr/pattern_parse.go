package dcr

import (
	"fmt"
	"strings"
	"unicode"
)

// reKind is the kind of a node of a pattern.
type reKind uint8

const (
	reSet reKind = iota // one character of a set
	reCat
	reAlt
	reRepeat
	reGroup  // capturing
	reAtomic // independent group
	reLook
	reBack  // back-reference
	rePlace // a position: begin, end, word boundary
)

// reNode is a node of a parsed pattern.
type reNode struct {
	kind     reKind
	kids     []*reNode
	set      runes
	min, max int // of a repeat; max -1: no limit
	mode     byte
	num      int  // group number
	behind   bool // look-behind
	not      bool
	anchor   anchor
	at       int // character of the pattern where it begins
}

// anchor is a position as Java 5 defines it.
type anchor uint8

const (
	atBegin    anchor = iota // \A, and ^ without MULTILINE
	atLine                   // ^ with MULTILINE
	atEnd                    // \z
	atLastEnd                // \Z, and $ without MULTILINE: also before a final line terminator
	atLastLF                 // the same under UNIX_LINES
	atLineEnd                // $ with MULTILINE
	atWord                   // \b
	atNoWord                 // \B
	atLineUnix               // ^ with MULTILINE under UNIX_LINES
	atEndUnix                // $ with MULTILINE under UNIX_LINES
)

// flags of a pattern: (?idmsux).
const (
	flagI = 1 << iota
	flagD
	flagM
	flagS
	flagU
	flagX
)

// badPattern is why a pattern is refused; at counts characters of it.
type badPattern struct {
	code, text string
	at         int
}

// reParser reads the syntax of java.util.regex.Pattern of Java 5.
type reParser struct {
	src    []letter
	pos    int
	flags  int
	groups int
	deep   int
	bad    *badPattern
	refs   []*reNode
}

const (
	maxPattern = 1024
	maxGroups  = 32
	maxRepeat  = 1000
	maxInsts   = 10_000
	maxNesting = 100
)

func parsePattern(src []letter) (*reNode, int, *badPattern) {
	if len(src) > maxPattern {
		return nil, 0, &badPattern{"DCR113", fmt.Sprintf("the pattern has %d characters; the limit is %d", len(src), maxPattern), maxPattern}
	}
	p := &reParser{src: src}
	n := p.alternatives()
	if p.bad == nil && p.pos < len(p.src) {
		p.fail("DCR207", p.pos, "pattern: unmatched \")\"")
	}
	for _, r := range p.refs {
		if r.num > p.groups {
			p.fail("DCR207", r.at, "pattern: there is no group %d to refer to", r.num)
		}
	}
	return n, p.groups, p.bad
}

// fail notes the first error and makes the parser run out of input.
func (p *reParser) fail(code string, at int, format string, args ...any) {
	if p.bad == nil {
		p.bad = &badPattern{code, fmt.Sprintf(format, args...), at}
	}
	p.pos = len(p.src)
}

func (p *reParser) more() bool { return p.pos < len(p.src) }

// peek gives the character n places ahead; -1 behind the end.
func (p *reParser) peek(n int) rune {
	if p.pos+n < len(p.src) {
		return p.src[p.pos+n].r
	}
	return -1
}

func (p *reParser) has(s string) bool {
	for i, r := range []rune(s) {
		if p.peek(i) != r {
			return false
		}
	}
	return true
}

// skipComments passes white space and comments under (?x).
func (p *reParser) skipComments() {
	for p.flags&flagX != 0 && p.more() {
		c := p.peek(0)
		switch {
		case setSpace.has(c):
			p.pos++
		case c == '#':
			for p.more() && !setEnds.has(p.peek(0)) {
				p.pos++
			}
		default:
			return
		}
	}
}

func (p *reParser) alternatives() *reNode {
	at := p.pos
	if p.deep++; p.deep > maxNesting {
		p.fail("DCR113", p.pos, "pattern: groups are nested deeper than %d", maxNesting)
	}
	defer func() { p.deep-- }()
	n := p.sequence()
	if p.peek(0) != '|' {
		return n
	}
	alt := &reNode{kind: reAlt, kids: []*reNode{n}, at: at}
	for p.peek(0) == '|' {
		p.pos++
		alt.kids = append(alt.kids, p.sequence())
	}
	return alt
}

func (p *reParser) sequence() *reNode {
	cat := &reNode{kind: reCat, at: p.pos}
	for {
		p.skipComments()
		c := p.peek(0)
		if c < 0 || c == '|' || c == ')' {
			return cat
		}
		n := p.atom()
		if n == nil {
			continue // flags or an empty quotation
		}
		if n.kind == reCat && n.mode == 'Q' { // a quotation: a quantifier binds to its last character
			for i, k := range n.kids {
				if i == len(n.kids)-1 {
					k = p.quantified(k)
				}
				cat.kids = append(cat.kids, k)
			}
			continue
		}
		cat.kids = append(cat.kids, p.quantified(n))
	}
}

// quantified reads what may follow an atom.
func (p *reParser) quantified(n *reNode) *reNode {
	p.skipComments()
	r := &reNode{kind: reRepeat, kids: []*reNode{n}, max: -1, mode: 'g', at: n.at}
	switch p.peek(0) {
	case '*':
	case '+':
		r.min = 1
	case '?':
		r.max = 1
	case '{':
		if !p.bounds(r) {
			return n
		}
	default:
		return n
	}
	p.pos++
	switch p.peek(0) {
	case '?':
		r.mode = 'r'
		p.pos++
	case '+':
		r.mode = 'p'
		p.pos++
	}
	if c := p.peek(0); c == '*' || c == '+' || c == '?' || c == '{' {
		p.fail("DCR207", p.pos, "pattern: nothing to repeat before %q", string(c))
	}
	return r
}

// bounds reads {n}, {n,} or {n,m} up to the closing brace.
func (p *reParser) bounds(r *reNode) bool {
	at := p.pos
	p.pos++
	number := func() (int, bool) {
		n, any := 0, false
		for c := p.peek(0); c >= '0' && c <= '9'; c = p.peek(0) {
			n, any = min(n*10+int(c-'0'), maxRepeat+1), true
			p.pos++
		}
		return n, any
	}
	n, ok := number()
	if !ok {
		p.fail("DCR207", at, "pattern: illegal repetition")
		return false
	}
	r.min, r.max = n, n
	if p.peek(0) == ',' {
		p.pos++
		if m, ok := number(); ok {
			r.max = m
		} else {
			r.max = -1
		}
	}
	switch {
	case p.peek(0) != '}':
		p.fail("DCR207", at, "pattern: unclosed counted repetition")
	case r.max >= 0 && r.max < r.min:
		p.fail("DCR207", at, "pattern: illegal repetition range")
	case r.min > maxRepeat || r.max > maxRepeat:
		p.fail("DCR113", at, "pattern: a repeat count above %d", maxRepeat)
	}
	return p.bad == nil
}

// chars makes a node of a set, with the letter case of the flags.
func (p *reParser) chars(s runes, at int) *reNode {
	if p.flags&flagI != 0 {
		s = s.folded(p.flags&flagU != 0)
	}
	return &reNode{kind: reSet, set: s, at: at}
}

func (p *reParser) position(w anchor, at int) *reNode {
	return &reNode{kind: rePlace, anchor: w, at: at}
}

func (p *reParser) atom() *reNode {
	at := p.pos
	c := p.peek(0)
	p.pos++
	switch c {
	case '(':
		return p.group(at)
	case '[':
		s := p.class()
		return &reNode{kind: reSet, set: s, at: at}
	case '\\':
		return p.escape(at)
	case '.':
		switch {
		case p.flags&flagS != 0:
			return &reNode{kind: reSet, set: allRunes(), at: at}
		case p.flags&flagD != 0:
			return &reNode{kind: reSet, set: one('\n').complement(), at: at}
		}
		return &reNode{kind: reSet, set: setEnds.complement(), at: at}
	case '^':
		switch {
		case p.flags&flagM == 0:
			return p.position(atBegin, at)
		case p.flags&flagD != 0:
			return p.position(atLineUnix, at)
		}
		return p.position(atLine, at)
	case '$':
		switch {
		case p.flags&flagM != 0 && p.flags&flagD != 0:
			return p.position(atEndUnix, at)
		case p.flags&flagM != 0:
			return p.position(atLineEnd, at)
		case p.flags&flagD != 0:
			return p.position(atLastLF, at)
		}
		return p.position(atLastEnd, at)
	case '*', '+', '?':
		p.fail("DCR207", at, "pattern: nothing to repeat before %q", string(c))
		return nil
	case '{':
		p.fail("DCR207", at, "pattern: illegal repetition")
		return nil
	}
	return p.chars(one(c), at)
}

// group reads what follows an opening parenthesis.
func (p *reParser) group(at int) *reNode {
	n := &reNode{kind: reGroup, at: at}
	saved := p.flags
	if p.peek(0) == '?' {
		p.pos++
		switch {
		case p.has(":"):
			p.pos++
			n.kind = reCat
		case p.has(">"):
			p.pos++
			n.kind = reAtomic
		case p.has("=") || p.has("!"):
			n.kind, n.not = reLook, p.has("!")
			p.pos++
		case p.has("<=") || p.has("<!"):
			n.kind, n.behind, n.not = reLook, true, p.has("<!")
			p.pos += 2
		default:
			if p.inlineFlags(at) {
				return nil
			}
			n.kind = reCat
		}
	} else {
		p.groups++
		n.num = p.groups
		if p.groups > maxGroups {
			p.fail("DCR113", at, "pattern: more than %d groups", maxGroups)
		}
	}
	n.kids = []*reNode{p.alternatives()}
	if p.peek(0) != ')' {
		p.fail("DCR207", at, "pattern: unclosed group")
		return nil
	}
	p.pos++
	p.flags = saved
	if n.behind {
		if _, bounded := width(n.kids[0]); !bounded {
			p.fail("DCR209", at, "pattern: look-behind without a limit is not supported")
		}
	}
	return n
}

// inlineFlags reads (?idmsux-idmsux) or (?idmsux-idmsux:; it reports whether the parenthesis is closed.
func (p *reParser) inlineFlags(at int) bool {
	on := true
	for {
		c := p.peek(0)
		p.pos++
		switch {
		case c == '-' && on:
			on = false
		case c == ')':
			return true
		case c == ':':
			return false
		default:
			i := strings.IndexRune("idmsux", c)
			if c < 0 || i < 0 {
				p.fail("DCR207", at, "pattern: unknown group or flag after \"(?\"")
				return true
			}
			if on {
				p.flags |= 1 << i
			} else {
				p.flags &^= 1 << i
			}
		}
	}
}

// width gives the most characters that a node can take.
func width(n *reNode) (most int, bounded bool) {
	switch n.kind {
	case reSet:
		return 1, true
	case reLook, rePlace:
		return 0, true
	case reBack:
		return 0, false
	case reAlt:
		for _, k := range n.kids {
			w, ok := width(k)
			if !ok {
				return 0, false
			}
			most = max(most, w)
		}
		return most, true
	case reRepeat:
		w, ok := width(n.kids[0])
		return w * max(n.max, 0), ok && (n.max >= 0 || w == 0)
	}
	for _, k := range n.kids {
		w, ok := width(k)
		if !ok {
			return 0, false
		}
		most += w
	}
	return most, true
}

// category resolves the name in \p{…}: POSIX classes, general categories, and those with Is before.
func category(name string) (runes, bool) {
	if s, ok := posix[name]; ok {
		return s, true
	}
	short := strings.TrimPrefix(name, "Is")
	if short == "L1" {
		return runes{{0, 0xFF}}, true
	}
	if t, ok := unicode.Categories[short]; ok && len(short) <= 2 {
		return fromTable(t), true
	}
	return nil, false
}
