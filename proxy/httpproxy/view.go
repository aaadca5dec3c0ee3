package httpproxy

import (
	"net/netip"
	"strconv"

	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/proxy"
)

// View is one request as gate, rules and balancer see it. A front fills Head and the addresses, Admit the rest. Slices
// are pieces of the received bytes.
type View struct {
	Head   *http1.Head
	Remote netip.AddrPort // peer of the connection, or what a PROXY header carried
	Local  netip.AddrPort // our side of it
	TLS    bool
	HTTP2  bool   // the client speaks HTTP/2; Head is what its request says in HTTP/1.1
	SNI    string // name that the client asked for in its handshake; empty: none

	// ClientCert is the certificate that the client has shown in a handshake, verified, as the value of Client-Cert (RFC 9440
	// section 2.2); nil: none. It belongs to the connection.
	ClientCert []byte

	Method    []byte
	Target    []byte // origin form, or "*"; as received, never normalised (HF-6)
	Authority []byte // host and port: of an absolute target, else of Host, else default_host
	Host      []byte // host of Authority in lower case, without port
	Path      []byte // Target up to "?"
	Framing   http1.Framing
	Expects   bool       // Expect: 100-continue
	NewHost   bool       // Authority is not what Host says: the field is written anew
	Upgrade   []byte     // protocol to change to, one of Service.Upgrade; nil: none
	Trusted   bool       // the peer may say who the client is (trust_headers_from)
	Client    netip.Addr // the client, found through trusted hops (HH-3)

	host [maxHost]byte
}

// maxHost is the longest host name of DNS, in octets.
const maxHost = 253

// Reset forgets the request and keeps Head and the addresses of the connection.
func (v *View) Reset() {
	v.Head.Reset()
	v.Method, v.Target, v.Authority, v.Host, v.Path = nil, nil, nil, nil, nil
	v.Framing, v.Expects, v.NewHost, v.Upgrade, v.Trusted, v.Client = http1.Framing{}, false, false, nil, false, netip.Addr{}
}

// Describe implements proxy.Message: rules see the fields that trust has left (SS-3), hop-by-hop ones among them.
func (v *View) Describe(r *proxy.RuleRequest) {
	r.Proto = proxy.RuleHTTP
	r.Method, r.Target, r.Remote = v.Method, v.Target, v.Remote
	r.Fields = r.Fields[:0]
	for i := range v.Head.Fields {
		f := &v.Head.Fields[i]
		if f.Cut == http1.CutTrust || f.Cut == http1.CutTwin {
			continue
		}
		value := v.Head.ValueOf(f)
		if f.ID == http1.Host {
			value = v.Authority
		}
		r.Fields = append(r.Fields, proxy.RuleField{Name: v.Head.NameOf(f), Value: value})
	}
	if v.Head.Count(http1.Host) == 0 {
		r.Fields = append(r.Fields, proxy.RuleField{Name: hostName, Value: v.Authority})
	}
}

var hostName = []byte("Host")

// AppendPart implements proxy.Message (dcr.md 5.2). IPv4-mapped addresses are written as IPv4; IPv6 in brackets, so that
// a port can follow.
func (v *View) AppendPart(dst []byte, p proxy.KeyPart) []byte {
	switch p {
	case proxy.PartRemoteHost:
		return appendHost(dst, v.Remote.Addr())
	case proxy.PartRemotePort:
		return strconv.AppendUint(append(dst, ':'), uint64(v.Remote.Port()), 10)
	case proxy.PartClientAddress:
		return appendHost(dst, v.Client)
	}
	return dst
}

func appendHost(dst []byte, a netip.Addr) []byte {
	if !a.IsValid() {
		return dst
	}
	if a = a.Unmap().WithZone(""); a.Is6() {
		return append(a.AppendTo(append(dst, '[')), ']')
	}
	return a.AppendTo(dst)
}

// Is says whether the method is m. Methods have case.
func (v *View) Is(m string) bool { return string(v.Method) == m }

// Idempotent says whether the request may be sent again after a server may have seen it (RFC 9110 9.2.2).
func (v *View) Idempotent() bool {
	switch string(v.Method) {
	case "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE":
		return true
	}
	return false
}
