package sip

// Options are what Validate must know of the proxy.
type Options struct {
	Schemes      []string // of Request-URIs; nil: sip, sips, tel, urn
	ProxyRequire []string // option tags of Proxy-Require that are supported; nil: none
	MaxURI       int      // octets of a Request-URI; 0: 8192
}

const defaultURI = 8192

var defaultSchemes = []string{"sip", "sips", "tel", "urn"}

// ErrTooManyHops is what Validate finds last: all else is right with the request. An OPTIONS to the proxy itself is
// answered in spite of it (SV-3).
var ErrTooManyHops = bad(483, "Max-Forwards is 0")

var (
	errVersion     = bad(505, "SIP version is not 2.0")
	errVersionForm = bad(400, "malformed SIP version")
	errURIForm     = bad(400, "malformed Request-URI")
	errURIHeaders  = bad(400, "Request-URI with a headers part")
	errURILong     = bad(414, "Request-URI is too long")
	errScheme      = bad(416, "scheme of the Request-URI is not supported")
	errTopVia      = bad(400, "malformed top Via")
	errFrom        = bad(400, "malformed From")
	errTo          = bad(400, "malformed To")
	errCallID      = bad(400, "malformed Call-ID")
	errCSeqRange   = bad(400, "CSeq number is above 2^31-1")
	errCSeqMethod  = bad(400, "method of CSeq is not that of the request")
	errRoute       = bad(400, "malformed Route")
	errExtension   = bad(420, "Proxy-Require names an extension that is not supported")
)

// single is a field that may stand once (SV-5), and whether it must stand at all.
type single struct {
	id      HeaderID
	must    bool
	twice   *Error
	missing *Error
}

var singles = [...]single{
	once(CallID, true), once(CSeq, true), once(From, true), once(To, true), once(MaxForwards, false),
	once(ContentLength, false),
}

func once(id HeaderID, must bool) single {
	return single{id, must, bad(400, id.String()+" is there twice"), bad(400, "no "+id.String())}
}

var errNoVia = bad(400, "no Via")

// verdict keeps the first fault, and lets reading go on: an answer needs what the rest of the message says.
type verdict struct{ bad *Error }

func (v *verdict) add(wrong bool, e *Error) {
	if wrong && v.bad == nil {
		v.bad = e
	}
}

// Validate says what the sender of a message is owed (SV-1 to SV-3, SV-5); nil when there is nothing wrong with it. It
// looks only at what a proxy uses: an unknown method, header or scheme elsewhere, a bad Date or Contact pass. It fills
// m.Values, and with a fault as much of them as can be read. For a response the status is 0: it is dropped.
func Validate(m *Msg, o *Options) *Error {
	v := verdict{m.fault}
	m.validateStart(&v)
	m.validateFields(&v)
	if m.Request {
		m.validateURI(&v, o)
		m.validateRoute(&v)
		m.validateHops(&v, o)
	}
	return m.owed(v.bad)
}

func (m *Msg) validateStart(v *verdict) {
	if !m.version2() {
		v.add(versionShape(m.Bytes(m.Version)), errVersion)
		v.add(true, errVersionForm)
	}
	v.add(m.line != nil, m.line)
}

func (m *Msg) validateFields(v *verdict) {
	for i := range singles {
		s := &singles[i]
		v.add(m.count[s.id] > 1, s.twice)
		v.add(s.must && m.count[s.id] == 0, s.missing)
	}
	var err error
	if f := m.First(ContentLength); f != nil {
		_, err = ParseContentLength(m.Bytes(f.Value))
		v.add(err != nil, errLengthNum)
	}
	w := &m.Values
	v.add(m.count[Via] == 0, errNoVia)
	v.add(m.count[Via] > 0 && !w.readVia(m.Value(Via)), errTopVia)

	var method []byte
	w.CSeq, method, err = ParseCSeq(m.Value(CSeq))
	v.add(err != nil, errCSeq)
	v.add(w.CSeq > 1<<31-1, errCSeqRange)
	v.add(m.Request && string(method) != string(m.Bytes(m.Method)), errCSeqMethod)

	_, ok := w.From.parse(m.Value(From), false)
	v.add(!ok, errFrom)
	w.FromTag, _ = HeaderParam(w.From.Params, "tag")
	_, ok = w.To.parse(m.Value(To), false)
	v.add(!ok, errTo)
	w.ToTag, _ = HeaderParam(w.To.Params, "tag")
	w.CallID = m.Value(CallID)
	v.add(len(w.CallID) == 0 || !all(w.CallID, isWord), errCallID)
}

func (w *Values) readVia(b []byte) bool {
	_, ok := w.Via.parse(b)
	return ok
}

func (m *Msg) validateURI(v *verdict, o *Options) {
	limit, schemes := o.MaxURI, o.Schemes
	if limit == 0 {
		limit = defaultURI
	}
	if schemes == nil {
		schemes = defaultSchemes
	}
	uri := m.Bytes(m.URI)
	v.add(len(uri) > limit, errURILong)
	u := &m.Values.Target
	ok := u.parse(uri)
	v.add(!ok && (u.Scheme == nil || !uriShape(uri)), errURIForm)
	v.add(!listed(u.Scheme, schemes), errScheme)
	v.add(!ok, errURIForm)
	v.add(u.Headers != nil, errURIHeaders)
}

func listed(b []byte, list []string) bool {
	for _, s := range list {
		if EqualFold(b, s) {
			return true
		}
	}
	return false
}

func (m *Msg) validateRoute(v *verdict) {
	if m.count[Route] == 0 {
		return
	}
	var u URI
	for it := m.Addrs(Route); it.Next(); {
		v.add(it.Err != nil || !u.parse(it.Addr.URI), errRoute)
	}
}

func (m *Msg) validateHops(v *verdict, o *Options) {
	hops := -1
	if f := m.First(MaxForwards); f != nil {
		var err error
		hops, err = ParseMaxForwards(m.Bytes(f.Value))
		v.add(err != nil, errHops)
	}
	m.Values.MaxForwards = hops
	if m.count[ProxyRequire] > 0 {
		for it := m.Tokens(ProxyRequire); it.Next(); {
			v.add(!listed(it.Token, o.ProxyRequire), errExtension)
		}
	}
	v.add(hops == 0, ErrTooManyHops)
}

// AppendUnsupported appends the value of the Unsupported field that a 420 carries: the option tags of Proxy-Require that
// are not supported, and only those.
func AppendUnsupported(dst []byte, m *Msg, o *Options) []byte {
	start := len(dst)
	for it := m.Tokens(ProxyRequire); it.Next(); {
		if listed(it.Token, o.ProxyRequire) || !all(it.Token, isToken) {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ", "...)
		}
		dst = append(dst, it.Token...)
	}
	return dst
}
