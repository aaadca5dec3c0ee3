package dcr

import (
	"slices"
	"unicode"
)

// runes is a set of characters as sorted, disjoint, non-adjacent ranges. All character classes of a pattern become such
// sets, so that union, intersection and letter case mean the same whichever engine runs the pattern.
type runes []span

type span struct{ lo, hi rune }

func one(r rune) runes { return runes{{r, r}} }

func allRunes() runes { return runes{{0, unicode.MaxRune}} }

// tidy sorts and merges.
func (s runes) tidy() runes {
	slices.SortFunc(s, func(a, b span) int { return int(a.lo - b.lo) })
	out := s[:0]
	for _, r := range s {
		if n := len(out); n > 0 && r.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, r.hi)
			continue
		}
		out = append(out, r)
	}
	return out
}

func (s runes) union(t runes) runes { return slices.Concat(s, t).tidy() }

func (s runes) complement() runes {
	out, next := runes{}, rune(0)
	for _, r := range s {
		if r.lo > next {
			out = append(out, span{next, r.lo - 1})
		}
		next = r.hi + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, span{next, unicode.MaxRune})
	}
	return out
}

func (s runes) intersect(t runes) runes {
	out := runes{}
	for i, j := 0, 0; i < len(s) && j < len(t); {
		if lo, hi := max(s[i].lo, t[j].lo), min(s[i].hi, t[j].hi); lo <= hi {
			out = append(out, span{lo, hi})
		}
		if s[i].hi < t[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

func (s runes) minus(t runes) runes { return s.intersect(t.complement()) }

func (s runes) has(r rune) bool {
	for _, x := range s {
		if r >= x.lo && r <= x.hi {
			return true
		}
	}
	return false
}

// single gives the only character of the set.
func (s runes) single() (rune, bool) {
	if len(s) == 1 && s[0].lo == s[0].hi {
		return s[0].lo, true
	}
	return 0, false
}

// folded adds the other letter case: of ASCII letters only, as Java does, or of all under UNICODE_CASE.
func (s runes) folded(unicodeCase bool) runes {
	out := slices.Clone(s)
	if !unicodeCase {
		for _, r := range s.intersect(runes{{'A', 'Z'}}) {
			out = append(out, span{r.lo + 32, r.hi + 32})
		}
		for _, r := range s.intersect(runes{{'a', 'z'}}) {
			out = append(out, span{r.lo - 32, r.hi - 32})
		}
		return out.tidy()
	}
	for _, r := range s {
		for c := r.lo; c <= min(r.hi, 0x1FFFF); c++ { // no letter case beyond
			for o := unicode.SimpleFold(c); o != c; o = unicode.SimpleFold(o) {
				out = append(out, span{o, o})
			}
		}
	}
	return out.tidy()
}

func fromTable(t *unicode.RangeTable) runes {
	var out runes
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, span{lo, hi})
			return
		}
		for c := lo; c <= hi; c += stride {
			out = append(out, span{c, c})
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return out.tidy()
}

// The predefined classes of Java 5; all but the categories are ASCII.
var (
	setDigit = runes{{'0', '9'}}
	setWord  = runes{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	setSpace = runes{{'\t', '\r'}, {' ', ' '}}
	setEnds  = runes{{'\n', '\n'}, {'\r', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}} // line terminators
	setGraph = runes{{'!', '~'}}

	posix = map[string]runes{
		"Lower": {{'a', 'z'}}, "Upper": {{'A', 'Z'}}, "ASCII": {{0, 0x7F}}, "Alpha": {{'A', 'Z'}, {'a', 'z'}},
		"Digit": setDigit, "Alnum": {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}},
		"Punct": {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, "Graph": setGraph, "Print": {{' ', '~'}},
		"Blank": {{'\t', '\t'}, {' ', ' '}}, "Cntrl": {{0, 0x1F}, {0x7F, 0x7F}},
		"XDigit": {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, "Space": setSpace,
	}
)
