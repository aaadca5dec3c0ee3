package dcr

import (
	"reflect"
	"slices"
)

// RuleSet is a compiled rule file. It is never written after Compile, and any number of workers use it at once, each
// with a Scratch of its own.
type RuleSet struct {
	file  string
	prog  [2]*program // nil: the file has no rules for the protocol
	rules []Rule
	opt   Options
	alias map[string]sessionCase
	names [2][]string // header fields that each protocol reads
	tree  [2]*rule
}

// Compile reads a rule file, checks it and compiles it. All findings are given at once, sorted by place; the rule set is
// nil when one of them is an error.
func Compile(fileName string, data []byte, o Options) (*RuleSet, []Problem) {
	doc, f := read(fileName, data)
	g := &grammar{doc: doc, f: f, opt: &o}
	sipRules, httpRules := g.root()
	if doc.whole {
		l := &linter{f: f, opt: &o}
		l.file(doc.root, sipRules, httpRules)
	}
	problems := sortProblems(f.list)
	if HasErrors(problems) || doc.root == nil {
		return nil, problems
	}
	rs := &RuleSet{file: fileName, rules: g.rules, opt: o, alias: map[string]sessionCase{}, tree: [2]*rule{sipRules, httpRules}}
	for value, word := range o.SessionCaseAliases {
		if c := caseByWord(word); c != caseNone {
			rs.alias[value] = c
		}
	}
	for proto, r := range rs.tree {
		if r != nil {
			rs.prog[proto], rs.names[proto] = assemble(r, Proto(proto), doc.src)
		}
	}
	return rs, problems
}

// Lint gives the findings of Compile alone.
func Lint(fileName string, data []byte, o Options) []Problem {
	_, problems := Compile(fileName, data, o)
	return problems
}

// File is the name the rule set was compiled under.
func (r *RuleSet) File() string { return r.file }

// Rules lists the elements that can give a key, in the order of the file.
func (r *RuleSet) Rules() []Rule { return r.rules }

// Same reports whether two rule sets are the same program: same conditions, values, jumps and rule paths. Lines,
// comments and layout do not count.
func (r *RuleSet) Same(o *RuleSet) bool {
	if !slices.EqualFunc(r.rules, o.rules, func(a, b Rule) bool { return a.Path == b.Path }) {
		return false
	}
	for i := range r.prog {
		if !sameProgram(r.prog[i], o.prog[i]) {
			return false
		}
	}
	return true
}

func sameProgram(a, b *program) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.entry == b.entry && slices.Equal(a.code, b.code) && reflect.DeepEqual(a.heads, b.heads) &&
		slices.Equal(a.params.names, b.params.names) && slices.Equal(a.cookies.names, b.cookies.names) &&
		slices.Equal(a.vars, b.vars) &&
		slices.EqualFunc(a.pats, b.pats, func(x, y matcher) bool {
			return x.source == y.source && string(x.prefix) == string(y.prefix) && x.decoded == y.decoded
		}) &&
		slices.EqualFunc(a.steps, b.steps, func(x, y stepInfo) bool { return x.path == y.path })
}

// assembler turns the rules of one protocol into instructions, the last one first, so that every jump has its goal.
type assembler struct {
	p   *program
	src *source
}

func assemble(root *rule, proto Proto, src *source) (*program, []string) {
	a := &assembler{p: &program{proto: proto, route: -1, cookie: -1}, src: src}
	p := a.p
	a.items(root)
	p.entry = a.rule(root, endKey, endNull)
	a.reverse()
	p.heads.seal()
	var names []string
	for _, it := range p.heads.items {
		names = append(names, it.name)
	}
	return p, names
}

// items gives numbers to what the rules read, in the order of the file.
func (a *assembler) items(r *rule) {
	p := a.p
	switch r.kind {
	case kindCase:
		if p.proto == SIP && p.route < 0 {
			p.route = int(p.heads.add("Route", SIP))
		}
	case kindHeader:
		p.heads.add(r.name, p.proto)
	case kindCookie:
		if p.proto == HTTP {
			p.cookies.add(r.name)
		}
	case kindURI:
		if r.param != "" {
			p.params.add(r.param)
		}
	}
	if r.known {
		switch r.ret.origin {
		case fromHeader:
			p.heads.add(r.ret.name, p.proto)
		case fromParameter:
			p.params.add(r.ret.name)
		case fromCookie:
			p.cookies.add(r.ret.name)
		}
		p.resolve = p.resolve || r.ret.part.resolves()
	}
	for _, k := range r.kids {
		a.items(k)
	}
	if r.els != nil {
		a.items(r.els)
	}
	if len(p.cookies.names) > 0 && p.cookie < 0 {
		p.cookie = int(p.heads.add("Cookie", HTTP))
	}
}

// rule emits a rule and gives the number of its first instruction.
func (a *assembler) rule(r *rule, yes, no int32) int32 {
	switch r.kind {
	case kindList, kindOr:
		return a.first(r.kids, yes, no)
	case kindAnd:
		return a.all(r.kids, yes, no)
	case kindIf:
		return a.conditional(r, yes, no)
	case kindCase:
		return a.sessionCase(r, yes, no)
	}
	return a.condition(r, yes, no)
}

// first is a list, an or: the first that is not null.
func (a *assembler) first(kids []*rule, yes, no int32) int32 {
	for _, k := range slices.Backward(kids) {
		no = a.rule(k, yes, no)
	}
	return no
}

// all is an and: the last one, if none is null. Without children it is null.
func (a *assembler) all(kids []*rule, yes, no int32) int32 {
	if len(kids) == 0 {
		return no
	}
	for _, k := range slices.Backward(kids) {
		yes = a.rule(k, yes, no)
	}
	return yes
}

// conditional is reading R1 of section 4.3: the children are tried in order, and else stands in for all being null.
func (a *assembler) conditional(r *rule, yes, no int32) int32 {
	if r.els != nil {
		no = a.condition(r.els, yes, no)
	}
	return a.first(r.kids, yes, no)
}

func (a *assembler) sessionCase(r *rule, yes, no int32) int32 {
	if a.p.proto == HTTP {
		return a.emit(r, instr{op: opNever, val: -1, rule: -1, yes: yes, no: no})
	}
	inside := yes
	if r.bare {
		inside = a.emit(r, instr{op: opGuard, val: -1, rule: -1, yes: yes, no: no})
	} else {
		inside = a.first(r.kids, yes, no)
	}
	return a.emit(r, instr{op: opCase, kw: r.kw, val: -1, rule: -1, yes: inside, no: no})
}

// condition emits header, request-uri, cookie or else.
func (a *assembler) condition(r *rule, yes, no int32) int32 {
	p := a.p
	in := instr{val: a.value(r), rule: int32(r.index), yes: yes, no: no}
	pick := func(exist, absent op) op {
		if r.test == testNotExist {
			return absent
		}
		return exist
	}
	switch r.kind {
	case kindElse:
		in.op = opElse
	case kindHeader:
		in.op, in.item = pick(opHeader, opNoHeader), p.heads.add(r.name, p.proto)
	case kindCookie:
		if p.proto == SIP { // no cookie is ever there
			in.op = pick(opNever, opElse)
			break
		}
		in.op, in.item = pick(opCookie, opNoCookie), p.cookies.add(r.name)
	case kindURI:
		if r.param != "" {
			in.item = p.params.add(r.param)
		}
		in.op = pick(opParam, opNoParam)
	}
	if r.test == testMatch {
		in.pat = uint16(len(p.pats))
		p.pats = append(p.pats, matcher{pattern: r.pat, prefix: []byte(r.pre), decoded: r.kind == kindURI && r.param != ""})
		switch {
		case r.kind == kindHeader:
			in.op = opMatchHead
		case r.param != "":
			in.op = opMatchPar
		default:
			in.op = opMatchAll
		}
	}
	return a.emit(r, in)
}

// value gives the number of a return variable; every variable that is no match is evaluated once per request.
func (a *assembler) value(r *rule) int16 {
	p := a.p
	acc := accessor{origin: r.ret.origin, part: r.ret.part, text: r.ret.text, name: r.ret.name}
	switch acc.origin {
	case fromHeader:
		acc.item = p.heads.add(r.ret.name, p.proto)
		acc.name = p.heads.items[acc.item].name
	case fromParameter:
		acc.item = p.params.add(r.ret.name)
	case fromCookie:
		acc.item = p.cookies.add(r.ret.name)
	}
	for i, v := range p.vars {
		if v.origin == acc.origin && v.part == acc.part && v.item == acc.item && v.text == acc.text {
			return int16(i)
		}
	}
	p.vars = append(p.vars, acc)
	return int16(len(p.vars) - 1)
}

func (a *assembler) emit(r *rule, in instr) int32 {
	in.el = int32(len(a.p.steps))
	a.p.steps = append(a.p.steps, stepInfo{r.el.path, a.src.at(r.el.start).line})
	a.p.code = append(a.p.code, in)
	return int32(len(a.p.code) - 1)
}

// reverse brings the instructions into the order of the file, so that a run walks forward through memory.
func (a *assembler) reverse() {
	p, n := a.p, int32(len(a.p.code))
	slices.Reverse(p.code)
	slices.Reverse(p.steps)
	turn := func(at int32) int32 {
		if at < 0 {
			return at
		}
		return n - 1 - at
	}
	for i := range p.code {
		in := &p.code[i]
		in.yes, in.no, in.el = turn(in.yes), turn(in.no), turn(in.el)
	}
	p.entry = turn(p.entry)
}
