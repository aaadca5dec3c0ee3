package dcr

import "unicode/utf8"

// instructions estimates how many instructions a pattern becomes; repeats multiply.
func instructions(n *reNode) int {
	sum := 1
	for _, k := range n.kids {
		sum = min(sum+instructions(k), 10*maxInsts)
	}
	if n.kind == reRepeat {
		times := max(n.min, n.max, 1)
		return min(sum*times, 10*maxInsts)
	}
	return sum
}

// longestLiteral gives a text that every match must contain. It is searched before the pattern is tried, which settles
// most requests that do not match.
func longestLiteral(n *reNode) string {
	var best, run []byte
	flush := func() {
		if len(run) > len(best) {
			best = append([]byte(nil), run...)
		}
		run = run[:0]
	}
	var walk func(n *reNode)
	walk = func(n *reNode) {
		switch n.kind {
		case reSet:
			if r, ok := n.set.single(); ok && r != utf8.RuneError && utf8.ValidRune(r) {
				run = utf8.AppendRune(run, r)
				return
			}
			flush()
		case reCat, reGroup, reAtomic:
			for _, k := range n.kids {
				walk(k)
			}
		case reRepeat:
			flush()
			if n.min > 0 {
				walk(n.kids[0])
				flush()
			}
		case rePlace:
		default:
			flush()
		}
	}
	walk(n)
	flush()
	return string(best)
}

// shape is what the check for explosion knows of a node: which characters can come first, and whether it can be empty.
type shape struct {
	first runes
	empty bool
}

func shapeOf(n *reNode) shape {
	switch n.kind {
	case reSet:
		return shape{n.set, false}
	case reLook, rePlace:
		return shape{nil, true}
	case reBack:
		return shape{allRunes(), true}
	case reAlt:
		var s shape
		for _, k := range n.kids {
			t := shapeOf(k)
			s.first, s.empty = s.first.union(t.first), s.empty || t.empty
		}
		return s
	case reRepeat:
		s := shapeOf(n.kids[0])
		s.empty = s.empty || n.min == 0
		return s
	}
	s := shape{nil, true}
	for _, k := range n.kids {
		t := shapeOf(k)
		s.first = s.first.union(t.first)
		if !t.empty {
			s.empty = false
			break
		}
	}
	return s
}

// many is how often a repeat must be able to go round before a choice inside of it multiplies.
const many = 10

// explosive finds a choice inside a repeat that can be taken in several ways for the same text, so that a backtracking
// engine may need time exponential in the subject: (a+)+, (a|a)*. It errs on the side of refusing. after is what can
// follow the node inside the innermost repeat that goes round; nil outside of one.
func explosive(n *reNode, inLoop bool, after runes) *reNode {
	switch n.kind {
	case reRepeat:
		body := shapeOf(n.kids[0])
		loops := n.max < 0 || n.max >= many
		if inLoop && n.max != n.min && n.mode != 'p' && len(body.first.intersect(after)) > 0 {
			return n
		}
		if !loops {
			return explosive(n.kids[0], inLoop, after)
		}
		if body.empty && n.mode != 'p' && hasChoice(n.kids[0]) {
			return n
		}
		return explosive(n.kids[0], true, body.first.union(after))
	case reAlt:
		var seen runes
		for _, k := range n.kids {
			s := shapeOf(k)
			if inLoop && (len(seen.intersect(s.first)) > 0 || s.empty && len(after.intersect(seen)) > 0) {
				return n
			}
			seen = seen.union(s.first)
		}
		for _, k := range n.kids {
			if bad := explosive(k, inLoop, after); bad != nil {
				return bad
			}
		}
		return nil
	case reLook:
		return explosive(n.kids[0], inLoop, nil)
	}
	for i, k := range n.kids {
		if bad := explosive(k, inLoop, following(n.kids[i+1:], after)); bad != nil {
			return bad
		}
	}
	return nil
}

// following is what can come behind an element of a sequence.
func following(rest []*reNode, after runes) runes {
	var out runes
	for _, k := range rest {
		s := shapeOf(k)
		out = out.union(s.first)
		if !s.empty {
			return out
		}
	}
	return out.union(after)
}

// hasChoice reports whether a node can take the same text in more than one way at all.
func hasChoice(n *reNode) bool {
	if n.kind == reAlt || n.kind == reRepeat && n.min != n.max {
		return true
	}
	for _, k := range n.kids {
		if hasChoice(k) {
			return true
		}
	}
	return false
}
