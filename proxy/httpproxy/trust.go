package httpproxy

import (
	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy"
)

// trust takes off what the peer may not claim (HH-3, SS-3) and finds the client's address. The fields of tell_server
// never pass, whoever sends them.
func (app *App) trust(v *View, e *proxy.Explanation) {
	v.Trusted = app.Service.TrustFrom.Has(v.Remote.Addr())
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
		v.Client = v.Head.Client(v.Client, app.Service.TrustFrom)
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
