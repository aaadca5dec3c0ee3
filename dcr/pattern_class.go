package dcr

// escape reads what follows a backslash outside of a class.
func (p *reParser) escape(at int) *reNode {
	c := p.peek(0)
	switch c {
	case 'A':
		p.pos++
		return p.position(atBegin, at)
	case 'z':
		p.pos++
		return p.position(atEnd, at)
	case 'Z':
		p.pos++
		if p.flags&flagD != 0 {
			return p.position(atLastLF, at)
		}
		return p.position(atLastEnd, at)
	case 'b':
		p.pos++
		return p.position(atWord, at)
	case 'B':
		p.pos++
		return p.position(atNoWord, at)
	case 'G':
		p.fail("DCR209", at, "pattern: \\G is not supported")
		return nil
	case 'Q':
		p.pos++
		q := &reNode{kind: reCat, mode: 'Q', at: at}
		for p.more() && !p.has(`\E`) {
			q.kids = append(q.kids, p.chars(one(p.peek(0)), p.pos))
			p.pos++
		}
		p.pos = min(p.pos+2, len(p.src))
		if len(q.kids) == 0 {
			return nil
		}
		return q
	}
	if c >= '1' && c <= '9' {
		return p.reference(at)
	}
	set, class := p.escaped(at)
	if class { // a predefined class has no letter case of its own
		return &reNode{kind: reSet, set: set, at: at}
	}
	return p.chars(set, at)
}

// reference reads a back-reference: as many digits as there are groups so far.
func (p *reParser) reference(at int) *reNode {
	n := &reNode{kind: reBack, num: int(p.peek(0) - '0'), at: at}
	p.pos++
	for c := p.peek(0); c >= '0' && c <= '9' && n.num*10+int(c-'0') <= p.groups; c = p.peek(0) {
		n.num = n.num*10 + int(c-'0')
		p.pos++
	}
	if p.flags&flagI != 0 {
		n.mode = 'i'
	}
	p.refs = append(p.refs, n)
	return n
}

// escaped reads an escape that stands for a character or a class of them.
func (p *reParser) escaped(at int) (set runes, class bool) {
	c := p.peek(0)
	p.pos++
	switch c {
	case 'd':
		return setDigit, true
	case 'D':
		return setDigit.complement(), true
	case 'w':
		return setWord, true
	case 'W':
		return setWord.complement(), true
	case 's':
		return setSpace, true
	case 'S':
		return setSpace.complement(), true
	case 'p', 'P':
		s := p.property(at)
		if c == 'P' {
			s = s.complement()
		}
		return s, true
	}
	return one(p.character(c, at)), false
}

// character resolves an escape for one character; c was taken already.
func (p *reParser) character(c rune, at int) rune {
	switch c {
	case -1:
		p.fail("DCR207", at, "pattern: ends in a backslash")
		return 0
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 'f':
		return '\f'
	case 'a':
		return 7
	case 'e':
		return 0x1B
	case 'v':
		return '\v'
	case 'c':
		r := p.peek(0)
		if r < 0 {
			p.fail("DCR207", at, "pattern: illegal control escape")
		}
		p.pos++
		return r ^ 64
	case 'x':
		return p.hex(2, at)
	case 'u':
		return p.hex(4, at)
	case '0':
		return p.octal(at)
	}
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
		p.fail("DCR207", at, "pattern: unknown escape \\%c", c)
	}
	return c
}

func (p *reParser) hex(digits, at int) rune {
	var r rune
	for range digits {
		c := p.peek(0)
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | (c - '0')
		case c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
			r = r<<4 | (c&^0x20 - 'A' + 10)
		default:
			p.fail("DCR207", at, "pattern: illegal hexadecimal escape")
			return 0
		}
		p.pos++
	}
	return r
}

// octal reads one to three digits, up to 0377.
func (p *reParser) octal(at int) rune {
	var r rune
	n := 0
	for c := p.peek(0); n < 3 && c >= '0' && c <= '7' && r<<3|(c-'0') <= 0o377; c = p.peek(0) {
		r = r<<3 | (c - '0')
		p.pos++
		n++
	}
	if n == 0 {
		p.fail("DCR207", at, "pattern: illegal octal escape")
	}
	return r
}

// property reads \p{Name} or \pL; p.pos is behind the p.
func (p *reParser) property(at int) runes {
	name := ""
	if p.peek(0) == '{' {
		p.pos++
		for p.more() && p.peek(0) != '}' {
			name += string(p.peek(0))
			p.pos++
		}
		if !p.more() {
			p.fail("DCR207", at, "pattern: unclosed character family")
			return nil
		}
	} else if p.more() {
		name = string(p.peek(0))
	}
	p.pos++
	if s, ok := category(name); ok {
		return s
	}
	switch {
	case len(name) > 2 && name[:2] == "In":
		p.fail("DCR209", at, "pattern: Unicode blocks (\\p{%s}) are not supported", name)
	case len(name) > 4 && name[:4] == "java":
		p.fail("DCR209", at, "pattern: \\p{%s} is not supported", name)
	default:
		p.fail("DCR207", at, "pattern: unknown character family %q", name)
	}
	return nil
}

// class reads a character class behind its '['. The order of the steps is that of Java 5: a union or intersection works
// on what was read so far, and a leading ^ takes single members off one by one, but not nested classes.
func (p *reParser) class() runes {
	at := p.pos - 1
	var set runes
	have, include := false, true
	if p.deep++; p.deep > maxNesting {
		p.fail("DCR113", at, "pattern: classes are nested deeper than %d", maxNesting)
	}
	defer func() { p.deep-- }()
	if p.peek(0) == '^' {
		include = false
		p.pos++
	}
	for {
		p.skipComments()
		switch c := p.peek(0); {
		case c < 0:
			p.fail("DCR207", at, "pattern: unclosed character class")
			return nil
		case c == '[':
			p.pos++
			set, have = set.union(p.class()), true
			continue
		case c == '&' && p.peek(1) == '&':
			p.pos += 2
			right, any := p.right(at)
			switch {
			case !any && !have:
				p.fail("DCR207", at, "pattern: bad class syntax")
				return nil
			case !have:
				set, have = right, true
			case any:
				set = set.intersect(right)
			}
			continue
		case c == ']' && have:
			p.pos++
			return set
		}
		m := p.member()
		switch {
		case include:
			set = set.union(m)
		case !have:
			set = m.complement()
		default:
			set = set.minus(m)
		}
		have = true
	}
}

// right reads the right side of &&: nested classes and members, up to the next && or the end of the class.
func (p *reParser) right(at int) (set runes, any bool) {
	for {
		p.skipComments()
		switch c := p.peek(0); {
		case c < 0:
			p.fail("DCR207", at, "pattern: unclosed character class")
			return nil, true
		case c == ']' || c == '&' && p.peek(1) == '&':
			return set, any
		case c == '[':
			p.pos++
			set, any = set.union(p.class()), true
		default:
			set, any = set.union(p.member()), true
		}
	}
}

// member reads one character, range, quotation or predefined class of a class.
func (p *reParser) member() runes {
	at := p.pos
	lo, class := p.endpoint()
	if class != nil {
		return class
	}
	if p.peek(0) == '-' && p.peek(1) >= 0 && p.peek(1) != ']' && p.peek(1) != '[' {
		p.pos++
		hi, class := p.endpoint()
		if class != nil || hi < lo {
			p.fail("DCR207", at, "pattern: illegal character range")
			return nil
		}
		return p.fold(runes{{lo, hi}})
	}
	return p.fold(one(lo))
}

func (p *reParser) fold(s runes) runes {
	if p.flags&flagI != 0 {
		return s.folded(p.flags&flagU != 0)
	}
	return s
}

// endpoint reads a character of a class, or a class that stands inside of it.
func (p *reParser) endpoint() (rune, runes) {
	at := p.pos
	c := p.peek(0)
	p.pos++
	if c != '\\' {
		return c, nil
	}
	if p.peek(0) == 'Q' {
		p.pos++
		set := runes{}
		for p.more() && !p.has(`\E`) {
			set = set.union(p.fold(one(p.peek(0))))
			p.pos++
		}
		p.pos = min(p.pos+2, len(p.src))
		return 0, set
	}
	set, class := p.escaped(at)
	if class {
		if set == nil {
			set = runes{}
		}
		return 0, set
	}
	r, _ := set.single()
	return r, nil
}
