package dcr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wyegate/wyegate/internal/sip"
)

// origin is where the value of a variable is taken from.
type origin uint8

const (
	fromMethod origin = iota
	fromURI           // the Request-URI
	fromHeader
	fromParameter // HTTP query
	fromCookie
	fromMatch
)

// part is what is taken of it. Parts from partURI on want a URI or a name-addr there.
type part uint8

const (
	partWhole part = iota
	partURI
	partScheme
	partUser
	partHost
	partPort
	partDisplay
	partResolve
	partResolveUser
	partResolveHost
)

// resolves reports whether the part wants ENUM for a number.
func (p part) resolves() bool { return p >= partResolve }

// variable is a return variable of section 3.
type variable struct {
	origin origin
	part   part
	name   string // header field, parameter or cookie; the header of request.HEADER.match
	text   string // as written
}

// fault says why a text is no variable.
type fault struct{ code, text, suggestion string }

// suffixes are the documented endings, the longest first (section 3.3).
var suffixes = []struct {
	text string
	part part
}{
	{"uri.resolve.user", partResolveUser}, {"uri.resolve.host", partResolveHost}, {"uri.display-name", partDisplay},
	{"uri.resolve", partResolve}, {"uri.scheme", partScheme}, {"uri.user", partUser}, {"uri.host", partHost},
	{"uri.port", partPort}, {"uri", partURI}, {"display-name", partDisplay},
}

var uriParts = map[string]part{
	"": partWhole, "scheme": partScheme, "user": partUser, "host": partHost, "port": partPort,
	"resolve": partResolve, "resolve.user": partResolveUser, "resolve.host": partResolveHost,
}

var (
	wordsURI     = []string{"scheme", "user", "host", "port", "resolve"}
	wordsHeader  = []string{"scheme", "user", "host", "port", "display-name", "resolve"}
	wordsHTTP    = []string{"user", "host", "resolve"}
	wordsResolve = []string{"user", "host"}
	wordsMatch   = []string{"resolve.user"}
)

// parseVariable reads a return value for one protocol.
func parseVariable(text string, proto Proto) (variable, *fault) {
	v := variable{text: text}
	head, rest, dotted := strings.Cut(text, ".")
	switch {
	case head == "match":
		v.origin = fromMatch
		switch {
		case !dotted:
		case rest == "resolve.user":
			v.part = partResolveUser
		default:
			return v, unknownAfter(text, "match", rest, wordsMatch)
		}
		return v, nil
	case head == "cookie" && dotted && rest != "":
		v.origin, v.name = fromCookie, rest
	case head == "parameter" && dotted && rest != "":
		v.origin = fromParameter
		if f := v.split(rest, wordsHTTP); f != nil {
			return v, f
		}
		if v.part == partScheme || v.part == partPort || v.part == partDisplay {
			_, word, _ := strings.Cut(rest[len(v.name):], "uri.")
			return v, unknownAfter(text, "uri", word, wordsHTTP)
		}
	case head == "request" && dotted && rest != "":
		if f := v.request(rest, proto); f != nil {
			return v, f
		}
	default:
		return v, unknownHead(text, head, dotted, proto)
	}
	if other := v.foreignTo(proto); other != "" {
		return v, &fault{code: "DCR204", text: fmt.Sprintf("return variable %q: exists in %s only", text, other)}
	}
	return v, nil
}

// request reads what follows "request.".
func (v *variable) request(rest string, proto Proto) *fault {
	if rest == "method" {
		v.origin = fromMethod
		return nil
	}
	if word, after, dotted := strings.Cut(rest, "."); word == "method" {
		return &fault{code: "DCR203", text: fmt.Sprintf("return variable %q: after \"method\" nothing may follow", v.text)}
	} else if word == "uri" {
		v.origin = fromURI
		p, ok := uriParts[after]
		if !ok || dotted && after == "" {
			if tail, under := strings.CutPrefix(after, "resolve."); under {
				return unknownAfter(v.text, "resolve", tail, wordsResolve)
			}
			return unknownAfter(v.text, "uri", after, wordsURI)
		}
		v.part = p
		return nil
	}
	v.origin = fromHeader
	for _, m := range []struct {
		end  string
		part part
	}{{".match.resolve.user", partResolveUser}, {".match", partWhole}} {
		if name, ok := strings.CutSuffix(rest, m.end); ok && name != "" {
			v.origin, v.name, v.part = fromMatch, name, m.part
			return v.stray(wordsHeader)
		}
	}
	words := wordsHeader
	if proto == HTTP {
		words = wordsHTTP
	}
	return v.split(rest, words)
}

// split takes the longest documented suffix off; what stands before is the name and may hold dots.
func (v *variable) split(rest string, words []string) *fault {
	v.name = rest
	for _, s := range suffixes {
		if name, ok := strings.CutSuffix(rest, "."+s.text); ok && name != "" {
			v.name, v.part = name, s.part
			break
		}
	}
	return v.stray(words)
}

// stray finds a word of the language that a name with dots holds: "To.uri.usr" is no header field but a slip.
func (v *variable) stray(words []string) *fault {
	seg := strings.Split(v.name, ".")
	for i, s := range seg[1:] {
		tail := strings.Join(seg[i+2:], ".")
		switch s {
		case "uri":
			if under, ok := strings.CutPrefix(tail, "resolve."); ok {
				return unknownAfter(v.text, "resolve", under, wordsResolve)
			}
			return unknownAfter(v.text, "uri", tail, words)
		case "match":
			return unknownAfter(v.text, "match", tail, wordsMatch)
		case "resolve", "user", "host", "port", "scheme", "display-name":
			return unknownAfter(v.text, seg[i], strings.Join(seg[i+1:], "."), []string{"uri"})
		}
	}
	if len(seg) > 1 && len(seg[0]) > 1 && v.origin == fromHeader && sip.HeaderByName([]byte(seg[0])) != sip.HeaderOther {
		return unknownAfter(v.text, seg[0], strings.Join(seg[1:], "."), []string{"uri"})
	}
	return nil
}

// unknownAfter words the fault of a variable whose text goes wrong behind a word.
func unknownAfter(text, after, got string, want []string) *fault {
	f := &fault{code: "DCR203", text: fmt.Sprintf("return variable %q: after %q expected %s", text, after, list(want))}
	wrong, _, _ := strings.Cut(got, ".")
	if near := nearest(wrong, want); near != "" && wrong != "" {
		if at := strings.LastIndex(text, "."+wrong); at >= 0 {
			f.suggestion = text[:at+1] + near + text[at+1+len(wrong):]
		}
	}
	return f
}

func unknownHead(text, head string, dotted bool, proto Proto) *fault {
	words := []string{"request", "match"}
	if proto == HTTP {
		words = []string{"request", "parameter", "cookie", "match"}
	}
	switch {
	case slices.Contains([]string{"request", "parameter", "cookie"}, head):
		what := map[string]string{"request": "a header field name", "parameter": "a parameter name", "cookie": "a cookie name"}[head]
		if head == "request" && proto == SIP {
			what = "method, uri or a header field name"
		}
		return &fault{code: "DCR203", text: fmt.Sprintf("return variable %q: after %q expected %s", text, head, what)}
	}
	near := nearest(head, words)
	f := &fault{code: "DCR203", text: fmt.Sprintf("return variable %q: expected %s%s", text, list(words), didYouMean(near))}
	if near != "" {
		f.suggestion = near + text[len(head):]
	}
	return f
}

// foreignTo names the rules that the variable belongs to when it does not exist for the protocol.
func (v *variable) foreignTo(proto Proto) string {
	if proto == SIP {
		if v.origin == fromParameter || v.origin == fromCookie {
			return "http-rules"
		}
		return ""
	}
	switch {
	case v.origin == fromMethod, v.origin == fromURI, v.origin == fromMatch && v.name != "",
		v.origin == fromHeader && (v.part == partScheme || v.part == partPort || v.part == partDisplay):
		return "sip-rules"
	}
	return ""
}

// isToken reports whether a text can be the name of a header field or cookie (RFC 9110 5.6.2, RFC 3261 25.1).
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// sameHeader compares two field names as the protocol does: without case, and for SIP with compact forms.
func sameHeader(a, b string, proto Proto) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	if proto == HTTP {
		return false
	}
	id := sip.HeaderByName([]byte(a))
	return id != sip.HeaderOther && id == sip.HeaderByName([]byte(b))
}
