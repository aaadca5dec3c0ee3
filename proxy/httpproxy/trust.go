package httpproxy

import (
	"bytes"
	"net/netip"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy"
)

// trusts says whether a peer may tell who the client is.
func (s *Service) trusts(a netip.Addr) bool {
	a = a.Unmap()
	for _, p := range s.TrustFrom {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// trust takes off what the peer may not claim (HH-3, SS-3) and finds the client's address. The fields of tell_server
// never pass, whoever sends them.
func (app *App) trust(v *View, e *proxy.Explanation) {
	v.Trusted = len(app.Service.TrustFrom) > 0 && app.Service.trusts(v.Remote.Addr())
	h, t := v.Head, app.Target
	for i := range h.Fields {
		f := &h.Fields[i]
		own := t.TellKey != "" && sameName(h.NameOf(f), t.TellKey) || t.TellToken != "" && sameName(h.NameOf(f), t.TellToken)
		if own || !v.Trusted && claims(f, h.NameOf(f)) {
			if f.Cut = http1.CutTrust; e != nil {
				e.Removed = append(e.Removed, string(h.NameOf(f)))
			}
		}
	}
	v.Client = v.Remote.Addr().Unmap()
	if v.Trusted {
		app.Service.findClient(v)
	}
}

// claims knows the trust fields by number or prefix. Names with "_" are read as if with "-".
func claims(f *http1.Field, name []byte) bool {
	switch f.ID {
	case http1.Forwarded, http1.XForwardedFor, http1.XForwardedProto, http1.XForwardedHost, http1.XForwardedPort,
		http1.XRealIP, http1.ClientCert, http1.ClientCertChain, http1.PAssertedIdentity:
		return true
	case http1.Other:
	default:
		return false
	}
	switch name[0] | 0x20 {
	case 'x':
		return http1.HasPrefix(name, "x-forwarded-") || http1.HasPrefix(name, "x-ssl-") ||
			http1.HasPrefix(name, "x-client-") || http1.HasPrefix(name, "x-wyegate-")
	case 'p':
		return http1.HasPrefix(name, "p-preferred-") || http1.HasPrefix(name, "p-charging-")
	case 's':
		return http1.HasPrefix(name, "ssl-client-")
	}
	return false
}

// sameName compares with a configured name, without case and with "_" as "-".
func sameName(name []byte, configured string) bool {
	if len(name) != len(configured) {
		return false
	}
	for i, c := range name {
		if nameFold(c) != nameFold(configured[i]) {
			return false
		}
	}
	return true
}

func nameFold(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c | 0x20
	case c == '_':
		return '-'
	}
	return c
}

// findClient walks X-Forwarded-For, else Forwarded, from the right through hops that are trusted. It stops at the first
// address that is not, or at what is no address: nothing to the left of that can be believed.
func (s *Service) findClient(v *View) {
	id := http1.XForwardedFor
	if v.Head.Count(id) == 0 {
		id = http1.Forwarded
	}
	fields := v.Head.Fields
	for i := len(fields) - 1; i >= 0; i-- {
		if fields[i].ID != id || fields[i].Cut != http1.Keep {
			continue
		}
		for rest := v.Head.ValueOf(&fields[i]); len(rest) > 0; {
			item := rest
			if c := bytes.LastIndexByte(rest, ','); c >= 0 {
				item, rest = rest[c+1:], rest[:c]
			} else {
				rest = nil
			}
			a, ok := hopAddress(bytes.TrimSpace(item), id == http1.Forwarded)
			if !ok {
				return
			}
			if v.Client = a; !s.trusts(a) {
				return
			}
		}
	}
}

// hopAddress reads one hop: an address with or without port and brackets, for Forwarded the value of for=.
func hopAddress(item []byte, forwarded bool) (netip.Addr, bool) {
	if forwarded {
		if item = forValue(item); item == nil {
			return netip.Addr{}, false
		}
	}
	if n := len(item); n >= 2 && item[0] == '"' && item[n-1] == '"' {
		item = item[1 : n-1]
	}
	if len(item) > 0 && item[0] == '[' {
		end := bytes.IndexByte(item, ']')
		if end < 0 {
			return netip.Addr{}, false
		}
		item = item[1:end]
	} else if c := bytes.IndexByte(item, ':'); c >= 0 && bytes.IndexByte(item[c+1:], ':') < 0 {
		item = item[:c]
	}
	if len(item) > 45 {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(string(item))
	return a.Unmap().WithZone(""), err == nil
}

func forValue(item []byte) []byte {
	for len(item) > 0 {
		pair := item
		if i := bytes.IndexByte(item, ';'); i >= 0 {
			pair, item = item[:i], item[i+1:]
		} else {
			item = nil
		}
		pair = bytes.TrimSpace(pair)
		if len(pair) > 4 && http1.EqualFold(pair[:4], "for=") {
			return pair[4:]
		}
	}
	return nil
}
