package dcr

// changing are the fields of DCR406: their values change from message to message or from hop to hop.
var changing = []string{"Via", "CSeq", "Max-Forwards", "Contact", "Route", "Content-Length", "Date"}

// addressed are the SIP fields whose value is an address with its parameters.
var addressed = []string{"From", "To", "Contact", "Route", "Record-Route", "Path", "Refer-To", "Referred-By", "Reply-To",
	"P-Asserted-Identity", "P-Preferred-Identity", "P-Served-User", "P-Called-Party-ID", "P-Associated-URI", "Remote-Party-ID",
	"Diversion", "History-Info"}

// keys walks the rules that can give a key. Elements of an and but the last are guards: their value is thrown away.
func (l *linter) keys(r *rule, key bool) {
	switch r.kind {
	case kindHeader, kindURI, kindCookie, kindElse:
		l.fields(r)
		if r.known && key && (r.test != testNotExist || !l.sameItem(r)) {
			l.key(r)
		}
		l.enum(r)
	}
	for i, k := range r.kids {
		l.keys(k, key && (r.kind != kindAnd || i == len(r.kids)-1))
	}
	if r.els != nil {
		l.keys(r.els, key)
	}
}

// fields looks at which header fields a rule reads, for its condition or its value.
func (l *linter) fields(r *rule) {
	value := r.el.attr("return")
	name := r.el.attr("name")
	fromRet := r.known && r.ret.origin == fromHeader && value != nil
	switch {
	case fromRet && isField(r.ret.name, l.proto, "Authorization", "Proxy-Authorization"):
		l.f.add("DCR405", value.valueAt, r.el, "", "key from %s: the first request of a challenge has none", r.ret.name)
	case r.kind == kindHeader && name != nil && isField(r.name, l.proto, "Authorization", "Proxy-Authorization"):
		l.f.add("DCR405", name.valueAt, r.el, "", "key depends on %s: the first request of a challenge has none", r.name)
	}
	if l.opt.Service == nil {
		return
	}
	if r.kind == kindHeader && name != nil && r.name != "" && isField(r.name, l.proto, l.opt.Service.Stripped...) {
		l.f.add("DCR408", name.valueAt, r.el, "", "header field %s is stripped on a listener of this service that is not trusted", r.name)
	} else if fromRet && isField(r.ret.name, l.proto, l.opt.Service.Stripped...) {
		l.f.add("DCR408", value.valueAt, r.el, "", "header field %s is stripped on a listener of this service that is not trusted", r.ret.name)
	}
}

// enum says once that numbers are not looked up.
func (l *linter) enum(r *rule) {
	if l.opt.Service == nil || l.opt.Service.Enum || l.noEnum || !r.known || !r.ret.part.resolves() {
		return
	}
	if a := r.el.attr("return"); a != nil {
		l.noEnum = true
		l.f.add("DCR401", a.valueAt, r.el, "", "%s wants ENUM, but the service has no \"enum:\"; numbers stand for themselves", r.ret.text)
	}
}

// key looks at a value that can become a key.
func (l *linter) key(r *rule) {
	l.kinds[l.proto][kindOf(r.ret)] = true
	a := r.el.attr("return")
	if a == nil {
		return
	}
	v := r.ret
	switch {
	case v.origin == fromHeader && isField(v.name, l.proto, changing...):
		l.f.add("DCR406", a.valueAt, r.el, "", "key from %s, which changes from message to message or from hop to hop", v.name)
	case v.origin == fromMethod:
		l.f.add("DCR409", a.valueAt, r.el, "", "the method as key has few values: all load goes to few servers")
	case v.part == partScheme || v.part == partPort:
		l.f.add("DCR409", a.valueAt, r.el, "", "%s as key has few values: all load goes to few servers", v.text)
	}
	switch {
	case kindOf(v) == "URI":
		l.f.add("DCR407", a.valueAt, r.el, "", "key is a whole URI: its parameters, port and letter case are part of the key")
	case v.origin == fromHeader && v.part == partWhole && isField(v.name, l.proto, addressed...):
		l.f.add("DCR407", a.valueAt, r.el, "", "key is a whole %s field: display name, parameters and letter case are part of the key", v.name)
	}
}

// kindOf is the kind of a value, for DCR402.
func kindOf(v variable) string {
	switch v.part {
	case partURI, partResolve:
		return "URI"
	case partUser, partResolveUser:
		return "user"
	case partHost, partResolveHost:
		return "host"
	case partPort:
		return "number"
	case partDisplay, partScheme:
		return "name"
	}
	switch v.origin {
	case fromURI:
		return "URI"
	case fromMethod:
		return "name"
	}
	return "text" // raw fields, parameters, cookies and match meet anything
}

// meeting looks at both protocols together.
func (l *linter) meeting(root *element, sipRules, httpRules *rule) {
	if sv := l.opt.Service; sv != nil && sv.Converged && (sipRules == nil) != (httpRules == nil) {
		has, lacks := "sip-rules", "http-rules"
		if sipRules == nil {
			has, lacks = lacks, has
		}
		l.f.add("DCR403", root.start, root, "", "converged service with %q and no %q: the other side uses the default key", has, lacks)
	}
	a, b := l.kinds[SIP], l.kinds[HTTP]
	if len(a) == 0 || len(b) == 0 || a["text"] || b["text"] {
		return
	}
	for k := range a {
		if b[k] {
			return
		}
	}
	l.f.add("DCR402", httpRules.el.start, httpRules.el, "", "SIP keys are %s and HTTP keys %s: they can't meet", kindsText(a), kindsText(b))
}

func kindsText(m map[string]bool) string {
	var words []string
	for _, k := range []string{"user", "host", "URI", "number", "name"} {
		if m[k] {
			words = append(words, "a "+k)
		}
	}
	return list(words)
}
