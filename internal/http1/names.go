package http1

import "bytes"

// ID is the number of a field name that the program knows.
type ID uint8

// The names with a number. An unknown name is Other.
const (
	Other ID = iota
	Host
	Connection
	ContentLength
	TransferEncoding
	TE
	Trailer
	Upgrade
	KeepAlive
	ProxyConnection
	ProxyAuthenticate
	ProxyAuthenticationInfo
	ProxyAuthorization
	HTTP2Settings
	Expect
	Via
	MaxForwards
	Cookie
	SetCookie
	Forwarded
	XForwardedFor
	XForwardedProto
	XForwardedHost
	XForwardedPort
	XRealIP
	ClientCert
	ClientCertChain
	PAssertedIdentity
	Authorization
	ContentType
	ContentEncoding
	ContentRange
	Date
	RetryAfter

	NumIDs
)

var idNames = [NumIDs]string{
	Host: "host", Connection: "connection", ContentLength: "content-length", TransferEncoding: "transfer-encoding",
	TE: "te", Trailer: "trailer", Upgrade: "upgrade", KeepAlive: "keep-alive", ProxyConnection: "proxy-connection",
	ProxyAuthenticate: "proxy-authenticate", ProxyAuthenticationInfo: "proxy-authentication-info",
	ProxyAuthorization: "proxy-authorization", HTTP2Settings: "http2-settings", Expect: "expect", Via: "via",
	MaxForwards: "max-forwards", Cookie: "cookie", SetCookie: "set-cookie", Forwarded: "forwarded",
	XForwardedFor: "x-forwarded-for", XForwardedProto: "x-forwarded-proto", XForwardedHost: "x-forwarded-host",
	XForwardedPort: "x-forwarded-port", XRealIP: "x-real-ip", ClientCert: "client-cert",
	ClientCertChain: "client-cert-chain", PAssertedIdentity: "p-asserted-identity", Authorization: "authorization",
	ContentType: "content-type", ContentEncoding: "content-encoding", ContentRange: "content-range", Date: "date",
	RetryAfter: "retry-after",
}

// fold maps an octet of a field name to lower case and "_" to "-"; 0 stands for what is not allowed in a token
// (RFC 9110 5.6.2).
var fold = func() (t [256]byte) {
	for _, c := range []byte("!#$%&'*+-.^`|~0123456789abcdefghijklmnopqrstuvwxyz") {
		t[c] = c
	}
	for c := byte('A'); c <= 'Z'; c++ {
		t[c] = c | 0x20
	}
	t['_'] = '-'
	return t
}()

// shapes finds the candidates for a name by its length and its outer letters; ids of one shape are chained.
var shapes, chain = func() (s [256]ID, next [NumIDs]ID) {
	for id := ID(1); id < NumIDs; id++ {
		at := shape([]byte(idNames[id]))
		next[id] = s[at]
		s[at] = id
	}
	return s, next
}()

func shape(name []byte) uint8 {
	n := len(name)
	return uint8(n)*7 ^ fold[name[0]]*3 ^ fold[name[n-1]]<<1
}

// IDOf gives the number of a name. Case plays no part, and "_" is read as "-" (HH-3: servers that map names to variables
// take the two for one): twin says that the name had one, so that it is not the field but looks like it.
func IDOf(name []byte) (id ID, twin bool) {
	if len(name) == 0 {
		return Other, false
	}
	for id = shapes[shape(name)]; id != Other; id = chain[id] {
		if Equal(name, idNames[id]) {
			return id, bytes.IndexByte(name, '_') >= 0
		}
	}
	return Other, false
}

// Equal compares a field name with a name in lower case that holds "-", by the rules of IDOf.
func Equal(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i := range name {
		if fold[name[i]] != lower[i] {
			return false
		}
	}
	return true
}

// HasPrefix says whether a field name begins with a prefix in lower case, by the rules of IDOf.
func HasPrefix(name []byte, lower string) bool {
	return len(name) >= len(lower) && Equal(name[:len(lower)], lower)
}

// IsToken says whether b is a token: one octet or more of the right kind.
func IsToken(b []byte) bool {
	for _, c := range b {
		if fold[c] == 0 {
			return false
		}
	}
	return len(b) > 0
}
