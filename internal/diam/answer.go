package diam

// Reply says what an answer of ours to a request carries besides what the request decides.
type Reply struct {
	Result  uint32
	Host    string // our Origin-Host
	Realm   string // our Origin-Realm
	Message string // Error-Message; empty: none
	Failed  []byte // what AVPs.Failed gave, or nil
}

// AppendError writes the answer to the request req, a whole message, behind dst (RFC 6733 6.2, 7.2): the same command,
// application and identifiers, P as received, R and T clear, E set for 3xxx, Session-Id first if there is one, all
// Proxy-Info in order. Of the request it reads what stands before a malformed AVP. Errors: those of ParseHeader, and
// ErrTooLong; then dst comes back as it was.
func AppendError(dst, req []byte, r Reply) ([]byte, error) {
	h, err := ParseHeader(req, maxLen)
	if err != nil {
		return dst, err
	}
	if h.Len > len(req) {
		return dst, ErrShort
	}
	h.Flags &= FlagProxiable
	if r.Result/1000 == 3 {
		h.Flags |= FlagError
	}
	avps := req[HeaderLen:h.Len]
	b := Build(dst, h)
	if a, ok := Find(avps, AVPSessionID); ok {
		b.Octets(AVPSessionID, 0, a.Flags, a.Data)
	}
	b.Uint32(AVPResultCode, r.Result)
	b.String(AVPOriginHost, r.Host)
	b.String(AVPOriginRealm, r.Realm)
	if r.Message != "" {
		b.Octets(AVPErrorMessage, 0, 0, []byte(r.Message))
	}
	if len(r.Failed) >= avpHeaderLen {
		appendFailed(&b, r.Failed)
	}
	for w := Walk(avps); ; {
		a, ok := w.Next()
		if !ok {
			return b.Bytes()
		}
		if a.Is(AVPProxyInfo) {
			b.Octets(AVPProxyInfo, 0, a.Flags, a.Data)
		}
	}
}

// appendFailed writes Failed-AVP around the header of a malformed AVP, with no data: its length cannot be trusted, so
// the answer carries the shortest AVP of that code (RFC 6733 7.1.5 asks for the header and as much padding as the
// smallest value has; four zero bytes hold that for most types).
func appendFailed(b *Builder, failed []byte) {
	code := uint32(failed[0])<<24 | uint32(failed[1])<<16 | uint32(failed[2])<<8 | uint32(failed[3])
	var vendor uint32
	f := AVPFlags(failed[4])
	if f&AVPVendor != 0 && len(failed) >= avpVendorHeaderLen {
		vendor = uint32(failed[8])<<24 | uint32(failed[9])<<16 | uint32(failed[10])<<8 | uint32(failed[11])
	}
	g := b.Begin(AVPFailedAVP, 0, AVPMandatory)
	b.Octets(code, vendor, f, []byte{0, 0, 0, 0})
	b.End(g)
}
