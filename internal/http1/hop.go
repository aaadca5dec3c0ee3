package http1

// connFlags are what Connection and its kin say of this hop.
type connFlags struct {
	close, keepAlive, upgrade, trailers bool
}

// WantsClose says that Connection names close.
func (h *Head) WantsClose() bool { return h.conn.close }

// WantsKeepAlive says that Connection names keep-alive.
func (h *Head) WantsKeepAlive() bool { return h.conn.keepAlive }

// WantsUpgrade says that Connection names upgrade and that there is an Upgrade field.
func (h *Head) WantsUpgrade() bool { return h.conn.upgrade && h.count[Upgrade] > 0 }

// TakesTrailers says that TE names trailers.
func (h *Head) TakesTrailers() bool { return h.conn.trailers }

// CutHopByHop marks the lines that concern one hop only: Connection and everything that all its lines name, and the
// fields of HH-1 whether named or not. What WantsClose and its like answer is read on the way.
func (h *Head) CutHopByHop() {
	for i := range h.Fields {
		f := &h.Fields[i]
		if f.Twin {
			continue
		}
		switch f.ID {
		case Connection:
			f.Cut = CutHop
			h.connection(f.Value.Of(h.Buf))
		case TE:
			f.Cut = CutHop
			h.te(f.Value.Of(h.Buf))
		case TransferEncoding, Upgrade, KeepAlive, ProxyConnection, HTTP2Settings,
			ProxyAuthenticate, ProxyAuthenticationInfo, ProxyAuthorization:
			f.Cut = CutHop
		}
	}
}

func (h *Head) connection(v []byte) {
	for len(v) > 0 {
		var item []byte
		item, v = NextItem(v)
		switch {
		case len(item) == 0:
		case EqualFold(item, "close"):
			h.conn.close = true
		case EqualFold(item, "keep-alive"):
			h.conn.keepAlive = true
		case EqualFold(item, "upgrade"):
			h.conn.upgrade = true
		default:
			h.nominate(item)
		}
	}
}

// nominate cuts the fields a Connection line names. What the message needs to arrive can't be named away.
func (h *Head) nominate(name []byte) {
	for i := range h.Fields {
		f := &h.Fields[i]
		if f.Cut == Keep && !f.protected(h.Buf) && equalNames(f.Name.Of(h.Buf), name) {
			f.Cut = CutHop
		}
	}
}

func (f *Field) protected(b []byte) bool {
	switch f.ID {
	case Host, Cookie, SetCookie, ContentLength, Via:
		return true
	}
	return HasPrefix(f.Name.Of(b), "content-")
}

func (h *Head) te(v []byte) {
	for len(v) > 0 {
		var item []byte
		item, v = NextItem(v)
		if EqualFold(item, "trailers") {
			h.conn.trailers = true
		}
	}
}

// CutTrailers marks, in a trailer section, what may not stand there: framing, routing, trust and cookie fields, and
// fields that say how to read the body (HB-7, RFC 9110 6.5.1).
func (h *Head) CutTrailers() {
	for i := range h.Fields {
		f := &h.Fields[i]
		if f.Cut != Keep {
			continue
		}
		if f.ID != Other && f.ID != Date || notInTrailers(f.Name.Of(h.Buf)) {
			f.Cut = CutHop
		}
	}
}

func notInTrailers(name []byte) bool {
	for _, p := range [...]string{"content-", "x-forwarded-", "x-wyegate-", "sec-", "p-", "x-ssl-client-", "x-client-", "if-"} {
		if p == "content-" && Equal(name, "content-digest") {
			continue // its value is only known at the end (RFC 9530)
		}
		if HasPrefix(name, p) {
			return true
		}
	}
	for _, n := range [...]string{
		"cache-control", "range", "accept-ranges", "www-authenticate", "location", "age", "expires", "vary", "warning",
		"pragma", "origin", "set-cookie2", "cookie2", "x-http-method-override",
	} {
		if Equal(name, n) {
			return true
		}
	}
	return false
}
