package httpproxy

import (
	"bytes"
	"net/netip"

	"github.com/wyegate/wyegate/internal/http1"
)

// Admit checks what both fronts refuse before an application is looked for, and fills the view: one framing, one host,
// a target in a form we forward (HF-1 to HF-3, HF-6, HB-2, HH-2). The error is one that Status knows. A request with both
// lengths is ErrBothLengths: the caller lets it pass when the service lives with it.
func (l *Listener) Admit(v *View) error {
	h := v.Head
	v.Method = h.Method.Of(h.Buf)
	var both error
	f, err := h.RequestFraming()
	if err == http1.ErrBothLengths {
		both = err
	} else if err != nil {
		return err
	}
	v.Framing = f
	h.CutHopByHop()
	for _, id := range singletons {
		if h.Count(id) > 1 {
			return http1.ErrFieldTwice
		}
	}
	if v.Is("CONNECT") || v.Is("TRACE") {
		return ErrMethod
	}
	if err := l.authority(v, h.Target.Of(h.Buf)); err != nil {
		return err
	}
	v.Path = v.Target
	if q := bytes.IndexByte(v.Target, '?'); q >= 0 {
		v.Path = v.Target[:q]
	}
	if err := v.expectation(); err != nil {
		return err
	}
	if both != nil {
		return both
	}
	return v.answeredHere()
}

// singletons have one value that servers act on: of two lines one program reads the first and another the last, and a
// rule or a check in between sees the wrong one (sip-http.md 16, row 1). Host and the lengths have errors of their own.
var singletons = [...]http1.ID{http1.ContentType, http1.ContentRange, http1.Authorization}

// authority sorts out the forms of RFC 9112 3.2: the target becomes origin form, and one authority is named.
func (l *Listener) authority(v *View, target []byte) error {
	h := v.Head
	switch n := h.Count(http1.Host); {
	case n > 1:
		return http1.ErrHostTwice
	case n == 0 && h.Minor == 1:
		return http1.ErrHostMissing
	case n == 1:
		v.Authority = h.Value(http1.Host)
	}
	switch {
	case target[0] == '/':
		v.Target = target
	case len(target) == 1 && target[0] == '*':
		if !v.Is("OPTIONS") {
			return http1.ErrTarget
		}
		v.Target = target
	default:
		if h.Count(http1.Host) == 1 && !v.setHost() {
			return http1.ErrHost // a bad Host is refused also where another authority wins
		}
		if err := v.absolute(target); err != nil {
			return err
		}
	}
	if v.Authority == nil {
		if l.DefaultHost == "" {
			return http1.ErrHostMissing
		}
		v.Authority, v.NewHost = []byte(l.DefaultHost), true
	}
	if !v.setHost() {
		return http1.ErrHost
	}
	if v.SNI != "" && l.Covers != nil && v.SNI != string(v.Host) && !l.Covers(v.SNI, string(v.Host)) {
		return ErrMisdirected
	}
	if v.NewHost {
		h.CutAll(http1.Host, http1.CutOwn)
	}
	return nil
}

// absolute takes an http or https URI apart. Its authority wins over Host; what is left is the origin form as it was
// written, "/" where the path is empty.
func (v *View) absolute(target []byte) error {
	rest := target
	switch {
	case len(target) > 7 && http1.EqualFold(target[:7], "http://"):
		rest = target[7:]
	case len(target) > 8 && http1.EqualFold(target[:8], "https://"):
		rest = target[8:]
	default:
		return http1.ErrTarget
	}
	end := bytes.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	v.Authority, v.NewHost = rest[:end:end], true
	switch {
	case end == len(rest) && v.Is("OPTIONS"):
		v.Target = starTarget
	case end == len(rest):
		v.Target = rootTarget
	case rest[end] == '?':
		v.Target = append([]byte{'/'}, rest[end:]...) // rare: a query behind a bare authority
	default:
		v.Target = rest[end:]
	}
	return nil
}

var starTarget, rootTarget = []byte("*"), []byte("/")

// setHost checks the authority (RFC 9112 3.2, RFC 3986 3.2.2) and leaves its host in lower case without port in v.Host.
func (v *View) setHost() bool {
	a := v.Authority
	host := a
	if len(a) > 0 && a[0] == '[' {
		end := bytes.IndexByte(a, ']')
		if end < 0 {
			return false
		}
		host = a[:end+1]
		if _, err := netip.ParseAddr(string(a[1:end])); err != nil || bytes.IndexByte(host, '%') >= 0 {
			return false
		}
	} else if i := bytes.IndexByte(a, ':'); i >= 0 {
		host = a[:i]
	}
	if port := a[len(host):]; len(port) > 0 && !isPort(port) {
		return false
	}
	if len(host) == 0 || len(host) > maxHost {
		return false
	}
	for i, c := range host {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		} else if !hostOctet[c] {
			return false
		}
		v.host[i] = c
	}
	v.Host = v.host[:len(host)]
	return true
}

func isPort(p []byte) bool {
	n := 0
	for _, c := range p[1:] {
		if c < '0' || c > '9' {
			return false
		}
		if n = n*10 + int(c-'0'); n > 65535 {
			return false
		}
	}
	return p[0] == ':'
}

// hostOctet are the octets of a host: names, IPv4, and what stands in brackets. Sub-delims and percent escapes are legal
// in a URI's reg-name, but no name that DNS knows has them, and readers differ on them.
var hostOctet = func() (t [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyz0123456789-._~[]:") {
		t[c] = true
	}
	return t
}()

// expectation knows 100-continue and nothing else (HB-2). HTTP/1.0 has none.
func (v *View) expectation() error {
	h := v.Head
	if h.Count(http1.Expect) == 0 {
		return nil
	}
	if h.Minor == 0 {
		h.CutAll(http1.Expect, http1.CutHop)
		return nil
	}
	if h.Count(http1.Expect) > 1 || !http1.EqualFold(h.Value(http1.Expect), "100-continue") {
		return ErrExpectation
	}
	v.Expects = true
	return nil
}

// answeredHere finds what is meant for us: OPTIONS of the server as such, or with no hop left (HH-2).
func (v *View) answeredHere() error {
	if !v.Is("OPTIONS") {
		if v.Target[0] == '*' {
			return http1.ErrTarget
		}
		return nil
	}
	if v.Target[0] == '*' {
		return ErrOptions
	}
	if mf := v.Head.Value(http1.MaxForwards); len(mf) == 1 && mf[0] == '0' {
		return ErrOptions
	}
	return nil
}
