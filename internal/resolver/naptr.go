package resolver

import (
	"cmp"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// errNAPTR says that a record's regexp field cannot be used.
var errNAPTR = errors.New("resolver: regexp of the NAPTR record cannot be used")

// maxURI bounds what a record may make of a number.
const maxURI = 1024

// enumURI picks the terminal record for SIP, lowest order, then lowest preference, and applies it to "+digits" (RFC
// 6116; dcr.md 3.5). Records that are equal in both are taken by their text, so that all nodes take the same. An empty
// result says that there is none to use.
func enumURI(digits string, rrs []dns.RR) string {
	var list []*dns.NAPTR
	for _, rr := range rrs {
		if n, ok := rr.(*dns.NAPTR); ok && strings.EqualFold(n.Flags, "u") && forSIP(n.Service) {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return ""
	}
	best := slices.MinFunc(list, func(a, b *dns.NAPTR) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference), cmp.Compare(a.Regexp, b.Regexp))
	})
	uri, err := rewrite("+"+digits, unescape(best.Regexp))
	if err != nil || !sipURI(uri) {
		return ""
	}
	return uri
}

// forSIP reads "E2U+sip"; a record may name several services (RFC 6116 section 3.4.3.1).
func forSIP(service string) bool {
	parts := strings.Split(service, "+")
	if !strings.EqualFold(parts[0], "E2U") {
		return false
	}
	for _, p := range parts[1:] {
		if strings.EqualFold(p, "sip") {
			return true
		}
	}
	return false
}

// sipURI refuses what no Request-URI could be.
func sipURI(u string) bool {
	scheme, rest, ok := strings.Cut(u, ":")
	if !ok || rest == "" || len(u) > maxURI || !strings.EqualFold(scheme, "sip") && !strings.EqualFold(scheme, "sips") {
		return false
	}
	for i := range len(u) {
		if c := u[i]; c <= ' ' || c >= 0x7f || c == '<' || c == '>' || c == '"' {
			return false
		}
	}
	return true
}

// rewrite applies a substitution expression: delimiter, POSIX ERE, delimiter, replacement, delimiter, flags (RFC 3402
// section 3.2). What the expression does not match of s stays around the replacement, as with sed.
func rewrite(s, subst string) (string, error) {
	if len(subst) < 4 || len(subst) > maxURI || subst[0] == '\\' || subst[0] >= '0' && subst[0] <= '9' || subst[0] == 'i' {
		return "", errNAPTR
	}
	delim := subst[0]
	expr, rest, ok := field(subst[1:], delim)
	if !ok {
		return "", errNAPTR
	}
	repl, flags, ok := field(rest, delim)
	if !ok || flags != "" && flags != "i" {
		return "", errNAPTR
	}
	re, err := compile(expr, flags == "i")
	if err != nil {
		return "", err
	}
	m := re.FindStringSubmatchIndex(s)
	if m == nil {
		return "", errNAPTR
	}
	out, err := expand(repl, s, m)
	if err != nil {
		return "", err
	}
	return s[:m[0]] + out + s[m[1]:], nil
}

// field cuts at the first delimiter without a backslash before it; one with a backslash stands for itself.
func field(s string, delim byte) (f, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == delim:
			return b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s):
			if s[i+1] != delim {
				b.WriteByte('\\')
			}
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

// compile reads a POSIX extended expression, leftmost-longest; RE2 bounds its time.
func compile(expr string, fold bool) (*regexp.Regexp, error) {
	flags := syntax.POSIX
	if fold {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(expr, flags)
	if err != nil {
		return nil, errNAPTR
	}
	re, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, errNAPTR
	}
	re.Longest()
	return re, nil
}

// expand puts the groups \1 to \9 into the replacement; another octet behind a backslash stands for itself.
func expand(repl, s string, m []int) (string, error) {
	var b strings.Builder
	for i := 0; i < len(repl); i++ {
		if repl[i] != '\\' || i+1 == len(repl) {
			b.WriteByte(repl[i])
			continue
		}
		i++
		c := repl[i]
		if c < '1' || c > '9' {
			b.WriteByte(c)
			continue
		}
		g := 2 * int(c-'0')
		if g >= len(m) {
			return "", errNAPTR
		}
		if m[g] >= 0 {
			b.WriteString(s[m[g]:m[g+1]])
		}
		if b.Len() > maxURI {
			return "", errNAPTR
		}
	}
	return b.String(), nil
}

// unescape undoes the presentation form in which the library gives character strings: \X and \DDD.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		if i+3 < len(s) && digit(s[i+1]) && digit(s[i+2]) && digit(s[i+3]) {
			b.WriteByte((s[i+1]-'0')*100 + (s[i+2]-'0')*10 + s[i+3] - '0')
			i += 3
			continue
		}
		i++
		b.WriteByte(s[i])
	}
	return b.String()
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
