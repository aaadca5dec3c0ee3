package h2

import (
	"bytes"
	"strings"

	"golang.org/x/net/http2/hpack"

	"github.com/wyegate/wyegate/internal/http1"
)

// fields turns the fields of one header block into the head of a request of HTTP/1.1, or into trailers. What RFC 9113
// calls malformed makes the block bad; what HTTP/1.1 has an answer for is left to it.
type fields struct {
	scratch
	bad     bool
	long    bool // more than a head may have: the rest is dropped, and the head refused for its length
	most    int
	regular bool // a field that is none of the pseudo-fields has come

	method, scheme, path, authority, host string

	pseudo  [numPseudo]bool
	hosts   int
	lengths int
	length  int64 // of the last Content-Length; -1: it is no number
}

// scratch is what one block leaves to the next.
type scratch struct {
	text    []byte // field lines in their order
	cookies []byte // all crumbs of Cookie (RFC 9113 8.2.3)
}

const (
	pseudoMethod = iota
	pseudoScheme
	pseudoPath
	pseudoAuthority
	numPseudo
)

func (f *fields) begin(most int) {
	f.text, f.cookies, f.most, f.length = f.text[:0], f.cookies[:0], most, -1
}

// add takes one field. H2-1.
func (f *fields) add(h hpack.HeaderField) {
	switch {
	case f.bad:
	case strings.HasPrefix(h.Name, ":"):
		f.addPseudo(h.Name, h.Value)
	case !validName(h.Name) || !validValue(h.Value):
		f.bad = true
	default:
		f.regular = true
		f.addRegular(h.Name, h.Value)
	}
}

func (f *fields) addPseudo(name, value string) {
	at, to := 0, (*string)(nil)
	switch name {
	case ":method":
		at, to = pseudoMethod, &f.method
	case ":scheme":
		at, to = pseudoScheme, &f.scheme
	case ":path":
		at, to = pseudoPath, &f.path
	case ":authority":
		at, to = pseudoAuthority, &f.authority
	}
	if to == nil || f.regular || f.pseudo[at] {
		f.bad = true // extended CONNECT, too: :protocol was not offered
		return
	}
	for i := range len(value) {
		if value[i] <= ' ' || value[i] == 0x7f {
			f.bad = true
			return
		}
	}
	f.pseudo[at] = true
	*to = value
}

func (f *fields) addRegular(name, value string) {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		f.bad = true
		return
	case "te":
		if value != "trailers" {
			f.bad = true
			return
		}
		f.line("connection", "te")
	case "host":
		if f.hosts++; f.hosts == 1 {
			f.host = value
			return
		}
	case "content-length":
		f.lengths++
		if n, ok := http1.ParseLength([]byte(value)); ok && f.lengths == 1 {
			f.length = n
		} else {
			f.length = -1
		}
	case "cookie":
		if len(f.cookies)+len(f.text) > f.most {
			f.long = true
			return
		}
		if len(f.cookies) > 0 {
			f.cookies = append(f.cookies, "; "...)
		}
		f.cookies = append(f.cookies, value...)
		return
	}
	f.line(name, value)
}

func (f *fields) line(name, value string) {
	if len(f.text)+len(f.cookies) > f.most {
		f.long = true
		return
	}
	f.text = append(append(append(append(f.text, name...), ": "...), value...), "\r\n"...)
}

// request writes the head of a request into s; false when the request is malformed.
func (f *fields) request(s *stream) bool {
	connect := f.method == "CONNECT"
	switch {
	case f.bad || !f.pseudo[pseudoMethod] || f.method == "":
		return false
	case connect && (f.pseudo[pseudoScheme] || f.pseudo[pseudoPath] || f.authority == ""):
		return false
	case !connect && (f.scheme != "http" && f.scheme != "https" || !originForm(f.method, f.path)):
		return false
	}
	s.declared = -1
	if f.lengths == 1 {
		if s.declared = f.length; s.whole && f.length > 0 {
			return false
		}
	}
	s.method = f.method
	target := f.path
	if connect {
		target = f.authority
	}
	b := make([]byte, 0, len(f.method)+len(target)+len(f.authority)+len(f.host)+len(f.text)+len(f.cookies)+96)
	b = append(append(append(append(b, f.method...), ' '), target...), " HTTP/1.1\r\n"...)
	b = f.appendHost(b)
	b = append(b, f.text...)
	if len(f.cookies) > 0 {
		b = append(append(append(b, "cookie: "...), f.cookies...), "\r\n"...)
	}
	if !s.whole && f.lengths == 0 {
		b = append(b, "transfer-encoding: chunked\r\n"...)
	}
	if f.long {
		b = append(append(b, "x: "...), bytes.Repeat([]byte{'x'}, max(f.most-len(b), 0)+1)...) // no end comes within the limit
	} else {
		b = append(b, "\r\n"...)
	}
	s.head = b
	return true
}

// appendHost names the authority once. A Host that says something else is left beside it: two are one too many (400).
func (f *fields) appendHost(b []byte) []byte {
	authority := f.authority
	if !f.pseudo[pseudoAuthority] {
		if f.hosts == 0 {
			return b
		}
		authority = f.host
	}
	b = append(append(append(b, "host: "...), authority...), "\r\n"...)
	if f.hosts > 0 && !strings.EqualFold(f.host, authority) {
		b = append(append(append(b, "host: "...), f.host...), "\r\n"...)
	}
	return b
}

// trailer says whether the fields may stand behind a body at all. Which of them go on is decided with those of HTTP/1.1.
func (f *fields) trailer() bool {
	for _, p := range f.pseudo {
		if p {
			return false
		}
	}
	return !f.bad && !f.long
}

// originForm says whether a path is one: "*" is for OPTIONS alone (RFC 9113 8.3.1).
func originForm(method, path string) bool {
	return strings.HasPrefix(path, "/") || path == "*" && method == "OPTIONS"
}

// validName says whether a name is a token in lower case (RFC 9113 8.2.1).
func validName(n string) bool {
	if n == "" {
		return false
	}
	for i := range len(n) {
		if !nameOctet[n[i]] {
			return false
		}
	}
	return true
}

var nameOctet = func() (t [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") {
		t[c] = true
	}
	return t
}()

// validValue refuses what could end a line elsewhere, and white space at the ends, which readers disagree about.
func validValue(v string) bool {
	if v == "" {
		return true
	}
	if strings.ContainsAny(v, "\x00\r\n") {
		return false
	}
	first, last := v[0], v[len(v)-1]
	return first != ' ' && first != '\t' && last != ' ' && last != '\t'
}
