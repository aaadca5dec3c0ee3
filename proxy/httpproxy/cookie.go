package httpproxy

import (
	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy"
)

// wantsCookie says whether the answer of the leased server sets our cookie (HS-3, section 7): when it begins a session,
// or when the client's session moves to this server. A client that is known to belong here already gets none.
func (c *Choice) wantsCookie(resp *http1.Head) bool {
	s := &c.App.Target.Sticky
	here := c.Lease.Member.Tag
	switch {
	case s.Mode == proxy.CookieOff:
		return false
	case c.session.sealed && c.session.server == here:
		return false
	case c.session.server != 0 && c.session.server != here:
		return true
	case s.Mode == proxy.CookieAlways:
		return true
	}
	if resp.Count(http1.SetCookie) == 0 {
		return false
	}
	for i := range resp.Fields {
		f := &resp.Fields[i]
		if f.ID != http1.SetCookie || f.Twin {
			continue
		}
		name := http1.CookieName(resp.ValueOf(f))
		for _, session := range s.SessionCookies {
			if string(name) == session {
				return true
			}
		}
	}
	return false
}

// appendCookie writes the Set-Cookie line. Web sessions are pinned and have no key; converged ones carry the key hash, so
// that a page stays with its call.
func (d *Decider) appendCookie(dst []byte, v *View, c *Choice) []byte {
	t := c.App.Target
	dst = append(append(append(dst, "Set-Cookie: "...), t.Tokens.HTTPCookie...), '=')
	dst = d.appendToken(dst, c)
	dst = append(append(dst, "; Path="...), t.Sticky.Path...)
	dst = append(dst, "; HttpOnly"...)
	if t.Sticky.SameSite != "" {
		dst = append(append(dst, "; SameSite="...), t.Sticky.SameSite...)
	}
	if v.TLS {
		dst = append(dst, "; Secure"...)
	}
	return append(dst, "\r\n"...)
}

// appendToken seals the leased server and, where there is one, the key.
func (d *Decider) appendToken(dst []byte, c *Choice) []byte {
	tok := proxy.Token{
		HasServer: true, HasKey: c.Request.HasKey, Pinned: !c.Request.HasKey,
		App: c.App.Target.Tag, Server: c.Lease.Member.Tag, Hash: c.Request.Hash,
	}
	return d.codec.AppendToken(dst, c.gen.Secrets, proxy.UseHTTP, &tok)
}
