package dcr

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// needsBacktracking reports whether a pattern says something that Go's regexp has no words for.
func needsBacktracking(n *reNode) bool {
	switch n.kind {
	case reAtomic, reLook, reBack:
		return true
	case reRepeat:
		if n.mode == 'p' {
			return true
		}
	case rePlace:
		switch n.anchor {
		case atLine, atLineEnd, atLineUnix, atEndUnix:
			return true
		}
	}
	for _, k := range n.kids {
		if needsBacktracking(k) {
			return true
		}
	}
	return false
}

// places reports which positions a pattern asks for that Go reads otherwise on some subjects: the end before a final
// line terminator, and word boundaries beside characters that are not ASCII.
func places(n *reNode) (ends, words bool) {
	if n.kind == rePlace {
		return n.anchor == atLastEnd || n.anchor == atLastLF, n.anchor == atWord || n.anchor == atNoWord
	}
	for _, k := range n.kids {
		e, w := places(k)
		ends, words = ends || e, words || w
	}
	return ends, words
}

// printer writes a parsed pattern for one of the two engines. All flags and classes were resolved while parsing, so
// what it writes depends on no flag.
type printer struct {
	strings.Builder
	backtracking bool // for regexp2; otherwise for Go, where only group 1 captures
}

func (p *printer) node(n *reNode) {
	switch n.kind {
	case reSet:
		p.set(n.set)
	case reCat:
		p.cat(n)
	case reAlt:
		p.WriteString("(?:")
		for i, k := range n.kids {
			if i > 0 {
				p.WriteByte('|')
			}
			p.node(k)
		}
		p.WriteByte(')')
	case reRepeat:
		p.repeat(n)
	case reGroup:
		if p.backtracking || n.num == 1 {
			p.WriteByte('(')
		} else {
			p.WriteString("(?:")
		}
		p.node(n.kids[0])
		p.WriteByte(')')
	case reAtomic:
		p.wrap("(?>", n.kids[0])
	case reLook:
		p.look(n)
	case reBack:
		if n.mode == 'i' {
			fmt.Fprintf(p, `(?i:\%d)`, n.num)
		} else {
			fmt.Fprintf(p, `(?:\%d)`, n.num)
		}
	case rePlace:
		p.place(n.anchor)
	}
}

func (p *printer) wrap(open string, n *reNode) {
	p.WriteString(open)
	p.node(n)
	p.WriteByte(')')
}

func (p *printer) cat(n *reNode) {
	if len(n.kids) == 0 {
		p.WriteString("(?:)")
	}
	for _, k := range n.kids {
		p.node(k)
	}
}

func (p *printer) look(n *reNode) {
	open := "(?"
	if n.behind {
		open += "<"
	}
	if n.not {
		open += "!"
	} else {
		open += "="
	}
	p.wrap(open, n.kids[0])
}

// repeat writes X{n,m}; a possessive one is an independent group around a greedy one.
func (p *printer) repeat(n *reNode) {
	if n.mode == 'p' {
		p.WriteString("(?>")
		defer p.WriteByte(')')
	}
	p.wrap("(?:", n.kids[0])
	switch {
	case n.min == 0 && n.max < 0:
		p.WriteByte('*')
	case n.min == 1 && n.max < 0:
		p.WriteByte('+')
	case n.min == 0 && n.max == 1:
		p.WriteByte('?')
	case n.max < 0:
		fmt.Fprintf(p, "{%d,}", n.min)
	case n.max == n.min:
		fmt.Fprintf(p, "{%d}", n.min)
	default:
		fmt.Fprintf(p, "{%d,%d}", n.min, n.max)
	}
	if n.mode == 'r' {
		p.WriteByte('?')
	}
}

// set writes a class as its ranges.
func (p *printer) set(s runes) {
	switch {
	case len(s) == 0 && p.backtracking:
		p.WriteString("(?!)")
		return
	case len(s) == 0:
		p.WriteString(`[^\x00-\x{10FFFF}]`)
		return
	}
	if r, ok := s.single(); ok {
		p.rune(r)
		return
	}
	if s[0].lo == 0 && s[0].hi == unicode.MaxRune {
		if p.backtracking {
			p.WriteString(`[\s\S]`)
		} else {
			p.WriteString(`(?s:.)`)
		}
		return
	}
	p.WriteByte('[')
	for _, r := range s {
		p.rune(r.lo)
		if r.hi > r.lo {
			p.WriteByte('-')
			p.rune(r.hi)
		}
	}
	p.WriteByte(']')
}

func (p *printer) rune(r rune) {
	switch {
	case r < 0x80 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '/' || r == ':' || r == '@'):
		p.WriteRune(r)
	case !p.backtracking:
		p.WriteString(`\x{` + strconv.FormatInt(int64(r), 16) + `}`)
	case r <= 0xFFFF:
		fmt.Fprintf(p, `\u%04x`, r)
	default:
		p.WriteRune(r) // regexp2 has no escape for these
	}
}

// What a line end, a line begin and a word boundary are to Java, in words of the backtracking engine.
const (
	end2      = `(?=(?:\r\n|(?<!\r)\n|[\r\u0085\u2028\u2029])?\z)`
	endLF2    = `(?=\n?\z)`
	lineEnd2  = `(?=\z|\r|(?<!\r)\n|[\u0085\u2028\u2029])`
	line2     = `(?:\A|(?<=[\n\u0085\u2028\u2029]|\r(?!\n))(?!\z))`
	lineLF2   = `(?:\A|(?<=\n)(?!\z))`
	lineEndLF = `(?=\z|\n)`
	letter2   = `[\p{L}\p{Nd}_]`
	word2     = `(?:(?<=` + letter2 + `)(?!` + letter2 + `)|(?<!` + letter2 + `)(?=` + letter2 + `))`
	noWord2   = `(?:(?<=` + letter2 + `)(?=` + letter2 + `)|(?<!` + letter2 + `)(?!` + letter2 + `))`
)

func (p *printer) place(w anchor) {
	if !p.backtracking {
		p.WriteString(map[anchor]string{atBegin: `\A`, atEnd: `\z`, atLastEnd: `\z`, atLastLF: `\z`, atWord: `\b`, atNoWord: `\B`}[w])
		return
	}
	p.WriteString(map[anchor]string{
		atBegin: `\A`, atEnd: `\z`, atLastEnd: end2, atLastLF: endLF2, atLine: line2, atLineUnix: lineLF2,
		atLineEnd: lineEnd2, atEndUnix: lineEndLF, atWord: word2, atNoWord: noWord2,
	}[w])
}

func printFor(backtracking bool, n *reNode) string {
	p := &printer{backtracking: backtracking}
	p.node(n)
	return p.String()
}
