package dcr

// Facts is what the configuration must know of a rule set.
type Facts struct {
	SIP     bool     // it has sip-rules
	HTTP    bool     // it has http-rules
	Resolve bool     // some variable wants ENUM: requests may have to wait
	Fields  []string // header fields that rules read, for a condition or a value, as written
}

// Facts tells what the rule set is made of.
func (r *RuleSet) Facts() Facts {
	f := Facts{SIP: r.prog[SIP] != nil, HTTP: r.prog[HTTP] != nil}
	seen := map[string]bool{}
	for proto, p := range r.prog {
		f.Resolve = f.Resolve || p != nil && p.resolve
		for _, n := range r.names[proto] {
			if !seen[n] {
				seen[n] = true
				f.Fields = append(f.Fields, n)
			}
		}
	}
	return f
}

// Needs reports whether requests of a protocol may end with NeedNumber: without it the caller takes the short path.
func (r *RuleSet) Needs(p Proto) bool {
	return p <= HTTP && r.prog[p] != nil && r.prog[p].resolve && r.opt.Resolver != nil
}
